/* What the collector knows of the machine. */
#ifndef INFERSCOPE_COLLECTOR_MACHINE_H
#define INFERSCOPE_COLLECTOR_MACHINE_H

#include <elf.h>
#include <stdint.h>

#if defined __x86_64__

#include <x86intrin.h>

#define MACHINE_LIBC "GLIBC_2.2.5" /* the oldest version of symbols that there is */
enum { MACHINE_JUMP_SLOT = R_X86_64_JUMP_SLOT };

/* The counter of trace_clock CLOCK_TSC. */
static inline uint64_t machine_ticks(void)
{
	return __rdtsc();
}

static inline void machine_pause(void)
{
	_mm_pause();
}

/* Sets the thread's floating-point environment to its default: nothing traps, rounding to nearest. Returns what the other puts back. */
static inline uint64_t machine_float_begin(void)
{
	uint32_t before = _mm_getcsr();

	_mm_setcsr(0x1f80);
	return before;
}

static inline void machine_float_end(uint64_t before)
{
	_mm_setcsr((uint32_t)before);
}

/* Another one for each thread. */
static inline __attribute__((always_inline)) uint64_t machine_thread(void)
{
	uint64_t thread;

	__asm__("mov %%fs:0, %0" : "=r"(thread));
	return thread;
}

#elif defined __aarch64__

#define MACHINE_LIBC "GLIBC_2.17"
enum { MACHINE_JUMP_SLOT = R_AARCH64_JUMP_SLOT };

/* Never asked for: clock_tsc_usable() says no. */
static inline uint64_t machine_ticks(void)
{
	return 0;
}

static inline void machine_pause(void)
{
	__asm__ volatile("yield");
}

static inline uint64_t machine_float_begin(void)
{
	uint64_t control, status;

	__asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr\n\tmsr fpcr, xzr" : "=r"(control), "=r"(status) : : "memory");
	return control << 32 | (status & 0xffffffff);
}

static inline void machine_float_end(uint64_t before)
{
	__asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(before >> 32), "r"(before & 0xffffffff) : "memory");
}

static inline __attribute__((always_inline)) uint64_t machine_thread(void)
{
	return (uint64_t)(uintptr_t)__builtin_thread_pointer();
}

#endif

#endif
