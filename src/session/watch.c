/* One look: all threads as close together as can be, then who holds the GIL, then on with it. */
#include "session/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"

#define AGAIN_NS 10000000000ull /* a thread without Python that stays blocked is looked at again after so long */
enum { OUTER_BYTES = 4096 /* for the frames further out than where a register points */ };

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

static uint64_t glimpse_hash(const struct look *look)
{
	uint64_t hash = look->glimpse_size, word;

	for (uint32_t i = 0; i + sizeof word <= look->glimpse_size; i += (uint32_t)sizeof word) {
		memcpy(&word, look->glimpse + i, sizeof word);
		hash = mix64(hash ^ word);
	}
	return hash;
}

/* A sight of the look at hand. */
static struct sight *see(struct watch *watch, pid_t tid)
{
	looker_task(watch->looker, &watch->look);
	return sight_new(tid, &watch->look);
}

/* ---- a thread that is blocked ---- */

/* Has it stayed where it was, with its native part? Else nothing that was read belongs together. */
static bool stayed(struct watch *watch, const struct seen_thread *thread)
{
	struct block now;

	if (block_read(watch->census->procfs, watch->census->pid, thread->tid, &now) == BLOCK_BLOCKED && now.sp == thread->block.sp && now.pc == thread->block.pc)
		return true;
	watch->totals.moved++;
	return false;
}

static bool may_hold(const struct watch *watch)
{
	return watch->totals.stolen_ns - watch->stolen_before_ns < watch->stand_most_ns;
}

/* Registers that only a stop can tell, where it does no harm. False: not now. */
static bool hold_blocked(struct watch *watch, struct seen_thread *thread)
{
	const uint64_t *regs = watch->look.copy.regs;
	int error;
	enum hold_result result = may_hold(watch) ? looker_held(watch->looker, thread->tid, true, &watch->look, &error) : HOLD_NOT_NOW;

	watch->totals.prone += result == HOLD_PRONE;
	if (result != HOLD_COPIED)
		return false;
	watch->totals.stolen_ns += watch->look.stood_ns;
	return regs[DWARF_SP] == thread->block.sp && regs[DWARF_PC] == thread->block.pc;
}

static void see_blocked(struct watch *watch, struct seen_thread *thread)
{
	if (thread->wants_hold) {
		thread->wants_hold = false;
		if (hold_blocked(watch, thread)) {
			thread->pending = see(watch, thread->tid);
			return;
		}
	}
	if (watch->native)
		looker_blocked(watch->looker, thread->tid, &thread->block, &watch->look);
	thread->walked_ns = watch->look.copy.at_ns;
	if (!watch->look.copy.known || stayed(watch, thread))
		thread->pending = see(watch, thread->tid);
}

static void look_at_blocked(struct watch *watch, struct seen_thread *thread, const struct block *block)
{
	bool same = thread->seen && !thread->running && block_same(block, &thread->block);
	uint64_t before = thread->glimpse_hash;

	looker_python(watch->looker, thread->tid, false, &watch->look);
	thread->running = false;
	thread->block = *block;
	thread->state = block_state(block, &watch->census->runtime);
	thread->glimpse_hash = glimpse_hash(&watch->look);
	thread->holds_gil = pyglance_holds_gil(watch->look.glimpse, watch->look.glimpse_size);
	if (same && before == thread->glimpse_hash && !thread->wants_hold && (watch->look.glimpse_size || watch->look.copy.at_ns - thread->walked_ns < AGAIN_NS)) {
		thread->quiet++;
		thread->pending = sight_new(thread->tid, NULL);
		if (thread->pending)
			thread->pending->at_ns = watch->look.copy.at_ns;
		return;
	}
	thread->quiet = 0;
	thread->was_asked &= same;
	see_blocked(watch, thread);
	thread->seen = thread->pending != NULL;
}

/* ---- a thread that runs ---- */

