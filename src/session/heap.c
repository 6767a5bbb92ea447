/* What native libraries allocate: which slots of theirs are to be exchanged, and what is told of it. */
#include "session/state.h"

#include <stdlib.h>
#include <string.h>

#include "inject/got.h"
#include "session/capture.h"

static const char *const functions[HEAP_FUNCTIONS] = HEAP_FUNCTION_NAMES;

/* An unbound slot may come to lead elsewhere than the bound ones do: only where there is one library to choose from it will not. */
void heap_plan(struct session *session, struct page *settings)
{
	struct heap_part *heap = &session->heap;
	struct got got;
	struct error err = { 0 };

	if (!session->options->memory_native || !settings->memory_interval || target_got(session->target, functions, HEAP_FUNCTIONS, &got, &err) < 0)
		return;
	memcpy(settings->heap_functions, got.functions, sizeof settings->heap_functions);
	settings->heap_unbound = got.one_definer;
	heap->libraries = got.libraries;
	heap->read_only = got.read_only;
	heap->cut = got.cut;
	for (size_t i = 0; i < got.slots.count; i++) {
		const struct got_slot *slot = &got.slots.items[i];

		if (!got.functions[slot->name] || (slot->bound ? slot->value != got.functions[slot->name] : !got.one_definer))
			heap->others++;
		else if (settings->heap_slot_count < HEAP_SLOTS_MAX)
			settings->heap_slots[settings->heap_slot_count++] = slot->at | slot->name;
		else
			heap->cut = true;
	}
	got_done(&got);
}

/* References in a lane of all threads are threads, as the target numbers them. */
void heap_chunk(struct session *session, const struct chunk *chunk, uint64_t events)
{
	unsigned char *copy = malloc(chunk->size + 1);
	struct chunk renamed = *chunk;
	struct event_cursor c;

	if (!copy) {
		session->heap.lost += events;
		return;
	}
	memcpy(copy, chunk->events, chunk->size);
	c = event_cursor(copy, chunk->size);
	for (size_t at = 0; event_next(&c); at += c.event.size) {
		uint32_t tid = session_outer_tid(session, c.event.ref);

		memcpy(copy + at + offsetof(struct event, ref), &tid, sizeof tid);
	}
	renamed.events = copy;
	spool_add(session->spool, &renamed, events);
	free(copy);
}

void heap_rows(struct session *session, uint64_t ticks)
{
	static const char *const states[] = {
		[HEAP_OFF] = "not sampled: no library has slots for malloc that may be exchanged", [HEAP_SAMPLED] = "sampled; the slots were not seen to be what they were",
		[HEAP_NO_ROOM] = "not sampled: no memory for the table", [HEAP_OTHER] = "not sampled: an earlier session found other functions",
		[HEAP_TOO_DEAR] = "given up: passing on each call alone costs more than --max-overhead", [HEAP_TAKEN_OUT] = "sampled",
	};
	const struct page *page = session->drain ? session->pool.page : NULL;
	uint32_t state = page ? __atomic_load_n(&page->heap_state, __ATOMIC_RELAXED) : HEAP_OFF; /* once: the program may write over it between two looks */
	const struct heap_part *heap = &session->heap;

	if (state >= sizeof states / sizeof *states)
		state = HEAP_OFF;
	capture_sampling(&session->events, ticks, "memory.native", page ? states[state] : "without hooks it is not sampled", page ? session_after_ns(session, page->heap_ended_ticks) : 0);
	if (!page)
		return;
	const struct counter_row rows[] = {
		{ "heap_slots", page->heap_slots_used }, { "heap_libraries", heap->libraries }, { "heap_libraries_read_only", heap->read_only },
		{ "heap_slots_foreign", heap->others + page->heap_foreign }, { "heap_slots_refused", page->heap_refused }, { "heap_slots_left", page->heap_left }, { "heap_slots_cut", heap->cut },
		{ "heap_calls", page->heap_calls }, { "heap_samples", page->heap_samples }, { "heap_late", page->heap_late }, { "heap_lost", heap->lost }, { "heap_full", page->heap_full },
		{ "heap_ends_missed", page->heap_ends_missed }, { "heap_cost_ns", page->heap_cost_ns }, { "heap_interval_last", page->heap_interval_now },
	};

	session_counter_rows(session, ticks, rows, sizeof rows / sizeof *rows);
}
