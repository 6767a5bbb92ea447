/* What a reader must know before trusting the numbers: one row per fact, worst first. Never hidden, in no format. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/model.h"
#include "report/name.h"

enum { QUALITY_ROWS_MAX = 32 }; /* more than there are kinds */

static void add(struct report *report, enum quality_state state, const char *key, const char *label, const char *value, const char *meaning)
{
	if (report->quality_count < QUALITY_ROWS_MAX)
		report->quality[report->quality_count++] = (struct quality_row){ state, key, label, value, meaning };
}

static const char *counted(struct report *report, uint64_t count)
{
	return report_note(report, "%s", quantity_count(count, 0).text);
}

static void add_coverage(struct report *report)
{
	const struct timeline *timeline = report->timeline;
	const char *value = report_note(report, "%s of the capture", quantity_pct(report->coverage_pct, 0).text);

	if (report->imported)
		add(report, QUALITY_FINE, "coverage", "Calls", "as the file tells them", "another tool recorded them; what it left out nobody knows");
	else if (report->coverage_pct >= 99.9)
		add(report, QUALITY_FINE, "coverage", "Hooks on", value, "every call was seen");
	else if (report->coverage_pct > 0)
		add(report, QUALITY_NOTE, "coverage", "Hooks on", value, report_note(report, "hooks were on in %s window%s %s; numbers with ~ are scaled up", counted(report, timeline->window_count), timeline->window_count == 1 ? "" : "s",
			timeline_capture(timeline, "alternate_ms") ? "because of --alternate, and to keep within the overhead budget" : "to keep within the overhead budget"));
	else if (timeline->quality.samples)
		add(report, QUALITY_NOTE, "coverage", "Hooks on", value, "no calls were traced: everything comes from samples");
	else
		add(report, QUALITY_BAD, "coverage", "Hooks on", value, "no calls were seen: the process was idle, or its hooks could not be set");
}

static void add_loss(struct report *report)
{
	const struct timeline_quality *quality = &report->timeline->quality;
	uint64_t all = quality->events + quality->lost_events;
	double pct = all ? 100.0 * (double)quality->lost_events / (double)all : 0;

	if (!quality->lost_events)
		add(report, QUALITY_FINE, "events", "Events", report_note(report, "%s, none lost", counted(report, quality->events)), "");
	else
		add(report, pct > 0.1 ? QUALITY_BAD : QUALITY_NOTE, "events", "Events", report_note(report, "%s, %s lost (%s)", counted(report, quality->events), counted(report, quality->lost_events), quantity_pct(pct, 0).text),
		    "oldest events were overwritten before they could be read; raise --trace-size-mb");
}

/* What was done to keep within the budget, beside closing windows. */
static void add_throttle(struct report *report)
{
	const struct timeline *timeline = report->timeline;
	uint64_t counted_only = 0, c_calls = 0, left_out = 0;

	for (size_t i = 0; i < timeline->throttle_count; i++) {
		counted_only += timeline->throttles[i].what == THROTTLE_COUNTED;
		c_calls += timeline->throttles[i].what == THROTTLE_C_CALLS_OFF;
		left_out += timeline->throttles[i].what == THROTTLE_LEFT_OUT;
	}
	if (counted_only)
		add(report, QUALITY_NOTE, "counted", "Only counted", report_note(report, "%s function%s", counted(report, counted_only), counted_only == 1 ? "" : "s"),
		    "hot and tiny: their calls are exact, their times come from samples of their callers");
	if (left_out)
		add(report, QUALITY_NOTE, "left_out", "Left out", report_note(report, "%s function%s", counted(report, left_out), left_out == 1 ? "" : "s"),
		    "called so often that even counting them would be more than the overhead budget holds; their times come from samples, their calls are not known");
	if (c_calls)
		add(report, QUALITY_NOTE, "c_calls_off", "C functions left out", counted(report, c_calls), "called so often that their events were more than the overhead budget holds; their time stays with the caller");
}

