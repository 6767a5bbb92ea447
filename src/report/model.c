/* Builds the view model. What is wrong with the data is quality.c's, the call tree is tree.c's. */
#include "report/model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report/name.h"

#define GIL_PCT_LEAST 0.5

const struct part_info PARTS[PART_COUNT] = {
#define PART(id, key, label, brief, letter, sgr, colour, pattern, meaning) { key, label, brief, letter, sgr, colour, pattern, meaning },
#include "report/parts.def"
#undef PART
};

const struct term_info TERMS[TERM_COUNT] = {
#define TERM(id, key, word, meaning) { key, word, meaning },
#include "report/glossary.def"
#undef TERM
};

const char *report_note(struct report *report, const char *format, ...)
{
	char *copy;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	copy = length < 0 ? NULL : arena_alloc(&report->arena, (size_t)length + 1);
	report->failed |= !copy;
	if (!copy)
		return "";
	va_start(arguments, format);
	vsnprintf(copy, (size_t)length + 1, format, arguments);
	va_end(arguments);
	return copy;
}

static double share_pct(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

const char *verdict_label(enum verdict_class class_)
{
	static const char *const labels[] = { [VERDICT_UNKNOWN] = "Unknown", [VERDICT_CPU_BOUND] = "CPU-bound", [VERDICT_GPU_BOUND] = "GPU-bound", [VERDICT_MEMORY_BOUND] = "Transfer-bound (memory)", [VERDICT_BALANCED] = "Balanced" };

	return (unsigned)class_ < sizeof labels / sizeof *labels ? labels[class_] : labels[VERDICT_UNKNOWN];
}

/* "no_gpu" as people write it. */
static const char *words_of(struct report *report, const char *stable)
{
	char *copy = arena_strndup(&report->arena, stable ? stable : "", stable ? strlen(stable) : 0);

	for (char *at = copy; at && *at; at++)
		if (*at == '_')
			*at = ' ';
	return copy ? copy : "";
}

static const char *rfc3339(struct report *report, uint64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / 1000000000);
	struct tm tm;

	if (!unix_ns || !gmtime_r(&seconds, &tm))
		return "";
	return report_note(report, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(unix_ns / 1000000 % 1000));
}

static const char *string_or_empty(const char *string)
{
	return string ? string : "";
}

static const struct counter *counter_find(const struct timeline *timeline, const char *name)
{
	for (size_t i = 0; i < timeline->counter_count; i++)
		if (!strcmp(timeline->counters[i].name, name))
			return &timeline->counters[i];
	return NULL;
}

static void describe_process(struct report *report)
{
	const struct timeline *timeline = report->timeline;
	const struct process *process = timeline->process_count ? &timeline->processes[0] : NULL;
	const char *command = timeline_capture(timeline, "command_line"), *mode = timeline_capture(timeline, "mode");
	struct text line;

	report->command = process ? string_or_empty(process->command) : "";
	report->python = process ? string_or_empty(process->python) : "";
	if (!*report->python)
		report->python = string_or_empty(timeline_capture(timeline, "python.version"));
	report->pid = process ? process->pid : 0;
	report->started = rfc3339(report, timeline->start_unix_ns);
	report->ended = timeline->start_unix_ns ? rfc3339(report, timeline->start_unix_ns + timeline->duration_ns) : "";
	report->imported = mode && strcmp(mode, "import") == 0;
	text_init(&line);
	if (command && *command)
		name_add(&line, command, 1000, NAME_HEAD);
	else if (report->imported)
		text_add_string(&line, "inferscope analyze FILE");
	else
		text_printf(&line, "inferscope attach %u --duration %llums", report->pid, (unsigned long long)(timeline->duration_ns / 1000000));
	report->reproduce = report_note(report, "%s", text_string(&line));
	report->failed |= line.failed;
	text_done(&line);
}

