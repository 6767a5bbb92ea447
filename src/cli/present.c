/* Trace → timeline → analysis → reports and summary. */
#include "cli/present.h"

#include <errno.h>
#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/gates.h"
#include "import/import.h"

enum { PARAMETERS_MAX = 64, SCOPES_MAX = 64 };

struct parameters {
	struct parameter list[PARAMETERS_MAX];
	char names[PARAMETERS_MAX][OPTION_PART_BYTES];
	size_t count;
};

static int parameters_read(const struct options *options, struct parameters *out, struct error *err)
{
	char part[OPTION_PART_BYTES];

	for (out->count = 0; options_list(options, OPT_PARAMETER, out->count, part); out->count++) {
		char *equals = strchr(part, '='), *end;
		double value;

		if (out->count == PARAMETERS_MAX)
			return fail(err, ERR_OPTION_VALUE, "too many parameters");
		if (!equals || equals == part) {
			fail(err, ERR_OPTION_VALUE, "--parameter: \"%.80s\" is not NAME=VALUE", part);
			return fail_hint(err, "for example --parameter gpu.idle_pct_threshold=20");
		}
		*equals = '\0';
		value = strtod(equals + 1, &end);
		if (end == equals + 1 || *end || !isfinite(value))
			return fail(err, ERR_OPTION_VALUE, "--parameter %.60s: \"%.60s\" is not a number", part, equals + 1);
		memcpy(out->names[out->count], part, (size_t)(equals - part) + 1);
		out->list[out->count] = (struct parameter){ out->names[out->count], value };
	}
	return 0;
}

struct scopes {
	char texts[SCOPES_MAX][OPTION_PART_BYTES];
	const char *list[SCOPES_MAX];
	struct scope_patterns patterns;
};

static int scopes_read(const struct options *options, struct scopes *out, struct error *err)
{
	char part[OPTION_PART_BYTES];
	size_t count = 0;

	for (; options_list(options, OPT_SCOPE, count, part); count++) {
		if (count == SCOPES_MAX)
			return fail(err, ERR_OPTION_VALUE, "--scope: more than %d patterns", SCOPES_MAX);
		memcpy(out->texts[count], part, sizeof part);
		out->list[count] = out->texts[count];
	}
	out->patterns = (struct scope_patterns){ out->list, count };
	return 0;
}

int present_rules(const struct options *options, struct ruleset **out, struct error *err)
{
	const char *path = options_text(options, OPT_RULES_FILE);

	return *path ? ruleset_read(path, out, err) : ruleset_new(out, err);
}

static int parameters_check(const struct options *options, const struct ruleset *rules, struct error *err)
{
	struct parameters parameters;
	const char *suggestion;

	if (parameters_read(options, &parameters, err) < 0)
		return -1;
	for (size_t i = 0; i < parameters.count; i++) {
		if (ruleset_has_parameter(rules, parameters.list[i].name, &suggestion))
			continue;
		fail(err, ERR_OPTION_VALUE, "--parameter: there is no threshold \"%.60s\"", parameters.list[i].name);
		return suggestion ? fail_hint(err, "did you mean %s?", suggestion) : fail_hint(err, "docs/metrics.md and docs/rules.md list them");
	}
	return 0;
}

int present_check(const struct options *options, struct error *err)
{
	struct ruleset *rules;
	int result;

	if (!options_given(options, OPT_RULES_FILE) && !options_given(options, OPT_FAIL_ON) && !options_given(options, OPT_PARAMETER))
		return 0; /* the built-in rules are read once, with the trace */
	if (present_rules(options, &rules, err) < 0)
		return -1;
	result = gates_check(options, rules, err) < 0 ? -1 : parameters_check(options, rules, err);
	ruleset_free(rules);
	return result;
}