static void add_overhead(struct report *report)
{
	bool unbounded = isnan(report->target_pct), over = report->overhead_pct > (unbounded ? 5 : report->target_pct) * 1.01;

	if (isnan(report->overhead_pct))
		add(report, QUALITY_NOTE, "overhead", "Overhead caused", "not measured", "the trace does not say what measuring cost");
	else
		add(report, over ? QUALITY_BAD : QUALITY_FINE, "overhead", "Overhead caused", report_note(report, "%s of the target's CPU time%s", quantity_pct(report->overhead_pct, 0).text, unbounded ? "" : report_note(report, " (budget %s)", quantity_pct(report->target_pct, 0).text)),
		    !over ? "" : unbounded ? "there was no budget: times of small functions are too long" : "more than the budget: times of small functions are too long");
	if (!isnan(report->hold_max_ns))
		add(report, report->hold_max_ns > 10e6 ? QUALITY_NOTE : QUALITY_FINE, "hold", "Longest hold", report_note(report, "%s of one thread", quantity_of(report->hold_max_ns, "ns", 0).text), "");
}

static double per_item(double cpu_ns, double items)
{
	return items > 0 ? cpu_ns / items : 0;
}

/* "3,512 scopes predict in 280 pairs of turns, 431 µs of CPU each with collection, 422 µs without" */
static const char *turns_base(struct report *report, const struct turns *turns)
{
	struct text text;
	const char *note;

	if (turns->work == WORK_SECONDS)
		return report_note(report, "in %s pairs of turns, by CPU time per second, as the program waits for work: %s of a CPU with collection, %s without", counted(report, turns->pairs),
			quantity_pct(100 * turns->cpu_on_ns / turns->work_on, 0).text, quantity_pct(100 * turns->cpu_off_ns / turns->work_off, 0).text);
	text_init(&text);
	text_printf(&text, "in %s pairs of turns, by %s scopes ", quantity_count(turns->pairs, 0).text, quantity_count((uint64_t)(turns->work_on + turns->work_off), 0).text);
	name_add(&text, turns->item, 60, NAME_HEAD);
	text_printf(&text, " that ended: %s of CPU for each with collection, ", quantity_of(per_item(turns->cpu_on_ns, turns->work_on), "ns", 0).text);
	text_printf(&text, "%s without", quantity_of(per_item(turns->cpu_off_ns, turns->work_off), "ns", 0).text);
	note = report_note(report, "%s", text_string(&text));
	report->failed |= text.failed;
	text_done(&text);
	return note;
}

/* What --measure-overhead found, beside what was counted for the same turns. */
static void add_turns(struct report *report)
{
	const struct turns *turns = &report->timeline->turns;
	const char *ledger = turns->ledger_pct < 0 ? "" : report_note(report, ", counted %s", quantity_pct(turns->ledger_pct, 0).text);

	if (turns->work == WORK_UNKNOWN && !turns->why)
		return;
	if (turns->work == WORK_UNKNOWN) {
		report->measured = report_note(report, "not measured%s", ledger);
		add(report, QUALITY_NOTE, "measured", "Overhead measured", report->measured, turns->why);
		return;
	}
	report->measured = report_note(report, "work with / without collection %.3f [%.3f to %.3f]%s", turns->ratio, turns->ratio_low, turns->ratio_high, ledger);
	add(report, turns->ratio_high * 100 < 100 - report->target_pct ? QUALITY_NOTE : QUALITY_FINE, "measured", "Overhead measured", report->measured, turns_base(report, turns));
}

