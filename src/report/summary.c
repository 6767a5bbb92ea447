/* What attach and run end with: the answer in at most 24 lines of 80 columns, whatever the target's names are. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/terminal.h"

enum { SUMMARY_FUNCTIONS = 5, SUMMARY_FINDINGS = 3, SUMMARY_FILE_LINES = 3, SUMMARY_WIDTH_MAX = 80 };

/* 5 lines at most. */
static void add_verdict(struct terminal *t, const struct report *report)
{
	terminal_newline(t);
	terminal_paint(t, SGR_BOLD, report->class_label);
	if (*report->reason) {
		text_add_string(&t->text, ": ");
		terminal_name(t, SGR_BOLD, report->reason, 28, NAME_HEAD, false);
	}
	text_printf(&t->text, "  (confidence %s)\n", quantity_confidence(report->analysis->verdict.confidence).text);
	terminal_wrap(t, 0, report->sentence, 0, 3);
}

/* 3 lines at most: the bar, and what its letters mean. */
static void add_parts(struct terminal *t, const struct report *report)
{
	size_t line = 0, used = 0;

	if (!report->parts_known)
		return;
	terminal_parts(t, report->parts, t->width);
	terminal_newline(t);
	for (size_t part = 0; part < PART_COUNT; part++) {
		char entry[64], letter[2] = { PARTS[part].letter, 0 };
		int columns;

		if (report->parts[part] < 0.5)
			continue;
		columns = snprintf(entry, sizeof entry, " %s %s", PARTS[part].brief, quantity_pct(report->parts[part], 0).text);
		if (used && used + 3 + (size_t)columns > t->width) {
			terminal_newline(t);
			used = 0;
			if (++line == 2)
				return;
		}
		text_add_string(&t->text, used ? "  " : "");
		terminal_paint(t, PARTS[part].sgr, t->colour && t->unicode ? "█" : letter);
		text_add_string(&t->text, entry);
		used += (used ? 3 : 1) + (size_t)columns;
	}
	terminal_newline(t);
}

/* 6 lines. */
static void add_functions(struct terminal *t, const struct report *report)
{
	if (!report->function_count)
		return;
	terminal_paint(t, SGR_DIM, report->ranked_by_cpu ? "    CPU %" : "   Self %");
	terminal_paint(t, SGR_DIM, "      Self    Calls  Precision  Function");
	terminal_newline(t);
	for (size_t i = 0; i < report->function_count && i < SUMMARY_FUNCTIONS; i++) {
		const struct function_row *row = report->ranked[i];
		struct text place;
		size_t room = t->width - 42, name_room = 20, name_columns_;

		text_init(&place);
		location_string(row->function->file, row->function->line, &place);
		terminal_right(t, SGR_BOLD, row_share(row, report->ranked_by_cpu).text, 9);
		terminal_right(t, 0, row_self(row, t->quantity).text, 10);
		terminal_right(t, 0, row->calls_known ? quantity_short(row->function->calls, t->quantity | (row->calls_about ? QUANTITY_ABOUT : 0)).text : row_calls(row, t->quantity).text, 9);
		text_add_string(&t->text, "  ");
		terminal_left(t, SGR_DIM, precision_name(row->function->precision), 11);
		name_columns_ = place.length ? name_room : room;
		terminal_name(t, 0, *row->function->name ? row->function->name : "(no name)", name_columns_, 0, false);
		if (place.length) {
			text_add_string(&t->text, " ");
			terminal_name(t, SGR_DIM, place.data, room - name_room - 1, NAME_PATH, false);
		}
		terminal_newline(t);
		text_end(&place, &t->text);
	}
}

/* 4 lines. */
static void add_findings(struct terminal *t, const struct report *report)
{
	const struct analysis *analysis = report->analysis;

	for (size_t i = 0; i < analysis->finding_count && i < SUMMARY_FINDINGS; i++) {
		const struct finding_report *finding = &analysis->findings[i];
		int sgr = finding->severity == SEVERITY_HIGH ? SGR_RED : finding->severity == SEVERITY_MEDIUM ? SGR_YELLOW : SGR_BLUE;

		terminal_left(t, sgr, severity_name(finding->severity), 8);
		terminal_name(t, 0, finding->title, t->width - 8, NAME_HEAD, false);
		terminal_newline(t);
	}
	if (analysis->finding_count > SUMMARY_FINDINGS)
		text_printf(&t->text, "        and %zu more in the report\n", analysis->finding_count - SUMMARY_FINDINGS);
}

