/* Judges one rule after the other. Precision before recall: a healthy program has no finding of medium severity or above. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/rule.h"
#include "base/text.h"

enum { FINDINGS_LIMIT = 512, SCOPES_JUDGED = 32, THROUGHPUT_MOST = 9900 /* per cent: where nothing is left to do there is no bound */ };

struct judge {
	struct analysis_private *p;
	struct rule_state state;
	struct finding_report *findings;
	struct not_evaluated *skipped;
	size_t finding_count, skipped_count;
};

static struct value number(double value, const char *why)
{
	return isfinite(value) ? (struct value){ .kind = VALUE_NUMBER, .number = value } : (struct value){ .kind = VALUE_UNKNOWN, .text = why };
}

static struct value text(const char *value)
{
	return (struct value){ .kind = VALUE_TEXT, .text = value };
}

static const char *hottest_name(const struct timeline *timeline)
{
	const struct function *best = function_hottest(timeline);

	return best ? best->name : "nothing";
}

struct value rule_symbol(void *context, const struct symbol *symbol)
{
	const struct rule_state *state = context;

	switch (symbol->sort) {
	case SYMBOL_METRIC: return number(state->p->metrics[symbol->index].value, state->p->metrics[symbol->index].why);
	case SYMBOL_PARAMETER: return number(state->parameters[symbol->index], "no number");
	case SYMBOL_LET: return state->lets[symbol->index];
	case SYMBOL_SCOPE: return text(state->scope ? state->scope->name : state->rule->scope);
	case SYMBOL_CLASS: return text(verdict_name(state->p->analysis.verdict.class_));
	case SYMBOL_REASON: return text(state->p->analysis.verdict.reason);
	default: return text(hottest_name(state->p->timeline));
	}
}

bool rule_begin(struct rule_state *state, struct analysis_private *p, const struct ruleset *set, const double *parameters)
{
	*state = (struct rule_state){ .p = p, .set = set, .parameters = parameters };
	state->matched = calloc(p->timeline->function_count + 1, sizeof *state->matched);
	state->tally = calloc(p->timeline->function_count + 1, sizeof *state->tally);
	state->evaluation.seen = calloc(EXPRESSION_NODES_MAX, sizeof *state->evaluation.seen);
	return state->matched && state->tally && state->evaluation.seen;
}

void rule_end(struct rule_state *state)
{
	free(state->matched);
	free(state->tally);
	free(state->evaluation.seen);
}

struct value rule_when(struct rule_state *state)
{
	memset(state->matched, 0, state->p->timeline->function_count * sizeof *state->matched);
	state->function_count = state->example_count = 0;
	state->evaluation.steps = state->evaluation.tried = 0;
	for (size_t i = 0; i < state->rule->let_count; i++)
		state->lets[i] = expression_value(&state->rule->lets[i].value, &state->evaluation);
	return expression_value(&state->rule->when, &state->evaluation);
}

static double value_or(struct rule_state *state, const struct expression *expression, double fallback)
{
	struct value value = expression_value(expression, &state->evaluation);

	return value.kind == VALUE_UNKNOWN ? fallback : value.number;
}

static void add_value(struct rule_state *state, const struct title_part *part, struct text *out)
{
	struct value value = expression_value(&part->value, &state->evaluation);

	if (value.kind == VALUE_TEXT)
		text_add_visible(out, value.text, strnlen(value.text, 200));
	else if (value.kind == VALUE_UNKNOWN)
		text_add_string(out, "?");
	else if (value.kind == VALUE_TRUTH)
		text_add_string(out, value.number ? "true" : "false");
	else if (part->decimals == UINT8_MAX)
		text_printf(out, "%g", value.number);
	else
		text_printf(out, "%.*f", part->decimals, value.number);
}

const char *rule_title(struct rule_state *state)
{
	struct text out;
	char *kept;

	text_init(&out);
	for (size_t i = 0; i < state->rule->title_count; i++) {
		const struct title_part *part = &state->rule->title[i];

		if (part->has_value)
			add_value(state, part, &out);
		else
			text_add_string(&out, part->literal);
	}
	kept = arena_strndup(&state->p->arena, text_string(&out), out.length);
	state->p->failed |= !kept || out.failed;
	text_done(&out);
	return kept ? kept : "";
}

/* ---- findings ---- */