/* False: it has blocked meanwhile. */
static bool hold_running(struct watch *watch, struct seen_thread *thread)
{
	enum hold_result result;
	int error;

	if (!may_hold(watch)) {
		watch->totals.spared++;
		looker_python(watch->looker, thread->tid, true, &watch->look);
		return true;
	}
	result = looker_held(watch->looker, thread->tid, false, &watch->look, &error);
	switch (result) {
	case HOLD_COPIED:
		watch->totals.stolen_ns += watch->look.stood_ns;
		return true;
	case HOLD_BLOCKED:
	case HOLD_PRONE:
		return false;
	case HOLD_FAILED:
		watch->totals.holder_lost = true;
		break;
	case HOLD_REFUSED:
		watch->totals.refused++;
		break;
	case HOLD_NOT_NOW:
		watch->totals.not_now++;
		break;
	case HOLD_GONE:
		break;
	}
	looker_python(watch->looker, thread->tid, true, &watch->look);
	return true;
}

/* False: it has blocked meanwhile. */
static bool look_at_running(struct watch *watch, struct seen_thread *thread, uint64_t now_ns)
{
	if (thread->by_perf) {
		/* It speaks for itself, at other times. */
		thread->looked_ns = now_ns;
		thread->holds_gil = false;
	} else if (watch->native && looker_holds(watch->looker)) {
		if (!hold_running(watch, thread))
			return false;
	} else {
		looker_python(watch->looker, thread->tid, true, &watch->look);
	}
	thread->running = true;
	thread->quiet = 0;
	thread->seen = false;
	if (thread->by_perf)
		return true;
	thread->holds_gil = pyglance_holds_gil(watch->look.glimpse, watch->look.glimpse_size);
	thread->pending = see(watch, thread->tid);
	return true;
}

static void look_at(struct watch *watch, struct seen_thread *thread, uint64_t now_ns)
{
	const struct census *census = watch->census;
	enum block_result result;
	struct block block;

	thread->pending = NULL;
	if (!watch->native && !looker_knows(watch->looker, thread->tid))
		return;
	result = block_read(census->procfs, census->pid, thread->tid, &block);
	if (result == BLOCK_RUNNING && !look_at_running(watch, thread, now_ns))
		result = block_read(census->procfs, census->pid, thread->tid, &block);
	if (result == BLOCK_BLOCKED)
		look_at_blocked(watch, thread, &block);
}

/* ---- the GIL ---- */

/* tid of the thread that holds it, 0 = not seen. One that runs under perf_event's eyes is asked only when somebody waits. */
static pid_t gil_holder(struct watch *watch)
{
	const struct census *census = watch->census;
	bool wanted = false;

	for (size_t i = 0; i < census->count; i++) {
		if (census->threads[i].holds_gil)
			return census->threads[i].tid;
		wanted |= !census->threads[i].running && (census->threads[i].state == THREAD_GIL_WAIT || census->threads[i].state == THREAD_LOCK_WAIT);
	}
	for (size_t i = 0; i < census->count && wanted; i++) {
		if (!census->threads[i].running || !census->threads[i].by_perf)
			continue;
		looker_python(watch->looker, census->threads[i].tid, true, &watch->look);
		if (pyglance_holds_gil(watch->look.glimpse, watch->look.glimpse_size))
			return census->threads[i].tid;
	}
	return 0;
}

/* ---- all together ---- */

/* A blocked thread whose walk wants registers: one hold in each block. */
static void take_wish(struct watch *watch, const struct sight_wish *wish)
{
	struct seen_thread *thread = census_by_tid(watch->census, wish->tid);

	if (!wish->stack_bytes && thread && !thread->was_asked && looker_holds(watch->looker))
		thread->was_asked = thread->wants_hold = true;
	if (wish->stack_bytes && watch->perf)
		perf_widen(watch->perf, wish->tid, wish->stack_bytes);
}

static void take_wishes(struct watch *watch)
{
	struct sight_wish asked[SIGHTS_ASKED];
	size_t count = sights_asked(watch->sights, asked);

	if (count)
		watch_perf(watch); /* what has come before is kept */
	for (size_t i = 0; i < count; i++)
		take_wish(watch, &asked[i]);
}

