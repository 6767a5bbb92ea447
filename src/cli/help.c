/* --help and the man page, from the tables of commands, options, formats and errors. */
#include "cli/help.h"

#include <string.h>

#include "report/report.h"

enum { COLUMN = 30, WIDTH = 100 };

/* Characters, not bytes: the texts hold … and the like. */
static size_t width_of(const char *text, size_t length)
{
	size_t width = 0;

	for (size_t i = 0; i < length; i++)
		width += ((unsigned char)text[i] & 0xc0) != 0x80;
	return width;
}

/* TEXT broken into lines that begin at column INDENT; the first begins at column AT. */
static void wrap(struct text *out, const char *text, size_t at, size_t indent)
{
	while (*text) {
		size_t word = strcspn(text, " "), width = width_of(text, word);

		if (at > indent && at + 1 + width > WIDTH) {
			text_printf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			text_add_string(out, " ");
			at++;
		}
		text_add(out, text, word);
		at += width;
		text += word + (text[word] == ' ');
	}
	text_add_string(out, "\n");
}

static void option_names(struct text *out, const struct option_row *row)
{
	if (row->letter)
		text_printf(out, "-%c, ", row->letter);
	text_printf(out, "--%s", row->name);
	if (row->kind != KIND_FLAG)
		text_printf(out, " %s", row->shown);
}

static void option_meaning(struct text *out, const struct option_row *row)
{
	text_add_string(out, row->help);
	if (row->kind == KIND_CHOICE)
		text_printf(out, ": %s", row->constraint);
	if (row == &option_rows[OPT_FORMAT]) {
		size_t count;
		const struct report_format *formats = report_formats(&count);

		for (size_t i = 0; i < count; i++)
			text_printf(out, "%s%s", i ? "|" : ": ", formats[i].name);
	}
	if (row->kind == KIND_FLAG ? strcmp(row->standard, "yes") == 0 : *row->standard != '\0')
		text_printf(out, " (default %s)", row->standard);
}

void help_overview(struct text *out)
{
	text_add_string(out, "usage: inferscope COMMAND [OPTIONS]\n\nSays where a running Python process spends its time, and what to change.\n\n");
	for (size_t i = 0; i < command_count; i++) {
		text_printf(out, "  %-14s", command_rows[i].name);
		wrap(out, command_rows[i].about, 16, 16);
	}
	text_add_string(out, "\n  inferscope attach PID --duration 30s     measure a process; report.md says what was found\n"
	                     "  inferscope COMMAND --help                options of a command\n"
	                     "  inferscope --version\n");
}

void help_command(struct text *out, const struct command_row *command)
{
	text_printf(out, "usage: inferscope %s %s%s\n\n", command->name, command->passes_rest ? "[OPTIONS] " : "", command->arguments);
	wrap(out, command->about, 0, 0);
	text_add_string(out, "\n");
	wrap(out, command->more, 0, 0);
	text_add_string(out, "\n");
	for (int i = 0; i < OPT_COUNT; i++) {
		struct text names, meaning;
		size_t at;

		if (!(option_rows[i].commands & command->bit))
			continue;
		text_init(&names);
		text_init(&meaning);
		option_names(&names, &option_rows[i]);
		option_meaning(&meaning, &option_rows[i]);
		if (names.failed || meaning.failed)
			out->failed = true;
		else {
			text_printf(out, "  %s", names.data);
			at = 2 + width_of(names.data, names.length);
			if (at + 2 > COLUMN)
				text_printf(out, "\n%*s", COLUMN, "");
			else
				text_printf(out, "%*s", (int)(COLUMN - at), "");
			wrap(out, meaning.data, COLUMN, COLUMN);
		}
		text_done(&names);
		text_done(&meaning);
	}
	text_add_string(out, "\nEach setting can also come from the environment (INFERSCOPE_TRACE_SIZE_MB=50) or .inferscope.yaml; see `inferscope config show`.\n");
}

/* roff text: backslashes, hyphens and a dot or quote at the start of a line mean something there. */
static void roff(struct text *out, const char *text)
{
	if (*text == '.' || *text == '\'')
		text_add_string(out, "\\&");
	for (; *text; text++) {
		if (*text == '\\')
			text_add_string(out, "\\e");
		else if (*text == '-')
			text_add_string(out, "\\-");
		else
			text_add(out, text, 1);
	}
}

