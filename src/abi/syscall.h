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

/* Traces tell calls by x86-64's numbers. NUMBER is this machine's; what that has no row for stays unknown. */
static inline uint64_t syscall_in_traces(uint64_t number)
{
#ifdef __aarch64__
	enum { NO_SUCH_CALL = 65000 };
	static const uint16_t numbers[] = {
#define SYSCALL_HERE(here, there) [here] = (there) + 1,
#include "abi/syscall_aarch64.def"
#undef SYSCALL_HERE
	};

	return number < sizeof numbers / sizeof *numbers && numbers[number] ? numbers[number] - 1u : NO_SUCH_CALL + number;
#else
	return number;
#endif
}

#endif
