/* One look: reads first, of all threads as close together as can be, then writes down what was seen. */
#include "session/watch.h"

#include <stdlib.h>

void watch_done(struct watch *watch)
{
	free(watch->due);
	watch->due = NULL;
	watch->capacity = 0;
}

static bool make_room(struct watch *watch)
{
	struct seen_thread **due;

	if (watch->capacity >= watch->census->count)
		return true;
	due = realloc(watch->due, watch->census->count * sizeof *due);
	if (!due)
		return false;
	watch->due = due;
	watch->capacity = watch->census->count;
	return true;
}

static bool same_block(const struct block *a, const struct block *b)
{
	return a->number == b->number && a->argument == b->argument && a->sp == b->sp && a->pc == b->pc;
}

static void look_at_blocked(struct watch *watch, struct seen_thread *thread, const struct block *block)
{
	bool same = !thread->running && same_block(block, &thread->block);
	enum natives_result result = NATIVES_NOT_SEEN;

	thread->running = false;
	thread->block = *block;
	thread->state = census_state(watch->census, block);
	if (watch->natives)
		result = natives_blocked(watch->natives, watch->census, thread, same, &thread->at_ns);
	thread->wants_python = result == NATIVES_NOT_SEEN;
	thread->quiet = watch->natives ? (result == NATIVES_SAME ? thread->quiet + 1 : 0) : same ? thread->quiet + 1 : 0;
}

/* False: it has blocked meanwhile. */
static bool look_at_running(struct watch *watch, struct seen_thread *thread)
{
	enum natives_result result = watch->natives ? natives_running(watch->natives, thread, &thread->at_ns) : NATIVES_NOT_SEEN;

	thread->running = true;
	thread->quiet = 0;
	thread->wants_python = result != NATIVES_SEEN;
	return result != NATIVES_BLOCKED;
}

/* False when the thread is gone. */
static bool look_at(struct watch *watch, struct seen_thread *thread)
{
	struct block block;
	enum block_result result = census_block(watch->census, thread->tid, &block);

	if (result == BLOCK_RUNNING && !look_at_running(watch, thread))
		result = census_block(watch->census, thread->tid, &block);
	if (result == BLOCK_BLOCKED)
		look_at_blocked(watch, thread, &block);
	return result != BLOCK_GONE;
}

static void take_python(void *context, const struct pystack *stack)
{
	struct watch *watch = context;
	struct seen_thread *thread = census_by_inner(watch->census, stack->tid);
	uint32_t before;

	if (!thread || !thread->wants_python)
		return;
	before = thread->python;
	thread->python = thread->stack = stacks_python(watch->stacks, stack);
	thread->holds_gil = stack->holds_gil;
	if (thread->python != before)
		thread->quiet = 0;
}

/* Threads of which nothing else is known. */
static void look_at_python(struct watch *watch)
{
	bool wanted = false;

	for (size_t i = 0; i < watch->due_count; i++) {
		struct seen_thread *thread = watch->due[i];

		if (!thread->wants_python)
			continue;
		wanted = true;
		thread->python = thread->stack = 0;
		thread->holds_gil = false;
	}
	if (wanted && pyreader_stacks(watch->reader, take_python, watch) < 0)
		watch->failed++;
}

/* tid of the thread that holds the GIL, 0 = not seen. */
static pid_t gil_holder(const struct watch *watch)
{
	for (size_t i = 0; i < watch->census->count; i++)
		if (watch->census->threads[i].holds_gil)
			return watch->census->threads[i].tid;
	return 0;
}

static void tell(struct watch *watch, struct seen_thread *thread, pid_t holder, uint64_t now_ns)
{
	uint64_t weight_ns = thread->looked_ns ? now_ns - thread->looked_ns : watch->weight_max_ns / WEIGHT_LOOKS, ticks = watch->tsc ? clock_to_ticks(&watch->clock, thread->at_ns) : thread->at_ns;

	/* A look that failed counts to the next one. */
	if (!thread->stack && watch->natives)
		return;
	thread->looked_ns = now_ns;
	if (!thread->stack)
		return;
	if (thread->running)
		thread->state = thread->holds_gil ? THREAD_PYTHON : THREAD_NATIVE;
	/* The timeline may find out by its functions that a thread waits for the GIL. */
	if (holder && holder != thread->tid && thread->python && (thread->running || thread->state == THREAD_GIL_WAIT || thread->state == THREAD_LOCK_WAIT))
		event_add(watch->builder, ticks, EVENT_GIL, (uint32_t)thread->tid, 0, (uint32_t)holder);
	event_add(watch->builder, ticks, EVENT_SAMPLE, thread->stack, 0, (uint32_t)thread->tid, (uint32_t)thread->state, weight_ns < watch->weight_max_ns ? weight_ns : watch->weight_max_ns);
	watch->samples++;
}

/* The tsc's clock runs a little beside that of its calibration: what was seen just now must not seem to lie elsewhere. */
static void set_clock(struct watch *watch, uint64_t now_ns)
{
	if (!watch->tsc)
		return;
	watch->clock.base_ns = now_ns;
	watch->clock.base_ticks = clock_tsc();
}

void watch_once(struct watch *watch)
{
	uint64_t now_ns = clock_monotonic_ns();
	size_t kept = 0;
	pid_t holder;

	if (!make_room(watch))
		return;
	set_clock(watch, now_ns);
	stacks_time(watch->stacks, watch->tsc ? watch->clock.base_ticks : now_ns);
	watch->due_count = census_due(watch->census, watch->due);
	for (size_t i = 0; i < watch->due_count; i++) {
		watch->due[i]->at_ns = now_ns;
		if (look_at(watch, watch->due[i]))
			watch->due[kept++] = watch->due[i];
	}
	watch->due_count = kept;
	look_at_python(watch);
	holder = gil_holder(watch);
	for (size_t i = 0; i < watch->due_count; i++)
		tell(watch, watch->due[i], holder, now_ns);
}
