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

/* False when the thread is gone. */
static bool look_at_block(struct watch *watch, struct seen_thread *thread)
{
	struct block block;

	switch (census_block(watch->census, thread->tid, &block)) {
	case BLOCK_GONE:
		return false;
	case BLOCK_RUNNING:
		thread->running = true;
		thread->quiet = 0;
		return true;
	default:
		thread->quiet = !thread->running && same_block(&block, &thread->block) ? thread->quiet + 1 : 0;
		thread->running = false;
		thread->block = block;
		thread->state = census_state(watch->census, &block);
		return true;
	}
}

static void take_python(void *context, const struct pystack *stack)
{
	struct watch *watch = context;
	struct seen_thread *thread = census_by_inner(watch->census, stack->tid);
	uint32_t before;

	if (!thread)
		return;
	before = thread->python;
	thread->python = thread->stack = stacks_python(watch->stacks, stack);
	thread->holds_gil = stack->holds_gil;
	if (thread->python != before)
		thread->quiet = 0;
}

static void look_at_python(struct watch *watch)
{
	for (size_t i = 0; i < watch->census->count; i++) {
		watch->census->threads[i].python = watch->census->threads[i].stack = 0;
		watch->census->threads[i].holds_gil = false;
	}
	pyreader_stacks(watch->reader, take_python, watch);
}

/* tid of the thread that holds the GIL, 0 = not seen. */
static pid_t gil_holder(const struct watch *watch)
{
	for (size_t i = 0; i < watch->census->count; i++)
		if (watch->census->threads[i].holds_gil)
			return watch->census->threads[i].tid;
	return 0;
}

static void tell(struct watch *watch, struct seen_thread *thread, pid_t holder, uint64_t ticks, uint64_t now_ns)
{
	uint64_t weight_ns = thread->looked_ns ? now_ns - thread->looked_ns : watch->weight_max_ns / 10;

	thread->looked_ns = now_ns;
	if (!thread->stack)
		return;
	if (thread->running)
		thread->state = thread->holds_gil ? THREAD_PYTHON : THREAD_NATIVE;
	if (thread->state == THREAD_GIL_WAIT && holder && holder != thread->tid)
		event_add(watch->builder, ticks, EVENT_GIL, (uint32_t)thread->tid, 0, (uint32_t)holder);
	event_add(watch->builder, ticks, EVENT_SAMPLE, thread->stack, 0, (uint32_t)thread->tid, (uint32_t)thread->state, weight_ns < watch->weight_max_ns ? weight_ns : watch->weight_max_ns);
	watch->samples++;
}

void watch_once(struct watch *watch)
{
	uint64_t now_ns = clock_monotonic_ns(), ticks = watch->tsc ? clock_tsc() : now_ns;
	pid_t holder;

	if (!make_room(watch))
		return;
	stacks_time(watch->stacks, ticks);
	watch->due_count = census_due(watch->census, watch->due);
	look_at_python(watch);
	for (size_t i = 0; i < watch->due_count; i++)
		if (!look_at_block(watch, watch->due[i]))
			watch->due[i] = NULL;
	holder = gil_holder(watch);
	for (size_t i = 0; i < watch->due_count; i++)
		if (watch->due[i])
			tell(watch, watch->due[i], holder, ticks, now_ns);
}