static void partial_apply(const struct timeline *timeline, struct present_result *result)
{
	const char *end = timeline_capture(timeline, "end");
	char *why = result->partial_why;
	size_t size = sizeof result->partial_why;

	if (timeline_capture(timeline, "import.broken"))
		snprintf(why, size, "what was imported breaks off: %s", timeline_capture(timeline, "import.broken"));
	else if (timeline->quality.damaged_chunks)
		snprintf(why, size, "%llu chunks of the trace are damaged", (unsigned long long)timeline->quality.damaged_chunks);
	else if (timeline->quality.truncated)
		snprintf(why, size, "the trace ends in the middle");
	else if (timeline->quality.lost_events)
		snprintf(why, size, "%llu events were lost", (unsigned long long)timeline->quality.lost_events);
	else if (end && (strcmp(end, "target_exited") == 0 || strcmp(end, "target_execed") == 0) && strcmp(timeline_capture(timeline, "mode") ? timeline_capture(timeline, "mode") : "", "run") != 0)
		snprintf(why, size, "the process ended while it was measured");
	result->partial = *why != '\0';
}

bool colour_wanted(const struct options *options, int fd)
{
	static const char *const force[] = { "CLICOLOR_FORCE", "FORCE_COLOR" };
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
	unsigned choice = options_choice(options, OPT_COLOR);

	if (choice)
		return choice == 1;
	if (none && *none)
		return false;
	for (size_t i = 0; i < 2; i++) {
		const char *value = getenv(force[i]);

		if (value && *value && strcmp(value, "0") != 0)
			return true;
	}
	return isatty(fd) && !(term && strcmp(term, "dumb") == 0);
}

static int report_write(const struct report *report, const struct output *output, bool force, struct error *err)
{
	struct sink *sink;

	if (sink_open_path(output->path, force, &sink, err) < 0)
		return -1;
	if (output->format->write(report, sink, err) < 0) {
		sink_discard(sink);
		return -1;
	}
	return sink_commit(sink, err);
}

/* A report depends on the trace, the options and the program's source alone, never on the terminal it is made in. */
static int reports_write(const struct timeline *timeline, const struct analysis *analysis, struct trace *trace, const struct presentation *how, struct error *err)
{
	struct report_options options = { .service = options_given(how->options, OPT_SHIP_AS) ? options_text(how->options, OPT_SHIP_AS) : NULL, .top = (uint32_t)options_count(how->options, OPT_TOP), .max_report_mb = (uint32_t)options_count(how->options, OPT_MAX_REPORT_MB), .unicode = true,
		.source_root = options_choice(how->options, OPT_SOURCE) == 0 ? how->source_root : NULL };
	struct report *report;
	int result = 0;

	for (size_t i = 0; i < how->outputs->count && result == 0; i++) {
		const struct output *output = &how->outputs->reports[i];

		options.colour = strcmp(output->path, "-") == 0 && colour_wanted(how->options, STDOUT_FILENO);
		if (trace_rewind(trace, err) < 0 || report_build(timeline, analysis, trace, &options, &report, err) < 0)
			return -1;
		result = report_write(report, output, how->outputs->force, err);
		report_free(report);
	}
	return result;
}

static uint32_t terminal_width(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40 && size.ws_col < 80 ? size.ws_col : 80;
}

static int summary_write(const struct timeline *timeline, const struct analysis *analysis, const char *note_trace, const struct presentation *how, struct error *err)
{
	const char *files[OUTPUTS_MAX + 2] = { NULL };
	struct report_options options = {
		.colour = colour_wanted(how->options, how->summary_fd), .width = terminal_width(how->summary_fd),
		.unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0, .files = files,
	};
	struct report *report;
	struct sink *sink;
	size_t count = 0;
	int result;

	for (size_t i = 0; i < how->outputs->count; i++)
		if (strcmp(how->outputs->reports[i].path, "-") != 0)
			files[count++] = how->outputs->reports[i].path;
	if (note_trace && *note_trace && strcmp(note_trace, "-") != 0)
		files[count++] = note_trace;
	if (report_build(timeline, analysis, NULL, &options, &report, err) < 0)
		return -1;
	if (sink_open_fd(how->summary_fd, &sink, err) < 0) {
		report_free(report);
		return -1;
	}
	result = report_summary(report, sink, err);
	report_free(report);
	if (result < 0) {
		sink_discard(sink);
		return -1;
	}
	return sink_commit(sink, err);
}

