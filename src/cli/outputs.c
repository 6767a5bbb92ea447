/* Output paths: one file, a folder, or a stem for several formats. */
#include "cli/outputs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/sink.h"

static int format_unknown(const char *name, struct error *err)
{
	size_t count, used = 0;
	const struct report_format *formats = report_formats(&count);
	char names[256] = "";

	for (size_t i = 0; i < count && used < sizeof names; i++)
		used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", formats[i].name);
	fail(err, ERR_OPTION_VALUE, "there is no format \"%.60s\"", name);
	return fail_hint(err, "give one of %s", names);
}

static int formats_read(const struct options *options, struct outputs *out, struct error *err)
{
	char name[OPTION_PART_BYTES];

	for (size_t i = 0; options_list(options, OPT_FORMAT, i, name); i++) {
		const struct report_format *format = report_format_find(name);
		bool twice = false;

		if (!format)
			return format_unknown(name, err);
		for (size_t j = 0; j < out->count; j++)
			twice |= out->reports[j].format == format;
		if (twice)
			continue;
		if (out->count == OUTPUTS_MAX)
			return fail(err, ERR_OPTION_VALUE, "too many formats");
		out->reports[out->count++].format = format;
	}
	return 0;
}

static bool is_folder(const char *path)
{
	struct stat status;

	return *path && (path[strlen(path) - 1] == '/' || (stat(path, &status) == 0 && S_ISDIR(status.st_mode)));
}

/* "html" and "json" name themselves; two formats with one extension get their names in between. */
static bool extension_shared(const struct outputs *outputs, size_t index)
{
	for (size_t i = 0; i < outputs->count; i++)
		if (i != index && strcmp(outputs->reports[i].format->extension, outputs->reports[index].format->extension) == 0)
			return true;
	return false;
}

static int path_make(struct output *output, const char *stem, bool with_name, struct error *err)
{
	const struct report_format *format = output->format;
	int length = with_name && strcmp(format->name, format->extension) != 0
		? snprintf(output->path, sizeof output->path, "%s.%s.%s", stem, format->name, format->extension)
		: snprintf(output->path, sizeof output->path, "%s.%s", stem, format->extension);

	return length < (int)sizeof output->path ? 0 : fail(err, ERR_OPTION_VALUE, "the output path is too long");
}

/* Several formats, or a folder: each file gets its own name. */
static int paths_make(struct outputs *out, const char *where, struct error *err)
{
	char stem[OUTPUT_PATH - 64];
	bool folder = is_folder(where);
	const char *slash = strrchr(where, '/'), *base = slash ? slash + 1 : where, *dot = strrchr(base, '.');
	size_t length = !folder && dot && dot > base && report_format_find(dot + 1) ? (size_t)(dot - where) : strlen(where);

	if (folder)
		length = (size_t)snprintf(stem, sizeof stem, "%s%sreport", where, where[strlen(where) - 1] == '/' ? "" : "/");
	else if (length < sizeof stem) {
		memcpy(stem, where, length);
		stem[length] = '\0';
	}
	if (length >= sizeof stem)
		return fail(err, ERR_OPTION_VALUE, "the output path is too long");
	for (size_t i = 0; i < out->count; i++)
		if (path_make(&out->reports[i], stem, extension_shared(out, i), err) < 0)
			return -1;
	return 0;
}

/* What the output's extension says, NULL: nothing. */
static const struct report_format *format_of_output(const struct options *options)
{
	const char *where = options_text(options, OPT_OUTPUT);

	return *where && strcmp(where, "-") != 0 && !is_folder(where) ? report_format_of_path(where) : NULL;
}

static bool output_is_stronger(const struct options *options)
{
	return options->values[OPT_OUTPUT].origin > options->values[OPT_FORMAT].origin;
}

void format_wanted(const struct options *options, bool (*takes)(const char *format), char name[OPTION_PART_BYTES])
{
	const struct report_format *of_output = format_of_output(options);

	if (of_output && !options_typed(options, OPT_OUTPUT) && !takes(of_output->name))
		of_output = NULL;
	if (of_output && output_is_stronger(options)) {
		snprintf(name, OPTION_PART_BYTES, "%s", of_output->name);
		return;
	}
	for (size_t i = 0; options_list(options, OPT_FORMAT, i, name); i++)
		if (options_typed(options, OPT_FORMAT) || takes(name))
			return;
	snprintf(name, OPTION_PART_BYTES, "%s", of_output ? of_output->name : "text");
}

const char *output_wanted(const struct options *options, bool (*takes)(const char *format))
{
	const char *where = options_text(options, OPT_OUTPUT);
	const struct report_format *of_output = format_of_output(options);

	return options_typed(options, OPT_OUTPUT) || (!is_folder(where) && (!of_output || takes(of_output->name))) ? where : "";
}

/* "chrome.json" and "json": a name that ends so may be either's. */
static bool ends_alike(const struct report_format *format, const struct report_format *of_name)
{
	const char *dot = strrchr(format->extension, '.');

	return strcmp(dot ? dot + 1 : format->extension, of_name->extension) == 0;
}

