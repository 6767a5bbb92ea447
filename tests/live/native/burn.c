/* Native work for program.py: needs no libc, so that it can be loaded anywhere; the test strips it and builds it without frame pointers. */
static volatile unsigned long sink;

__attribute__((noinline)) static unsigned long burn_inner(unsigned long seed, unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++)
		seed = (seed ^ i) * 6364136223846793005ul + (seed >> 7);
	return seed;
}

__attribute__((noinline)) unsigned long burn(unsigned long rounds)
{
	unsigned long seed = 1;

	for (int i = 0; i < 8; i++)
		seed += burn_inner(seed, rounds);
	sink = seed;
	return seed;
}

/* The same with ROOM bytes of stack between it and its caller. */
__attribute__((noinline)) unsigned long burn_with_room(unsigned long rounds)
{
	enum { ROOM = 40000, PAGE = 4096 };
	volatile unsigned char room[ROOM];
	unsigned long result;

	for (unsigned long at = 0; at < ROOM; at += PAGE)
		room[at] = 1;
	result = burn(rounds);
	return result + room[0];
}

#ifdef __aarch64__

enum { FUTEX = 98, CLOCK_GETTIME = 113, PREAD = 67, NANOSLEEP = 101 };

static long call(long number, long a, long b, long c, long d)
{
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c, x3 __asm__("x3") = d;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}

#else

enum { FUTEX = 202, CLOCK_GETTIME = 228, PREAD = 17, NANOSLEEP = 35 };

static long call(long number, long a, long b, long c, long d)
{
	register long fourth __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
	return result;
}

#endif

struct time { long seconds, nanoseconds; };

static long now_ns(void)
{
	struct time now;

	call(CLOCK_GETTIME, 1, (long)&now, 0, 0); /* CLOCK_MONOTONIC */
	return now.seconds * 1000000000 + now.nanoseconds;
}

/* How long this thread was runnable without a CPU so far: the second number in its schedstat. */
static long delay_ns(int schedstat)
{
	char text[128];
	long size = call(PREAD, schedstat, (long)text, sizeof text, 0), at = 0, delay = 0;

	while (at < size && text[at] != ' ')
		at++;
	while (++at < size && text[at] != ' ')
		delay = delay * 10 + (text[at] - '0');
	return delay;
}

/* Called with the GIL: gives it back, sleeps, and takes it again. How long it waited for it, less what it waited for a CPU then. */
long wait_for_gil(void *(*save)(void), void (*restore)(void *), int schedstat, long pause_ns)
{
	struct time pause = { 0, pause_ns };
	void *state = save();
	long begin, delay, waited;

	call(NANOSLEEP, (long)&pause, 0, 0, 0);
	delay = delay_ns(schedstat);
	begin = now_ns();
	restore(state);
	waited = now_ns() - begin;
	return waited - (delay_ns(schedstat) - delay);
}

/* A worker that has nothing to do. */
void *idle(void *argument)
{
	static int word;

	(void)argument;
	for (;;)
		call(FUTEX, (long)&word, 128, word, 0); /* FUTEX_WAIT | FUTEX_PRIVATE_FLAG */
}
