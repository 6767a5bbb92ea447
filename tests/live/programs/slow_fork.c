/* A native thread that forks for 4 s when it is told to, as it takes to copy the page tables of a process of more than 100 GB. For slow_fork.py. */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static _Thread_local bool slow;
static sem_t told;

static void prepare(void)
{
	if (slow && write(STDOUT_FILENO, "FORKS\n", 6) == 6)
		usleep(4000000);
}

static void *run(void *nothing)
{
	slow = true;
	while (!sem_wait(&told)) {
		pid_t pid;

		free(malloc(2000)); /* a slot of this library's */
		pid = fork();
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	return nothing;
}

int begin(void)
{
	pthread_t thread;

	return sem_init(&told, 0, 0) || pthread_atfork(prepare, NULL, NULL) || pthread_create(&thread, NULL, run, NULL) || pthread_detach(thread);
}

int tell(void)
{
	return sem_post(&told);
}
