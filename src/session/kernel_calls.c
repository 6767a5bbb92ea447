/* A session's part that sees system calls one by one: new threads, calls as events, how it went. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/blocked_calls.h"
#include "session/capture.h"
#include "session/state.h"
#include "session/systrace.h"

struct kernel_calls {
	struct systrace *trace;
	struct descriptors descriptors;
	struct block_runtime runtime;
	struct clock_map clock; /* of the moment: the TSC's runs a little beside that of its calibration */
	bool tsc;
	int64_t clock_ahead_ns; /* as watch.clock_ahead_ns */
	struct event_builder *events;
};

static struct kernel_calls *calls_new(const struct session *session, struct error *err)
{
	const struct session_options *options = session->options;
	uint32_t part = options->memory_interval ? 8 : options->counters ? 4 : 2;
	struct kernel_calls *calls = calloc(1, sizeof *calls);

	if (!calls) {
		fail(err, ERR_MEMORY, "tracing system calls");
		return NULL;
	}
	/* Of the budget half is for them: hooks and samples have the rest. A quarter beside counters; an eighth beside samples of allocations, which can hardly be made cheaper. */
	if (!descriptors_open(session->procfs, session->facts->pid, &calls->descriptors)) {
		fail(err, ERR_MEMORY, "tracing system calls");
	} else if (systrace_open(NULL, (options->max_overhead_ppm + part - 1) / part, &calls->trace, err) == 0) {
		calls->runtime = session->observe.runtime;
		calls->clock = session->clock;
		calls->tsc = session->clock_kind == CLOCK_TSC;
		calls->clock_ahead_ns = session->facts->own_clock_ahead_ns;
		return calls;
	}
	descriptors_done(&calls->descriptors);
	free(calls);
	return NULL;
}

void kernel_calls_begin(struct session *session)
{
	struct error err = { 0 };

	if (session->options->syscalls != SYSCALLS_TRACED)
		return;
	session->calls = calls_new(session, &err);
	if (!session->calls) {
		session_warn(session, "system calls are %s: %.180s", session->options->rate_hz ? "only estimated, by samples" : "not seen", err.text);
		return;
	}
	kernel_calls_threads(session);
}

static bool lives(const void *context, pid_t tid)
{
	return observe_by_tid(context, tid) != NULL;
}

void kernel_calls_threads(struct session *session)
{
	struct observe *observe = &session->observe;

	if (!session->calls)
		return;
	systrace_prune(session->calls->trace, lives, observe);
	for (size_t i = 0; i < observe->count; i++) {
		struct observe_thread *thread = &observe->threads[i];

		if (!thread->ours && !thread->traced)
			systrace_add(session->calls->trace, thread->tid);
		thread->traced = true;
	}
}

static void tell_call(void *context, const struct systrace_call *call)
{
	struct kernel_calls *calls = context;
	struct block block = { .number = (int64_t)call->number, .argument = call->first };
	uint64_t start_ns = call->start_ns + (uint64_t)calls->clock_ahead_ns;
	char label[SYSCALL_LABEL], name[32];

	block_name(&block, &calls->runtime, name, sizeof name);
	syscall_label(&calls->descriptors, call->number, call->first, strcmp(name, "gil") == 0, label);
	descriptors_seen(&calls->descriptors, call->number, call->first, call->result);
	event_add(calls->events, calls->tsc ? clock_to_ticks(&calls->clock, start_ns) : start_ns, EVENT_CPU_SYSCALL, (uint32_t)call->tid, 0, call->duration_ns, (uint32_t)call->number,
	          call->result, label);
}

void kernel_calls_read(struct session *session)
{
	struct kernel_calls *calls = session->calls;

	if (!calls)
		return;
	if (calls->tsc) {
		calls->clock.base_ns = clock_monotonic_ns();
		calls->clock.base_ticks = clock_tsc();
	}
	calls->events = &session->events;
	systrace_read(calls->trace, session->cpu_now_ns > session->cpu_start_ns ? session->cpu_now_ns - session->cpu_start_ns : 0, session->observe.switches, tell_call, calls);
}

uint64_t kernel_calls_cost_ns(const struct session *session)
{
	return session->calls ? systrace_totals(session->calls->trace).spent_ns : 0;
}

void kernel_calls_counters(struct session *session, uint64_t ticks)
{
	struct systrace_totals totals;

	if (!session->calls)
		return;
	totals = systrace_totals(session->calls->trace);
	session_counter(session, ticks, "syscalls", totals.calls);
	session_counter(session, ticks, "syscalls_lost", totals.lost);
	session_counter(session, ticks, "syscalls_covered_ns", totals.covered_ns);
	session_counter(session, ticks, "syscalls_watched_ns", totals.open_ns);
	session_counter(session, ticks, "syscalls_cost_ns", totals.cost_ns);
	session_counter(session, ticks, "syscalls_spent_ns", totals.spent_ns);
}

void kernel_calls_rows(struct session *session, uint64_t ticks)
{
	struct systrace_totals totals;

	if (!session->calls) {
		capture_add(&session->events, ticks, "syscalls", "%s", session->options->syscalls == SYSCALLS_NONE || !session->sampler ? "not wanted" : "estimated: those that threads were seen blocked in, at each look");
		return;
	}
	totals = systrace_totals(session->calls->trace);
	capture_add(&session->events, ticks, "syscalls", "every one, by tracepoints; a call costs its thread %llu ns more, and a switch of it %llu", (unsigned long long)totals.cost_ns, (unsigned long long)totals.switch_ns);
	if (totals.refused)
		session_warn(session, "the system calls of %u threads were not seen: %s", totals.refused, totals.why);
	if (totals.lost)
		session_warn(session, "%llu records of system calls were lost: inferscope got no CPU in time", (unsigned long long)totals.lost);
	if (totals.covered_ns < totals.open_ns)
		session_warn(session, "system calls were seen for %.0f %% of the time: there are so many that seeing all would cost more than --max-overhead allows", 100 * (double)totals.covered_ns / (double)totals.open_ns);
}

/* No descriptor of perf_event is left open after this. */
void kernel_calls_end(struct session *session)
{
	struct kernel_calls *calls = session->calls;

	if (!calls)
		return;
	systrace_close(calls->trace);
	descriptors_done(&calls->descriptors);
	free(calls);
	session->calls = NULL;
}
