/* One open call for each thread. */
#include "session/blocked_calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "abi/syscall.h"
#include "base/list.h"
#include "base/map.h"
#include "session/syscalls.h"

enum { THREADS_MAX = 1 << 20 };

struct blocked_call {
	pid_t tid;
	int64_t number;    /* negative: none */
	uint64_t argument, begin_ticks, seen_ns;
	bool gil;
};

struct blocked_calls {
	struct descriptors descriptors;
	struct map of_thread; /* to its place in calls */
	LIST(struct blocked_call) calls;
};

struct blocked_calls *blocked_calls_open(const struct procfs *procfs, pid_t pid)
{
	struct blocked_calls *calls = calloc(1, sizeof *calls);

	if (calls && !descriptors_open(procfs, pid, &calls->descriptors)) {
		free(calls);
		return NULL;
	}
	return calls;
}

void blocked_calls_close(struct blocked_calls *calls)
{
	if (!calls)
		return;
	descriptors_done(&calls->descriptors);
	map_done(&calls->of_thread);
	list_done(&calls->calls);
	free(calls);
}

void syscall_label(struct descriptors *descriptors, uint64_t number, uint64_t first, bool gil, char out[SYSCALL_LABEL])
{
	const struct syscall_row *row = syscall_row(number);
	const char *about = gil ? "gil" : row && row->what & SYSCALL_FD ? descriptors_kind(descriptors, first) : "";
	char name[32];

	syscall_name(number, name, sizeof name);
	snprintf(out, SYSCALL_LABEL, *about ? "%s(%s)" : "%s", name, about);
}

static void tell(struct blocked_calls *calls, struct blocked_call *call, struct event_builder *builder)
{
	char label[SYSCALL_LABEL];

	if (call->number < 0)
		return;
	syscall_label(&calls->descriptors, (uint64_t)call->number, call->argument, call->gil, label);
	event_add(builder, call->begin_ticks, EVENT_CPU_SYSCALL, (uint32_t)call->tid, EVENT_FLAG_SAMPLED, call->seen_ns, (uint32_t)call->number, (int64_t)0, label);
	call->number = BLOCK_NO_CALL;
}

static struct blocked_call *call_of(struct blocked_calls *calls, pid_t tid)
{
	uint32_t place = map_get(&calls->of_thread, (uint64_t)tid);
	struct blocked_call *call;

	if (place != MAP_ABSENT)
		return &calls->calls.items[place];
	call = list_add(&calls->calls, THREADS_MAX);
	if (!call || !map_put(&calls->of_thread, (uint64_t)tid, (uint32_t)calls->calls.count - 1))
		return NULL;
	*call = (struct blocked_call){ .tid = tid, .number = BLOCK_NO_CALL };
	return call;
}

void blocked_calls_see(struct blocked_calls *calls, const struct sight *sight, uint64_t ticks, struct event_builder *builder)
{
	struct blocked_call *call = call_of(calls, sight->tid);

	if (!call)
		return;
	/* Another stack is another call, though it may be the same number. */
	if (call->number != sight->call || call->argument != sight->argument || !sight->again)
		tell(calls, call, builder);
	if (sight->call < 0)
		return;
	if (call->number < 0)
		*call = (struct blocked_call){ .tid = sight->tid, .number = sight->call, .argument = sight->argument, .begin_ticks = ticks, .gil = sight->state == THREAD_GIL_WAIT };
	call->seen_ns += sight->weight_ns;
}

void blocked_calls_end(struct blocked_calls *calls, struct event_builder *builder)
{
	for (size_t i = 0; i < calls->calls.count; i++)
		tell(calls, &calls->calls.items[i], builder);
}
