/* From text to a checked tree: a recursive descent of bounded depth, kinds decided on the way. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/expression_parser.h"

static uint32_t out_of_memory(struct parser *parser)
{
	parser->lexer.error->memory = true;
	return lexer_refuse(&parser->lexer, 0, "out of memory");
}

static uint32_t pair(struct parser *parser, enum expression_operation operation, enum value_kind operands, enum value_kind type, uint32_t left, uint32_t right)
{
	uint32_t node;

	if (!parser_require(parser, left, operands) || !parser_require(parser, right, operands))
		return NO_NODE;
	node = parser_add(parser, operation, type, parser->nodes[left].begin);
	parser_adopt(parser, node, left);
	parser_adopt(parser, node, right);
	return node;
}

static uint32_t parse_literal(struct parser *parser)
{
	struct token token = parser->lexer.token;
	bool number = token.kind == TOKEN_NUMBER;
	uint32_t node = parser_add(parser, number ? OP_NUMBER : OP_TEXT, number ? VALUE_NUMBER : VALUE_TEXT, token.begin);

	lexer_advance(&parser->lexer);
	if (node == NO_NODE)
		return node;
	parser->nodes[node].end = token.end;
	parser->nodes[node].number = token.number;
	if (!number && !(parser->nodes[node].text = arena_strndup(parser->arena, parser->lexer.text + token.begin + 1, token.end - token.begin - 2)))
		return out_of_memory(parser);
	return node;
}

static uint32_t parse_primary(struct parser *parser)
{
	uint32_t node, begin = parser->lexer.token.begin;

	switch (parser->lexer.token.kind) {
	case TOKEN_NUMBER:
	case TOKEN_TEXT:
		return parse_literal(parser);
	case TOKEN_NAME:
		return parse_name(parser);
	default:
		break;
	}
	if (!lexer_is_sign(&parser->lexer, "("))
		return lexer_refuse(&parser->lexer, begin, parser->lexer.token.kind == TOKEN_END ? "something is missing at the end" : "expected a value");
	lexer_advance(&parser->lexer);
	node = parse_or(parser);
	if (node == NO_NODE)
		return node;
	parser->nodes[node].begin = begin;
	parser->nodes[node].end = parser->lexer.token.end;
	return lexer_expect(&parser->lexer, ")") ? node : NO_NODE;
}

static uint32_t parse_unary(struct parser *parser)
{
	uint32_t node, operand, begin = parser->lexer.token.begin;

	if (!lexer_is_sign(&parser->lexer, "-"))
		return parse_primary(parser);
	if (++parser->depth > EXPRESSION_DEPTH_MAX)
		return lexer_refuse(&parser->lexer, begin, "nested too deeply");
	lexer_advance(&parser->lexer);
	operand = parse_unary(parser);
	parser->depth--;
	if (!parser_require(parser, operand, VALUE_NUMBER))
		return NO_NODE;
	node = parser_add(parser, OP_NEGATE, VALUE_NUMBER, begin);
	parser_adopt(parser, node, operand);
	return node;
}

static uint32_t parse_product(struct parser *parser)
{
	uint32_t left = parse_unary(parser);

	while (!parser->lexer.failed && (lexer_is_sign(&parser->lexer, "*") || lexer_is_sign(&parser->lexer, "/"))) {
		enum expression_operation operation = lexer_is_sign(&parser->lexer, "*") ? OP_MULTIPLY : OP_DIVIDE;

		lexer_advance(&parser->lexer);
		left = pair(parser, operation, VALUE_NUMBER, VALUE_NUMBER, left, parse_unary(parser));
	}
	return left;
}

static uint32_t parse_sum(struct parser *parser)
{
	uint32_t left = parse_product(parser);

	while (!parser->lexer.failed && (lexer_is_sign(&parser->lexer, "+") || lexer_is_sign(&parser->lexer, "-"))) {
		enum expression_operation operation = lexer_is_sign(&parser->lexer, "+") ? OP_ADD : OP_SUBTRACT;

		lexer_advance(&parser->lexer);
		left = pair(parser, operation, VALUE_NUMBER, VALUE_NUMBER, left, parse_product(parser));
	}
	return left;
}

static const struct { const char *sign; enum expression_operation operation; } comparisons[] = {
	{ "<", OP_LESS }, { "<=", OP_LESS_EQUAL }, { ">", OP_GREATER }, { ">=", OP_GREATER_EQUAL }, { "==", OP_EQUAL }, { "!=", OP_UNEQUAL }, { "=~", OP_MATCH },
};

static bool comparison_here(const struct parser *parser, enum expression_operation *out)
{
	for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
		if (!lexer_is_sign(&parser->lexer, comparisons[i].sign))
			continue;
		*out = comparisons[i].operation;
		return true;
	}
	return false;
}

static void compile_pattern(struct parser *parser, uint32_t node, uint32_t text)
{
	const char *why;
	char room[128];
	struct pattern *pattern;

	if (node == NO_NODE)
		return;
	if (parser->nodes[text].operation != OP_TEXT) {
		lexer_refuse(&parser->lexer, parser->nodes[text].begin, "after =~ stands a pattern in quotes");
		return;
	}
	pattern = pattern_new(parser->nodes[text].text, &why, room, sizeof room);
	if (!pattern) {
		if (why)
			lexer_refuse(&parser->lexer, parser->nodes[text].begin, "not a pattern: %s", why);
		else
			out_of_memory(parser);
		return;
	}
	pattern_link(pattern, parser->patterns);
	parser->patterns = pattern;
	parser->nodes[node].pattern = pattern;
}

static uint32_t parse_comparison(struct parser *parser)
{
	uint32_t left = parse_sum(parser), right, node;
	enum expression_operation operation, again;
	enum value_kind operands;

	if (parser->lexer.failed || !comparison_here(parser, &operation))
		return left;
	lexer_advance(&parser->lexer);
	right = parse_sum(parser);
	if (parser->lexer.failed)
		return NO_NODE;
	operands = operation == OP_MATCH ? VALUE_TEXT : operation < OP_EQUAL ? VALUE_NUMBER : (enum value_kind)parser->nodes[left].type;
	node = pair(parser, operation, operands, VALUE_TRUTH, left, right);
	if (operation == OP_MATCH)
		compile_pattern(parser, node, right);
	return comparison_here(parser, &again) ? lexer_refuse(&parser->lexer, parser->lexer.token.begin, "compare two at a time, and join with 'and'") : node;
}

static uint32_t parse_not(struct parser *parser)
{
	uint32_t node, operand, begin = parser->lexer.token.begin;

	if (!lexer_is_word(&parser->lexer, "not"))
		return parse_comparison(parser);
	if (++parser->depth > EXPRESSION_DEPTH_MAX)
		return lexer_refuse(&parser->lexer, begin, "nested too deeply");
	lexer_advance(&parser->lexer);
	operand = parse_not(parser);
	parser->depth--;
	if (!parser_require(parser, operand, VALUE_TRUTH))
		return NO_NODE;
	node = parser_add(parser, OP_NOT, VALUE_TRUTH, begin);
	parser_adopt(parser, node, operand);
	return node;
}

static uint32_t parse_and(struct parser *parser)
{
	uint32_t left = parse_not(parser);

	while (!parser->lexer.failed && lexer_is_word(&parser->lexer, "and")) {
		lexer_advance(&parser->lexer);
		left = pair(parser, OP_AND, VALUE_TRUTH, VALUE_TRUTH, left, parse_not(parser));
	}
	return left;
}

uint32_t parse_or(struct parser *parser)
{
	uint32_t left;

	if (++parser->depth > EXPRESSION_DEPTH_MAX)
		return lexer_refuse(&parser->lexer, parser->lexer.token.begin, "nested too deeply");
	left = parse_and(parser);
	while (!parser->lexer.failed && lexer_is_word(&parser->lexer, "or")) {
		lexer_advance(&parser->lexer);
		left = pair(parser, OP_OR, VALUE_TRUTH, VALUE_TRUTH, left, parse_and(parser));
	}
	parser->depth--;
	return left;
}

static bool parse_whole(struct parser *parser, enum value_kind type, struct expression *out)
{
	struct expression_node *nodes;

	lexer_advance(&parser->lexer);
	out->root = parse_or(parser);
	if (!parser->lexer.failed && parser->lexer.token.kind != TOKEN_END)
		lexer_refuse(&parser->lexer, parser->lexer.token.begin, "expected the end, or an operator");
	if (!parser_require(parser, out->root, type))
		return false;
	nodes = arena_alloc(parser->arena, parser->count * sizeof *nodes);
	if (!nodes) {
		out_of_memory(parser);
		return false;
	}
	memcpy(nodes, parser->nodes, parser->count * sizeof *nodes);
	out->nodes = nodes;
	out->node_count = parser->count;
	out->text = parser->lexer.text;
	return true;
}

bool expression_parse(const char *text, size_t length, enum value_kind type, const struct vocabulary *vocabulary, struct arena *arena, struct expression *out, struct expression_error *error)
{
	struct parser *parser = malloc(sizeof *parser);
	bool done = false;

	memset(error, 0, sizeof *error);
	memset(out, 0, sizeof *out);
	if (!parser) {
		error->memory = true;
		return false;
	}
	/* Not the nodes: there is room for many, and rules are hundreds of expressions of few. */
	memset(parser, 0, offsetof(struct parser, nodes));
	parser->lexer.length = length;
	parser->lexer.error = error;
	parser->vocabulary = vocabulary;
	parser->arena = arena;
	if (length > EXPRESSION_BYTES_MAX || memchr(text, '\0', length))
		lexer_refuse(&parser->lexer, 0, length > EXPRESSION_BYTES_MAX ? "an expression has at most %d bytes" : "a NUL byte in an expression", EXPRESSION_BYTES_MAX);
	else if (!(parser->lexer.text = arena_strndup(arena, text, length)))
		out_of_memory(parser);
	else
		done = parse_whole(parser, type, out);
	out->patterns = parser->patterns;
	if (!done)
		expression_done(out);
	free(parser);
	return done;
}

void expression_done(struct expression *expression)
{
	while (expression->patterns) {
		const struct pattern *next = pattern_next(expression->patterns);

		pattern_free((struct pattern *)expression->patterns);
		expression->patterns = next;
	}
}
