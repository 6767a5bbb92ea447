/* The page: two lines about the process, the heads of a table, its rows, and the keys. */
#include "cli/top.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/name.h"
#include "report/quantity.h"

enum { NAME_LEAST = 18, FILE_LEAST = 14, LINES_MAX = 512 };

struct layout {
	struct top_page *page;
	const struct top_view *view;
	const struct live_turn *turn;
	size_t width, height;
	unsigned name_flags, quantity_flags;
	struct text line;
};

/* ---- lines ---- */

static void line_end(struct layout *layout, enum top_style style)
{
	struct top_page *page = layout->page;

	if (page->count < layout->height && page->count < LINES_MAX && !layout->line.failed) {
		page->lines[page->count].at = page->text.length;
		page->lines[page->count++].style = style;
		/* Whatever was too long ends at the width. */
		name_add(&page->text, text_string(&layout->line), layout->width, NAME_HEAD | layout->name_flags);
		text_add(&page->text, "", 1);
	}
	text_clear(&layout->line);
}

static void line_add(struct layout *layout, enum top_style style, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void line_add(struct layout *layout, enum top_style style, const char *format, ...)
{
	char text[1024];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	text_add_string(&layout->line, text);
	line_end(layout, style);
}

static size_t used(const struct layout *layout)
{
	return layout->line.data ? name_columns(layout->line.data, layout->line.length) : 0;
}

static double pct(const struct layout *layout, uint64_t ns)
{
	return layout->turn->length_ns ? 100.0 * (double)ns / (double)layout->turn->length_ns : 0;
}

/* ---- the head ---- */

/* Adds a part of a line if there is room for it. */
static void part(struct layout *layout, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void part(struct layout *layout, const char *format, ...)
{
	char text[256];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	if (used(layout) + (used(layout) ? 2 : 0) + strlen(text) > layout->width)
		return;
	text_printf(&layout->line, "%s%s", used(layout) ? "  " : "", text);
}

static void head_process(struct layout *layout)
{
	text_printf(&layout->line, "inferscope top %d  ", (int)layout->view->pid);
	if (used(layout) + NAME_LEAST < layout->width)
		name_add(&layout->line, layout->view->command, layout->width - used(layout) - (layout->turn ? 16 : 0), NAME_HEAD | layout->name_flags);
	if (layout->turn)
		part(layout, "%llu:%02llu%s", (unsigned long long)(layout->turn->elapsed_ns / 60000000000ull), (unsigned long long)(layout->turn->elapsed_ns / 1000000000 % 60), layout->view->paused ? "  paused" : "");
	line_end(layout, TOP_TITLE);
}

static void head_numbers(struct layout *layout)
{
	const struct live_turn *turn = layout->turn;

	part(layout, "CPU %.0f %%", pct(layout, turn->cpu_ns));
	part(layout, "GIL %.0f %% held, %.1f waiting", pct(layout, turn->gil_ns), pct(layout, turn->gil_wait_ns) / 100);
	for (size_t i = 0; i < turn->gpu_count; i++)
		part(layout, "GPU%u %u %%", turn->gpus[i].minor, turn->gpus[i].busy_pct);
	part(layout, "%zu threads", turn->thread_count);
	part(layout, "%s", quantity_bytes(turn->rss_bytes, layout->quantity_flags).text);
	line_end(layout, TOP_PLAIN);
	part(layout, "%llu samples (%.0f/s)", (unsigned long long)turn->samples, turn->rate_hz);
	part(layout, "overhead: own CPU %.1f %%", pct(layout, turn->cost_ns));
	part(layout, turn->stolen_ns ? "threads held %.2f %%" : "nothing held", pct(layout, turn->stolen_ns));
	if (layout->view->native && (*turn->ways.why_not_native || *turn->ways.why_not_held))
		part(layout, "native: %.150s", *turn->ways.why_not_native ? turn->ways.why_not_native : turn->ways.why_not_held);
	line_end(layout, TOP_PLAIN);
}

/* ---- functions ---- */

struct column {
	const char *head;
	size_t width, from; /* shown from this many columns on */
	enum top_sort sort;
	bool gpu;
};

static const struct column columns[] = {
	{ "SELF%", 6, 0, TOP_SELF, false },      { "TOTAL%", 7, 40, TOP_TOTAL, false },  { "GIL%", 6, 52, TOP_GIL, false },
	{ "LAUNCH%", 8, 70, TOP_LAUNCH, true }, { "GPUWAIT%", 9, 70, TOP_WAIT, true }, { "SELF s", 8, 64, TOP_TIME, false },
};

static bool column_shown(const struct layout *layout, const struct column *column)
{
	return layout->width >= column->from && (!column->gpu || top_knows_gpu(layout->view, layout->turn));
}

static double column_value(const struct layout *layout, const struct column *column, const struct tally_function *function)
{
	switch (column->sort) {
	case TOP_TOTAL:
		return pct(layout, top_total_ns(layout->view, &function->now));
	case TOP_GIL:
		return pct(layout, function->now.gil_ns);
	case TOP_LAUNCH:
		return pct(layout, function->now.launch_ns);
	case TOP_WAIT:
		return pct(layout, function->now.gpu_wait_ns);
	case TOP_TIME:
		return (double)top_self_ns(layout->view, &function->all) / 1e9;
	default:
		return pct(layout, top_self_ns(layout->view, &function->now));
	}
}

/* "name (file:12)": the name first, the file as far as there is room. */
static void function_label(struct layout *layout, const struct tally_function *function, size_t room)
{
	size_t begun = used(layout), left;
	char line[16] = "";

	name_add(&layout->line, *function->name ? function->name : "?", room, layout->name_flags);
	left = room - (used(layout) - begun);
	if (function->line)
		snprintf(line, sizeof line, ":%u", function->line);
	if (!*function->file || left < FILE_LEAST + strlen(line))
		return;
	text_add_string(&layout->line, " (");
	name_add(&layout->line, function->file, left - 3 - strlen(line), NAME_PATH | layout->name_flags);
	text_printf(&layout->line, "%s)", line);
}

static size_t room_left(const struct layout *layout)
{
	return layout->width > used(layout) + 1 ? layout->width - used(layout) - 1 : 1;
}

/* A table's head is as wide as the page. */
static void head_end(struct layout *layout)
{
	size_t length = used(layout);

	if (length < layout->width)
		text_printf(&layout->line, "%*s", (int)(layout->width - length), "");
	line_end(layout, TOP_HEAD);
}

static void functions_table(struct layout *layout, size_t last)
{
	size_t count, first;
	const struct tally_function **rows = top_functions(layout->view, layout->turn, &count);

	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		if (column_shown(layout, &columns[i]))
			text_printf(&layout->line, "%*s%s", (int)columns[i].width, columns[i].head, columns[i].sort == layout->view->sort ? "*" : " ");
	text_add_string(&layout->line, " FUNCTION");
	head_end(layout);
	layout->page->rows = count;
	first = layout->view->first < count ? layout->view->first : 0;
	for (size_t i = first; i < count && layout->page->count < last; i++) {
		for (size_t j = 0; j < sizeof columns / sizeof *columns; j++)
			if (column_shown(layout, &columns[j]))
				text_printf(&layout->line, "%*.*f ", (int)columns[j].width, columns[j].sort == TOP_TIME ? 2 : 1, column_value(layout, &columns[j], rows[i]));
		text_add_string(&layout->line, " ");
		function_label(layout, rows[i], room_left(layout));
		line_end(layout, TOP_PLAIN);
	}
	if (!count)
		line_add(layout, TOP_PLAIN, " %s", *layout->view->filter ? "nothing has this name" : layout->view->waits ? "no thread runs Python" : "nothing ran so far; i counts waits, too");
	free(rows);
}

/* ---- threads ---- */

static bool thread_shown(const struct layout *layout, const struct live_thread *thread, const struct tally_function *function)
{
	const char *filter = layout->view->filter;

	return !*filter || strcasestr(thread->name, filter) || (function && strcasestr(function->name, filter));
}

static void thread_row(struct layout *layout, const struct live_thread *thread, const struct tally_function *function)
{
	const struct tally_thread *samples = thread->samples;
	size_t begun;

	text_printf(&layout->line, "%8d  ", (int)thread->tid);
	begun = used(layout);
	name_add(&layout->line, thread->name, 15, layout->name_flags);
	text_printf(&layout->line, "%*s  %-17s ", (int)(15 - (used(layout) - begun)), "",
	            thread->letter == 'T' || thread->letter == 't' ? "stopped" : samples ? thread_state_words(samples->state) : "no Python");
	if (layout->width >= 64)
		text_printf(&layout->line, "%6.1f %6.1f %6.1f  ", pct(layout, thread->cpu_ns), pct(layout, samples ? samples->gil_ns : 0), pct(layout, samples ? samples->gil_wait_ns : 0));
	if (function && used(layout) + NAME_LEAST < layout->width)
		function_label(layout, function, room_left(layout));
	line_end(layout, TOP_PLAIN);
}

static void threads_table(struct layout *layout, size_t last)
{
	size_t count, row = 0;
	const struct tally_function *functions = tally_functions(layout->turn->tally, &count);

	text_printf(&layout->line, "%8s  %-15s  %-17s ", "TID", "NAME", "STATE");
	if (layout->width >= 64)
		text_printf(&layout->line, "%6s %6s %6s  ", "CPU%", "GIL%", "WAIT%");
	text_add_string(&layout->line, "NOW IN");
	head_end(layout);
	for (size_t i = 0; i < layout->turn->thread_count; i++) {
		const struct live_thread *thread = &layout->turn->threads[i];
		const struct tally_function *function = thread->samples && thread->samples->function < count ? &functions[thread->samples->function] : NULL;

		if (!thread_shown(layout, thread, function))
			continue;
		if (row++ >= layout->view->first && layout->page->count < last)
			thread_row(layout, thread, function);
	}
	layout->page->rows = row;
}

/* ---- help, keys ---- */

static void help_lines(struct layout *layout)
{
	static const char *const rows[] = {
		"q        leave          p, space  pause: nothing is looked at meanwhile",
		"s, S     sort by the next, the previous column (marked *)",
		"t        threads, or functions",
		"i        count waits, too: else only time on a CPU, or wanting one",
		"n        native calls: running threads are held for some 30 us per sample",
		"/        show only what has this in its name or file; Enter on nothing: all",
		"arrows, page up and down, home    move through the table",
		"",
		"100 % is one thread, all the time since the last refresh.",
		"SELF%    the function was the innermost call    TOTAL%  it was on the stack",
		"GIL%     innermost, with the GIL held           SELF s  since the beginning",
		"LAUNCH%  a CUDA call that launches work stood below it; GPUWAIT%: one that",
		"         waits for the device. Seen only with native calls.",
		"held     how much of the time some thread had the GIL; waiting: how many",
		"         threads wanted it, on average",
		"overhead own CPU: of this program; held: how long threads stood still",
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		line_add(layout, TOP_PLAIN, " %s", rows[i]);
}

static void mode_line(struct layout *layout)
{
	static const char *const sorts[TOP_SORTS] = { "self time", "total time", "GIL", "GPU launches", "GPU waits", "self time since the beginning" };
	const struct top_view *view = layout->view;

	part(layout, "%s%s%s", view->threads ? "threads" : "functions by ", view->threads ? "" : sorts[view->sort], view->waits && !view->threads ? ", waits included" : "");
	if (view->native)
		part(layout, "native calls");
	if (*view->filter) {
		text_add_string(&layout->line, "  /");
		name_add(&layout->line, view->filter, 20, layout->name_flags);
	}
	part(layout, "? help  q quit");
	line_end(layout, TOP_PLAIN);
}

bool top_page(struct top_page *page, const struct top_view *view, const struct live_turn *turn, size_t width, size_t height)
{
	struct layout layout = { .page = page, .view = view, .turn = turn, .width = width, .height = height,
		.name_flags = view->unicode ? 0 : NAME_ASCII, .quantity_flags = view->unicode ? 0 : QUANTITY_ASCII };
	bool failed;

	text_done(&page->text); /* also after a page for which there was no memory */
	page->count = page->rows = 0;
	text_init(&layout.line);
	head_process(&layout);
	if (turn) {
		head_numbers(&layout);
		mode_line(&layout);
	}
	if (view->help)
		help_lines(&layout);
	else if (!turn)
		line_add(&layout, TOP_PLAIN, "looking");
	else if (view->threads)
		threads_table(&layout, height);
	else
		functions_table(&layout, height);
	failed = layout.line.failed || page->text.failed;
	text_done(&layout.line);
	if (failed)
		page->count = page->rows = 0;
	return !failed;
}