static void send(struct watch *watch, struct seen_thread *thread, uint64_t now_ns)
{
	uint64_t weight_ns = thread->looked_ns ? now_ns - thread->looked_ns : watch->weight_max_ns / WEIGHT_LOOKS;
	struct sight *sight = thread->pending;

	thread->pending = NULL;
	/* A look that failed counts to the next one. */
	if (!sight)
		return;
	thread->looked_ns = now_ns;
	sight->weight_ns = weight_ns < watch->weight_max_ns ? weight_ns : watch->weight_max_ns;
	sight->running = thread->running;
	sight->state = thread->state;
	sight->call = thread->running ? BLOCK_NO_CALL : thread->block.number;
	sight->argument = thread->block.argument;
	sight->holder = watch->holder;
	if (!sights_push(watch->sights, sight))
		thread->seen = false;
}

void watch_once(struct watch *watch)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (!make_room(watch))
		return;
	take_wishes(watch);
	watch->stolen_before_ns = watch->totals.stolen_ns;
	watch->due_count = census_due(watch->census, watch->due);
	for (size_t i = 0; i < watch->due_count; i++)
		look_at(watch, watch->due[i], now_ns);
	watch->holder = gil_holder(watch);
	for (size_t i = 0; i < watch->due_count; i++)
		send(watch, watch->due[i], now_ns);
}

static void see_sample(void *context, const struct thread_copy *copy, uint64_t cpu_ns)
{
	struct watch *watch = context;
	struct seen_thread *thread = census_by_tid(watch->census, copy->tid);
	struct sight_wish wish = { copy->tid, thread_copy_reach(copy) };
	struct sight *sight;

	if (!thread || thread->ours)
		return;
	thread->quiet = 0;
	if (wish.stack_bytes) {
		wish.stack_bytes += OUTER_BYTES;
		sights_ask(watch->sights, wish); /* who tells may be far behind, at first */
	}
	if (copy->stack_size < copy->stack_asked)
		looker_touch(watch->looker, copy);
	looker_python(watch->looker, copy->tid, true, &watch->look);
	looker_task(watch->looker, &watch->look);
	watch->look.copy.at_ns = copy->at_ns + (uint64_t)watch->clock_ahead_ns;
	watch->look.copy.known = copy->known;
	watch->look.copy.stack_size = copy->stack_size;
	memcpy(watch->look.copy.regs, copy->regs, sizeof copy->regs);
	memcpy(watch->look.copy.stack, copy->stack, copy->stack_size);
	sight = sight_new(copy->tid, &watch->look);
	if (sight) {
		memcpy(sight->gained, copy->gained, copy->gained_count * sizeof *copy->gained);
		sight->still_above = looker_still(watch->looker, copy);
		sight->weight_ns = cpu_ns;
		sight->running = true;
		sight->call = BLOCK_NO_CALL;
		sight->holder = watch->holder;
	}
	sights_push(watch->sights, sight);
}

void watch_perf(struct watch *watch)
{
	if (watch->perf)
		perf_read(watch->perf, see_sample, watch);
}

void watch_give_up_perf(struct watch *watch, const char *why)
{
	watch_perf(watch);
	perf_give_up(watch->perf, why);
	watch->perf_given_up = true;
	for (size_t i = 0; i < watch->census->count; i++)
		watch->census->threads[i].by_perf = false;
}

void watch_threads(struct watch *watch)
{
	for (size_t i = 0; watch->perf && !watch->perf_rests && i < watch->census->count; i++) {
		struct seen_thread *thread = &watch->census->threads[i];

		if (thread->ours || thread->perf_tried)
			continue;
		thread->perf_tried = true;
		thread->by_perf = perf_add(watch->perf, thread->tid) == 0;
	}
}

/* Threads that are refused stay so; others are tried again after it, as those that begin meanwhile are for the first time. */
void watch_rest_perf(struct watch *watch, bool rests)
{
	watch_perf(watch);
	watch->perf_rests = rests;
	for (size_t i = 0; rests && i < watch->census->count; i++) {
		struct seen_thread *thread = &watch->census->threads[i];

		thread->perf_tried &= !thread->by_perf;
		thread->by_perf = false;
	}
	if (rests)
		perf_rest(watch->perf);
	else
		watch_threads(watch);
}
