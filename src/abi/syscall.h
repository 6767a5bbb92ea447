/* System calls by number, as rows of syscall.def tell them. */
#ifndef INFERSCOPE_ABI_SYSCALL_H
#define INFERSCOPE_ABI_SYSCALL_H

#include <stddef.h>
#include <stdint.h>

enum syscall_what {
	SYSCALL_FD = 1,
	SYSCALL_BYTES = 2,
	SYSCALL_WAITS = 4,
	SYSCALL_CLOSES = 8,
	SYSCALL_COPIES = 16,
	SYSCALL_MAKES_FILE = 32,
	SYSCALL_MAKES_SOCKET = 64,
	SYSCALL_MAKES_EPOLL = 128,
	SYSCALL_MAKES_EVENT = 256,
	SYSCALL_MAKES_TIMER = 512,
	SYSCALL_MAKES_MEMORY = 1024,
};

struct syscall_row {
	uint16_t what; /* enum syscall_what */
	const char *name;
};

/* NULL: no such call is known. */
static inline const struct syscall_row *syscall_row(uint64_t number)
{
	static const struct syscall_row rows[] = {
#define SYSCALL(number, name, what) [number] = { what, #name },
#include "abi/syscall.def"
#undef SYSCALL
	};

	return number < sizeof rows / sizeof *rows && rows[number].name ? &rows[number] : NULL;
}

#endif
