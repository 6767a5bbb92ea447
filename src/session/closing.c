/* What is told at the end of a session: its last rows, and its warnings. */
#include <stdio.h>
#include <string.h>

#include "session/capture.h"
#include "session/state.h"

static const char *gc_told(const struct session *session)
{
	static const char *const states[] = { [GC_OFF] = "not asked for", [GC_TOLD] = "told", [GC_UNKNOWN] = "gc.callbacks is not what it should be",
		[GC_LEFT] = "told; an entry without effect stays in gc.callbacks, where a collection that ran just then needed its place" };
	uint32_t state = session->drain ? __atomic_load_n(&session->pool.page->gc_state, __ATOMIC_RELAXED) : GC_OFF;

	if (!session->drain)
		return "without hooks it is not told";
	return state < sizeof states / sizeof *states ? states[state] : states[GC_UNKNOWN];
}

static void memory_rows(struct session *session, uint64_t ticks)
{
	static const char *const states[] = {
		[MEMORY_OFF] = "not sampled", [MEMORY_SAMPLED] = "sampled; the allocators were not seen to be what they were", [MEMORY_NO_ROOM] = "not sampled: no memory for the table",
		[MEMORY_NO_LAYER] = "not sampled: the allocators were changed too often while we were in", [MEMORY_TAKEN_OFF] = "sampled",
		[MEMORY_LEFT] = "sampled; another tool stands on our functions, which stay and pass everything on", [MEMORY_CUT] = "cut: another tool put back the allocators of before",
		[MEMORY_TOO_DEAR] = "given up: passing on each call alone costs more than --max-overhead",
	};
	const struct page *page = session->drain ? session->pool.page : NULL;
	uint32_t state = page ? __atomic_load_n(&page->memory_state, __ATOMIC_RELAXED) : MEMORY_OFF; /* once: the program may write over it between two looks */

	if (state >= sizeof states / sizeof *states)
		state = MEMORY_OFF;
	capture_sampling(&session->events, ticks, "memory", page ? states[state] : "without hooks it is not sampled", page ? session_after_ns(session, page->memory_ended_ticks) : 0);
	capture_add(&session->events, ticks, "memory.interval", "%llu", (unsigned long long)session->options->memory_interval);
	capture_add(&session->events, ticks, "memory.raw", "not sampled: the domain raw is used without the GIL, and its functions cannot be exchanged in one piece");
	if (!page)
		return;
	const struct counter_row rows[] = {
		{ "memory_calls", page->memory_calls }, { "memory_samples", page->memory_samples }, { "memory_missed", page->memory_missed }, { "memory_full", page->memory_full },
		{ "memory_cost_ns", page->memory_cost_ns }, { "memory_interval_last", page->memory_interval_now }, { "memory_pauses", page->memory_pauses },
	};

	session_counter_rows(session, ticks, rows, sizeof rows / sizeof *rows);
}

static void closing_rows(struct session *session, const struct session_receipt *receipt)
{
	static const char *const ends[] = { "duration", "stopped", "target_exited", "target_execed", "abandoned" };
	uint64_t ticks = session_ticks(session);
	struct event_builder *events = &session->events;

	session_counters(session, ticks);
	if (session->before.fds && receipt->fds_after) {
		const struct counter_row rows[] = {
			{ "fds_before", session->before.fds }, { "fds_after", receipt->fds_after }, { "threads_before", session->before.threads }, { "threads_after", receipt->threads_after },
			{ "mappings_before", session->before.mappings }, { "mappings_after", receipt->mappings_after },
		};

		session_counter_rows(session, ticks, rows, sizeof rows / sizeof *rows);
	}
	capture_add(events, ticks, "backend", "%s", backend_name(receipt->backend_used));
	capture_add(events, ticks, "gc", "%s", gc_told(session));
	if (session->options->memory_interval)
		memory_rows(session, ticks);
	if (session->options->memory_native)
		heap_rows(session, ticks);
	if (session->drain && session->pool.page->reason_text[0])
		capture_add(events, ticks, "backend.why", "%.*s", PAGE_TEXT_BYTES - 1, session->pool.page->reason_text);
	capture_add(events, ticks, "end", "%s", ends[session->end]);
	capture_add(events, ticks, "hooks", "%s", receipt->clean ? "off again" : receipt->not_clean);
	if (session->sampler)
		sampled_rows(session, ticks);
	kernel_calls_rows(session, ticks);
	counting_rows(session, ticks);
	for (uint32_t i = 0; i < session->warning_count; i++) {
		char key[32];

		snprintf(key, sizeof key, "warning.%u", i + 1);
		capture_add(events, ticks, key, "%s", session->warnings[i]);
	}
}

static void closing_warnings(struct session *session, const struct session_receipt *receipt)
{
	if (session->end == END_TARGET_EXITED && !(session->options->mode && strcmp(session->options->mode, "run") == 0))
		session_warn(session, "the process ended while it was measured");
	if (session->end == END_TARGET_EXECED)
		session_warn(session, "the process replaced itself with another program (exec) while it was measured");
	if (session->sampler)
		sampled_warnings(session);
	if (receipt->lost)
		session_warn(session, "%llu events were overwritten before they could be read; raise --trace-size-mb, or lower --max-overhead", (unsigned long long)receipt->lost);
	if (spool_dropped_events(session->spool))
		session_warn(session, "the trace reached its bound; its oldest %llu events are left out", (unsigned long long)spool_dropped_events(session->spool));
}

void session_closing(struct session *session, const struct session_receipt *receipt)
{
	closing_warnings(session, receipt);
	closing_rows(session, receipt);
}
