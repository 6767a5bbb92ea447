/*
 * What measuring really cost (--measure-overhead): the program's work per CPU time in turns with collection against that in turns without.
 *
 * Work is counted by what hooks do not see, as they are off in half of the turns: scopes that end, which the program tells all along. A program
 * without scopes that waits for its work does as much in one turn as in the other, if it is not asked for more: then its CPU time per second tells.
 * Of one that is busy all the time and tells nothing its work cannot be known.
 */
#include "base/search.h"
#include "timeline/private.h"
#include "timeline/ratio.h"

enum { ITEMS_LEAST = 50, EDGE = 10 /* a tenth of a turn at both ends: samples follow some 10 ms late */, STALE_NS = 35000000 };
#define BUSY 0.8 /* of a CPU */

struct items { uint64_t *ends_ns; size_t count; uint32_t name; };

struct turn { double work, cpu; uint64_t wall_ns; bool on, known; };

void turns_reading(struct timeline_private *p, uint64_t at_ns, int64_t cpu_ns)
{
	const struct cpu_reading *last = p->cpu_readings.count ? &p->cpu_readings.items[p->cpu_readings.count - 1] : NULL;
	struct cpu_reading *reading;

	if (cpu_ns < 0 || (last && (at_ns <= last->at_ns || (uint64_t)cpu_ns < last->cpu_ns)))
		return;
	reading = list_add_or_fail(&p->cpu_readings, POINTS_LIMIT, &p->failed);
	if (reading)
		*reading = (struct cpu_reading){ at_ns, (uint64_t)cpu_ns };
}

/* Between two readings. False: none are near. */
static bool cpu_at(const struct timeline_private *p, uint64_t at_ns, double *out)
{
	const struct cpu_reading *readings = p->cpu_readings.items;
	size_t next = search_first(p->cpu_readings.count, i, readings[i].at_ns <= at_ns); /* the first that is later */

	if (!next || next == p->cpu_readings.count || readings[next].at_ns - readings[next - 1].at_ns > STALE_NS)
		return false;
	*out = (double)readings[next - 1].cpu_ns + (double)(readings[next].cpu_ns - readings[next - 1].cpu_ns) * (double)(at_ns - readings[next - 1].at_ns) / (double)(readings[next].at_ns - readings[next - 1].at_ns);
	return true;
}