static void man_option(struct text *out, enum option_id id)
{
	const struct option_row *row = &option_rows[id];
	struct text part;
	char name[64];

	text_add_string(out, ".TP\n.B ");
	text_init(&part);
	option_names(&part, row);
	roff(out, text_string(&part));
	text_add_string(out, "\n");
	text_clear(&part);
	option_meaning(&part, row);
	roff(out, text_string(&part));
	text_add_string(out, ".\n");
	text_done(&part);
	if (row->reach == REACH_SETTING) {
		option_environment_name(id, name, sizeof name);
		text_printf(out, "Environment: %s.\n", name);
	}
	text_add_string(out, "Commands:");
	for (size_t i = 0; i < command_count; i++) {
		if (command_rows[i].bit & row->commands) {
			text_add_string(out, " ");
			roff(out, command_rows[i].name);
		}
	}
	text_add_string(out, ".\n");
}

static void man_statuses(struct text *out)
{
	static const struct { const char *status, *meaning; } rows[] = {
		{ "0", "done" },
		{ "1", "a --fail-on condition holds" },
		{ "2", "usage, configuration or rules" },
		{ "3", "no such process, or it ended before measuring began" },
		{ "4", "no permission" },
		{ "5", "the process is not supported" },
		{ "6", "attaching was refused or failed; the process is unharmed" },
		{ "7", "the process was left, but something of InferScope stayed in it" },
		{ "8", "input or output failed, or a trace is damaged" },
		{ "9", "the process did not answer in time" },
		{ "10", "partial data, with --strict" },
		{ "130", "interrupted before anything was recorded; or left at once (a second Ctrl-C), with nothing written" },
		{ "125-127", "run only: the program could not be measured, or not be started; otherwise run ends as its program does" },
	};

	text_add_string(out, ".SH EXIT STATUS\n");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		text_add_string(out, ".TP\n.B ");
		roff(out, rows[i].status);
		text_add_string(out, "\n");
		roff(out, rows[i].meaning);
		text_add_string(out, "\n");
	}
}

static void man_formats(struct text *out)
{
	size_t count;
	const struct report_format *formats = report_formats(&count);

	text_add_string(out, ".SH FORMATS\n");
	for (size_t i = 0; i < count; i++) {
		text_printf(out, ".TP\n.B %s\n", formats[i].name);
		roff(out, formats[i].about);
		text_add_string(out, "\n");
	}
}

void help_man(struct text *out)
{
	text_add_string(out, ".TH INFERSCOPE 1 \"\" \"InferScope\" \"User Commands\"\n.SH NAME\ninferscope \\- say where a running Python process spends its time\n.SH SYNOPSIS\n");
	for (size_t i = 0; i < command_count; i++) {
		text_add_string(out, ".B inferscope ");
		roff(out, command_rows[i].name);
		text_add_string(out, "\n");
		roff(out, command_rows[i].arguments);
		text_add_string(out, "\n[options]\n.br\n");
	}
	text_add_string(out, ".SH DESCRIPTION\nInferScope enters a running CPython process (3.8 to 3.15) with ptrace, measures it for a while without harm, leaves it as it was, and reports where its time went and what to change.\n.SH COMMANDS\n");
	for (size_t i = 0; i < command_count; i++) {
		text_add_string(out, ".TP\n.B ");
		roff(out, command_rows[i].name);
		text_add_string(out, " ");
		roff(out, command_rows[i].arguments);
		text_add_string(out, "\n");
		roff(out, command_rows[i].about);
		text_add_string(out, ".\n");
		roff(out, command_rows[i].more);
		text_add_string(out, "\n");
	}
	text_add_string(out, ".SH OPTIONS\n");
	for (int i = 0; i < OPT_COUNT; i++)
		man_option(out, (enum option_id)i);
	man_formats(out);
	man_statuses(out);
	text_add_string(out, ".SH FILES\n.TP\n.B .inferscope.yaml\nSettings, one \"name: value\" per line; of the current folder, else of the home folder. It must belong to the user or root.\n"
	                     ".SH SIGNALS\nThe first SIGINT, SIGTERM or SIGHUP ends the measurement early and writes what there is; the second leaves the process at once and writes nothing. What comes within 0.2 s, as timeout(1) sends it, is the same one.\n");
}