static void describe_verdict(struct report *report)
{
	const struct breakdown *b = &report->analysis->verdict.breakdown;
	const double values[PART_COUNT] = {
		[PART_PYTHON] = b->python_pct, [PART_NATIVE] = b->native_pct, [PART_GIL] = b->gil_wait_pct, [PART_LOCK] = b->lock_wait_pct, [PART_IO] = b->io_wait_pct,
		[PART_GPU] = b->gpu_pct, [PART_TRANSFER] = b->transfer_pct, [PART_RUNNABLE] = b->runnable_pct, [PART_SLEEP] = b->sleep_pct, [PART_IDLE] = b->idle_pct,
	};
	double sum = 0;
	size_t label;

	report->class_label = verdict_label(report->analysis->verdict.class_);
	report->sentence = string_or_empty(report->analysis->verdict.sentence);
	label = strlen(report->class_label);
	if (!strncmp(report->sentence, report->class_label, label) && report->sentence[label] == ':' && report->sentence[label + 1] == ' ')
		report->sentence += label + 2;
	report->reason = words_of(report, report->analysis->verdict.reason);
	for (size_t i = 0; i < PART_COUNT; i++) {
		report->parts[i] = isfinite(values[i]) && values[i] > 0 ? values[i] : 0;
		sum += report->parts[i];
	}
	report->parts_known = sum > 0;
	if (report->parts_known && sum < 99.95)
		report->parts[PART_UNKNOWN] = 100 - sum;
}

/* "5%"; "none" is no limit. */
static double target_of(const char *text)
{
	char *end;
	double value = text ? strtod(text, &end) : NAN;

	return text && end != text && *end == '%' ? value : NAN;
}

static void describe_numbers(struct report *report)
{
	const struct timeline *timeline = report->timeline;
	const struct counter *overhead = counter_find(timeline, "overhead_ppm"), *hold = counter_find(timeline, "hold_max_ns");
	uint64_t cpu_ns = 0;
	bool timed = false;

	for (size_t i = 0; i < timeline->process_count; i++) {
		timed |= timeline->processes[i].timed;
		cpu_ns += timeline->processes[i].user_ns + timeline->processes[i].system_ns;
	}
	report->cpu_cores = timed && timeline->duration_ns ? (double)cpu_ns / (double)timeline->duration_ns : NAN;
	report->overhead_pct = analysis_metric(report->analysis, "profiler.overhead_pct");
	if (isnan(report->overhead_pct) && overhead)
		report->overhead_pct = (double)overhead->last / 1e4;
	report->hold_max_ns = analysis_metric(report->analysis, "profiler.hold_max_ns");
	if (isnan(report->hold_max_ns) && hold)
		report->hold_max_ns = (double)hold->max;
	report->target_pct = target_of(timeline_capture(timeline, "max_overhead"));
	report->coverage_pct = isfinite(timeline->coverage) ? 100 * timeline->coverage : 0;
}

static int by_cpu_self(const void *a, const void *b)
{
	const struct function_row *x = *(struct function_row *const *)a, *y = *(struct function_row *const *)b;

	if (x->function->cpu_self_ns != y->function->cpu_self_ns)
		return x->function->cpu_self_ns < y->function->cpu_self_ns ? 1 : -1;
	return x < y ? -1 : x > y;
}

/* A server's waiting functions have most of the self time and are no answer to where the CPU goes. */
static void rank_functions(struct report *report, uint64_t cpu_sum_ns)
{
	report->ranked_by_cpu = report->analysis->verdict.class_ == VERDICT_CPU_BOUND && cpu_sum_ns > 0;
	for (size_t i = 0; i < report->function_count; i++)
		report->ranked[i] = &report->functions[i];
	if (report->ranked_by_cpu)
		qsort(report->ranked, report->function_count, sizeof *report->ranked, by_cpu_self);
}

static double error_pct(const struct function *function)
{
	return function->self_high_ns && function->self_ns ? 50 * (double)(function->self_high_ns - function->self_low_ns) / (double)function->self_ns : NAN;
}