static int compare_times(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* Scopes of the name that ended most often. They are sorted by name already; those that are functions are only seen by hooks. */
static struct items items_find(struct timeline_private *p)
{
	const struct scope_build *scopes = p->scopes.items;
	struct items items = { 0 };
	size_t best = 0;

	for (size_t first = 0, last; first < p->scopes.count; first = last) {
		for (last = first + 1; last < p->scopes.count && scopes[last].name == scopes[first].name && scopes[last].function == scopes[first].function; last++)
			;
		if (scopes[first].function == NONE && last - first > items.count) {
			best = first;
			items.count = last - first;
		}
	}
	if (!items.count)
		return items;
	items.name = scopes[best].name;
	items.ends_ns = malloc(items.count * sizeof *items.ends_ns);
	p->failed |= !items.ends_ns;
	for (size_t i = 0; items.ends_ns && i < items.count; i++)
		items.ends_ns[i] = scopes[best + i].end_ns;
	if (items.ends_ns)
		qsort(items.ends_ns, items.count, sizeof *items.ends_ns, compare_times);
	return items;
}

/* How many ended before. */
static size_t ended_before(const struct items *items, uint64_t at_ns)
{
	return search_first(items->count, i, items->ends_ns[i] < at_ns);
}

static struct turn turn_read(const struct timeline_private *p, const struct items *items, uint64_t start_ns, uint64_t end_ns, bool on)
{
	uint64_t edge = (end_ns - start_ns) / EDGE, from = start_ns + edge, to = end_ns - edge;
	struct turn turn = { .on = on, .wall_ns = to - from };
	double before, after;

	if (!cpu_at(p, from, &before) || !cpu_at(p, to, &after))
		return turn;
	turn.known = true;
	turn.cpu = after - before;
	turn.work = (double)(ended_before(items, to) - ended_before(items, from));
	return turn;
}

static bool is_turn(const struct throttle_build *change)
{
	return change->out.what == THROTTLE_TURN_ON || change->out.what == THROTTLE_TURN_OFF;
}

/* Every second one is without collection. */
static size_t turns_read(const struct timeline_private *p, const struct items *items, struct turn *out)
{
	const struct throttle_build *before = NULL;
	size_t count = 0;

	for (size_t i = 0; i < p->throttles.count; i++) {
		const struct throttle_build *change = &p->throttles.items[i];

		if (!is_turn(change))
			continue;
		if (before && change->out.at_ns > before->out.at_ns && change->out.what != before->out.what)
			out[count++] = turn_read(p, items, before->out.at_ns, change->out.at_ns, before->out.what == THROTTLE_TURN_ON);
		before = change;
	}
	return count;
}

/* Turns with collection, each with the one after it. BY_TIME: wall time is the work. */
static size_t pairs_make(const struct turn *turns, size_t count, bool by_time, struct ratio_pair *out)
{
	size_t pairs = 0;

	for (size_t i = 0; i + 1 < count; i++) {
		const struct turn *on = &turns[i], *off = &turns[i + 1];

		if (!on->on || off->on || !on->known || !off->known)
			continue;
		out[pairs++] = (struct ratio_pair){ by_time ? (double)on->wall_ns : on->work, on->cpu, by_time ? (double)off->wall_ns : off->work, off->cpu };
		i++;
	}
	return pairs;
}

static void sum_up(struct turns *out, const struct ratio_pair *pairs, size_t count)
{
	out->pairs = count;
	for (size_t i = 0; i < count; i++) {
		out->work_on += pairs[i].work_on;
		out->work_off += pairs[i].work_off;
		out->cpu_on_ns += pairs[i].cpu_on;
		out->cpu_off_ns += pairs[i].cpu_off;
	}
}

/* A thread that wants a CPU and gets none does not wait for work. */
static bool is_busy(const struct timeline_private *p)
{
	double wanted_ns = 0;

	for (size_t i = 0; i < p->timeline.thread_count; i++)
		wanted_ns += (double)p->timeline.threads[i].cpu_ns + (double)p->timeline.threads[i].run_wait_ns;
	return wanted_ns > BUSY * (double)p->timeline.duration_ns;
}

/* What the ledger says of the turns with collection: all that it counted was spent there. */
static double ledger_pct(const struct timeline_private *p, const struct turn *turns, size_t count)
{
	const struct cpu_reading *readings = p->cpu_readings.items;
	double all = (double)(readings[p->cpu_readings.count - 1].cpu_ns - readings[0].cpu_ns), off = 0;
	int64_t ppm = timeline_counter(&p->timeline, "overhead_ppm", -1);

	for (size_t i = 0; i < count; i++)
		off += turns[i].on ? 0 : turns[i].cpu * EDGE / (EDGE - 2);
	return ppm < 0 || off >= all ? -1 : (double)ppm / 1e4 * all / (all - off);
}

static void compare(struct timeline_private *p, const struct items *items, const struct turn *turns, size_t count, struct ratio_pair *pairs)
{
	struct turns *out = &p->timeline.turns, by_time = { 0 };
	struct ratio ratio;
	size_t pair_count = pairs_make(turns, count, true, pairs);

	sum_up(&by_time, pairs, pair_count);
	sum_up(out, pairs, pairs_make(turns, count, false, pairs));
	if (pair_count < RATIO_PAIRS_LEAST) {
		out->why = "too few turns could be compared: measure for longer";
		return;
	}
	if (out->work_on >= ITEMS_LEAST && out->work_off >= ITEMS_LEAST) {
		out->work = WORK_ITEMS;
		out->item = strings_get(p->strings, items->name);
	} else if (!is_busy(p)) {
		*out = by_time;
		out->work = WORK_SECONDS;
		pairs_make(turns, count, true, pairs);
	} else {
		out->why = items->count ? "too few scopes of one name ended: measure for longer"
		                        : "the program is busy all the time and tells no scopes, so that nobody knows what it got done; scope(...) of the Python package around each request tells it";
		return;
	}
	if (!ratio_of_pairs(pairs, pair_count, &ratio)) {
		*out = (struct turns){ .pairs = pair_count, .why = "the program did nothing in the turns" };
		return;
	}
	out->ratio = ratio.value;
	out->ratio_low = ratio.low;
	out->ratio_high = ratio.high;
}

void turns_build(struct timeline_private *p)
{
	struct items items = { 0 };
	struct turn *turns;
	struct ratio_pair *pairs;
	size_t count;

	/* In a merged trace the clocks of several processes would be mixed up. */
	if (p->failed || !p->cpu_readings.count || p->processes.count != 1)
		return;
	turns = calloc(p->throttles.count + 1, sizeof *turns);
	pairs = calloc(p->throttles.count + 1, sizeof *pairs);
	items = items_find(p);
	if (turns && pairs && !p->failed) {
		count = turns_read(p, &items, turns);
		compare(p, &items, turns, count, pairs);
		p->timeline.turns.ledger_pct = ledger_pct(p, turns, count);
	}
	p->failed |= !turns || !pairs;
	free(items.ends_ns);
	free(turns);
	free(pairs);
}
