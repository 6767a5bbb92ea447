/* Threads of the attacher's own. */
#ifndef INFERSCOPE_BASE_THREAD_H
#define INFERSCOPE_BASE_THREAD_H

#include <pthread.h>

/* pthread_create() of a thread with all signals blocked, which are for the command's own. Returns 0 or an errno. */
int thread_start(pthread_t *out, void *(*work)(void *context), void *context);

#endif
