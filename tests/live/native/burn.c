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

static long wait_for_ever(int *word)
{
	register long none __asm__("r10") = 0;
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(202l), "D"(word), "S"(128l), "d"((long)*word), "r"(none) : "rcx", "r11", "memory");
	return result;
}

/* A worker that has nothing to do. */
void *idle(void *argument)
{
	static int word;

	(void)argument;
	for (;;)
		wait_for_ever(&word);
}