static void add_threads(struct report *report)
{
	const struct timeline *timeline = report->timeline;
	struct text names;
	uint64_t unhooked = 0;

	text_init(&names);
	for (size_t i = 0; i < timeline->thread_count; i++) {
		const struct thread *thread = &timeline->threads[i];

		if (!thread->unhooked)
			continue;
		if (unhooked++ < 3) {
			text_printf(&names, "%s%u (", unhooked > 1 ? ", " : "", thread->tid);
			name_add(&names, thread->unhooked, 60, NAME_HEAD);
			text_add_string(&names, ")");
		}
	}
	if (unhooked)
		add(report, QUALITY_NOTE, "threads_unhooked", "Threads left alone", report_note(report, "%s of %s", counted(report, unhooked), counted(report, timeline->thread_count)),
		    report_note(report, "their calls are not seen: %s%s", text_string(&names), unhooked > 3 ? " and more" : ""));
	report->failed |= names.failed;
	text_done(&names);
}

/* Of a trace, which anyone may have written: below zero it says nothing, as where it does not stand. */
static uint64_t counter_of(const struct timeline *timeline, const char *name)
{
	int64_t count = timeline_counter(timeline, name, 0);

	return count > 0 ? (uint64_t)count : 0;
}

/* Counters that are zero when all is well. */
static void add_counters(struct report *report)
{
	const struct timeline *timeline = report->timeline;
	const struct timeline_quality *q = &timeline->quality;
	const struct { enum quality_state state; const char *key, *label; uint64_t value; const char *meaning; } rows[] = {
		{ QUALITY_BAD, "damaged_chunks", "Damaged parts of the file", q->damaged_chunks, "what lay in them is missing" },
		{ QUALITY_BAD, "damaged_subbufs", "Damaged parts of the lanes", counter_of(timeline, "damaged_subbufs"), "what the process holds there made no sense: something has written over it" },
		{ QUALITY_BAD, "lane_overflow", "Events of threads without a lane", counter_of(timeline, "lane_overflow"), "calls of some 2,000 threads at a time can be traced: of the others only samples tell" },
		{ QUALITY_BAD, "beyond_limits", "Events left out", q->beyond_limits, "there were more than an analysis takes: what they would have told is missing" },
		{ QUALITY_NOTE, "code_overflow", "Events of functions without a place", counter_of(timeline, "code_overflow"), "131,072 functions are told apart: those beyond are one, (other functions)" },
		{ QUALITY_NOTE, "unmatched", "Unmatched events", q->unmatched, "a return without its call, or a call without its return: their times are cut at the edge of what was seen" },
		{ QUALITY_NOTE, "outside", "Events outside windows", q->outside, "calls that were seen while hooks were said to be off; left out" },
		{ QUALITY_NOTE, "other_calls", "Calls in (other)", q->other_calls, "their stacks were too deep or too many to keep apart" },
		{ QUALITY_NOTE, "unresolved_names", "Functions without a name", q->unresolved_names, "shown by number" },
		{ QUALITY_NOTE, "torn_samples", "Torn samples", q->torn_samples, "the stack changed while it was read; left out" },
		{ QUALITY_NOTE, "cut_strings", "Names cut", q->cut_strings, "longer than an event may be" },
		{ QUALITY_FINE, "skipped_calls", "Calls skipped", q->skipped_calls, "left out by --skip; their time stays with the caller" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].value)
			add(report, rows[i].state, rows[i].key, rows[i].label, counted(report, rows[i].value), rows[i].meaning);
	if (q->truncated)
		add(report, QUALITY_BAD, "truncated", "File", "cut short", "the recording ended inside a chunk; everything before it is here");
	if (q->samples)
		add(report, QUALITY_FINE, "samples", "Samples", counted(report, q->samples), "");
}

/* Insertion sort: few rows, and equal states keep their order. */
static void worst_first(struct quality_row *rows, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct quality_row row = rows[i];
		size_t at = i;

		for (; at && rows[at - 1].state < row.state; at--)
			rows[at] = rows[at - 1];
		rows[at] = row;
	}
}

