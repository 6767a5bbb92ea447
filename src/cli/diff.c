/* diff: two kept traces compared, per request or per second. */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "cli/present.h"
#include "report/diff.h"

/* What --fail-on may name here, and when it holds. */
static bool any_worse(const struct diff *diff, enum diff_kind kind)
{
	for (size_t i = 0; i < diff->row_count; i++)
		if (diff->rows[i].kind == kind && diff->rows[i].worse)
			return true;
	return false;
}

static bool worse_latency(const struct diff *diff)
{
	return any_worse(diff, DIFF_LATENCY);
}

static bool worse_functions(const struct diff *diff)
{
	return any_worse(diff, DIFF_FUNCTION);
}

static bool worse_kernels(const struct diff *diff)
{
	return any_worse(diff, DIFF_KERNEL);
}

static bool worse_idle(const struct diff *diff)
{
	return any_worse(diff, DIFF_IDLE);
}

static bool worse_findings(const struct diff *diff)
{
	for (size_t i = 0; i < diff->appeared_count; i++)
		if (diff->appeared[i]->severity >= SEVERITY_MEDIUM)
			return true;
	return false;
}

static bool any_regression(const struct diff *diff)
{
	return worse_latency(diff) || worse_functions(diff) || worse_kernels(diff) || worse_findings(diff);
}

static bool changed_class(const struct diff *diff)
{
	return diff->class_changed;
}

static const struct { const char *name; bool (*holds)(const struct diff *diff); } gates[] = {
	{ "regression", any_regression }, { "latency", worse_latency }, { "functions", worse_functions }, { "kernels", worse_kernels }, { "idle", worse_idle }, { "findings", worse_findings },
	{ "class", changed_class },
};

static const char GATES_HINT[] = "give some of regression (any of the next four), latency, functions, kernels, findings (new ones of medium severity or more), idle, class";

static int gates_check(const struct options *options, struct error *err)
{
	char name[OPTION_PART_BYTES];

	for (size_t i = 0; options_list(options, OPT_FAIL_ON, i, name); i++) {
		size_t j = 0;

		while (j < sizeof gates / sizeof *gates && strcmp(gates[j].name, name) != 0)
			j++;
		if (j == sizeof gates / sizeof *gates) {
			fail(err, ERR_OPTION_VALUE, "--fail-on: \"%.60s\" is nothing that a difference can be", name);
			return fail_hint(err, "%s", GATES_HINT);
		}
	}
	return 0;
}

static int gates_apply(const struct options *options, const struct diff *diff, struct error *err)
{
	char name[OPTION_PART_BYTES];

	for (size_t i = 0; options_list(options, OPT_FAIL_ON, i, name); i++)
		for (size_t j = 0; j < sizeof gates / sizeof *gates; j++)
			if (strcmp(gates[j].name, name) == 0 && gates[j].holds(diff))
				return fail(err, ERR_GATE, "--fail-on %s: it became worse", name);
	return 0;
}

/* One format, to stdout unless --output says where. */
static const struct diff_format *format_choose(const struct options *options, struct error *err)
{
	const char *output = options_text(options, OPT_OUTPUT);
	const struct report_format *of_path = *output && strcmp(output, "-") != 0 ? report_format_of_path(output) : NULL;
	const struct diff_format *format;
	char name[OPTION_PART_BYTES] = "text";

	if (!options_list(options, OPT_FORMAT, 0, name) && of_path)
		snprintf(name, sizeof name, "%s", of_path->name);
	format = diff_format_find(name);
	if (!format) {
		fail(err, ERR_OPTION_VALUE, "differences cannot be written as \"%.60s\"", name);
		fail_hint(err, "give text, md, html or json");
	}
	return format;
}

static int view_write(const struct options *options, const struct diff_format *format, const struct diff_view *view, struct error *err)
{
	const char *output = options_text(options, OPT_OUTPUT);
	struct sink *sink;

	if (sink_open_path(*output ? output : "-", options_flag(options, OPT_FORCE), &sink, err) < 0)
		return -1;
	if (format->write(view, sink, err) < 0) {
		sink_discard(sink);
		return -1;
	}
	return sink_commit(sink, err);
}

int diff_command(struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	const struct diff_format *format = format_choose(options, err);
	struct capture before = { 0 }, after = { 0 };
	struct diff_view view = { 0 };
	struct diff *diff = NULL;
	int result = -1;

	if (!format || gates_check(options, err) < 0 || output_apart(options_text(options, OPT_OUTPUT), invocation->arguments, 2, err) < 0 || capture_open(invocation->arguments[0], options, &before, err) < 0 || capture_open(invocation->arguments[1], options, &after, err) < 0)
		goto out;
	view.before = (struct diff_side){ before.timeline, before.analysis, before.trace, invocation->arguments[0] };
	view.after = (struct diff_side){ after.timeline, after.analysis, after.trace, invocation->arguments[1] };
	if (diff_build(&view.before, &view.after, &diff, err) < 0)
		goto out;
	view.diff = diff;
	if (view_write(options, format, &view, err) < 0 || gates_apply(options, diff, err) < 0)
		goto out;
	result = 0;
out:
	diff_free(diff);
	capture_close(&before);
	capture_close(&after);
	return result;
}
