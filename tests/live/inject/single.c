/*
 * One thread, no pthread use at all, that works in small blocks: the ones malloc handles without locks or atomic instructions while
 * it believes in one thread. Damage shows as a wrong pattern or as glibc's own abort. Run with MALLOC_ARENA_MAX=1; ends after so many seconds, or at SIGTERM.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

int main(int argc, char **argv)
{
	double until = now() + (argc > 1 ? atof(argv[1]) : 1);
	unsigned char *blocks[200];
	long rounds = 0, bad = 0;

	signal(SIGTERM, end);
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	while (!ended && now() < until)
		for (int n = 0; n < 50; n++, rounds++) {
			for (int i = 0; i < 200; i++) {
				blocks[i] = malloc(24 + (size_t)((i + rounds) % 7) * 8);
				memset(blocks[i], i, 24);
			}
			for (int i = 0; i < 200; i++) {
				int k = (i * 7) % 200;

				bad += blocks[k][0] != (unsigned char)k || blocks[k][23] != (unsigned char)k;
				free(blocks[k]);
			}
		}
	printf("%s single %ld bad %ld\n", bad || !rounds ? "FAIL" : "OK", rounds, bad);
	return bad != 0;
}