static int reports_plan(const struct options *options, struct outputs *out, struct error *err)
{
	const char *where = options_text(options, OPT_OUTPUT);
	const struct report_format *of_output = format_of_output(options);

	if (formats_read(options, out, err) < 0)
		return -1;
	if (of_output && output_is_stronger(options) && !(out->count == 1 && ends_alike(out->reports[0].format, of_output)))
		out->count = 0;
	else if (strcmp(where, "-") == 0 && output_is_stronger(options) && out->count > 1)
		out->count = 1; /* the settings have more than stdout takes */
	if (strcmp(where, "-") == 0 && out->count > 1) {
		fail(err, ERR_USAGE, "several formats cannot all go to stdout");
		return fail_hint(err, "give one format, or a folder as --output");
	}
	if (out->count == 0 && *where && strcmp(where, "-") != 0 && !is_folder(where)) {
		out->reports[0].format = report_format_of_path(where);
		if (!out->reports[0].format) {
			fail(err, ERR_OPTION_VALUE, "the extension of \"%.200s\" is of no format", where);
			return fail_hint(err, "name the format with --format, or use .md, .html, .json, .txt");
		}
		out->count = 1;
	} else if (out->count == 0) {
		out->reports[0].format = report_format_find(strcmp(where, "-") == 0 ? "text" : "md");
		out->count = 1;
	}
	/* A name in the settings has no say in what a format on the command line is. */
	if (*where && out->count == 1 && !is_folder(where) && (!of_output || of_output == out->reports[0].format || options_typed(options, OPT_OUTPUT) || !options_typed(options, OPT_FORMAT))) {
		if (snprintf(out->reports[0].path, OUTPUT_PATH, "%s", where) >= OUTPUT_PATH)
			return fail(err, ERR_OPTION_VALUE, "the output path is too long");
		return 0;
	}
	return paths_make(out, *where ? where : "report", err);
}

static int trace_plan(const struct options *options, pid_t pid, struct outputs *out, struct error *err)
{
	const char *given = options_text(options, OPT_TRACE);
	time_t now = clock_wall_seconds();
	struct tm utc;
	char stamp[32];

	if (strcmp(given, "none") == 0)
		return 0;
	if (*given) {
		if (snprintf(out->trace, sizeof out->trace, "%s", given) >= (int)sizeof out->trace)
			return fail(err, ERR_OPTION_VALUE, "the trace's path is too long");
		return 0;
	}
	gmtime_r(&now, &utc);
	strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
	snprintf(out->trace, sizeof out->trace, "inferscope-%d-%s.iscope", (int)pid, stamp);
	return 0;
}

/* However they are written: ./x and x, or by a link to the folder. */
static bool same_place(const char *a, const char *b)
{
	const char *a_slash = strrchr(a, '/'), *b_slash = strrchr(b, '/');
	char folder[OUTPUT_PATH];
	struct stat one, other;

	if (strcmp(a, b) == 0)
		return true;
	if (stat(a, &one) == 0 && stat(b, &other) == 0)
		return S_ISREG(one.st_mode) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
	if (strcmp(a_slash ? a_slash + 1 : a, b_slash ? b_slash + 1 : b) != 0)
		return false;
	path_folder(a, folder, sizeof folder);
	if (stat(folder, &one) < 0)
		return false;
	path_folder(b, folder, sizeof folder);
	return stat(folder, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

int outputs_plan(const struct options *options, pid_t pid, struct outputs *out, struct error *err)
{
	memset(out, 0, sizeof *out);
	out->force = options_flag(options, OPT_FORCE);
	if (reports_plan(options, out, err) < 0)
		return -1;
	if (pid == 0)
		return 0;
	if (trace_plan(options, pid, out, err) < 0)
		return -1;
	for (size_t i = 0; i < out->count; i++) {
		if (*out->trace && same_place(out->trace, out->reports[i].path)) {
			fail(err, ERR_USAGE, "trace and report would both be \"%.200s\"", out->reports[i].path);
			return fail_hint(err, "give them different names, or --trace none");
		}
	}
	return 0;
}

int outputs_beside(const struct outputs *plan, const char *stem, struct outputs *out, struct error *err)
{
	memset(out, 0, sizeof *out);
	out->force = plan->force;
	if (!*stem)
		return 0;
	if (snprintf(out->trace, sizeof out->trace, "%s.iscope", stem) >= (int)sizeof out->trace)
		return fail(err, ERR_OPTION_VALUE, "the trace's path is too long");
	out->count = plan->count;
	for (size_t i = 0; i < plan->count; i++)
		out->reports[i].format = plan->reports[i].format;
	for (size_t i = 0; i < plan->count; i++)
		if (path_make(&out->reports[i], stem, extension_shared(out, i), err) < 0)
			return -1;
	return 0;
}

int outputs_test(const struct outputs *outputs, struct error *err)
{
	if (*outputs->trace && sink_test_path(outputs->trace, outputs->force, err) < 0)
		return -1;
	for (size_t i = 0; i < outputs->count; i++)
		if (sink_test_path(outputs->reports[i].path, outputs->force, err) < 0)
			return -1;
	return 0;
}

int output_apart(const char *path, char *const *inputs, size_t count, struct error *err)
{
	struct stat output, input;

	if (strcmp(path, "-") == 0 || stat(path, &output) < 0 || !S_ISREG(output.st_mode))
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (stat(inputs[i], &input) < 0 || input.st_dev != output.st_dev || input.st_ino != output.st_ino)
			continue;
		fail(err, ERR_USAGE, "%.200s would replace what it is made of", path);
		return fail_hint(err, "choose another name for --output");
	}
	return 0;
}

int outputs_apart(const struct outputs *outputs, char *const *inputs, size_t count, struct error *err)
{
	for (size_t i = 0; i < outputs->count; i++)
		if (output_apart(outputs->reports[i].path, inputs, count, err) < 0)
			return -1;
	return 0;
}

bool outputs_use_stdout(const struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++)
		if (strcmp(outputs->reports[i].path, "-") == 0)
			return true;
	return strcmp(outputs->trace, "-") == 0;
}

bool path_is_special(const char *path)
{
	struct stat status;

	return strcmp(path, "-") == 0 || (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

void path_folder(const char *path, char *out, size_t size)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		snprintf(out, size, ".");
	else
		snprintf(out, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}
