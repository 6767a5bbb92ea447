/*
 * Scopes: what the program called a request or a step, by with scope(...), or what the user made one: functions by name. The program tells the former all along, calls
 * are only seen while hooks are on. So how many there were of the latter and how long they took is taken from what all calls of the function are estimated to be.
 */
#include <fnmatch.h>
#include <stdio.h>

#include "timeline/private.h"

enum { SCOPES_LIMIT = 1 << 22, PATTERN_BYTES = 4096 };

static void add_scope(struct timeline_private *p, uint64_t start_ns, uint64_t end_ns, uint32_t name, uint32_t function)
{
	struct scope_build *scope = keep_event(p, &p->scopes, SCOPES_LIMIT);

	if (scope)
		*scope = (struct scope_build){ start_ns, end_ns > start_ns ? end_ns : start_ns, name, function };
}

static void add_part(struct timeline_private *p, bool begun, bool ended)
{
	p->timeline.scope_parts.any = true;
	p->timeline.scope_parts.begun += begun;
	p->timeline.scope_parts.ended += ended;
}

void scopes_begin(struct timeline_private *p, uint32_t lane, const struct event_cursor *c, uint64_t at_ns)
{
	uint32_t name = facts_string(p, c, 1);
	struct open_scope *scope = room_or_left_out(p, open_scopes_begin(&p->open_scopes, lane, event_u64(c, 0), at_ns, &p->failed));

	if (scope)
		scope->kept = name;
}

void scopes_end(struct timeline_private *p, uint32_t lane, const struct event_cursor *c, uint64_t at_ns)
{
	const struct open_scope *scope = open_scopes_end(&p->open_scopes, lane, event_u64(c, 0));

	if (scope)
		add_scope(p, scope->start_ns, at_ns, scope->kept, NONE);
	else
		add_part(p, false, true);
}

static bool fits(const char *pattern, const char *file, const char *name)
{
	const char *base = path_base(file);
	int stem = (int)(strrchr(base, '.') ? strrchr(base, '.') - base : (long)strlen(base));
	char text[PATTERN_BYTES];

	if (fnmatch(pattern, name, 0) == 0)
		return true;
	snprintf(text, sizeof text, "%.*s.%s", stem, base, name);
	if (fnmatch(pattern, text, 0) == 0)
		return true;
	snprintf(text, sizeof text, "%s:%s", strchr(pattern, '/') ? file : base, name);
	return fnmatch(pattern, text, 0) == 0;
}

void scopes_mark(struct timeline_private *p)
{
	for (size_t i = 0; p->patterns && p->patterns->count && i < p->names.list.count; i++) {
		struct name *name = &p->names.list.items[i];

		for (size_t j = 0; j < p->patterns->count && !name->scope; j++)
			name->scope = fits(p->patterns->items[j], strings_get(p->strings, name->file), strings_get(p->strings, name->name));
	}
}

/* One that is open when the capture ends was not cut: any way of watching ends there. */
void scopes_call(struct timeline_private *p, uint32_t function, uint64_t start_ns, uint64_t end_ns, bool open_start, bool open_end)
{
	if (!open_start && !open_end)
		add_scope(p, p->timeline.start_ns + start_ns, p->timeline.start_ns + end_ns, NONE, function);
	else
		add_part(p, !open_start, !open_end);
	if (!open_start && open_end && end_ns < p->timeline.duration_ns)
		p->names.list.items[function].scopes_cut++;
}

/* Adds those that are functions, or those that are not. */
static void melt(struct timeline_private *p, bool functions)
{
	for (size_t i = 0; i < p->scopes.count; i++)
		if ((p->scopes.items[i].function != NONE) == functions)
			p->failed |= !pieces_add(&p->scopes_open, p->scopes.items[i].start_ns, p->scopes.items[i].end_ns, SIZE_MAX);
	pieces_melt(&p->scopes_open);
}

/* Scopes that are open at the end are demand, but nobody knows how long they take. */
void scopes_melt(struct timeline_private *p)
{
	uint64_t end = p->timeline.start_ns + p->timeline.duration_ns;

	for (size_t i = 0; i < p->open_scopes.list.count; i++)
		if (p->open_scopes.list.items[i].open) {
			p->failed |= !pieces_add(&p->scopes_open, p->open_scopes.list.items[i].start_ns, end, SIZE_MAX);
			add_part(p, true, false);
		}
	melt(p, false);
	p->named_open_ns = pieces_within(&p->scopes_open, p->timeline.start_ns, end);
	melt(p, true);
	p->timeline.scopes_open_ns = pieces_within(&p->scopes_open, p->timeline.start_ns, end);
}

/* ---- latencies ---- */

