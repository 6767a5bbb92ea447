/* diff: two kept traces compared, per request or per second. */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "cli/gates.h"
#include "cli/present.h"
#include "report/diff.h"

/* Its words are known before traces are read, which may take long. */
static int fail_on_check(const struct options *options, struct error *err)
{
	struct ruleset *rules;
	int result;

	if (!options_given(options, OPT_FAIL_ON))
		return 0;
	if (present_rules(options, &rules, err) < 0)
		return -1;
	result = diff_gates_check(options, rules, err);
	ruleset_free(rules);
	return result;
}

static bool diff_takes(const char *format)
{
	return diff_format_find(format) != NULL;
}

/* One format, to stdout unless --output says where. */
static const struct diff_format *format_choose(const struct options *options, struct error *err)
{
	char name[OPTION_PART_BYTES];
	const struct diff_format *format;

	format_wanted(options, diff_takes, name);
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

	if (!format || fail_on_check(options, err) < 0 || output_apart(options_text(options, OPT_OUTPUT), invocation->arguments, 2, err) < 0 || capture_open(invocation->arguments[0], options, &before, err) < 0 || capture_open(invocation->arguments[1], options, &after, err) < 0)
		goto out;
	view.before = (struct diff_side){ before.timeline, before.analysis, before.trace, invocation->arguments[0] };
	view.after = (struct diff_side){ after.timeline, after.analysis, after.trace, invocation->arguments[1] };
	if (diff_build(&view.before, &view.after, &diff, err) < 0)
		goto out;
	view.diff = diff;
	if (view_write(options, format, &view, err) < 0 || diff_gates_apply(options, diff, err) < 0)
		goto out;
	result = 0;
out:
	diff_free(diff);
	capture_close(&before);
	capture_close(&after);
	return result;
}
