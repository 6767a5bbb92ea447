#include "cli/gates.h"

#include <stdio.h>
#include <string.h>

static bool class_named(const char *name, enum verdict_class *out)
{
	for (int i = VERDICT_UNKNOWN; i <= VERDICT_BALANCED; i++) {
		if (strcmp(verdict_name((enum verdict_class)i), name) == 0) {
			*out = (enum verdict_class)i;
			return true;
		}
	}
	return false;
}

static bool severity_named(const char *name, enum severity *out)
{
	for (int i = SEVERITY_INFO; i <= SEVERITY_HIGH; i++) {
		if (strcmp(severity_name((enum severity)i), name) == 0) {
			*out = (enum severity)i;
			return true;
		}
	}
	return false;
}

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

static const struct diff_gate { const char *name; bool (*holds)(const struct diff *diff); } diff_gates[] = {
	{ "regression", any_regression }, { "latency", worse_latency }, { "functions", worse_functions }, { "kernels", worse_kernels }, { "idle", worse_idle }, { "findings", worse_findings },
	{ "class", changed_class },
};

static const char DIFF_HINT[] = "give some of regression (any of the next four), latency, functions, kernels, findings (new ones of medium severity or more), idle, class";


static const struct diff_gate *diff_gate_find(const char *name)
{
	for (size_t i = 0; i < sizeof diff_gates / sizeof *diff_gates; i++)
		if (strcmp(diff_gates[i].name, name) == 0)
			return &diff_gates[i];
	return NULL;
}

static bool is_of_report(const char *name, const struct ruleset *rules, const char **suggestion)
{
	enum verdict_class class_;
	enum severity severity;

	*suggestion = NULL;
	return class_named(name, &class_) || severity_named(name, &severity) || ruleset_has_rule(rules, name, suggestion);
}

int gates_check(const struct options *options, const struct ruleset *rules, struct error *err)
{
	bool setting = !options_typed(options, OPT_FAIL_ON);
	const char *suggestion;
	char name[OPTION_PART_BYTES];

	for (size_t i = 0; options_list(options, OPT_FAIL_ON, i, name); i++) {
		if (is_of_report(name, rules, &suggestion) || (setting && diff_gate_find(name)))
			continue;
		fail(err, ERR_OPTION_VALUE, "--fail-on: \"%.60s\" is neither a class nor a severity nor a rule", name);
		return suggestion ? fail_hint(err, "did you mean %s?", suggestion) : fail_hint(err, "classes: cpu_bound gpu_bound memory_bound balanced unknown; severities: info low medium high; rules: docs/rules.md");
	}
	return 0;
}

/* The title of the first finding of this severity or more, or of this rule; NULL: there is none. */
static const char *finding_of(const char *name, const struct analysis *analysis)
{
	enum severity severity;
	bool graded = severity_named(name, &severity);

	for (size_t i = 0; i < analysis->finding_count; i++)
		if ((graded && analysis->findings[i].severity >= severity) || strcmp(analysis->findings[i].rule, name) == 0)
			return analysis->findings[i].title;
	return NULL;
}

bool gates_hold(const struct options *options, const struct analysis *analysis, char *why, size_t size)
{
	enum verdict_class class_;
	char name[OPTION_PART_BYTES];
	const char *title;

	for (size_t i = 0; options_list(options, OPT_FAIL_ON, i, name); i++) {
		if (class_named(name, &class_) && analysis->verdict.class_ == class_) {
			snprintf(why, size, "--fail-on %.60s: the verdict is %.60s", name, name);
			return true;
		}
		title = finding_of(name, analysis);
		if (title) {
			snprintf(why, size, "--fail-on %.60s: %.150s", name, title);
			return true;
		}
	}
	return false;
}

int diff_gates_check(const struct options *options, const struct ruleset *rules, struct error *err)
{
	bool setting = !options_typed(options, OPT_FAIL_ON);
	const char *suggestion;
	char name[OPTION_PART_BYTES];

	for (size_t i = 0; options_list(options, OPT_FAIL_ON, i, name); i++) {
		if (diff_gate_find(name) || (setting && is_of_report(name, rules, &suggestion)))
			continue;
		fail(err, ERR_OPTION_VALUE, "--fail-on: \"%.60s\" is nothing that a difference can be", name);
		return fail_hint(err, "%s", DIFF_HINT);
	}
	return 0;
}

int diff_gates_apply(const struct options *options, const struct diff *diff, struct error *err)
{
	char name[OPTION_PART_BYTES];

	for (size_t i = 0; options_list(options, OPT_FAIL_ON, i, name); i++) {
		const struct diff_gate *gate = diff_gate_find(name);

		if (gate && gate->holds(diff))
			return fail(err, ERR_GATE, "--fail-on %s: it became worse", name);
	}
	return 0;
}
