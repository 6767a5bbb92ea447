/* Allocates in C, without the GIL: COUNT blocks of SIZE bytes by each of THREADS, by every function of malloc's kin in turn; some are released by another thread. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef __aarch64__

/* Exceptions trap where the processor can do that; each leaves its flag. */
static unsigned long floats_guard(void)
{
	unsigned long before;

	__asm__ volatile("mrs %0, fpcr\n\tmsr fpcr, %1\n\tmsr fpsr, xzr" : "=&r"(before) : "r"(0x9f00ul) : "memory");
	return before;
}

/* Was any there? */
static int floats_let(unsigned long before)
{
	unsigned long flags;

	__asm__ volatile("mrs %0, fpsr\n\tmsr fpcr, %1" : "=&r"(flags) : "r"(before) : "memory");
	return (flags & 0x9f) != 0;
}

#else

#include <xmmintrin.h>

static unsigned long floats_guard(void)
{
	unsigned before = _mm_getcsr();

	_mm_setcsr(0);
	return before;
}

static int floats_let(unsigned long before)
{
	int any = _mm_getcsr() != 0;

	_mm_setcsr((unsigned)before);
	return any;
}

#endif

enum { FUNCTIONS = 5, RING = 64 };

struct work { long count; size_t size; long wrong; };

static void *ring[RING];

static void *block_of(int which, size_t size)
{
	void *block = NULL;

	switch (which) {
	case 0: return malloc(size);
	case 1: return calloc(1, size);
	case 2: return realloc(NULL, size);
	case 3: return posix_memalign(&block, 64, size) ? NULL : block;
	default: return aligned_alloc(64, size & ~(size_t)63);
	}
}

/*
 * Each block carries its own address, which must still stand there when another thread gives it back. Every floating-point exception traps meanwhile, and none
 * leaves a flag.
 */
static void *work(void *argument)
{
	struct work *work = argument;
	unsigned long before = floats_guard();

	for (long i = 0; i < work->count; i++) {
		void **block = block_of((int)(i % FUNCTIONS), work->size), **old;

		if (!block) {
			work->wrong++;
			continue;
		}
		if (i % FUNCTIONS == 1 && block[1])
			work->wrong++;
		*block = block;
		old = __atomic_exchange_n(&ring[i % RING], block, __ATOMIC_ACQ_REL);
		if (old && *old != old)
			work->wrong++;
		free(old);
	}
	work->wrong += floats_let(before);
	return NULL;
}

/* How often something was not as it should be. */
long storm(int threads, long count, size_t size)
{
	struct work all[64];
	pthread_t ids[64];
	long wrong = 0;

	for (int i = 0; i < threads; i++) {
		all[i] = (struct work){ count, size, 0 };
		if (pthread_create(&ids[i], NULL, work, &all[i]))
			return -1;
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		wrong += all[i].wrong;
	}
	return wrong;
}

/* A word that may be written and leads into this library's code, and is no slot. */
long (*storm_callback)(int threads, long count, size_t size) = storm;

/* On the calling thread. */
long storm_here(long count, size_t size)
{
	struct work mine = { count, size, 0 };

	work(&mine);
	return mine.wrong;
}
