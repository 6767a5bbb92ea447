/* The report for a terminal or a log. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/counter_rows.h"
#include "report/gpu_tables.h"
#include "report/tasks.h"

enum { TEXT_FUNCTIONS = 20, TEXT_THREADS = 20, TEXT_FINDINGS = 10, TEXT_SOURCE = 4, TEXT_TREE_ROWS = 40, TEXT_SYSCALLS = 12 };

static void add_fact(struct terminal *t, const char *label, const char *value)
{
	terminal_left(t, SGR_DIM, label, 10);
	terminal_wrap(t, 0, value, 10, 2);
}

static void add_head(struct terminal *t, const struct report *report)
{
	const struct verdict *verdict = &report->analysis->verdict;
	struct text line;

	terminal_paint(t, SGR_BOLD, "InferScope report");
	terminal_newline(t);
	terminal_newline(t);
	terminal_paint(t, SGR_BOLD, report->class_label);
	if (*report->reason) {
		text_add_string(&t->text, ": ");
		terminal_name(t, 0, report->reason, 40, NAME_HEAD, false);
	}
	text_printf(&t->text, " (confidence %s)\n", quantity_confidence(verdict->confidence).text);
	terminal_wrap(t, 0, report->sentence, 0, 6);
	terminal_newline(t);
	text_init(&line);
	text_printf(&line, "%u  ", report->pid);
	text_add_string(&line, report->command);
	if (report->pid)
		add_fact(t, "Process", text_string(&line));
	if (*report->python)
		add_fact(t, "Python", report->python);
	text_clear(&line);
	text_printf(&line, "%s%s%s", quantity_ns(report->timeline->duration_ns, t->quantity).text, *report->started ? " from " : "", report->started);
	add_fact(t, "Captured", text_string(&line));
	if (!isnan(report->cpu_cores)) {
		text_clear(&line);
		text_printf(&line, "%s cores busy on average", quantity_plain(report->cpu_cores, 2).text);
		add_fact(t, "CPU", text_string(&line));
	}
	text_end(&line, &t->text);
	for (size_t i = 0; i < report->warning_count; i++) {
		terminal_left(t, SGR_YELLOW, "Warning", 10);
		terminal_wrap(t, 0, report->warnings[i], 10, 3);
	}
}

static void add_parts(struct terminal *t, const struct report *report)
{
	terminal_heading(t, "Where the time went");
	if (!report->parts_known) {
		text_add_string(&t->text, "  not known: the trace does not show what the threads did\n");
		return;
	}
	for (size_t part = 0; part < PART_COUNT; part++) {
		if (report->parts[part] < 0.05)
			continue;
		text_printf(&t->text, "  %c ", PARTS[part].letter);
		terminal_left(t, 0, PARTS[part].label, 28);
		terminal_right(t, SGR_BOLD, quantity_pct(report->parts[part], 0).text, 8);
		text_add_string(&t->text, "  ");
		terminal_bar(t, PARTS[part].sgr, report->parts[part], t->width - 44);
		terminal_newline(t);
	}
}

static int severity_sgr(enum severity severity)
{
	return severity == SEVERITY_HIGH ? SGR_RED : severity == SEVERITY_MEDIUM ? SGR_YELLOW : SGR_BLUE;
}

static void add_source(struct terminal *t, const struct source *source)
{
	for (size_t i = 0; source && i < source->count && i < TEXT_SOURCE; i++) {
		text_printf(&t->text, "       %5zu ", source->first + i);
		terminal_name(t, SGR_DIM, source->lines[i], t->width - 13, NAME_HEAD, false);
		terminal_newline(t);
	}
}

static void add_finding(struct terminal *t, const struct report *report, size_t index)
{
	const struct finding_report *finding = &report->analysis->findings[index];

	text_add_string(&t->text, "  ");
	terminal_left(t, severity_sgr(finding->severity), severity_name(finding->severity), 8);
	terminal_wrap(t, SGR_BOLD, finding->title, 10, 3);
	if (finding->recoverable_ns) {
		struct text line;

		text_init(&line);
		text_printf(&line, "%s (%s of the capture) could go away", quantity_ns(finding->recoverable_ns, t->quantity | QUANTITY_ABOUT).text, quantity_pct(finding->recoverable_pct, 0).text);
		if (finding->throughput_pct >= 1)
			text_printf(&line, "; throughput at most +%.0f %%", finding->throughput_pct);
		text_add_string(&t->text, "          ");
		terminal_wrap(t, 0, text_string(&line), 10, 2);
		text_end(&line, &t->text);
	}
	for (size_t i = 0; i < finding->evidence_count && i < 5; i++) {
		const struct evidence *evidence = &finding->evidence[i];
		struct text line;

		text_init(&line);
		text_printf(&line, "%s %s", evidence->metric, quantity_of(evidence->value, evidence->unit, t->quantity).text);
		if (*evidence->op && isfinite(evidence->threshold))
			text_printf(&line, " %s %s", evidence->op, quantity_of(evidence->threshold, evidence->unit, t->quantity).text);
		text_add_string(&t->text, "          ");
		terminal_wrap(t, SGR_DIM, text_string(&line), 10, 2);
		text_end(&line, &t->text);
	}
	for (size_t i = 0; i < finding->location_count && i < 3; i++) {
		struct text line;

		text_init(&line);
		location_string(finding->locations[i].file, finding->locations[i].line, &line);
		text_add_string(&t->text, "          at ");
		terminal_name(t, 0, finding->locations[i].function, 40, 0, false);
		if (line.length) {
			text_add_string(&t->text, "\n             ");
			terminal_name(t, SGR_DIM, line.data, t->width - 13, NAME_PATH, false);
		}
		terminal_newline(t);
		if (i == 0)
			add_source(t, report_source(report, index, i));
		text_end(&line, &t->text);
	}
	text_add_string(&t->text, t->unicode ? "        → " : "       -> ");
	terminal_wrap(t, 0, finding->suggestion, 10, 6);
}

static void add_findings(struct terminal *t, const struct report *report)
{
	const struct analysis *analysis = report->analysis;

	terminal_heading(t, "Findings");
	if (!analysis->finding_count)
		text_add_string(&t->text, "  none: no rule found anything above its threshold\n");
	for (size_t i = 0; i < analysis->finding_count && i < TEXT_FINDINGS; i++)
		add_finding(t, report, i);
	if (analysis->finding_count > TEXT_FINDINGS)
		text_printf(&t->text, "  and %zu more, smaller ones\n", analysis->finding_count - TEXT_FINDINGS);
	if (analysis->not_evaluated_count)
		text_printf(&t->text, "  %zu rule%s not evaluated: data missing (see json)\n", analysis->not_evaluated_count, analysis->not_evaluated_count == 1 ? "" : "s");
}

static void add_function(struct terminal *t, const struct function_row *row, bool cpu)
{
	const struct function *function = row->function;
	const char *name = *function->name ? function->name : "(no name)";
	size_t used = 52, room;
	struct text place;

	text_init(&place);
	location_string(function->file, function->line, &place);
	terminal_right(t, SGR_BOLD, row_share(row, cpu).text, 9);
	terminal_right(t, 0, row_self(row, t->quantity).text, 10);
	terminal_right(t, 0, row_ns(row, function->total_ns, t->quantity).text, 10);
	terminal_right(t, 0, row->calls_known ? quantity_short(function->calls, t->quantity | (row->calls_about ? QUANTITY_ABOUT : 0)).text : row_calls(row, t->quantity).text, 9);
	text_add_string(&t->text, "  ");
	terminal_left(t, SGR_DIM, precision_name(function->precision), 11);
	room = t->width - used + 1;
	if (t->width >= 110) {
		size_t name_room = room * 2 / 5;

		terminal_name(t, 0, name, name_room, 0, place.length > 0);
		text_add_string(&t->text, place.length ? " " : "");
		terminal_name(t, SGR_DIM, text_string(&place), room - name_room - 1, NAME_PATH, false);
		terminal_newline(t);
	} else {
		terminal_name(t, 0, name, room, 0, false);
		terminal_newline(t);
		if (place.length) {
			text_add_string(&t->text, "             ");
			terminal_name(t, SGR_DIM, place.data, t->width - 13, NAME_PATH, false);
			terminal_newline(t);
		}
	}
	text_end(&place, &t->text);
}

static void add_functions(struct terminal *t, const struct report *report)
{
	size_t top = report->options.top ? report->options.top : TEXT_FUNCTIONS;

	terminal_heading(t, report->ranked_by_cpu ? "Functions, by CPU time" : "Functions, by self time");
	if (!report->function_count) {
		text_add_string(&t->text, "  none seen\n");
		return;
	}
	terminal_paint(t, SGR_DIM, report->ranked_by_cpu ? "    CPU %" : "   Self %");
	terminal_paint(t, SGR_DIM, "      Self     Total    Calls  Precision  Function");
	terminal_newline(t);
	for (size_t i = 0; i < report->function_count && i < top; i++)
		add_function(t, report->ranked[i], report->ranked_by_cpu);
	if (report->timeline->function_count > top)
		text_printf(&t->text, "  and %s more\n", quantity_count(report->timeline->function_count - top, 0).text);
}

static void add_threads(struct terminal *t, const struct report *report)
{
	size_t shown = report->thread_count < TEXT_THREADS ? report->thread_count : TEXT_THREADS;
	size_t bar = t->width - 52 < 40 ? t->width - 52 : 40;

	if (!report->thread_count)
		return;
	terminal_heading(t, "Threads, busiest first");
	terminal_paint(t, SGR_DIM, "      Tid  Name                  CPU  Mostly");
	terminal_newline(t);
	for (size_t i = 0; i < shown; i++) {
		const struct thread_row *row = &report->threads[i];
		char tid[16];

		snprintf(tid, sizeof tid, "%u", row->thread->tid);
		terminal_right(t, 0, tid, 9);
		text_add_string(&t->text, "  ");
		terminal_name(t, 0, row->thread->name, 16, 0, true);
		terminal_right(t, SGR_BOLD, quantity_pct(row->cpu_pct, 0).text, 9);
		text_add_string(&t->text, "  ");
		terminal_left(t, 0, PARTS[row->mostly].brief, 11);
		terminal_parts(t, row->pct, bar);
		text_add_string(&t->text, row->thread->unhooked ? "*" : "");
		terminal_newline(t);
	}
	if (report->thread_count > shown)
		text_printf(&t->text, "  and %zu more\n", report->thread_count - shown);
}

static void add_gil(struct terminal *t, const struct report *report)
{
	size_t columns = (t->width - 24) / 2 < 28 ? (t->width - 24) / 2 : 28;
	struct text name;

	if (!report->gil_count)
		return;
	text_init(&name);
	terminal_heading(t, "Waiting for the GIL: who waited, who held it");
	for (size_t i = 0; i < report->gil_count; i++) {
		const struct gil_row *row = &report->gil[i];

		terminal_right(t, SGR_BOLD, quantity_ns(row->wait_ns, t->quantity | QUANTITY_ABOUT).text, 9);
		terminal_right(t, 0, quantity_pct(row->pct, QUANTITY_ABOUT).text, 9);
		text_add_string(&t->text, "  ");
		gil_thread(row->waiter, &name);
		terminal_name(t, 0, text_string(&name), columns, 0, true);
		text_add_string(&t->text, "  ");
		gil_thread(row->holder, &name);
		terminal_name(t, 0, text_string(&name), columns, 0, false);
		terminal_newline(t);
	}
	text_end(&name, &t->text);
}

static void add_syscall(struct terminal *t, const struct syscall_row *row)
{
	const struct syscall_summary *summary = row->summary;
	unsigned about = t->quantity | (summary->sampled ? QUANTITY_ABOUT : 0);

	text_add_string(&t->text, "  ");
	terminal_name(t, 0, summary->name, 20, 0, true);
	terminal_right(t, 0, syscall_calls(row, t->quantity).text, 8);
	terminal_right(t, SGR_BOLD, quantity_ns(summary->time_ns, about).text, 10);
	terminal_right(t, 0, quantity_ns(summary->p50_ns, t->quantity | QUANTITY_ABOUT).text, 10);
	terminal_right(t, 0, quantity_ns(summary->longest_ns, about).text, 10);
	text_add_string(&t->text, "  ");
	terminal_name(t, 0, row->caller ? row->caller->name : "", t->width - 63, 0, false);
	terminal_newline(t);
}

static void add_syscalls(struct terminal *t, const struct report *report)
{
	if (!report->syscall_count)
		return;
	terminal_heading(t, report->syscalls[0].summary->sampled ? "System calls that threads were seen blocked in, estimated from samples" : "System calls");
	terminal_paint(t, SGR_DIM, "  Call                   Calls     Total       p50   Longest  Most from");
	terminal_newline(t);
	for (size_t i = 0; i < report->syscall_count && i < TEXT_SYSCALLS; i++)
		add_syscall(t, &report->syscalls[i]);
	if (report->syscall_count > TEXT_SYSCALLS)
		text_printf(&t->text, "  and %zu more\n", report->syscall_count - TEXT_SYSCALLS);
}

static void add_around(struct terminal *t, const struct report *report)
{
	if (report->around_count)
		terminal_heading(t, "Around the process");
	for (size_t i = 0; i < report->around_count; i++) {
		text_add_string(&t->text, "  ");
		terminal_left(t, 0, report->around[i].label, 21);
		text_add_string(&t->text, " ");
		terminal_wrap(t, 0, report->around[i].value, 24, 4);
	}
}

static void add_tree(struct terminal *t, const struct report *report)
{
	size_t shown = 0;

	if (!report->tree.count)
		return;
	terminal_heading(t, "Call tree, heaviest paths");
	for (size_t i = 0; i < report->tree.count && shown < TEXT_TREE_ROWS; i++) {
		const struct tree_row *row = &report->tree.rows[i];
		size_t indent = 2 + (row->depth < 16 ? row->depth : 16) * 2;

		if (row->pct < 1 || row->omitted)
			continue;
		terminal_right(t, 0, quantity_pct(row->pct, 0).text, 9);
		terminal_right(t, 0, quantity_ns(row->total_ns, t->quantity).text, 9);
		terminal_right(t, 0, "", indent);
		if (row->depth == 0) {
			terminal_paint(t, SGR_BOLD, "all threads");
		} else {
			terminal_name(t, 0, row->function && *row->function->name ? row->function->name : "(unknown)", t->width - 18 - indent, 0, false);
		}
		terminal_newline(t);
		shown++;
	}
}

static void add_quality(struct terminal *t, const struct report *report)
{
	static const int sgr[] = { [QUALITY_FINE] = SGR_GREEN, [QUALITY_NOTE] = SGR_YELLOW, [QUALITY_BAD] = SGR_RED };
	static const char *const words[] = { [QUALITY_FINE] = "ok", [QUALITY_NOTE] = "note", [QUALITY_BAD] = "BAD" };

	terminal_heading(t, "How good the data are");
	for (size_t i = 0; i < report->quality_count; i++) {
		const struct quality_row *row = &report->quality[i];
		struct text line;

		text_init(&line);
		text_printf(&line, "%s%s%s", row->value, *row->meaning ? ": " : "", row->meaning);
		text_add_string(&t->text, "  ");
		terminal_left(t, sgr[row->state], words[row->state], 5);
		terminal_left(t, 0, row->label, 21);
		text_add_string(&t->text, " ");
		terminal_wrap(t, 0, text_string(&line), 29, 4);
		text_end(&line, &t->text);
	}
}

static void add_glossary(struct terminal *t)
{
	terminal_heading(t, "What the words mean");
	for (size_t i = 0; i < TERM_COUNT; i++) {
		text_add_string(&t->text, "  ");
		terminal_left(t, SGR_BOLD, TERMS[i].word, 16);
		terminal_wrap(t, 0, TERMS[i].meaning, 18, 6);
	}
}

int write_text(const struct report *report, struct sink *sink, struct error *err)
{
	struct gpu_tables tables;
	struct terminal t;
	int result = 0;

	if (gpu_tables_read(report, &tables, err) < 0)
		return -1;
	terminal_init(&t, &report->options);
	add_head(&t, report);
	add_parts(&t, report);
	add_findings(&t, report);
	add_functions(&t, report);
	add_threads(&t, report);
	add_gil(&t, report);
	text_add_tasks(&t, report);
	text_add_gpu(&t, report, &tables);
	gpu_tables_free(&tables);
	add_syscalls(&t, report);
	terminal_counters(&t, report);
	add_around(&t, report);
	terminal_memory(&t, report);
	add_tree(&t, report);
	add_quality(&t, report);
	add_glossary(&t);
	terminal_newline(&t);
	terminal_left(&t, SGR_DIM, "Again", 10);
	terminal_wrap(&t, 0, report->reproduce, 10, 4);
	if (t.text.failed)
		result = fail(err, ERR_MEMORY, "writing the report");
	else
		sink_write(sink, t.text.data, t.text.length);
	terminal_done(&t);
	return result;
}
