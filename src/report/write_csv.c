/*
 * One table with Nsight Systems' column names, so that scripts written for its statistics read it: functions from the timeline; kernels, copies, CUDA and
 * system calls and scopes from one pass over the trace, which also tells how calls spread. Memory grows with names, not with events.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/document.h"
#include "report/durations.h"
#include "report/export.h"

enum { KINDS_NAMES_LIMIT = 65536 };

struct other { uint32_t kind, name; struct durations spread; uint64_t bytes; bool sampled; /* any of them */ };

struct csv {
	const struct report *report;
	const struct timeline *timeline;
	struct sink *sink;
	struct durations *functions;
	struct strings *names; /* the kind's byte, then the name */
	struct other *others;  /* by id of the name */
	size_t capacity;
	struct text line, text;
	bool failed;
};

static struct other *other_of(struct csv *all, const struct interval *interval)
{
	uint32_t id;

	text_clear(&all->text);
	text_printf(&all->text, "%c%s", interval->kind, strings_count(all->names) < KINDS_NAMES_LIMIT ? export_label(interval) : "(other)");
	id = all->text.failed ? UINT32_MAX : strings_add(all->names, all->text.data, all->text.length);
	if (id != UINT32_MAX && id >= all->capacity) {
		struct other *bigger = realloc(all->others, (id + (size_t)1024) * sizeof *bigger);

		if (!bigger) {
			id = UINT32_MAX;
		} else {
			memset(bigger + all->capacity, 0, (id + (size_t)1024 - all->capacity) * sizeof *bigger);
			all->others = bigger;
			all->capacity = id + (size_t)1024;
		}
	}
	if (id == UINT32_MAX) {
		all->failed = true;
		return NULL;
	}
	all->others[id].kind = interval->kind;
	all->others[id].name = id;
	return &all->others[id];
}

static bool take(void *context, const struct interval *interval)
{
	struct csv *all = context;
	uint64_t took_ns = interval->end_ns - interval->start_ns;
	struct other *other;

	switch (interval->kind) {
	case EVENT_PY_ENTER:
	case EVENT_C_ENTER:
		if (interval->function < all->timeline->function_count && !interval->open_start && !interval->open_end)
			all->failed |= !durations_add(&all->functions[interval->function], took_ns);
		break;
	case EVENT_SCOPE_EXIT:
	case EVENT_MEMORY_ALLOC: /* samples: neither their number nor their sizes tell of all */
	case EVENT_MEMORY_FREE:
		break;
	default:
		if (interval->open_start || interval->open_end || !(other = other_of(all, interval)))
			break;
		all->failed |= !durations_add(&other->spread, took_ns);
		other->bytes += interval->bytes;
		other->sampled |= interval->sampled;
	}
	return !all->failed;
}

static void add_number(struct text *line, uint64_t number)
{
	text_printf(line, ",%llu", (unsigned long long)number);
}

static void add_spread(struct text *line, struct durations *spread)
{
	if (!spread->count) {
		text_add_string(line, ",,,,,");
		return;
	}
	text_printf(line, ",%.1f,%.1f", spread->mean, durations_median(spread));
	add_number(line, spread->min);
	add_number(line, spread->max);
	text_printf(line, ",%.1f", durations_deviation(spread));
}

static void line_out(struct csv *all)
{
	text_add(&all->line, "\n", 1);
	all->failed |= all->line.failed || all->text.failed;
	if (!all->failed)
		sink_write(all->sink, all->line.data, all->line.length);
}

static void write_function(struct csv *all, uint32_t index)
{
	const struct function *function = &all->timeline->functions[index];
	uint64_t whole = all->report->self_sum_ns;

	text_clear(&all->line);
	text_printf(&all->line, "%.2f", whole ? 100.0 * (double)function->self_ns / (double)whole : 0.0);
	add_number(&all->line, function->total_ns);
	add_number(&all->line, function->self_ns);
	add_number(&all->line, function->cpu_self_ns);
	if (function->precision == PRECISION_SAMPLED && !function->calls)
		text_add(&all->line, ",", 1);
	else
		add_number(&all->line, function->calls);
	add_spread(&all->line, &all->functions[index]);
	export_cell(&all->line, function_kind_name(function->kind));
	export_cell(&all->line, precision_name(function->precision));
	text_printf(&all->line, ",%.2f,", 100 * function->coverage);
	export_name(all->timeline, index, &all->text);
	export_cell(&all->line, text_string(&all->text));
	export_file(all->timeline, index, &all->text);
	export_cell(&all->line, text_string(&all->text));
	text_add(&all->line, ",", 1);
	if (function->line)
		text_printf(&all->line, "%u", function->line);
	line_out(all);
}

