/* What the two halves of the parser share: operators in expression_parse.c, names and calls in expression_name.c. Nobody else includes it. */
#ifndef INFERSCOPE_ANALYZE_EXPRESSION_PARSER_H
#define INFERSCOPE_ANALYZE_EXPRESSION_PARSER_H

#include "analyze/expression_token.h"

struct parser {
	struct lexer lexer;
	const struct vocabulary *vocabulary;
	struct arena *arena;
	uint32_t count;
	unsigned depth;
	bool in_filter; /* rows have names */
	const struct pattern *patterns;
	struct expression_node nodes[EXPRESSION_NODES_MAX]; /* COUNT of them */
};

/* Every one gives NO_NODE after a failure, which the lexer knows. */
uint32_t parse_or(struct parser *parser);   /* a whole expression */
uint32_t parse_name(struct parser *parser); /* what begins with a word */

/* A node that ends where the parser stands. */
uint32_t parser_add(struct parser *parser, enum expression_operation operation, enum value_kind type, uint32_t begin);
void parser_adopt(struct parser *parser, uint32_t parent, uint32_t child); /* as the last one */
/* NODE must be of TYPE. */
bool parser_require(struct parser *parser, uint32_t node, enum value_kind type);

#endif
