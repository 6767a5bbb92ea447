/*
 * The report as Markdown (CommonMark with GitHub's tables): small enough for a comment on a pull request. Names stand in code spans,
 * where nothing is markup, mentions nobody and links nowhere.
 */
#include <math.h>
#include <string.h>

#include "report/counter_rows.h"
#include "report/name.h"
#include "report/tasks.h"

enum { MD_FUNCTIONS = 10, MD_FUNCTIONS_MAX = 100, MD_THREADS = 8, MD_SYSCALLS = 10, MD_SITES = 10, MD_FINDINGS = 5, MD_SOURCE = 5, MD_SOURCE_COLUMNS = 100, MD_NOT_EVALUATED = 50, MD_BYTES_MAX = 65000 };

static size_t longest_backticks(const char *text, size_t length)
{
	size_t longest = 0, run = 0;

	for (size_t i = 0; i < length; i++) {
		run = text[i] == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

/* Fenced by one more backtick than it has in a row. BAR stands for every |. */
static void add_span(struct text *out, const char *bytes, size_t columns, unsigned flags, const char *bar)
{
	struct text name;
	size_t fence;
	bool apart;

	text_init(&name);
	name_add(&name, bytes, columns, flags);
	if (!name.length)
		text_add_string(&name, "(no name)");
	fence = longest_backticks(text_string(&name), name.length) + 1;
	/* One space on both sides is not part of the span, but keeps backticks and spaces of the name apart from the fence. */
	apart = fence > 1 || (name.length && (name.data[0] == ' ' || name.data[name.length - 1] == ' '));
	for (size_t i = 0; i < fence; i++)
		text_add(out, "`", 1);
	text_add_string(out, apart ? " " : "");
	for (size_t i = 0; i < name.length; i++) {
		if (name.data[i] == '|')
			text_add_string(out, bar);
		else
			text_add(out, name.data + i, 1);
	}
	text_add_string(out, apart ? " " : "");
	for (size_t i = 0; i < fence; i++)
		text_add(out, "`", 1);
	text_end(&name, out);
}

void md_add_code(struct text *out, const char *bytes, size_t columns, unsigned flags)
{
	add_span(out, bytes, columns, flags, "\\|");
}

void md_add_span(struct text *out, const char *bytes, size_t columns, unsigned flags)
{
	add_span(out, bytes, columns, flags, "|");
}

static void add_prose(struct text *out, const char *bytes, size_t columns)
{
	name_add_prose(out, bytes, columns, NAME_HEAD, true);
}

void md_add_place(struct text *out, const char *file, uint32_t line)
{
	struct text place;

	text_init(&place);
	location_string(file, line, &place);
	if (place.length)
		md_add_code(out, place.data, MD_NAME, NAME_PATH);
	text_end(&place, out);
}

static void add_head(struct text *out, const struct report *report)
{
	const struct verdict *verdict = &report->analysis->verdict;
	bool first = true;

	text_add_string(out, "# InferScope report\n\n**");
	text_add_string(out, report->class_label);
	text_add_string(out, "**");
	if (*report->reason) {
		text_add_string(out, ", ");
		add_prose(out, report->reason, 60);
	}
	text_printf(out, " (confidence %s): ", quantity_confidence(verdict->confidence).text);
	add_prose(out, report->sentence, 500);
	text_add_string(out, "\n\n| What | Value |\n|---|---|\n| Process | ");
	text_printf(out, "%u ", report->pid);
	if (*report->command)
		md_add_code(out, report->command, 80, NAME_HEAD);
	if (*report->python) {
		text_add_string(out, ", Python ");
		add_prose(out, report->python, 30);
	}
	text_printf(out, " |\n| Captured | %s%s%s |\n| Where the time went | ", quantity_ns(report->timeline->duration_ns, 0).text, *report->started ? " from " : "", report->started);
	for (size_t part = 0; part < PART_COUNT; part++) {
		if (report->parts[part] < 0.05)
			continue;
		text_printf(out, "%s%s %s", first ? "" : ", ", PARTS[part].label, quantity_pct(report->parts[part], 0).text);
		first = false;
	}
	text_printf(out, "%s |\n| Cost of measuring | ", first ? "not known" : "");
	text_add_string(out, isnan(report->overhead_pct) ? "overhead not measured" : "overhead ");
	if (!isnan(report->overhead_pct))
		text_add_string(out, quantity_pct(report->overhead_pct, 0).text);
	if (report->measured)
		text_printf(out, " (%s)", report->measured);
	if (!isnan(report->hold_max_ns))
		text_printf(out, ", longest hold %s", quantity_of(report->hold_max_ns, "ns", 0).text);
	text_add_string(out, " |\n");
}

/* An indented block inside a list's item: nothing in a line can end it. */
static void add_source(struct text *out, const struct source *source)
{
	if (!source)
		return;
	text_add_string(out, "\n");
	for (size_t i = 0; i < source->count && i < MD_SOURCE; i++) {
		text_printf(out, "      %5zu  ", source->first + i);
		name_add(out, source->lines[i], MD_SOURCE_COLUMNS, NAME_HEAD);
		text_add_string(out, "\n");
	}
	text_add_string(out, "\n");
}

static void add_finding(struct text *out, const struct report *report, size_t index)
{
	const struct finding_report *finding = &report->analysis->findings[index];
	bool open = index == 0;
	struct text title;

	text_init(&title);
	name_add(&title, finding->title, 160, NAME_HEAD);
	text_printf(out, "\n<details%s><summary>%s: ", open ? " open" : "", severity_name(finding->severity));
	if (title.length)
		text_add_html(out, title.data, title.length);
	text_end(&title, out);
	if (finding->recoverable_ns)
		text_printf(out, " (%s recoverable)", quantity_pct(finding->recoverable_pct, QUANTITY_ABOUT).text);
	text_add_string(out, "</summary>\n\n");
	for (size_t i = 0; i < finding->location_count && i < 3; i++) {
		struct text place;

		text_init(&place);
		location_string(finding->locations[i].file, finding->locations[i].line, &place);
		text_add_string(out, "- at ");
		md_add_span(out, finding->locations[i].function, MD_NAME, 0);
		if (place.length) {
			text_add_string(out, " ");
			md_add_span(out, place.data, MD_NAME, NAME_PATH);
		}
		text_add_string(out, "\n");
		text_end(&place, out);
		if (i == 0)
			add_source(out, report_source(report, index, i));
	}
	for (size_t i = 0; i < finding->evidence_count && i < 5; i++) {
		const struct evidence *evidence = &finding->evidence[i];

		text_add_string(out, "- ");
		add_prose(out, evidence->metric, 60);
		text_printf(out, " %s", quantity_of(evidence->value, evidence->unit, 0).text);
		if (*evidence->op && isfinite(evidence->threshold))
			text_printf(out, " (threshold %s)", quantity_of(evidence->threshold, evidence->unit, 0).text);
		text_add_string(out, "\n");
	}
	if (finding->throughput_pct >= 1)
		text_printf(out, "- throughput at most +%.0f %% without it\n", finding->throughput_pct);
	text_add_string(out, "- **What to do**: ");
	add_prose(out, finding->suggestion, 500);
	text_printf(out, "\n- rule ");
	md_add_span(out, finding->rule, 60, 0);
	text_printf(out, ", confidence %s\n\n</details>\n", quantity_confidence(finding->confidence).text);
}

static void add_findings(struct text *out, const struct report *report)
{
	const struct analysis *analysis = report->analysis;

	text_add_string(out, "\n## Findings\n");
	if (!analysis->finding_count)
		text_add_string(out, "\nNone: no rule found anything above its threshold.\n");
	for (size_t i = 0; i < analysis->finding_count && i < MD_FINDINGS; i++)
		add_finding(out, report, i);
	if (analysis->finding_count > MD_FINDINGS)
		text_printf(out, "\n%zu more, smaller ones are in the html and json reports.\n", analysis->finding_count - MD_FINDINGS);
}

static void add_functions(struct text *out, const struct report *report)
{
	size_t top = report->options.top ? report->options.top : MD_FUNCTIONS;

	text_add_string(out, "\n## Functions\n\n");
	if (!report->function_count) {
		text_add_string(out, "None seen.\n");
		return;
	}
	if (top > MD_FUNCTIONS_MAX)
		top = MD_FUNCTIONS_MAX;
	text_printf(out, "| Function | %s | Self / total | Calls | Precision |\n|---|---:|---:|---:|---|\n", report->ranked_by_cpu ? "CPU" : "Self");
	for (size_t i = 0; i < report->function_count && i < top; i++) {
		const struct function_row *row = report->ranked[i];

		text_add_string(out, "| ");
		md_add_code(out, row->function->name, MD_NAME, 0);
		if (*row->function->file) {
			text_add_string(out, " ");
			md_add_place(out, row->function->file, row->function->line);
		}
		text_printf(out, " | %s | %s", row_share(row, report->ranked_by_cpu).text, row_self(row, 0).text);
		if (isfinite(row->self_error_pct))
			text_printf(out, " ±%s", quantity_error(row->self_error_pct).text);
		text_printf(out, " / %s", row_ns(row, row->function->total_ns, 0).text);
		text_printf(out, " | %s | %s |\n", row_calls(row, 0).text, precision_name(row->function->precision));
	}
	text_add_string(out, "\n");
	if (report->timeline->function_count > top)
		text_printf(out, "And %s more. ", quantity_count(report->timeline->function_count - top, 0).text);
	if (report->ranked_by_cpu)
		text_printf(out, "**CPU**: share of the CPU time of all functions; %s. ", TERMS[TERM_CPU].meaning);
	text_printf(out, "**Self**: %s. **Total**: %s. **Precision**: %s.\n", TERMS[TERM_SELF].meaning, TERMS[TERM_TOTAL].meaning, TERMS[TERM_PRECISION].meaning);
}

static void add_threads(struct text *out, const struct report *report)
{
	if (!report->thread_count)
		return;
	text_add_string(out, "\n## Threads\n\n| Thread | CPU | Mostly | Second | Calls seen |\n|---|---:|---|---|---|\n");
	for (size_t i = 0; i < report->thread_count && i < MD_THREADS; i++) {
		const struct thread_row *row = &report->threads[i];

		text_printf(out, "| %u ", row->thread->tid);
		md_add_code(out, row->thread->name, 24, 0);
		text_printf(out, " | %s | %s %s | ", quantity_pct(row->cpu_pct, 0).text, PARTS[row->mostly].label, quantity_pct(row->pct[row->mostly], 0).text);
		if (row->second != row->mostly && row->pct[row->second] >= 0.05)
			text_printf(out, "%s %s", PARTS[row->second].label, quantity_pct(row->pct[row->second], 0).text);
		text_add_string(out, " | ");
		if (row->thread->unhooked)
			add_prose(out, row->thread->unhooked, 60);
		else
			text_printf(out, "%s of the time", quantity_pct(row->covered_pct, 0).text);
		text_add_string(out, " |\n");
	}
	if (report->thread_count > MD_THREADS)
		text_printf(out, "\nAnd %zu more.\n", report->thread_count - MD_THREADS);
}

static void add_gil(struct text *out, const struct report *report)
{
	struct text name;

	if (!report->gil_count)
		return;
	text_init(&name);
	text_add_string(out, "\n## Waiting for the GIL\n\n| Waiter | Holder | Waited | Of its time |\n|---|---|---:|---:|\n");
	for (size_t i = 0; i < report->gil_count; i++) {
		const struct gil_row *row = &report->gil[i];

		text_add_string(out, "| ");
		gil_thread(row->waiter, &name);
		md_add_code(out, text_string(&name), 40, 0);
		text_add_string(out, " | ");
		gil_thread(row->holder, &name);
		md_add_code(out, text_string(&name), 40, 0);
		text_printf(out, " | %s | %s |\n", quantity_ns(row->wait_ns, QUANTITY_ABOUT).text, quantity_pct(row->pct, QUANTITY_ABOUT).text);
	}
	text_end(&name, out);
}

static void add_syscall(struct text *out, const struct syscall_row *row)
{
	const struct syscall_summary *summary = row->summary;
	unsigned about = summary->sampled ? QUANTITY_ABOUT : 0;

	text_add_string(out, "| ");
	md_add_code(out, summary->name, 40, 0);
	text_printf(out, " | %s", syscall_calls(row, 0).text);
	if (summary->bytes)
		text_printf(out, ", %s", quantity_bytes(summary->bytes, 0).text);
	text_printf(out, " | %s", quantity_ns(summary->time_ns, about).text);
	text_printf(out, " | %s / ", quantity_ns(summary->p50_ns, QUANTITY_ABOUT).text);
	text_printf(out, "%s / ", quantity_ns(summary->p95_ns, QUANTITY_ABOUT).text);
	text_printf(out, "%s | ", quantity_ns(summary->longest_ns, about).text);
	if (row->caller)
		md_add_code(out, row->caller->name, MD_NAME, 0);
	text_add_string(out, " |\n");
}

static void add_syscalls(struct text *out, const struct report *report)
{
	if (!report->syscall_count)
		return;
	text_add_string(out, "\n## System calls\n\n| Call | Calls, moved | Total | p50 / p95 / longest | Most from |\n|---|---:|---:|---:|---|\n");
	for (size_t i = 0; i < report->syscall_count && i < MD_SYSCALLS; i++)
		add_syscall(out, &report->syscalls[i]);
	if (report->syscall_count > MD_SYSCALLS)
		text_printf(out, "\nAnd %zu more.\n", report->syscall_count - MD_SYSCALLS);
	if (report->syscalls[0].summary->sampled)
		text_add_string(out, "\nEstimated from samples: those that threads were seen blocked in. --syscalls trace sees every one.\n");
}

static void add_around(struct text *out, const struct report *report)
{
	if (report->around_count)
		text_add_string(out, "\n## Around the process\n\n");
	for (size_t i = 0; i < report->around_count; i++) {
		text_printf(out, "- %s: ", report->around[i].label);
		add_prose(out, report->around[i].value, 300);
		text_add_string(out, "\n");
	}
}

static void add_collections(struct text *out, const struct report *report)
{
	if (!report->collection_count)
		return;
	text_add_string(out, "\n## Collections of garbage\n\n| Which | Time | Share | Count | Median | 99 of 100 | Longest | Objects freed |\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
	for (size_t i = 0; i < report->collection_count; i++) {
		const struct collection_row *row = &report->collections[i];

		text_printf(out, "| %s | %s | %s", row->generation, quantity_ns(row->time_ns, 0).text, quantity_pct(row->pct, 0).text);
		text_printf(out, " | %s | %s", quantity_count(row->count, 0).text, quantity_of(row->p50_ns, "ns", QUANTITY_ABOUT).text);
		text_printf(out, " | %s | %s", quantity_of(row->p99_ns, "ns", QUANTITY_ABOUT).text, quantity_ns(row->longest_ns, 0).text);
		text_printf(out, " | %s |\n", quantity_count(row->freed, 0).text);
	}
}

static void add_sites(struct text *out, const struct report *report)
{
	if (!report->site_count)
		return;
	text_add_string(out, "\n## Memory: what was allocated, by samples\n\n| Line | Allocated | ± | Count | Not released | Lifetime |\n|---|---:|---:|---:|---:|---:|\n");
	for (size_t i = 0; i < report->site_count && i < MD_SITES; i++) {
		const struct site_row *row = &report->sites[i];
		const struct memory_site *site = row->site;
		const struct memory_place *place = site->frame_count ? &site->frames[0] : NULL;

		text_add_string(out, "| ");
		md_add_code(out, place ? place->name : "(no Python function)", MD_NAME, 0);
		if (site->native)
			text_add_string(out, " in native code");
		text_add_string(out, " ");
		if (place)
			md_add_place(out, place->file, place->line);
		text_printf(out, " | %s | %s", quantity_bytes(site->bytes, QUANTITY_ABOUT).text, quantity_error(row->error_pct).text);
		text_printf(out, " | %s | %s", quantity_count(site->count, QUANTITY_ABOUT).text, quantity_bytes(site->live_bytes, QUANTITY_ABOUT).text);
		text_printf(out, " | %s |\n", quantity_of(site->lifetime_p50_ns ? (double)site->lifetime_p50_ns : NAN, "ns", 0).text);
	}
	if (report->memory->site_count > MD_SITES)
		text_printf(out, "\nAnd %zu more lines.\n", report->memory->site_count - MD_SITES);
}

/* Most lack the same thing: REASON (`rule`, `rule`); REASON (`rule`). */
static void add_not_evaluated(struct text *out, const struct analysis *analysis)
{
	const struct not_evaluated *rows = analysis->not_evaluated;
	size_t count = analysis->not_evaluated_count, shown = 0;

	for (size_t i = 0; i < count && shown < MD_NOT_EVALUATED; i++) {
		size_t first = 0;

		while (strcmp(rows[first].reason, rows[i].reason) != 0)
			first++;
		if (first < i)
			continue;
		text_add_string(out, shown ? "; " : "- rules not evaluated: ");
		add_prose(out, rows[i].reason, 80);
		for (size_t j = i; j < count && shown < MD_NOT_EVALUATED; j++) {
			if (strcmp(rows[j].reason, rows[i].reason) != 0)
				continue;
			text_add_string(out, j == i ? " (" : ", ");
			md_add_span(out, rows[j].rule, 40, 0);
			shown++;
		}
		text_add_string(out, ")");
	}
	if (count > shown)
		text_printf(out, "; and %zu more, which the json report names", count - shown);
	text_add_string(out, count ? "\n" : "");
}

static void add_quality(struct text *out, const struct report *report)
{
	static const char *const words[] = { [QUALITY_FINE] = "", [QUALITY_NOTE] = "note: ", [QUALITY_BAD] = "**bad**: " };

	text_add_string(out, "\n## How good the data are\n\n");
	for (size_t i = 0; i < report->quality_count; i++) {
		const struct quality_row *row = &report->quality[i];

		text_printf(out, "- %s%s: ", words[row->state], row->label);
		add_prose(out, row->value, 100);
		if (*row->meaning) {
			text_add_string(out, "; ");
			add_prose(out, row->meaning, 300);
		}
		text_add_string(out, "\n");
	}
	for (size_t i = 0; i < report->warning_count && i < 8; i++) {
		text_add_string(out, "- warning: ");
		add_prose(out, report->warnings[i], 300);
		text_add_string(out, "\n");
	}
	add_not_evaluated(out, report->analysis);
}

int write_md(const struct report *report, struct sink *sink, struct error *err)
{
	struct gpu_tables tables;
	struct text out;
	struct text again;
	int result = 0;

	if (gpu_tables_read(report, &tables, err) < 0)
		return -1;
	text_init(&out);
	text_init(&again);
	add_head(&out, report);
	add_findings(&out, report);
	add_functions(&out, report);
	add_threads(&out, report);
	add_gil(&out, report);
	md_add_tasks(&out, report);
	md_add_gpu(&out, report, &tables);
	gpu_tables_free(&tables);
	add_syscalls(&out, report);
	md_add_counters(&out, report);
	add_around(&out, report);
	add_collections(&out, report);
	add_sites(&out, report);
	add_quality(&out, report);
	/* An indented block: nothing in the command can end it. */
	text_add_string(&again, "\n## Again\n\n    ");
	name_add(&again, report->reproduce, 400, NAME_HEAD);
	text_add_string(&again, "\n");
	if (out.failed || again.failed) {
		result = fail(err, ERR_MEMORY, "writing the report");
	} else {
		/* The bounds above keep it far below; this is the promise. A whole line goes, never half a character. */
		if (out.length > MD_BYTES_MAX - again.length) {
			size_t length = MD_BYTES_MAX - again.length;

			while (length && out.data[length - 1] != '\n')
				length--;
			out.length = length;
		}
		sink_write(sink, out.data, out.length);
		sink_write(sink, again.data, again.length);
	}
	text_done(&out);
	text_done(&again);
	return result;
}