/* How well the device's clock is known, and whether causes came before what they caused. */
static void add_gpu_clock(struct report *report)
{
	const struct gpu_facts *gpu = &report->timeline->gpu;
	int64_t bound_ns = timeline_counter(report->timeline, "gpu.clock_bound_ns", -1);
	const char *clock = timeline_capture(report->timeline, "gpu.clock");
	bool assumed = clock && strncmp(clock, "not ", 4) == 0, early = gpu->early * 1000 > gpu->launches;

	if (!gpu->events || (bound_ns < 0 && !early))
		return;
	add(report, assumed || early ? QUALITY_NOTE : QUALITY_FINE, "gpu_clock", "GPU clock", bound_ns < 0 ? "error not known" : report_note(report, "within %s", quantity_ns((uint64_t)bound_ns, 0).text),
	    assumed ? clock : report_note(report, "%s of %s pieces of work seem to begin before their launch%s%s", counted(report, gpu->early), counted(report, gpu->launches),
	                                  gpu->early ? ", at most by " : "", gpu->early ? quantity_ns(gpu->early_most_ns, 0).text : ""));
}

/* What an imported trace of several processes does not say. */
static void add_gpu_owners(struct report *report)
{
	uint64_t unowned = counter_of(report->timeline, "import.unowned"), shared = counter_of(report->timeline, "import.shared_devices");

	if (unowned)
		add(report, QUALITY_NOTE, "gpu_owners", "GPU work of unknown processes", report_note(report, "%s of %s", counted(report, unowned), counted(report, report->timeline->gpu.events)),
		    "several processes have a call of its correlation id, and no arrow and no order in the file tells which: its launches are not known");
	if (shared)
		add(report, QUALITY_NOTE, "gpu_shared", "Devices of several processes", counted(report, shared), "the trace has no more of a device than its number: where these are several GPUs, they count as one");
}

/* What an imported trace holds that could not be taken as it stands. */
static void add_imported(struct report *report)
{
	const struct timeline *timeline = report->timeline;
	uint64_t cut = counter_of(timeline, "import.cut"), left_out = counter_of(timeline, "import.left_out"), events = counter_of(timeline, "import.events");

	if (left_out)
		add(report, QUALITY_BAD, "import_left_out", "Events that found no room", report_note(report, "%s, beside %s", counted(report, left_out), counted(report, events)), "the importer's bounds are reached: they are in no number");
	if (cut)
		add(report, QUALITY_NOTE, "import_cut", "Calls that overlap", report_note(report, "%s, %s of them cut off", counted(report, cut), quantity_ns(counter_of(timeline, "import.cut_ns"), 0).text),
		    "of two calls of one thread, neither of which is inside the other, the later one counts as far as the earlier one goes");
}

static const char *part_of_time(struct report *report, double pct, const char *of)
{
	return pct > 0 && pct < 99.5 ? report_note(report, "%s%.*f %% of its CPU time (--max-overhead, --alternate), sums are estimates for all of it, and ± is of samples alone; ", of, pct < 9.5, pct) : "";
}

/* Which allocations were sampled, and which were not. */
static void add_memory(struct report *report)
{
	const struct timeline *timeline = report->timeline;
	const char *told = timeline_capture(timeline, "memory"), *raw = timeline_capture(timeline, "memory.raw"), *asked = timeline_capture(timeline, "memory.interval");
	double interval = (double)timeline_counter(timeline, "memory_interval_last", 0);
	const struct memory_facts *facts = timeline_memory(timeline);
	uint64_t missed = counter_of(timeline, "memory_missed") + counter_of(timeline, "memory_full");
	bool fewer = asked && interval > strtod(asked, NULL);

	if (!told || !raw)
		return;
	add(report, strncmp(told, "sampled", 7) == 0 ? QUALITY_NOTE : QUALITY_BAD, "memory", "Allocations", report_note(report, "%.120s", told),
	    report_note(report, "%s%sdomain raw %.150s%s%s", part_of_time(report, facts->seen_pct[0], ""), part_of_time(report, facts->seen_pct[1], "of native libraries "), raw, fewer ? report_note(report, "; to keep within the overhead budget a sample per %s at last", quantity_of(interval, "bytes", 0).text) : "",
			missed ? report_note(report, "; %s samples have no stack or no end", counted(report, missed)) : ""));
}

