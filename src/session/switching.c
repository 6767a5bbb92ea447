/* Two threads, two pipes. */
#include "session/switching.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "session/cold.h"

struct switching {
	int to[2], fro[2];
	pid_t tids[2];
	pthread_t partner;
	clockid_t clock; /* the partner's CPU time */
};

static void *answer(void *context)
{
	struct switching *switching = context;
	char byte;

	switching->tids[1] = gettid();
	while (read(switching->to[0], &byte, 1) == 1 && write(switching->fro[1], &byte, 1) == 1)
		;
	close(switching->fro[1]); /* or who waits for an answer would wait for ever */
	switching->fro[1] = -1;
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
static bool stay_here(void)
{
	cpu_set_t here;
	int cpu = sched_getcpu();

	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return false;
	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	return sched_setaffinity(0, sizeof here, &here) == 0;
}

static void switching_close(struct switching *switching)
{
	close(switching->to[1]);
	switching->to[1] = -1;
	pthread_join(switching->partner, NULL);
	pipe_close(switching->to);
	pipe_close(switching->fro);
	free(switching);
}

static struct switching *switching_open(void)
{
	struct switching *switching = malloc(sizeof *switching);

	if (!switching)
		return NULL;
	*switching = (struct switching){ .to = { -1, -1 }, .fro = { -1, -1 }, .tids = { gettid() } };
	if (!stay_here()) {
		free(switching);
		return NULL;
	}
	if (pipe2(switching->to, O_CLOEXEC) == 0 && pipe2(switching->fro, O_CLOEXEC) == 0 && thread_start(&switching->partner, answer, switching) == 0) {
		if (exchange(switching) && pthread_getcpuclockid(switching->partner, &switching->clock) == 0)
			return switching;
		switching_close(switching);
		return NULL;
	}
	pipe_close(switching->to);
	pipe_close(switching->fro);
	free(switching);
	return NULL;
}

static bool exchange_again(const void *context)
{
	return exchange(context);
}

/* What both threads ran: a switch counts for who comes, and that others had the CPU in between does not count. */
static uint64_t ran_ns(const void *context)
{
	const struct switching *switching = context;
	struct timespec partner;

	return clock_gettime(switching->clock, &partner) < 0 ? 0 : clock_thread_ns() + (uint64_t)partner.tv_sec * 1000000000 + (uint64_t)partner.tv_nsec;
}

static uint64_t switching_ns(const struct switching *switching)
{
	return cold_ns(exchange_again, ran_ns, switching) / 2;
}

struct measurement { const struct switching_load *load; uint64_t extra_ns; };

static void *measure(void *context)
{
	struct measurement *measurement = context;
	const struct switching_load *load = measurement->load;
	struct switching *switching = switching_open();
	uint64_t without_ns, with_ns = 0;
	int rounds = 0;

	if (!switching)
		return NULL;
	without_ns = switching_ns(switching);
	for (int round = 0; round < load->rounds; round++) {
		if (!load->add(load->context, switching->tids, round))
			continue;
		with_ns += switching_ns(switching);
		rounds++;
		load->remove(load->context);
	}
	switching_close(switching);
	if (rounds)
		with_ns /= (uint64_t)rounds;
	measurement->extra_ns = without_ns && with_ns > without_ns ? with_ns - without_ns : 0;
	return NULL;
}

uint64_t switching_extra_ns(const struct switching_load *load)
{
	struct measurement measurement = { .load = load };
	pthread_t thread;

	if (thread_start(&thread, measure, &measurement) == 0)
		pthread_join(thread, NULL);
	return measurement.extra_ns;
}
