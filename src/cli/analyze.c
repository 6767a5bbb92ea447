/* analyze: the report of a kept trace; and what metrics and rules mean. */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/job.h"
#include "cli/present.h"
#include "cli/value.h"

static int metrics_list(void)
{
	size_t count;
	const struct metric_definition *definitions = metric_definitions(&count);

	for (size_t i = 0; i < count; i++)
		printf("%-36s %-10s %s\n", definitions[i].name, definitions[i].unit, definitions[i].definition);
	return 0;
}

static int rule_explain(const char *id, struct error *err)
{
	size_t count;
	const struct rule_info *rules = rule_infos(&count), *close = NULL;
	unsigned closest = 6;

	for (size_t i = 0; i < count; i++) {
		unsigned distance = value_distance(id, strlen(id), rules[i].id, strlen(rules[i].id));

		if (strcmp(rules[i].id, id) == 0) {
			printf("%s (version %u): %s\n\n%s\n", rules[i].id, rules[i].version, rules[i].title, rules[i].definition);
			if (rules[i].threshold_name && *rules[i].threshold_name)
				printf("\nthreshold: %s = %g; change it with --parameter %s=VALUE\n", rules[i].threshold_name, rules[i].threshold, rules[i].threshold_name);
			return 0;
		}
		if (distance < closest) {
			closest = distance;
			close = &rules[i];
		}
	}
	fail(err, ERR_RULES, "there is no rule \"%.80s\"", id);
	if (close)
		return fail_hint(err, "did you mean %s?", close->id);
	return fail_hint(err, "every report names the rules behind its findings");
}

static int analyze_end(enum log_level level, const struct options *options, const struct present_result *result, struct error *err)
{
	if (result->partial)
		log_print(level, LOG_WARN, "partial data: %s", result->partial_why);
	return present_status(options, result, err);
}

int analyze_command(struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	struct outputs outputs;
	struct present_result result;
	int done;
	struct presentation how = { .options = options, .outputs = &outputs, .level = (enum log_level)options_choice(options, OPT_LOG_LEVEL) };

	if (options_flag(options, OPT_LIST_METRICS))
		return metrics_list();
	if (options_given(options, OPT_EXPLAIN))
		return rule_explain(options_text(options, OPT_EXPLAIN), err);
	if (invocation->argument_count == 0) {
		fail(err, ERR_USAGE, "analyze needs a TRACE");
		return fail_hint(err, "attach and run keep one as inferscope-PID-UTC.iscope");
	}
	if (invocation->argument_count > 1) {
		if (present_check(options, err) < 0 || job_present(invocation->arguments, invocation->argument_count, options, &result, err) < 0)
			return -1;
		return analyze_end(how.level, options, &result, err);
	}
	if (present_check(options, err) < 0 || outputs_plan(options, 0, &outputs, err) < 0 || outputs_test(&outputs, err) < 0)
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
