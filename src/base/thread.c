#include "base/thread.h"

#include <signal.h>

int thread_start(pthread_t *out, void *(*work)(void *context), void *context)
{
	sigset_t all, before;
	int result;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(out, NULL, work, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}