static void add_places(struct judge *judge, struct finding_report *finding)
{
	struct rule_state *state = &judge->state;
	struct location *locations = analysis_keep(judge->p, LOCATIONS_LIMIT, sizeof *locations);

	for (size_t i = 0; i < state->rule->place_count; i++)
		state->rule->places[i]->find(state, state->rule->top_stacks);
	if (!locations)
		return;
	for (size_t i = 0; i < state->function_count; i++) {
		const struct function *function = &judge->p->timeline->functions[state->functions[i]];

		locations[finding->location_count++] = (struct location){ function->file, function->line, function->name, function->kind };
	}
	finding->locations = locations;
}

static int compare_examples(const void *left, const void *right)
{
	const struct example *a = left, *b = right;

	if (a->duration_ns != b->duration_ns)
		return a->duration_ns > b->duration_ns ? -1 : 1;
	return a->at_ns < b->at_ns ? -1 : a->at_ns > b->at_ns;
}

static void add_examples(struct judge *judge, struct finding_report *finding)
{
	struct rule_state *state = &judge->state;
	struct example *examples;

	if (state->scope)
		rule_example(state, (struct example){ state->scope->max_at_ns, state->scope->max_ns, state->scope->name });
	examples = analysis_keep(judge->p, state->example_count, sizeof *examples);
	if (!examples)
		return;
	memcpy(examples, state->examples, state->example_count * sizeof *examples);
	qsort(examples, state->example_count, sizeof *examples, compare_examples);
	finding->examples = examples;
	finding->example_count = state->example_count;
}

/* FNV-1a of the first place: the same trouble has the same id in every capture. */
static const char *finding_id(struct judge *judge, const struct finding_report *finding)
{
	const struct location *first = finding->location_count ? finding->locations : NULL;
	const char *const parts[] = { first ? first->file : "", first ? first->function : "", judge->state.scope ? judge->state.scope->name : "" };
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		for (const char *at = parts[i]; *at; at++)
			hash = (hash ^ (unsigned char)*at) * 16777619u;
	return analysis_printf(judge->p, "%s-%08x", finding->rule, hash);
}

/* What is left to do when the cause is gone: the device's work that it does not free, and the rest of the time with demand. */
static double throughput_gain(const struct analysis_private *p, enum rule_frees frees, double recoverable_ns)
{
	double demand = p->load.demand_ns, floor = 0, left;

	if (p->device) {
		demand = fmax(demand, (double)p->device->busy_ns);
		floor = frees == FREES_HOST ? (double)p->device->busy_ns : frees == FREES_COPIES ? (double)p->device->kernel_ns : 0;
	}
	left = fmax(demand - recoverable_ns, floor);
	return demand <= 0 ? 0 : demand > (1 + THROUGHPUT_MOST / 100.0) * left ? THROUGHPUT_MOST : 100 * (demand / left - 1);
}

static enum severity severity_of(struct judge *judge, double confidence)
{
	static const enum severity grades[] = { SEVERITY_HIGH, SEVERITY_MEDIUM, SEVERITY_LOW };
	const struct rule *rule = judge->state.rule;
	enum severity severity = SEVERITY_INFO;

	for (size_t i = 0; i < 3; i++) {
		if (!value_or(&judge->state, &rule->severity[i], 0))
			continue;
		severity = grades[i];
		break;
	}
	/* Half a guess, or a glance of less than a second, is no reason to act. */
	if (!rule->about_data && (confidence < 0.5 || strcmp(judge->p->analysis.verdict.reason, "too_short") == 0) && severity > SEVERITY_LOW)
		return SEVERITY_LOW;
	return severity;
}

