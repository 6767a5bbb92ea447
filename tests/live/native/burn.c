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

static long wait_for_ever(int *word)
{
	register long none __asm__("r10") = 0;
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(202l), "D"(word), "S"(128l), "d"((long)*word), "r"(none) : "rcx", "r11", "memory");
	return result;
}

static long call(long number, long a, long b, long c, long d)
{
	register long fourth __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
	return result;
}

struct time { long seconds, nanoseconds; };

static long now_ns(void)
{
	struct time now;

	call(228, 1, (long)&now, 0, 0); /* clock_gettime(CLOCK_MONOTONIC) */
	return now.seconds * 1000000000 + now.nanoseconds;
}

/* How long this thread was runnable without a CPU so far: the second number in its schedstat. */
static long delay_ns(int schedstat)
{
	char text[128];
	long size = call(17, schedstat, (long)text, sizeof text, 0), at = 0, delay = 0; /* pread64 */

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

	call(35, (long)&pause, 0, 0, 0); /* nanosleep */
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
		wait_for_ever(&word);
}
