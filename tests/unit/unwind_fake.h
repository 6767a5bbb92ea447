/* A small interpreter of each version, built by hand in recorded memory. */
#ifndef INFERSCOPE_TESTS_UNWIND_FAKE_H
#define INFERSCOPE_TESTS_UNWIND_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cpython.h"

enum { MEMORY_BYTES = 32 << 20, RUNTIME_BYTES = 16384, INTERP_BYTES = 16384, TID_OFFSET = 0x2d0, FRAME_SIZE = 128 };
static const uint64_t MEMORY_BASE = 0x7f0000000000;

/* The other process. */
struct fake {
	int minor;
	const struct cpython_layout *layout;
	unsigned char *bytes;
	size_t used;
	uint64_t runtime, interp, code_type, gil, base_frame, last_thread;
	int reads, fail_after;  /* 0 = never */
	void (*on_read)(struct fake *fake);
};

int fake_read(void *context, uint64_t addr, void *buffer, size_t size);
/* Room for SIZE bytes: its address there. */
uint64_t place(struct fake *fake, size_t size);
/* Our pointer to a byte of it. */
unsigned char *at(struct fake *fake, uint64_t addr, int offset);
void put(struct fake *fake, uint64_t addr, int offset, uint64_t value);
void put_int(struct fake *fake, uint64_t addr, int offset, uint32_t value);
uint64_t add_text(struct fake *fake, const char *text);
uint64_t add_str(struct fake *fake, const void *units, size_t length, uint32_t kind, bool ascii);
uint64_t add_ascii(struct fake *fake, const char *text);
uint64_t add_code(struct fake *fake, const char *name, const char *file, uint32_t line);
/* OWNER only where frames have one. */
uint64_t add_frame(struct fake *fake, uint64_t code, uint64_t previous, int owner);
/* What the last frame calls its caller. */
uint64_t outermost(const struct fake *fake);
uint64_t add_thread(struct fake *fake, uint64_t frame, uint32_t tid);
void give_gil(struct fake *fake, uint64_t thread);
uint32_t fake_hex(int minor);
/* A process of Python 3.MINOR with one interpreter and no threads. */
struct fake *fake_new(int minor);
void fake_free(struct fake *fake);

#endif
