/* Lines for a terminal. */
#include "report/terminal.h"

#include <math.h>
#include <string.h>

void terminal_init(struct terminal *terminal, const struct report_options *options)
{
	uint32_t width = options->width ? options->width : 80;

	memset(terminal, 0, sizeof *terminal);
	text_init(&terminal->text);
	terminal->width = width < 60 ? 60 : width > 250 ? 250 : width;
	terminal->colour = options->colour;
	terminal->unicode = options->unicode;
	terminal->quantity = options->unicode ? 0 : QUANTITY_ASCII;
	terminal->name = options->unicode ? 0 : NAME_ASCII;
}

void terminal_done(struct terminal *terminal)
{
	text_done(&terminal->text);
}

static void begin(struct terminal *terminal, int sgr)
{
	if (terminal->colour && sgr)
		text_printf(&terminal->text, "\033[%dm", sgr);
}

static void end(struct terminal *terminal, int sgr)
{
	if (terminal->colour && sgr)
		text_add_string(&terminal->text, "\033[0m");
}

static void spaces(struct terminal *terminal, size_t count)
{
	while (count--)
		text_add(&terminal->text, " ", 1);
}

void terminal_paint(struct terminal *terminal, int sgr, const char *string)
{
	begin(terminal, sgr);
	text_add_string(&terminal->text, string);
	end(terminal, sgr);
}

void terminal_left(struct terminal *terminal, int sgr, const char *string, size_t columns)
{
	size_t used = name_columns(string, strlen(string));

	terminal_paint(terminal, sgr, string);
	spaces(terminal, used < columns ? columns - used : 0);
}

void terminal_right(struct terminal *terminal, int sgr, const char *string, size_t columns)
{
	size_t used = name_columns(string, strlen(string));

	spaces(terminal, used < columns ? columns - used : 0);
	terminal_paint(terminal, sgr, string);
}

void terminal_name(struct terminal *terminal, int sgr, const char *bytes, size_t columns, unsigned name_flags, bool pad)
{
	struct text name;

	text_init(&name);
	name_add(&name, bytes, columns, terminal->name | name_flags);
	terminal_left(terminal, sgr, text_string(&name), pad ? columns : 0);
	text_end(&name, &terminal->text);
}

/* How many bytes of TEXT fit ROOM columns, preferably ending at a space. */
static size_t line_length(const char *text, size_t length, size_t room)
{
	size_t columns = 0, at = 0, space = 0;

	while (at < length) {
		size_t step = utf8_length(text + at, length - at);

		step += !step;
		columns += name_columns(text + at, step);
		if (columns > room)
			return space ? space : at ? at : step;
		if (text[at] == ' ' && !(at && text[at - 1] >= '0' && text[at - 1] <= '9')) /* a number stays with its unit */
			space = at;
		at += step;
	}
	return at;
}

size_t terminal_wrap(struct terminal *terminal, int sgr, const char *bytes, size_t indent, size_t lines)
{
	size_t room = terminal->width - indent, line = 0, at = 0;
	struct text shown;

	text_init(&shown);
	/* What cannot fit the lines is cut before; words need some slack at line ends. */
	name_add(&shown, bytes, lines * room - (lines - 1) * (room / 8), terminal->name | NAME_HEAD);
	do {
		size_t length = line_length(shown.data ? shown.data + at : "", shown.length - at, room);

		if (line)
			spaces(terminal, indent);
		if (line + 1 == lines && at + length < shown.length) {
			struct text rest;

			text_init(&rest);
			name_add(&rest, shown.data + at, room, terminal->name | NAME_HEAD);
			terminal_paint(terminal, sgr, text_string(&rest));
			text_end(&rest, &terminal->text);
			at = shown.length;
		} else {
			begin(terminal, sgr);
			if (length)
				text_add(&terminal->text, shown.data + at, length);
			end(terminal, sgr);
			at += length;
		}
		text_add(&terminal->text, "\n", 1);
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): what has a length has data */
		while (at < shown.length && shown.data[at] == ' ')
			at++;
		line++;
	} while (at < shown.length && line < lines);
	text_end(&shown, &terminal->text);
	return line;
}

void terminal_parts(struct terminal *terminal, const double parts[PART_COUNT], size_t columns)
{
	double sum = 0, upto = 0;
	size_t drawn = 0;

	for (size_t part = 0; part < PART_COUNT; part++)
		sum += parts[part];
	for (size_t part = 0; part < PART_COUNT && sum > 0; part++) {
		size_t end_column;
		char letter[2] = { PARTS[part].letter, 0 };

		upto += parts[part];
		end_column = (size_t)lround(upto / sum * (double)columns);
		if (end_column <= drawn)
			continue;
		begin(terminal, PARTS[part].sgr);
		for (; drawn < end_column && drawn < columns; drawn++)
			text_add_string(&terminal->text, terminal->colour && terminal->unicode ? "█" : letter);
		end(terminal, PARTS[part].sgr);
	}
	spaces(terminal, columns - drawn);
}

void terminal_bar(struct terminal *terminal, int sgr, double pct, size_t columns)
{
	static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	size_t filled = (size_t)lround((pct < 0 ? 0 : pct > 100 ? 100 : pct) / 100 * (double)columns * 8);

	if (pct > 0 && filled == 0)
		filled = 1;
	begin(terminal, sgr);
	for (size_t i = 0; i < filled / 8; i++)
		text_add_string(&terminal->text, terminal->unicode ? "█" : "#");
	if (terminal->unicode)
		text_add_string(&terminal->text, eighths[filled % 8]);
	else if (filled % 8 >= 4 || filled < 8)
		text_add_string(&terminal->text, "#");
	end(terminal, sgr);
}

void terminal_heading(struct terminal *t, const char *title)
{
	text_add(&t->text, "\n", 1);
	terminal_paint(t, SGR_BOLD, title);
	text_add(&t->text, "\n", 1);
}

void terminal_newline(struct terminal *t)
{
	text_add(&t->text, "\n", 1);
}