struct capture_settings { struct parameters parameters; struct scopes scopes; };

int capture_open(const char *path, const struct options *options, struct capture *out, struct error *err)
{
	struct capture_settings *settings = out->settings = calloc(1, sizeof *settings);
	struct trace_info info;

	if (!settings)
		return fail(err, ERR_MEMORY, "reading %s", path);
	if (!out->instead && (present_rules(options, &out->rules, err) < 0 || parameters_check(options, out->rules, err) < 0))
		return -1;
	if (parameters_read(options, &settings->parameters, err) < 0 || scopes_read(options, &settings->scopes, err) < 0 || import_open(path, &out->trace, err) < 0 ||
	    timeline_build_scoped(out->trace, &settings->scopes.patterns, &out->timeline, err) < 0)
		return -1;
	info = trace_info(out->trace);
	if (info.damaged_chunks && info.chunks == 0)
		return fail(err, ERR_TRACE_DAMAGED, "%s: none of its %llu chunks is whole", path, (unsigned long long)info.damaged_chunks);
	out->parameter_count = settings->parameters.count;
	out->parameters = out->parameter_count ? settings->parameters.list : NULL;
	return analysis_build_with(out->timeline, out->instead ? out->instead : out->rules, out->parameters, out->parameter_count, &out->analysis, err);
}

void capture_close(struct capture *capture)
{
	analysis_free(capture->analysis);
	ruleset_free(capture->rules);
	timeline_free(capture->timeline);
	trace_close(capture->trace);
	free(capture->settings);
	*capture = (struct capture){ 0 };
}

void present_judge(const struct capture *capture, const struct options *options, struct present_result *result)
{
	if (!result->gate_failed)
		result->gate_failed = gates_hold(options, capture->analysis, result->gate, sizeof result->gate);
	if (!result->partial)
		partial_apply(capture->timeline, result);
}

int present_trace(const char *trace_path, const char *note_trace, const struct presentation *how, struct present_result *result, struct error *err)
{
	struct capture capture = { 0 };
	int status = -1;

	memset(result, 0, sizeof *result);
	if (capture_open(trace_path, how->options, &capture, err) < 0 || reports_write(capture.timeline, capture.analysis, capture.trace, how, err) < 0)
		goto out;
	if (how->rank)
		rank_fill(capture.timeline, capture.analysis, how->rank_name, how->rank);
	status_phase(how->status, NULL);
	if (how->summary_fd >= 0 && summary_write(capture.timeline, capture.analysis, note_trace, how, err) < 0)
		goto out;
	present_judge(&capture, how->options, result);
	status = 0;
out:
	capture_close(&capture);
	return status;
}

int present_explain(const char *trace_path, const char *rule, const struct options *options, struct text *out, struct error *err)
{
	struct capture capture = { 0 };
	struct ruleset *rules = NULL;
	int status = -1;

	if (present_rules(options, &rules, err) < 0 || parameters_check(options, rules, err) < 0)
		goto out;
	if (trace_path && capture_open(trace_path, options, &capture, err) < 0)
		goto out;
	status = ruleset_explain(trace_path ? capture.rules : rules, rule, capture.analysis, out, err);
out:
	capture_close(&capture);
	ruleset_free(rules);
	return status;
}

int present_status(const struct options *options, const struct present_result *result, struct error *err)
{
	const bool lacking = result->partial && options_flag(options, OPT_STRICT);
	struct error gate;

	if (lacking)
		fail(err, ERR_PARTIAL, "partial data: %s", result->partial_why);
	if (!result->gate_failed)
		return lacking ? -1 : 0;
	fail(&gate, ERR_GATE, "%s", result->gate);
	if (lacking)
		return fail_over(err, &gate); /* both are told; the gate is the status */
	*err = gate;
	return -1;
}
