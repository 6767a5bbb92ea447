/* schema: the published form of what InferScope writes and of its rules files, as it was when this binary was built. */
#include <string.h>

#include "cli/command.h"
#include "cli/failure.h"

extern const char schema_diff[], schema_dump[], schema_error[], schema_events[], schema_job[], schema_report[], schema_rules[], schema_top[];

static const struct { const char *name, *text; } schemas[] = {
	{ "report", schema_report }, /* -f json */
	{ "trace", schema_events },  /* -f events: a trace as JSON */
	{ "rules", schema_rules },   /* what --rules-file reads */
	{ "error", schema_error },   /* --error-format json */
	{ "diff", schema_diff },     /* diff A B -f json */
	{ "job", schema_job },       /* analyze TRACE TRACE… -f json */
	{ "dump", schema_dump },     /* dump --json */
	{ "top", schema_top },       /* top --json, each line */
};

int schema_command(struct invocation *invocation, struct error *err)
{
	const char *name = invocation->arguments[0];

	for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++)
		if (strcmp(schemas[i].name, name) == 0)
			return stdout_put(schemas[i].text, strlen(schemas[i].text), err);
	fail(err, ERR_USAGE, "there is no schema \"%.40s\"", name);
	return fail_hint(err, "one of report, trace, rules, error, diff, job, dump, top");
}