/* By kind, then the most time first. */
static int by_time(const void *a, const void *b)
{
	const struct other *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->spread.total != y->spread.total)
		return x->spread.total > y->spread.total ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* WHOLE: the time of all of its kind. */
static void write_other(struct csv *all, struct other *other, uint64_t whole)
{
	text_clear(&all->line);
	text_printf(&all->line, "%.2f", whole ? 100.0 * (double)other->spread.total / (double)whole : 0.0);
	add_number(&all->line, other->spread.total);
	text_add_string(&all->line, ",,");
	if (other->sampled) {
		text_add_string(&all->line, ",,,,,,"); /* how often, and how long each: not seen */
	} else {
		add_number(&all->line, other->spread.count);
		add_spread(&all->line, &other->spread);
	}
	export_cell(&all->line, EXPORT_KINDS[export_kind(other->kind)].category);
	text_add_string(&all->line, other->sampled ? ",sampled,," : ",exact,,");
	if (other->bytes)
		text_printf(&all->line, "%llu", (unsigned long long)other->bytes);
	export_string(strings_get(all->names, other->name) + 1, &all->text);
	export_cell(&all->line, text_string(&all->text));
	text_add_string(&all->line, ",,");
	line_out(all);
}

/* A number that says how good the others are. */
static void write_quality(struct csv *all, const char *name, uint64_t count)
{
	text_clear(&all->line);
	text_printf(&all->line, ",,,,%llu,,,,,,quality,exact,,,%s,,", (unsigned long long)count, name);
	line_out(all);
}

static int write_all(struct csv *all, struct error *err)
{
	const struct timeline_quality *quality = &all->timeline->quality;
	uint64_t whole[UINT8_MAX + 1] = { 0 }; /* by kind */

	if (all->report->trace && timeline_intervals(all->timeline, all->report->trace, take, all, err) < 0)
		return -1;
	sink_puts(all->sink, "Time (%),Total Time (ns),Self Time (ns),CPU Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Category,Precision,Coverage (%),Bytes,Name,File,Line\n");
	for (uint32_t i = 0; i < all->timeline->function_count && !all->failed && !sink_failed(all->sink); i++)
		write_function(all, i);
	if (all->capacity)
		qsort(all->others, all->capacity, sizeof *all->others, by_time);
	for (size_t i = 0; i < all->capacity; i++)
		whole[all->others[i].kind] += all->others[i].spread.total;
	for (size_t i = 0; i < all->capacity && !all->failed && !sink_failed(all->sink); i++)
		if (all->others[i].spread.count)
			write_other(all, &all->others[i], whole[all->others[i].kind]);
	write_quality(all, "lost events", quality->lost_events);
	write_quality(all, "skipped calls", quality->skipped_calls);
	write_quality(all, "unmatched events", quality->unmatched);
	write_quality(all, "samples", quality->samples);
	return all->failed ? fail(err, ERR_MEMORY, "writing the table") : 0;
}

int write_csv(const struct report *report, struct sink *sink, struct error *err)
{
	struct csv all = { .report = report, .timeline = report->timeline, .sink = sink };
	int result = -1;

	all.functions = calloc(report->timeline->function_count + 1, sizeof *all.functions);
	all.names = strings_new();
	if (!all.functions || !all.names)
		fail(err, ERR_MEMORY, "writing the table");
	else
		result = write_all(&all, err);
	for (size_t i = 0; all.functions && i < report->timeline->function_count; i++)
		durations_done(&all.functions[i]);
	for (size_t i = 0; i < all.capacity; i++)
		durations_done(&all.others[i].spread);
	free(all.functions);
	strings_free(all.names);
	free(all.others);
	text_done(&all.line);
	text_done(&all.text);
	return result;
}
