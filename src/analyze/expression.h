/*
 * Expressions of rules: numbers, text and truth over published names. Parsed and checked once (names, kinds, patterns), then evaluated
 * without I/O or side effects in a bounded number of steps. What cannot be known stays unknown and says why. docs/rules.md has the language.
 */
#ifndef INFERSCOPE_ANALYZE_EXPRESSION_H
#define INFERSCOPE_ANALYZE_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pattern.h"
#include "base/arena.h"

enum {
	EXPRESSION_BYTES_MAX = 4096,
	EXPRESSION_NODES_MAX = 512,
	EXPRESSION_DEPTH_MAX = 48,
	EXPRESSION_STEPS_MAX = 1 << 23, /* of one rule: a filter over every function of the largest trace, several times */
	PATTERN_STEPS_MAX = 1 << 26, PATTERN_TEXT_MAX = 1024, /* of all patterns of one rule; bytes of a name that they look at */
};
#define NO_NODE UINT32_MAX

enum value_kind { VALUE_UNKNOWN = 0, VALUE_NUMBER, VALUE_TEXT, VALUE_TRUTH };
struct value {
	enum value_kind kind;
	double number;    /* TRUTH: 0 or 1 */
	const char *text; /* of TEXT; of UNKNOWN: why */
};

/* What a name stands for. SORT and INDEX mean something to the vocabulary alone. */
struct symbol { uint32_t sort, index; enum value_kind type; };

/* One row of a set, as filters see it. */
struct row { const char *name, *file; double line; };

enum expression_operation {
	OP_NUMBER, OP_TEXT, OP_TRUTH, OP_SYMBOL, OP_ROW_NAME, OP_ROW_FILE, OP_ROW_LINE,
	OP_NOT, OP_NEGATE, OP_AND, OP_OR, OP_ADD, OP_SUBTRACT, OP_MULTIPLY, OP_DIVIDE,
	OP_LESS, OP_LESS_EQUAL, OP_GREATER, OP_GREATER_EQUAL, OP_EQUAL, OP_UNEQUAL, OP_MATCH,
	OP_MIN, OP_MAX, OP_CLAMP, OP_PCT, OP_RATE, OP_KNOWN, OP_EITHER,
	OP_TIME, OP_SELF, OP_CPU, OP_COUNT, OP_BYTES, OP_LONGEST, OP_BUSIEST, OP_SEEN, OP_OPEN, OP_GAP, OP_PERCENTILE, /* over sets */
};
static inline bool operation_is_aggregate(enum expression_operation operation) { return operation >= OP_TIME; }
static inline bool operation_is_comparison(enum expression_operation operation) { return operation >= OP_LESS && operation <= OP_MATCH; }

struct expression_node {
	uint8_t operation, type; /* enum expression_operation, enum value_kind */
	bool within;             /* aggregates: within=scope */
	uint32_t begin, end;     /* in the text */
	uint32_t child, next;    /* first operand; next operand of the same parent. Aggregates: filters first, then the percentile's rank */
	double number;
	const char *text;        /* TEXT; the name behind an aggregate's set (scope:NAME), or NULL */
	struct symbol symbol;    /* SYMBOL; the set of an aggregate */
	const struct pattern *pattern;
};

struct expression {
	const char *text;
	uint32_t root, node_count;
	const struct expression_node *nodes;
	const struct pattern *patterns; /* to be freed with the expression */
};

/* The names there are. SYMBOL and SET return false for unknown words; COMBINES says why an aggregate makes no sense for a set with NAME behind it (NULL = none), or NULL. */
struct vocabulary {
	void *context;
	bool (*symbol)(void *context, const char *name, size_t length, struct symbol *out);
	bool (*set)(void *context, const char *name, size_t length, struct symbol *out);
	const char *(*combines)(void *context, enum expression_operation operation, const struct symbol *set, const char *name);
	const char *(*suggest)(void *context, const char *name, size_t length); /* the closest name, or NULL */
	/* Why an aggregate of that set takes no filters (FILTERED), or no within=scope (WITHIN), or NULL. */
	const char *(*narrows)(void *context, enum expression_operation operation, const struct symbol *set, bool filtered, bool within);
};

struct expression_error { size_t offset; bool memory; char message[192], hint[160]; };

/* TEXT (copied) must come out as TYPE; VALUE_UNKNOWN = any. Memory lies in ARENA but for the patterns: expression_done(). False with *error filled. */
bool expression_parse(const char *text, size_t length, enum value_kind type, const struct vocabulary *vocabulary, struct arena *arena, struct expression *out, struct expression_error *error);
void expression_done(struct expression *expression);

struct evaluation;
struct world {
	void *context;
	double seconds; /* rate() */
	struct value (*symbol)(void *context, const struct symbol *symbol);
	/* RANK: of a percentile. Asks expression_accepts() about each row when NODE has filters. */
	struct value (*aggregate)(void *context, const struct expression_node *node, double rank, struct evaluation *evaluation);
};

struct evaluation {
	const struct world *world;
	const struct expression *expression;
	const struct row *row;
	uint64_t steps, tried; /* so far, of expressions and of their patterns; shared by all expressions of a rule */
	struct value *seen;  /* by node, what was found (kind UNKNOWN and text NULL = not looked at); or NULL */
	const struct expression_node *aggregate;
};

struct value expression_value(const struct expression *expression, struct evaluation *evaluation);
/* Whether all filters of the aggregate that is being computed hold for ROW. */
bool expression_accepts(struct evaluation *evaluation, const struct row *row);
/* "time", "<=" … */
const char *operation_name(enum expression_operation operation);
/* The call that a word stands for, for documentation: NULL after the last. */
struct expression_function { const char *name; enum expression_operation operation; unsigned least, most; const char *arguments, *meaning; };
const struct expression_function *expression_functions(size_t *count);

#endif
