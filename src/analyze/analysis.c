/* Builds an analysis: load, metrics, verdict, rules, in this order; each reads what came before. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/rule.h"

enum { CLOCK_FAR_NS = 100000 };

void *analysis_keep(struct analysis_private *p, size_t count, size_t size)
{
	void *memory = arena_alloc(&p->arena, (count ? count : 1) * size);

	if (!memory)
		p->failed = true;
	return memory;
}

const char *analysis_printf(struct analysis_private *p, const char *format, ...)
{
	char text[1024];
	char *kept;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	kept = arena_strndup(&p->arena, text, strlen(text));
	if (kept)
		return kept;
	p->failed = true;
	return "";
}

/* Half of it when the device's clock is off by as much as the gaps that it is to explain are long, or when a tenth of the work seems to begin before it was asked for. */
static double clock_quality(const struct analysis_private *p)
{
	const struct gpu_facts *gpu = &p->timeline->gpu;
	double bound_ns = (double)timeline_counter(p->timeline, "gpu.clock_bound_ns", 0), early = gpu->launches ? (double)gpu->early / (double)gpu->launches : 0;

	return p->device ? 1 - 0.5 * fmax(clamp(bound_ns / CLOCK_FAR_NS, 0, 1), clamp(early / 0.1, 0, 1)) : 1;
}

/* A handful of requests is no load. Without scopes nobody knows how many there were. */
static double requests_quality(const struct analysis_private *p)
{
	return p->timeline->scope_count ? 0.8 + 0.2 * clamp((double)p->timeline->scopes[0].count / REQUESTS_ENOUGH, 0, 1) : 1;
}

/* Lost events, too little time, clocks that were not read or are off, few requests: each takes a part. */
double analysis_quality(const struct analysis_private *p)
{
	double seconds = (double)p->timeline->duration_ns / 1e9;
	double lost = metric_value(p, METRIC_capture_lost_pct) / 100;
	double unknown = 0, all = 0;

	for (int state = 0; state < THREAD_STATES; state++)
		all += p->load.state_ns[state];
	if (all > 0)
		unknown = p->load.state_ns[THREAD_UNKNOWN] / all;
	return (1 - 0.5 * clamp(lost, 0, 1)) * (1 - 0.5 * unknown) * (0.7 + 0.3 * clamp(seconds / 5, 0, 1)) * (p->load.read || p->device ? 1 : 0.7) * clock_quality(p) *
		requests_quality(p);
}

/* Defaults, then what the rules file set, then what the user gave. */
static bool take_parameters(struct analysis_private *p, const struct parameter *given, size_t count)
{
	const struct ruleset *rules = p->rules;

	p->parameters = analysis_keep(p, rules->parameters.count, sizeof *p->parameters);
	for (size_t i = 0; p->parameters && i < rules->parameters.count; i++)
		p->parameters[i] = rules->parameters.items[i].value;
	for (size_t i = 0; p->parameters && i < count; i++) {
		const struct rule_parameter *parameter = ruleset_parameter(rules, given[i].name, strlen(given[i].name));

		if (parameter)
			p->parameters[parameter - rules->parameters.items] = given[i].value;
	}
	return p->parameters != NULL;
}

static struct analysis_private *begin(const struct timeline *timeline, const struct ruleset *rules, struct error *err)
{
	struct analysis_private *p = calloc(1, sizeof *p);

	if (!p) {
		fail(err, ERR_MEMORY, "analyzing: out of memory");
		return NULL;
	}
	arena_init(&p->arena);
	p->analysis.private_ = p;
	p->timeline = timeline;
	p->rules = rules;
	if (!rules && ruleset_new(&p->own_rules, err) < 0) {
		analysis_free(&p->analysis);
		return NULL;
	}
	if (!rules)
		p->rules = p->own_rules;
	return p;
}

int analysis_build_with(const struct timeline *timeline, const struct ruleset *rules, const struct parameter *parameters, size_t parameter_count, struct analysis **out, struct error *err)
{
	struct analysis_private *p = begin(timeline, rules, err);

	if (!p)
		return -1;
	walk_begin(p);
	if (take_parameters(p, parameters, parameter_count) && !p->failed) {
		load_build(p);
		metrics_build(p);
		verdict_build(p);
		rules_build(p);
	}
	if (p->failed) {
		analysis_free(&p->analysis);
		return fail(err, ERR_MEMORY, "analyzing: out of memory");
	}
	*out = &p->analysis;
	return 0;
}

int analysis_build(const struct timeline *timeline, const struct parameter *parameters, size_t parameter_count, struct analysis **out, struct error *err)
{
	return analysis_build_with(timeline, NULL, parameters, parameter_count, out, err);
}

void analysis_free(struct analysis *analysis)
{
	if (!analysis)
		return;
	ruleset_free(analysis->private_->own_rules);
	arena_done(&analysis->private_->arena);
	free(analysis->private_);
}

double analysis_metric(const struct analysis *analysis, const char *name)
{
	for (size_t i = 0; i < analysis->metric_count; i++)
		if (strcmp(analysis->metrics[i].name, name) == 0)
			return analysis->metrics[i].value;
	return NAN;
}

const char *verdict_name(enum verdict_class class_)
{
	static const char *const names[] = { "unknown", "cpu_bound", "gpu_bound", "memory_bound", "balanced" };

	return (unsigned)class_ < sizeof names / sizeof *names ? names[class_] : "unknown";
}

const char *severity_name(enum severity severity)
{
	static const char *const names[] = { "info", "low", "medium", "high" };

	return (unsigned)severity < sizeof names / sizeof *names ? names[severity] : "info";
}

const char *precision_name(enum precision precision)
{
	static const char *const names[] = { "exact", "counted", "sampled", "estimated" };

	return (unsigned)precision < sizeof names / sizeof *names ? names[precision] : "estimated";
}