static int compare_scopes(const void *left, const void *right)
{
	const struct scope_build *a = left, *b = right;

	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static int compare_lengths(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static int compare_latencies(const void *left, const void *right)
{
	const struct scope_latency *a = left, *b = right;

	if (a->all_ns != b->all_ns)
		return a->all_ns > b->all_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* As many as COUNT + CUT began: where does the percentile lie when all that were cut took longer than those of LENGTHS? */
static uint64_t most_of(const uint64_t *lengths, size_t count, uint64_t cut, unsigned percent)
{
	uint64_t rank = percentile_rank(count + cut, percent);

	return rank <= count ? lengths[rank - 1] : UINT64_MAX;
}

/* One after the other they can be open for no longer than the capture. */
static uint64_t open_for(const struct timeline_private *p, double ns)
{
	return ns < (double)p->timeline.duration_ns ? (uint64_t)ns : p->timeline.duration_ns;
}

/* What was seen of FUNCTION, and what that says of the whole capture. Its time holds calls that were cut, and those that began before or end after the capture. */
static void estimate(const struct timeline_private *p, uint32_t name, struct scope_latency *out)
{
	const struct name *calls = &p->names.list.items[name];
	const struct function *function = out->function == NONE ? NULL : &p->timeline.functions[out->function];

	if (!function)
		return;
	out->cut = calls->scopes_cut;
	out->coverage = function->coverage;
	out->estimated = function->coverage < FULL_COVERAGE;
	out->all_ns = function->total_ns > out->total_ns ? function->total_ns : out->total_ns;
	if (!out->estimated)
		return;
	out->all_count = calls->outer_calls > (double)out->count && calls->outer_calls < 9e18 ? (uint64_t)(calls->outer_calls + 0.5) : out->count;
	if (out->total_ns)
		out->open_ns = open_for(p, (double)out->open_ns * (double)out->all_ns / (double)out->total_ns);
}

/* Scopes of one name; LENGTHS is room for as many numbers. */
static void measure(struct timeline_private *p, const struct scope_build *scopes, size_t count, uint64_t *lengths, struct scope_latency *out)
{
	struct pieces open = { 0 };

	*out = (struct scope_latency){ .function = scopes->function == NONE ? NONE : p->export_function[scopes->function], .count = count };
	out->name = strings_get(p->strings, scopes->function == NONE ? scopes->name : p->names.list.items[scopes->function].name);
	for (size_t i = 0; i < count; i++) {
		lengths[i] = scopes[i].end_ns - scopes[i].start_ns;
		out->total_ns += lengths[i];
		if (lengths[i] > out->max_ns || !i) {
			out->max_ns = lengths[i];
			out->max_at_ns = scopes[i].start_ns > p->timeline.start_ns ? scopes[i].start_ns - p->timeline.start_ns : 0;
		}
		p->failed |= !pieces_add(&open, scopes[i].start_ns, scopes[i].end_ns, SIZE_MAX);
	}
	pieces_melt(&open);
	out->open_ns = pieces_length(&open);
	list_done(&open);
	qsort(lengths, count, sizeof *lengths, compare_lengths);
	out->p50_ns = percentile_of(lengths, count, 50);
	out->p95_ns = percentile_of(lengths, count, 95);
	out->p99_ns = percentile_of(lengths, count, 99);
	out->coverage = 1;
	out->all_count = out->count;
	out->all_ns = out->total_ns;
	if (scopes->function != NONE)
		estimate(p, scopes->function, out);
	out->p50_most_ns = most_of(lengths, count, out->cut, 50);
	out->p95_most_ns = most_of(lengths, count, out->cut, 95);
	out->p99_most_ns = most_of(lengths, count, out->cut, 99);
}

/* Of what calls add to the time in which the program's own scopes are open, as much is missing as of the calls. */
static void estimate_open(struct timeline_private *p, const struct scope_latency *scopes, size_t count)
{
	double seen = 0, all = 0;

	for (size_t i = 0; i < count; i++) {
		seen += scopes[i].estimated ? (double)scopes[i].total_ns : 0;
		all += scopes[i].estimated ? (double)scopes[i].all_ns : 0;
	}
	if (seen > 0)
		p->timeline.scopes_open_ns = open_for(p, (double)p->named_open_ns + (double)(p->timeline.scopes_open_ns - p->named_open_ns) * all / seen);
}

void scopes_build(struct timeline_private *p)
{
	const struct scope_build *items = p->scopes.items;
	size_t count = p->scopes.count, names = 0;
	uint64_t *lengths = malloc((count + 1) * sizeof *lengths);
	struct scope_latency *out;

	if (count)
		qsort(p->scopes.items, count, sizeof *p->scopes.items, compare_scopes);
	for (size_t i = 0; i < count; i++)
		names += i == 0 || items[i].name != items[i - 1].name || items[i].function != items[i - 1].function;
	out = arena_alloc(&p->arena, names * sizeof *out + 1);
	p->failed |= !lengths || !out;
	for (size_t first = 0, last, at = 0; !p->failed && first < count; first = last, at++) {
		for (last = first + 1; last < count && items[last].name == items[first].name && items[last].function == items[first].function; last++)
			;
		measure(p, items + first, last - first, lengths, &out[at]);
	}
	if (!p->failed && names)
		qsort(out, names, sizeof *out, compare_latencies);
	free(lengths);
	if (!p->failed)
		estimate_open(p, out, names);
	p->timeline.scopes = out;
	p->timeline.scope_count = p->failed ? 0 : names;
}
