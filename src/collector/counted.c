/*
 * Which functions are only counted, or left out. When the budget runs out, the events that the running thread wrote last tell where it
 * went: calls of C functions are left out first, then functions that are hot and tiny, the hottest first, become a number per function.
 * Where that would not be enough, functions that are hot and small are left out, if the hooks can do it for nothing (sys.monitoring
 * can): samples tell of them then. What is chosen once stays so until disarm. When all of it would not be enough windows close.
 */
#include "collector/collector.h"

#include <string.h>

enum { TARGET_PERMILLE = 900, TINY_NS = 3000, SMALL_NS = 10000, LONG_NS = 100000, LEAF_PERCENT = 75, SHARE_LEAST_PERMILLE = 20, OPEN_MAX = 48 };

/* Calls that are open at a point of the lane, the innermost last. */
struct open_calls { uint32_t depth; struct { uint32_t ref; uint64_t ticks; } calls[OPEN_MAX]; };

static struct tally *tally_of(uint32_t ref)
{
	uint32_t at = ref % TALLIES;

	for (uint32_t i = 0; i < TALLIES; i++, at = (at + 1) % TALLIES) {
		struct tally *tally = &the.tallies[at];

		if (!tally->ref)
			tally->ref = ref;
		if (tally->ref == ref)
			return tally;
	}
	return NULL; /* so many functions: none is hot */
}

/* A thread that loses its CPU in the middle of a small call makes that no large function. */
static uint64_t call_ticks(uint64_t ticks)
{
	uint64_t most = the.settings.ticks_per_second / (1000000000 / LONG_NS);

	return ticks < most ? ticks : most;
}

static void call_opens(struct open_calls *open, const struct event *event)
{
	if (open->depth < OPEN_MAX) {
		open->calls[open->depth].ref = event->ref;
		open->calls[open->depth].ticks = event->ticks;
	}
	open->depth++;
}

static void call_closes(struct open_calls *open, const struct event *event, struct tally *tally)
{
	if (!open->depth || --open->depth >= OPEN_MAX || !tally || open->calls[open->depth].ref != event->ref)
		return;
	tally->calls++;
	tally->total += call_ticks(event->ticks - open->calls[open->depth].ticks);
}

static void tally_event(const struct event *event, const struct event *before, struct open_calls *open)
{
	struct tally *tally = tally_of(event->ref);

	if (event->kind == EVENT_PY_ENTER || event->kind == EVENT_PY_RESUME || event->kind == EVENT_C_ENTER)
		call_opens(open, event);
	else
		call_closes(open, event, tally);
	if (!tally)
		return;
	tally->events++;
	tally->enters += event->kind == EVENT_PY_ENTER || event->kind == EVENT_C_ENTER;
	if (before && before->ref == event->ref && before->kind == EVENT_PY_ENTER && event->kind == EVENT_PY_LEAVE) {
		tally->leaves++;
		tally->ticks += call_ticks(event->ticks - before->ticks);
	}
}

/* How many events there were. */
static uint32_t tally_lane(const struct lane *lane)
{
	const char *at = (const char *)lane->subbuf + SUBBUF_HEAD;
	const struct event *before = NULL;
	struct open_calls open;
	uint32_t events = 0;

	open.depth = 0;
	memset(the.tallies, 0, sizeof the.tallies);
	while (at < (const char *)lane->cursor) {
		const struct event *event = (const struct event *)at;

		if (event->size < sizeof *event)
			break;
		at += event->size;
		if (event->kind > EVENT_C_LEAVE)
			continue;
		events++;
		tally_event(event, before, &open);
		before = event;
	}
	return events;
}

/* Most events first. In place and without memory of its own, which qsort() is not. */
static void sort(void)
{
	for (uint32_t i = 1; i < TALLIES; i++) {
		struct tally tally = the.tallies[i];
		uint32_t at = i;

		for (; at && the.tallies[at - 1].events < tally.events; at--)
			the.tallies[at] = the.tallies[at - 1];
		the.tallies[at] = tally;
	}
}

/* NS or less per call. */
static bool takes_most(uint64_t ticks, uint32_t calls, uint64_t ns)
{
	return ticks * 1000000 / calls <= the.settings.ticks_per_second / 1000 * ns;
}

/* So small that its events cost more than they tell, and a leaf: what it calls would lose its caller. */
static bool is_tiny(const struct tally *tally, const struct code *code)
{
	return code->flags & CODE_PYTHON && !(code->flags & CODE_GENERATOR) && !code->counted && tally->leaves * 100 >= tally->enters * LEAF_PERCENT && tally->leaves &&
	       takes_most(tally->ticks, tally->leaves, TINY_NS);
}

/* What it calls is small, too; whatever of that is hot can be left out as well. */
static bool is_small(const struct tally *tally, const struct code *code)
{
	return code->flags & CODE_PYTHON && !(code->flags & CODE_LEFT_OUT) && tally->calls && takes_most(tally->total, tally->calls, SMALL_NS);
}