static int build_functions(struct report *report, struct error *err)
{
	const struct timeline *timeline = report->timeline;
	size_t count = timeline->function_count < FUNCTIONS_MAX ? timeline->function_count : FUNCTIONS_MAX;
	uint64_t cpu_sum_ns = 0, self_max_ns = 0;

	report->functions = arena_alloc(&report->arena, (count + 1) * sizeof *report->functions);
	report->ranked = arena_alloc(&report->arena, (count + 1) * sizeof *report->ranked);
	if (!report->functions || !report->ranked)
		return fail(err, ERR_MEMORY, "building the report");
	for (size_t i = 0; i < timeline->function_count; i++) {
		report->self_sum_ns += timeline->functions[i].self_ns;
		self_max_ns = timeline->functions[i].self_ns > self_max_ns ? timeline->functions[i].self_ns : self_max_ns;
		report->calls += timeline->functions[i].seen_calls;
		cpu_sum_ns += timeline->functions[i].cpu_self_ns;
	}
	for (size_t i = 0; i < count; i++) {
		const struct function *function = &timeline->functions[i];
		struct function_row *row = &report->functions[i];

		row->function = function;
		row->self_pct = share_pct(function->self_ns, report->self_sum_ns);
		row->total_pct = share_pct(function->total_ns, report->self_sum_ns);
		row->cpu_pct = share_pct(function->cpu_self_ns < function->self_ns ? function->cpu_self_ns : function->self_ns, function->self_ns);
		row->bar_pct = share_pct(function->self_ns, self_max_ns);
		row->cpu_share_pct = share_pct(function->cpu_self_ns, cpu_sum_ns);
		row->calls_known = function->precision != PRECISION_SAMPLED || function->calls > 0;
		row->calls_about = function->precision == PRECISION_ESTIMATED || function->precision == PRECISION_SAMPLED;
		row->times_about = function->precision != PRECISION_EXACT;
		row->self_about = row->times_about || function->self_split;
		row->self_error_pct = error_pct(function);
	}
	report->function_count = count;
	report->functions_omitted = timeline->function_count - count;
	rank_functions(report, cpu_sum_ns);
	return 0;
}

static int by_cpu(const void *a, const void *b)
{
	const struct thread_row *x = a, *y = b;

	if (x->thread->cpu_ns != y->thread->cpu_ns)
		return x->thread->cpu_ns < y->thread->cpu_ns ? 1 : -1;
	return x->thread->tid < y->thread->tid ? -1 : x->thread->tid > y->thread->tid;
}

static int build_threads(struct report *report, struct error *err)
{
	const struct timeline *timeline = report->timeline;

	report->threads = arena_alloc(&report->arena, (timeline->thread_count + 1) * sizeof *report->threads);
	if (!report->threads)
		return fail(err, ERR_MEMORY, "building the report");
	for (size_t i = 0; i < timeline->thread_count; i++) {
		const struct thread *t = &timeline->threads[i];
		const uint64_t ns[PART_COUNT] = {
			[PART_PYTHON] = t->python_ns, [PART_NATIVE] = t->native_ns, [PART_GIL] = t->gil_wait_ns, [PART_LOCK] = t->lock_wait_ns, [PART_IO] = t->io_wait_ns,
			[PART_GPU] = t->gpu_wait_ns, [PART_RUNNABLE] = t->runnable_ns, [PART_SLEEP] = t->sleep_ns, [PART_IDLE] = t->idle_ns, [PART_UNKNOWN] = t->unknown_ns,
		};
		struct thread_row *row = &report->threads[i];
		uint64_t sum = 0;

		row->thread = t;
		for (size_t part = 0; part < PART_COUNT; part++)
			sum += ns[part];
		row->mostly = PART_UNKNOWN;
		for (size_t part = PART_COUNT; part-- > 0;) {
			row->pct[part] = share_pct(ns[part], sum);
			if (ns[part] && ns[part] >= ns[row->mostly])
				row->mostly = (enum part)part;
		}
		row->second = row->mostly;
		for (size_t part = PART_COUNT; part-- > 0;)
			if (part != row->mostly && ns[part] && (row->second == row->mostly || ns[part] >= ns[row->second]))
				row->second = (enum part)part;
		row->cpu_pct = share_pct(t->cpu_ns, t->wall_ns);
		row->covered_pct = share_pct(t->covered_ns, t->wall_ns);
	}
	report->thread_count = timeline->thread_count;
	qsort(report->threads, report->thread_count, sizeof *report->threads, by_cpu);
	return 0;
}

static int build_gil(struct report *report, struct error *err)
{
	const struct timeline *timeline = report->timeline;

	report->gil = arena_alloc(&report->arena, GIL_ROWS_MAX * sizeof *report->gil);
	if (!report->gil)
		return fail(err, ERR_MEMORY, "building the report");
	for (size_t i = 0; i < timeline->gil_wait_count && report->gil_count < GIL_ROWS_MAX; i++) {
		const struct gil_wait *wait = &timeline->gil_waits[i];
		const struct thread *waiter = &timeline->threads[wait->waiter];
		double pct = share_pct(wait->wait_ns, waiter->wall_ns);

		if (pct >= GIL_PCT_LEAST)
			report->gil[report->gil_count++] = (struct gil_row){ wait->holder < timeline->thread_count ? &timeline->threads[wait->holder] : NULL, waiter, wait->wait_ns, pct };
	}
	return 0;
}

