/* Two threads, two pipes. */
#include "session/switching.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"
#include "session/cold.h"

struct switching {
	int to[2], fro[2];
	pid_t tids[2];
	cpu_set_t before;
	pthread_t partner;
};

static void *answer(void *context)
{
	struct switching *switching = context;
	char byte;

	switching->tids[1] = gettid();
	while (read(switching->to[0], &byte, 1) == 1 && write(switching->fro[1], &byte, 1) == 1)
		;
	return NULL;
}

static bool exchange(const struct switching *switching)
{
	char byte = 0;

	return write(switching->to[1], &byte, 1) == 1 && read(switching->fro[0], &byte, 1) == 1;
}

static void pipe_close(int ends[2])
{
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

/* To where the caller is just now: the partner inherits it. */
static bool stay_here(struct switching *switching)
{
	cpu_set_t here;
	int cpu = sched_getcpu();

	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof switching->before, &switching->before) < 0)
		return false;
	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	return sched_setaffinity(0, sizeof here, &here) == 0;
}

static struct switching *switching_open(void)
{
	struct switching *switching = malloc(sizeof *switching);

	if (!switching)
		return NULL;
	*switching = (struct switching){ .to = { -1, -1 }, .fro = { -1, -1 }, .tids = { gettid() } };
	if (!stay_here(switching)) {
		free(switching);
		return NULL;
	}
	if (pipe2(switching->to, O_CLOEXEC) == 0 && pipe2(switching->fro, O_CLOEXEC) == 0 && thread_start(&switching->partner, answer, switching) == 0 && exchange(switching))
		return switching;
	/* A partner that did not answer has ended, or ends with its pipe. */
	sched_setaffinity(0, sizeof switching->before, &switching->before);
	pipe_close(switching->to);
	pipe_close(switching->fro);
	free(switching);
	return NULL;
}

static void switching_close(struct switching *switching)
{
	close(switching->to[1]);
	switching->to[1] = -1;
	pthread_join(switching->partner, NULL);
	pipe_close(switching->to);
	pipe_close(switching->fro);
	sched_setaffinity(0, sizeof switching->before, &switching->before);
	free(switching);
}

static bool exchange_again(const void *context)
{
	return exchange(context);
}

static uint64_t switching_ns(const struct switching *switching)
{
	return cold_ns(exchange_again, switching) / 2;
}

uint64_t switching_extra_ns(const struct switching_load *load)
{
	struct switching *switching = switching_open();
	uint64_t without_ns, with_ns = 0;
	int rounds = 0;

	if (!switching)
		return 0;
	without_ns = switching_ns(switching);
	for (int round = 0; round < load->rounds; round++) {
		if (!load->add(load->context, switching->tids, round))
			continue;
		with_ns += switching_ns(switching);
		rounds++;
		load->remove(load->context);
	}
	switching_close(switching);
	if (!rounds || !without_ns)
		return 0;
	with_ns /= (uint64_t)rounds;
	return with_ns > without_ns ? with_ns - without_ns : 0;
}