static void find(struct judge *judge)
{
	struct rule_state *state = &judge->state;
	struct analysis_private *p = judge->p;
	double duration = (double)p->timeline->duration_ns, told, recoverable, confidence;
	struct finding_report *finding;

	if (judge->finding_count == FINDINGS_LIMIT || p->failed)
		return;
	finding = &judge->findings[judge->finding_count];
	*finding = (struct finding_report){ .rule = state->rule->id, .rule_version = state->rule->version, .class_ = p->analysis.verdict.class_, .suggestion = state->rule->suggestion,
		.scope = state->scope ? state->scope->name : "", .general = state->rule->general };
	if (!rule_evidence(state, finding))
		return;
	confidence = clamp(value_or(state, &state->rule->confidence, 0.5), 0, 1) * (state->rule->about_data ? 1 : analysis_quality(p));
	told = value_or(state, &state->rule->recoverable, 0);
	recoverable = clamp(told, 0, duration);
	finding->confidence = round(100 * confidence) / 100;
	finding->severity = severity_of(judge, confidence);
	finding->title = rule_title(state);
	finding->recoverable_ns = (uint64_t)recoverable;
	finding->recoverable_pct = duration > 0 ? 100 * recoverable / duration : 0;
	/* More than the capture is a sum over threads: nobody knows how much of it is time that would pass quicker. */
	finding->throughput_pct = told > duration * 1.001 ? 0 : throughput_gain(p, state->rule->frees, recoverable);
	add_places(judge, finding);
	add_examples(judge, finding);
	finding->id = finding_id(judge, finding);
	judge->finding_count++;
}

static void skip(struct judge *judge, const char *reason)
{
	judge->skipped[judge->skipped_count++] = (struct not_evaluated){ judge->state.rule->id, reason };
}

static const char *judge_once(struct judge *judge)
{
	struct value holds = rule_when(&judge->state);

	if (holds.kind == VALUE_UNKNOWN)
		return holds.text;
	if (holds.number)
		find(judge);
	return NULL;
}

bool scope_fits(const struct rule *rule, const struct scope_latency *scope)
{
	return fnmatch(rule->scope, scope->name, 0) == 0;
}

/* Once for each scope that the rule's name or pattern fits. */
static const char *judge_scopes(struct judge *judge)
{
	const struct timeline *timeline = judge->p->timeline;
	const char *reason = "no request scope of that name in the trace";
	size_t judged = 0;

	for (size_t i = 0; i < timeline->scope_count && judged < SCOPES_JUDGED; i++) {
		const char *why;

		if (!scope_fits(judge->state.rule, &timeline->scopes[i]))
			continue;
		judge->state.scope = &timeline->scopes[i];
		why = judge_once(judge);
		reason = judged++ ? why && reason ? reason : NULL : why;
	}
	judge->state.scope = NULL;
	return reason;
}

/* A rule that names a cause says more than one that only measures the effect: it goes first while it explains two fifths of it. */
static double weight(const struct finding_report *finding)
{
	return (double)finding->recoverable_ns * pow(0.4, finding->general);
}

static int compare_findings(const void *left, const void *right)
{
	const struct finding_report *a = left, *b = right;

	if (a->severity != b->severity)
		return a->severity > b->severity ? -1 : 1;
	if (weight(a) != weight(b))
		return weight(a) > weight(b) ? -1 : 1;
	return strcmp(a->id, b->id);
}

static int compare_skipped(const void *left, const void *right)
{
	return strcmp(((const struct not_evaluated *)left)->rule, ((const struct not_evaluated *)right)->rule);
}

void rules_build(struct analysis_private *p)
{
	struct judge judge = { .p = p };
	const struct world world = { &judge.state, (double)p->timeline->duration_ns / 1e9, rule_symbol, rule_aggregate };

	judge.findings = analysis_keep(p, FINDINGS_LIMIT, sizeof *judge.findings);
	judge.skipped = analysis_keep(p, p->rules->rules.count, sizeof *judge.skipped);
	p->failed |= !rule_begin(&judge.state, p, p->rules, p->parameters);
	judge.state.evaluation.world = &world;
	for (size_t i = 0; i < p->rules->rules.count && !p->failed; i++) {
		const struct rule *rule = judge.state.rule = &p->rules->rules.items[i];
		const char *reason;

		if (rule->disabled)
			continue;
		reason = need_missing(p, rule->needs);
		if (!reason)
			reason = rule->scope ? judge_scopes(&judge) : judge_once(&judge);
		if (reason)
			skip(&judge, reason);
	}
	rule_end(&judge.state);
	if (p->failed)
		return;
	qsort(judge.findings, judge.finding_count, sizeof *judge.findings, compare_findings);
	qsort(judge.skipped, judge.skipped_count, sizeof *judge.skipped, compare_skipped);
	p->analysis.findings = judge.findings;
	p->analysis.finding_count = judge.finding_count;
	p->analysis.not_evaluated = judge.skipped;
	p->analysis.not_evaluated_count = judge.skipped_count;
}