static int build_warnings(struct report *report, struct error *err)
{
	const struct timeline *timeline = report->timeline;

	report->warnings = arena_alloc(&report->arena, (timeline->capture_count + 1) * sizeof *report->warnings);
	if (!report->warnings)
		return fail(err, ERR_MEMORY, "building the report");
	for (size_t i = 0; i < timeline->capture_count; i++)
		if (!strncmp(timeline->captures[i].key, "warning", 7) && *timeline->captures[i].value)
			report->warnings[report->warning_count++] = timeline->captures[i].value;
	return 0;
}

static int build_sources(struct report *report, struct error *err)
{
	const struct analysis *analysis = report->analysis;
	const struct timeline *timeline = report->timeline;
	uint64_t started_ns = timeline->process_count && timeline->processes[0].start_unix_ns ? timeline->processes[0].start_unix_ns : timeline->start_unix_ns;
	size_t count = analysis->finding_count < SOURCE_FINDINGS ? analysis->finding_count : SOURCE_FINDINGS;

	if (!report->options.source_root)
		return 0;
	report->sources = arena_alloc(&report->arena, (count + 1) * sizeof *report->sources);
	if (!report->sources)
		return fail(err, ERR_MEMORY, "building the report");
	report->source_count = count;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < analysis->findings[i].location_count && j < SOURCE_PLACES; j++)
			report->sources[i][j] = source_read(&report->arena, report->options.source_root, &analysis->findings[i].locations[j], started_ns);
	return 0;
}

const struct source *report_source(const struct report *report, size_t finding, size_t place)
{
	return finding < report->source_count && place < SOURCE_PLACES ? report->sources[finding][place] : NULL;
}

int report_build(const struct timeline *timeline, const struct analysis *analysis, struct trace *trace, const struct report_options *options, struct report **out, struct error *err)
{
	struct report *report = calloc(1, sizeof *report);

	if (!report)
		return fail(err, ERR_MEMORY, "building the report");
	arena_init(&report->arena);
	report->timeline = timeline;
	report->analysis = analysis;
	report->trace = trace;
	if (options)
		report->options = *options;
	describe_process(report);
	describe_verdict(report);
	describe_numbers(report);
	if (build_functions(report, err) < 0 || build_threads(report, err) < 0 || build_gil(report, err) < 0 || build_warnings(report, err) < 0 || build_sources(report, err) < 0 || memory_rows(report, err) < 0 || tree_build(report, err) < 0 || quality_build(report, err) < 0 || around_build(report, err) < 0 || syscall_rows_build(report, err) < 0 || counter_rows_build(report, err) < 0) {
		report_free(report);
		return -1;
	}
	if (report->failed || report->arena.failed) {
		report_free(report);
		return fail(err, ERR_MEMORY, "building the report");
	}
	*out = report;
	return 0;
}

void report_free(struct report *report)
{
	if (!report)
		return;
	arena_done(&report->arena);
	free(report);
}

struct quantity row_calls(const struct function_row *row, unsigned flags)
{
	if (!row->calls_known)
		return quantity_of(NAN, "count", flags);
	return quantity_count(row->function->calls, flags | (row->calls_about ? QUANTITY_ABOUT : 0));
}

struct quantity row_share(const struct function_row *row, bool cpu)
{
	return quantity_pct(cpu ? row->cpu_share_pct : row->self_pct, cpu || row->self_about ? QUANTITY_ABOUT : 0);
}

struct quantity row_self(const struct function_row *row, unsigned flags)
{
	return quantity_ns(row->function->self_ns, flags | (row->self_about ? QUANTITY_ABOUT : 0));
}

struct quantity row_ns(const struct function_row *row, uint64_t ns, unsigned flags)
{
	return quantity_ns(ns, flags | (row->times_about ? QUANTITY_ABOUT : 0));
}

void gil_thread(const struct thread *thread, struct text *out)
{
	text_clear(out);
	if (thread)
		text_printf(out, "%s (%u)", *thread->name ? thread->name : "thread", thread->tid);
	else
		text_add_string(out, "(not known)");
}

void location_string(const char *file, uint32_t line, struct text *out)
{
	size_t length = strlen(file), limit = 4096;

	if (!length)
		return;
	text_add_string(out, length > limit ? file + length - limit : file);
	if (line)
		text_printf(out, ":%u", line);
}