/* Libraries that have functions without a name, and why. */
static void add_names(struct report *report)
{
	const struct timeline *timeline = report->timeline;
	struct text why;
	uint64_t libraries = 0;

	text_init(&why);
	for (size_t i = 0; i < timeline->capture_count; i++) {
		const char *path = timeline->captures[i].key + strlen("names."), *base;

		if (strncmp(timeline->captures[i].key, "names.", strlen("names.")) != 0 || libraries++ >= 3)
			continue;
		base = strrchr(path, '/');
		text_add_string(&why, why.length ? "; " : "");
		name_add(&why, base ? base + 1 : path, 60, NAME_HEAD);
		text_add_string(&why, ": ");
		name_add(&why, timeline->captures[i].value, 120, NAME_HEAD);
	}
	if (libraries)
		add(report, QUALITY_FINE, "names", "Libraries with functions that have no name", counted(report, libraries),
		    report_note(report, "called after their address; %s%s", text_string(&why), libraries > 3 ? "; and more" : ""));
	report->failed |= why.failed;
	text_done(&why);
}

/* Where scopes tell requests: few of them are no load to judge by, and of calls that were watched for a part of the time the long ones are missing. */
static void add_requests(struct report *report)
{
	const struct scope_latency *main = report->timeline->scope_count ? &report->timeline->scopes[0] : NULL;
	const struct scope_parts *parts = &report->timeline->scope_parts;

	if (!main && parts->any)
		add(report, QUALITY_NOTE, "requests", "Requests", "0", report_note(report, "none was seen from beginning to end: %s began, %s ended; measure for longer than they take", counted(report, parts->begun), counted(report, parts->ended)));
	if (main && main->count < REQUESTS_ENOUGH)
		add(report, QUALITY_NOTE, "requests", "Requests", counted(report, main->count), "few: measure for longer, or under more load");
	if (main && main->estimated)
		add(report, QUALITY_NOTE, "requests_cut", "Latencies", report_note(report, "of the %s calls of ~%s that were seen from beginning to end", counted(report, main->count), counted(report, main->all_count)),
		    report_note(report, "hooks were off for a part of the time: long ones are seen more seldom, those longer than a window never; %s that began were cut", counted(report, main->cut)));
}

int quality_build(struct report *report, struct error *err)
{
	const char *gpu = report->analysis->verdict.gpu;

	report->quality = arena_alloc(&report->arena, QUALITY_ROWS_MAX * sizeof *report->quality);
	if (!report->quality)
		return fail(err, ERR_MEMORY, "building the report");
	add(report, report->timeline->duration_ns < 1000000000 ? QUALITY_NOTE : QUALITY_FINE, "duration", "Captured", report_note(report, "%s", quantity_ns(report->timeline->duration_ns, 0).text),
	    report->timeline->duration_ns < 1000000000 ? "short: one slow moment weighs much; measure 10 s or more" : "");
	add_coverage(report);
	add_loss(report);
	add_overhead(report);
	add_turns(report);
	add_throttle(report);
	add_threads(report);
	add_counters(report);
	add_gpu_clock(report);
	add_gpu_owners(report);
	add_imported(report);
	add_requests(report);
	add_memory(report);
	add_names(report);
	if (report->timeline->thread_count && !report->timeline->native_split)
		add(report, QUALITY_NOTE, "native_split", "Native code", "not told apart", "CPU time inside C extensions counts as the Python function that called them");
	if (gpu && *gpu)
		add(report, QUALITY_NOTE, "gpu", "GPU", "not seen", report_note(report, "%s", gpu));
	worst_first(report->quality, report->quality_count);
	return 0;
}