/* 4 lines. */
static void add_quality(struct terminal *t, const struct report *report)
{
	const struct timeline_quality *quality = &report->timeline->quality;
	struct text line;

	text_init(&line);
	if (report->imported)
		text_add_string(&line, "imported, ");
	else
		text_printf(&line, "hooks on %s of the time, ", quantity_pct(report->coverage_pct, 0).text);
	if (isnan(report->overhead_pct))
		text_add_string(&line, "overhead not measured");
	else
		text_printf(&line, "overhead caused %s", quantity_pct(report->overhead_pct, 0).text);
	if (!isnan(report->hold_max_ns))
		text_printf(&line, ", longest hold %s", quantity_of(report->hold_max_ns, "ns", t->quantity).text);
	text_printf(&line, ", %s events", quantity_short(quality->events, 0).text);
	if (quality->lost_events)
		text_printf(&line, ", %s LOST", quantity_short(quality->lost_events, 0).text);
	terminal_left(t, SGR_DIM, "Data", 8);
	terminal_wrap(t, 0, text_string(&line), 8, 2);
	text_end(&line, &t->text);
	if (report->measured) {
		terminal_left(t, SGR_DIM, "Cost", 8);
		terminal_wrap(t, 0, report->measured, 8, 1);
	}
	/* The worst of the rest, if it is bad; loss was said above. */
	for (size_t i = 0; i < report->quality_count && report->quality[i].state == QUALITY_BAD; i++) {
		const struct quality_row *row = &report->quality[i];

		if (!strcmp(row->key, "events"))
			continue;
		text_init(&line);
		text_printf(&line, "%s %s: %s", row->label, row->value, row->meaning);
		terminal_left(t, SGR_RED, "BAD", 8);
		terminal_wrap(t, 0, text_string(&line), 8, 1);
		text_end(&line, &t->text);
		break;
	}
}

/* 3 lines, as many names as fit. */
static void add_files(struct terminal *t, const struct report *report)
{
	const char *const *files = report->options.files;
	size_t line = 1, used = 8, at = 0;

	if (!files || !files[0])
		return;
	terminal_left(t, SGR_DIM, "Wrote", 8);
	for (; files[at]; at++) {
		bool last = !files[at + 1];
		size_t room = t->width - 8 - !last; /* and a comma */
		size_t columns;
		struct text name;

		text_init(&name);
		name_add(&name, files[at], room, t->name | NAME_PATH);
		columns = name_columns(text_string(&name), name.length) + !last;
		if (used > 8 && used + 1 + columns > t->width) {
			if (line == SUMMARY_FILE_LINES) {
				text_end(&name, &t->text);
				break;
			}
			text_add_string(&t->text, "\n        ");
			line++;
			used = 8;
		}
		if (used > 8) {
			text_add_string(&t->text, " ");
			used++;
		}
		text_add_string(&t->text, text_string(&name));
		text_add_string(&t->text, last ? "" : ",");
		used += columns;
		text_end(&name, &t->text);
	}
	terminal_newline(t);
}

int report_summary(const struct report *report, struct sink *sink, struct error *err)
{
	struct report_options options = report->options;
	struct terminal t;
	int result = 0;

	if (!options.width || options.width > SUMMARY_WIDTH_MAX)
		options.width = SUMMARY_WIDTH_MAX;
	terminal_init(&t, &options);
	add_verdict(&t, report);
	add_parts(&t, report);
	add_functions(&t, report);
	add_findings(&t, report);
	add_quality(&t, report);
	add_files(&t, report);
	if (t.text.failed)
		result = fail(err, ERR_MEMORY, "writing the summary");
	else
		sink_write(sink, t.text.data, t.text.length);
	terminal_done(&t);
	return result;
}