static bool is_dispensable(const struct code *code)
{
	return !(code->flags & (CODE_PYTHON | CODE_CHEAP)) && the.settings.c_calls == C_CALLS_AUTO;
}

void write_throttle(uint64_t now, uint32_t ref, enum throttle what, uint64_t load)
{
	const uint32_t payload[2] = {what, (uint32_t)load};

	lane_put_with(lane_meta(), now, ref, EVENT_THROTTLE, payload, sizeof payload);
}

static void count_from_now(struct code *code)
{
	uint32_t row = the.counted_count++;

	the.page->counted[row] = (struct counted){.ref = code->ref};
	code->counted = row + 1;
	__atomic_store_n(&the.page->counted_count, the.counted_count, __ATOMIC_RELEASE);
}

static void leave_out(struct code *code)
{
	if (!code->counted)
		count_from_now(code);
	code->flags |= CODE_LEFT_OUT;
}

/* Among EVENTS. */
static bool is_hot(const struct tally *tally, uint32_t events)
{
	return tally->events * 1000 >= events * SHARE_LEAST_PERMILLE;
}

/* The events that CODE's calls would no longer cause; 0 = nothing can be done. A counted call still causes one. */
static uint32_t can_save(const struct tally *tally, const struct code *code, enum throttle what)
{
	if (what == THROTTLE_C_CALLS_OFF)
		return is_dispensable(code) ? tally->events : 0;
	if (what == THROTTLE_LEFT_OUT)
		return is_small(tally, code) && the.counted_count < COUNTED_MAX ? tally->events : 0;
	return is_tiny(tally, code) && the.counted_count < COUNTED_MAX ? tally->enters : 0;
}

/* What stays of LOAD, which EVENTS stand for and of which LEFT is still there, when enough hot functions are treated so. CHOSEN: they are, and it is told if one was; NULL = they are not. */
static uint64_t choose(uint32_t events, enum throttle what, uint64_t load, uint64_t left, uint64_t now, bool *chosen)
{
	for (uint32_t i = 0; i < TALLIES && is_hot(&the.tallies[i], events) && left > TARGET_PERMILLE; i++) {
		struct code *code = code_of_ref(the.tallies[i].ref);
		uint64_t saved = code ? load * can_save(&the.tallies[i], code, what) / events : 0;

		left = saved < left ? left - saved : 0;
		if (!saved || !chosen)
			continue;
		*chosen = true;
		if (what == THROTTLE_COUNTED)
			count_from_now(code);
		else if (what == THROTTLE_LEFT_OUT)
			leave_out(code);
		else
			code->flags |= CODE_CHEAP;
		write_throttle(now, code->ref, what, load);
	}
	return left;
}

void counted_note(void)
{
	for (uint32_t i = 0; i < the.counted_count; i++)
		the.counted_before[i] = the.page->counted[i].calls;
	the.counted_all_before = the.page->counted_calls;
}

/* Counting has used up most of the budget: the hottest of what is only counted is left out. True: that should be enough. */
static bool leave_out_counted(uint64_t now, uint64_t load, bool *chosen)
{
	uint64_t all = (uint64_t)the.given, left = load;

	if (!the.hooks->leaves_out || (the.page->counted_calls - the.counted_all_before) * 2 < all)
		return false;
	for (uint32_t i = 0; i < the.counted_count; i++) {
		uint64_t calls = the.page->counted[i].calls - the.counted_before[i], saved = load * calls / all;
		struct code *code = code_of_ref(the.page->counted[i].ref);

		if (!code || code->counted != i + 1 || code->flags & CODE_LEFT_OUT || calls * 1000 < all * SHARE_LEAST_PERMILLE)
			continue;
		leave_out(code);
		*chosen = true;
		write_throttle(now, code->ref, THROTTLE_LEFT_OUT, load);
		left = saved < left ? left - saved : 0;
	}
	return left <= TARGET_PERMILLE;
}

bool counted_choose(const struct lane *lane, uint64_t now, uint64_t load, bool *chosen)
{
	uint64_t left, after;
	uint32_t events;

	if (the.given > 0 && leave_out_counted(now, load, chosen))
		return true;
	events = tally_lane(lane);
	if (events < TALLY_LEAST / 2)
		return false;
	sort();
	left = choose(events, THROTTLE_C_CALLS_OFF, load, load, now, NULL);
	if (choose(events, THROTTLE_COUNTED, load, left, now, NULL) <= TARGET_PERMILLE) {
		left = choose(events, THROTTLE_C_CALLS_OFF, load, load, now, chosen);
		choose(events, THROTTLE_COUNTED, load, left, now, chosen);
		return true;
	}
	if (!the.hooks->leaves_out)
		return false;
	after = choose(events, THROTTLE_LEFT_OUT, load, left, now, NULL);
	if (after * 2 > load)
		return false;
	left = choose(events, THROTTLE_C_CALLS_OFF, load, load, now, chosen);
	return choose(events, THROTTLE_LEFT_OUT, load, left, now, chosen) <= TARGET_PERMILLE;
}
