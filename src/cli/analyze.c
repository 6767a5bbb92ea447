/* analyze: the report of a kept trace; and what metrics and rules mean. */
#include "cli/command.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/job.h"
#include "cli/present.h"

static int metrics_list(void)
{
	size_t count;
	const struct metric_definition *definitions = metric_definitions(&count);

	for (size_t i = 0; i < count; i++)
		printf("%-36s %-10s %s\n", definitions[i].name, definitions[i].unit, definitions[i].definition);
	return 0;
}

/* --check-rules FILE, or with --rules-file. */
static int rules_check(const struct invocation *invocation, struct error *err)
{
	const char *path = options_text(&invocation->options, OPT_RULES_FILE);
	struct ruleset *rules;
	char what[160];

	if (!*path && invocation->argument_count == 0) {
		fail(err, ERR_USAGE, "--check-rules needs a rules file");
		return fail_hint(err, "inferscope analyze --check-rules rules.yaml");
	}
	for (size_t i = 0; i < (*path ? 1 : invocation->argument_count); i++) {
		const char *file = *path ? path : invocation->arguments[i];

		if (ruleset_read(file, &rules, err) < 0)
			return -1;
		ruleset_describe(rules, what, sizeof what);
		printf("%s: %s\n", file, what);
		ruleset_free(rules);
	}
	return 0;
}

static int rule_explain(const struct invocation *invocation, struct error *err)
{
	const char *rule = options_text(&invocation->options, OPT_EXPLAIN);
	struct text text;
	int result;

	text_init(&text);
	result = present_explain(invocation->argument_count ? invocation->arguments[0] : NULL, rule, &invocation->options, &text, err);
	if (result == 0 && text.data)
		fputs(text.data, stdout);
	text_done(&text);
	return result;
}

static int analyze_end(enum log_level level, const struct options *options, const struct present_result *result, struct error *err)
{
	if (result->partial)
		log_print(level, LOG_WARN, "partial data: %s", result->partial_why);
	return present_status(options, result, err);
}

int merge_command(struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	struct present_result result;

	if (present_check(options, err) < 0 || job_present(invocation->arguments, invocation->argument_count, true, options, &result, err) < 0)
		return -1;
	return analyze_end((enum log_level)options_choice(options, OPT_LOG_LEVEL), options, &result, err);
}

int analyze_command(struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	struct outputs outputs;
	struct present_result result;
	int done;
	struct presentation how = { .options = options, .outputs = &outputs, .level = (enum log_level)options_choice(options, OPT_LOG_LEVEL), .source_root = "/" };

	if (options_flag(options, OPT_LIST_METRICS))
		return metrics_list();
	if (options_given(options, OPT_EXPLAIN))
		return rule_explain(invocation, err);
	if (options_flag(options, OPT_CHECK_RULES))
		return rules_check(invocation, err);
	if (invocation->argument_count == 0) {
		fail(err, ERR_USAGE, "analyze needs a TRACE");
		return fail_hint(err, "attach and run keep one as inferscope-PID-UTC.iscope");
	}
	if (invocation->argument_count > 1) {
		if (present_check(options, err) < 0 || job_present(invocation->arguments, invocation->argument_count, false, options, &result, err) < 0)
			return -1;
		return analyze_end(how.level, options, &result, err);
	}
	if (present_check(options, err) < 0 || outputs_plan(options, 0, &outputs, err) < 0 || outputs_apart(&outputs, invocation->arguments, 1, err) < 0 || outputs_test(&outputs, err) < 0)
		return -1;
	how.summary_fd = outputs_use_stdout(&outputs) ? -1 : STDOUT_FILENO;
	how.status = status_open(how.level > LOG_INFO);
	status_phase(how.status, "analysing");
	done = present_trace(invocation->arguments[0], NULL, &how, &result, err);
	status_close(how.status);
	if (done < 0)
		return -1;
	return analyze_end(how.level, options, &result, err);
}
