/*
 * What a rule is. Built-in ones are rows of rules.def, the user's stand in YAML; both are the same texts (struct rule_source), and come to
 * life the same way (ruleset_add).
 */
#ifndef INFERSCOPE_ANALYZE_RULE_H
#define INFERSCOPE_ANALYZE_RULE_H

#include "analyze/expression.h"
#include "analyze/private.h"
#include "base/list.h"

enum {
	RULES_LIMIT = 256,
	RULE_LETS = 16,
	RULE_PARAMETERS = 4,
	RULE_NEEDS = 8,
	RULE_EVIDENCE = 8,      /* of one finding, too */
	RULE_PLACES = 4,
	TITLE_PARTS = 12,
	LOCATIONS_LIMIT = 10,
	EXAMPLES_LIMIT = 10,
	PLACES_SHOWN = 3, EXAMPLES_SHOWN = 3, /* where a rule does not say */
};

/* NODE: where it stands in a rules file; NULL of built-in ones. */
struct yaml_tree_node;
struct rule_text { const char *text; const struct yaml_tree_node *node; };
struct rule_named_text { const char *name; struct rule_text value; };

/* What else would limit the program if the finding's cause went away. */
enum rule_frees { FREES_HOST = 0, FREES_COPIES, FREES_KERNELS };

struct rule_source {
	struct rule_text id, title, about, suggestion, scope, when, high, medium, low, confidence, recoverable;
	struct rule_text needs[RULE_NEEDS], evidence[RULE_EVIDENCE], places[RULE_PLACES];
	struct rule_named_text let[RULE_LETS];
	struct { const char *name; double value; const char *meaning; } parameters[RULE_PARAMETERS];
	uint32_t version, top_stacks, examples;
	enum rule_frees frees;
	bool about_data;       /* of the measurement itself: holds however short it was */
	uint8_t general;       /* 1: it measures an effect, and rules that name a cause go before it, unless they explain much less; 2: so do those of 1 */
};

struct title_part { const char *literal; bool has_value; struct expression value; uint8_t decimals; };
struct rule_let { const char *name; struct expression value; };

struct rule {
	const char *id, *about, *suggestion, *scope;
	uint32_t version, needs; /* bits */
	size_t let_count, title_count, evidence_count, place_count;
	struct rule_let lets[RULE_LETS];
	struct title_part title[TITLE_PARTS];
	struct expression when, severity[3] /* high, medium, low */, confidence, recoverable;
	struct symbol evidence[RULE_EVIDENCE];
	const struct place *places[RULE_PLACES];
	uint32_t top_stacks, examples;
	enum rule_frees frees;
	uint8_t general;
	bool about_data, own, disabled; /* OWN: the user's */
};

struct rule_parameter { const char *name; double value; const char *meaning; };

struct ruleset {
	struct arena arena;
	LIST(struct rule) rules;
	LIST(struct rule_parameter) parameters; /* the verdict's first, in the order of parameters.def */
	size_t own, changed;                    /* for people: rules and thresholds of the file */
	const struct yaml_tree *tree;           /* while a file is read */
};

/* Checks SOURCE and adds it. On failure err says where in the file. */
int ruleset_add(struct ruleset *set, const struct rule_source *source, struct error *err);
struct rule *ruleset_find(const struct ruleset *set, const char *id);
struct rule_parameter *ruleset_parameter(const struct ruleset *set, const char *name, size_t length);
/* Closest of rules, or of parameters; NULL = none is close. */
const char *ruleset_suggest_rule(const struct ruleset *set, const char *id);

/* needs.c: what must be in a trace. */
bool need_find(const char *name, uint32_t *bit);
const char *need_missing(const struct analysis_private *p, uint32_t needs); /* the first reason, or NULL */
const char *need_name(unsigned index);                                     /* NULL after the last */

/* places.c: functions to point at, the most telling first. */
struct rule_state;
struct place { const char *name, *meaning; void (*find)(struct rule_state *state, size_t limit); };
const struct place *place_find(const char *name);

/* rule_names.c: what expressions of a rule may name. CONTEXT must live as long as the vocabulary. */
struct names_context { const struct ruleset *set; const struct rule *rule; };
struct vocabulary rule_vocabulary(struct names_context *context);
enum { SYMBOL_METRIC = 1, SYMBOL_PARAMETER, SYMBOL_LET, SYMBOL_SCOPE, SYMBOL_CLASS, SYMBOL_REASON, SYMBOL_HOTTEST };
const char *symbol_unit(const struct rule *rule, const struct symbol *symbol);
const char *symbol_name(const struct ruleset *set, const struct rule *rule, const struct symbol *symbol);

/* One rule while it is judged on one trace. */
struct rule_state {
	struct analysis_private *p;
	const struct ruleset *set;
	const struct rule *rule;
	const double *parameters;     /* by index in the set */
	const struct scope_latency *scope;/* NULL = none */
	struct value lets[RULE_LETS];
	struct evaluation evaluation;
	bool *matched;                /* by function: a filter of this rule took it */
	double *tally;                /* by function, for places */
	uint32_t functions[LOCATIONS_LIMIT]; /* to point at */
	size_t function_count;
	struct example examples[EXAMPLES_LIMIT];
	size_t example_count;
};
/* sets.c */
struct value rule_aggregate(void *context, const struct expression_node *node, double rank, struct evaluation *evaluation);
/* judge.c: the value of a name, for state as context. */
struct value rule_symbol(void *context, const struct symbol *symbol);
/* Takes up RULE: parameters, room for what it matches. False when out of memory. */
bool rule_begin(struct rule_state *state, struct analysis_private *p, const struct ruleset *set, const double *parameters);
void rule_end(struct rule_state *state);
/* The rule's let values, in order, then WHEN. STATE's rule and scope are set. */
struct value rule_when(struct rule_state *state);
/* Writes the title into the analysis' memory. */
const char *rule_title(struct rule_state *state);
bool scope_fits(const struct rule *rule, const struct scope_latency *scope);
/* evidence.c: right after rule_when() held. False when out of memory. */
bool rule_evidence(struct rule_state *state, struct finding_report *finding);
/* places.c: a moment to point at; as many as the rule wants. */
void rule_example(struct rule_state *state, struct example example);

#endif
