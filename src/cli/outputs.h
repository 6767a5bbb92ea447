/* Which report goes where. */
#ifndef INFERSCOPE_CLI_OUTPUTS_H
#define INFERSCOPE_CLI_OUTPUTS_H

#include <sys/types.h>

#include "cli/options.h"
#include "report/report.h"

enum { OUTPUTS_MAX = 16, OUTPUT_PATH = 4096 };

struct output {
	const struct report_format *format;
	char path[OUTPUT_PATH]; /* "-" is stdout */
};

struct outputs {
	struct output reports[OUTPUTS_MAX];
	size_t count;
	char trace[OUTPUT_PATH]; /* empty: none is kept */
	bool force;
};

/*
 * The one format of a command that writes one report, into NAME: the extension of the output where that is said more strongly than a format (the command line
 * before the environment, that before the file); else the first format, of a setting the first that TAKES; else the extension; else "text". An output of the
 * settings whose extension is of a format that it does not take is meant for other commands.
 */
void format_wanted(const struct options *options, bool (*takes)(const char *format), char name[OPTION_PART_BYTES]);
/* Where that report goes: "" is stdout, also where the settings have a folder, or a name for a format that the command does not take. */
const char *output_wanted(const struct options *options, bool (*takes)(const char *format));
/* From --output, --format and --trace. PID 0 = there is no trace to keep. */
int outputs_plan(const struct options *options, pid_t pid, struct outputs *out, struct error *err);
/* PLAN's formats as STEM.EXTENSION, and the trace beside them. STEM empty: neither. */
int outputs_beside(const struct outputs *plan, const char *stem, struct outputs *out, struct error *err);
/* Opens and gives up every one, so that what cannot be written is said before anything else is done. */
int outputs_test(const struct outputs *outputs, struct error *err);
/* PATH names none of the INPUTS, which it would replace: a trace is what cannot be made again. */
int output_apart(const char *path, char *const *inputs, size_t count, struct error *err);
/* The same of every report. */
int outputs_apart(const struct outputs *outputs, char *const *inputs, size_t count, struct error *err);
/* True when stdout carries a report. */
bool outputs_use_stdout(const struct outputs *outputs);
/* A pipe or a device takes what is written, and nothing can be read back from it or put beside it. */
bool path_is_special(const char *path);
/* The folder of PATH. */
void path_folder(const char *path, char *out, size_t size);

#endif
