/* Threads that stand still in native code: in a library, in a signal handler, in one on its own stack, on a stack of makecontext().
 * Prints READY <pid>. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

void library_enter(void (*last)(void), int depth);

static pthread_barrier_t all;

static void stay(void)
{
	pthread_barrier_wait(&all);
	for (;;)
		pause();
}

static void *in_library(void *ignored)
{
	library_enter(stay, 20);
	return NULL;
}

static void on_signal(int number)
{
	library_enter(stay, 2);
}

static void *in_handler(void *own_stack)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = own_stack ? SA_ONSTACK : 0 };
	stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };
	int number = own_stack ? SIGUSR1 : SIGUSR2;

	if (own_stack)
		sigaltstack(&stack, NULL);
	sigaction(number, &action, NULL);
	pthread_kill(pthread_self(), number);
	return NULL;
}

static void *faulting(void *ignored)
{
	struct sigaction action = { .sa_handler = on_signal };
	void (*volatile nowhere)(void) = NULL;

	sigaction(SIGSEGV, &action, NULL);
	*(volatile int *)nowhere = 1;
	return NULL;
}

static ucontext_t inner, outer;

static void in_context(void)
{
	library_enter(stay, 3);
}

static void *on_other_stack(void *ignored)
{
	getcontext(&inner);
	inner.uc_stack.ss_sp = malloc(1 << 16);
	inner.uc_stack.ss_size = 1 << 16;
	inner.uc_link = &outer;
	makecontext(&inner, in_context, 0);
	swapcontext(&outer, &inner);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	library_enter(stay, 1);
	return 0;
}

static void *sorting(void *ignored)
{
	int numbers[8] = { 0 };

	qsort(numbers, 8, sizeof *numbers, compare);
	return NULL;
}

int main(void)
{
	void *(*const bodies[])(void *) = { in_library, in_handler, faulting, on_other_stack, sorting };
	pthread_t thread;

	pthread_barrier_init(&all, NULL, 7);
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		pthread_create(&thread, NULL, bodies[i], NULL);
	pthread_create(&thread, NULL, in_handler, "on its own stack");
	pthread_barrier_wait(&all);
	usleep(300000);
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	for (;;)
		pause();
}
