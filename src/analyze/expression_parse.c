/* From text to a checked tree: a recursive descent of bounded depth, kinds decided on the way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/expression_token.h"

struct parser {
	struct lexer lexer;
	const struct vocabulary *vocabulary;
	struct arena *arena;
	struct expression_node nodes[EXPRESSION_NODES_MAX];
	uint32_t count;
	unsigned depth;
	bool in_filter; /* rows have names */
	const struct pattern *patterns;
};

static uint32_t out_of_memory(struct parser *parser)
{
	parser->lexer.error->memory = true;
	return lexer_refuse(&parser->lexer, 0, "out of memory");
}

/* ---- the tree ---- */

static uint32_t add_node(struct parser *parser, enum expression_operation operation, enum value_kind type, uint32_t begin)
{
	if (parser->lexer.failed)
		return NO_NODE;
	if (parser->count == EXPRESSION_NODES_MAX)
		return lexer_refuse(&parser->lexer, begin, "too long: more than %d parts", EXPRESSION_NODES_MAX);
	parser->nodes[parser->count] = (struct expression_node){ .operation = (uint8_t)operation, .type = (uint8_t)type, .begin = begin, .end = (uint32_t)parser->lexer.at, .child = NO_NODE, .next = NO_NODE };
	return parser->count++;
}

static void adopt(struct parser *parser, uint32_t parent, uint32_t child)
{
	uint32_t *link;

	if (parent == NO_NODE || child == NO_NODE)
		return;
	for (link = &parser->nodes[parent].child; *link != NO_NODE; link = &parser->nodes[*link].next)
		;
	*link = child;
	parser->nodes[parent].end = parser->nodes[child].end;
}

static const char *type_name(unsigned type)
{
	static const char *const names[] = { "anything", "a number", "a text", "true or false" };

	return names[type];
}

/* NODE must be of TYPE. */
static bool require(struct parser *parser, uint32_t node, enum value_kind type)
{
	if (node == NO_NODE || parser->lexer.failed)
		return false;
	if (type == VALUE_UNKNOWN || parser->nodes[node].type == type)
		return true;
	lexer_refuse(&parser->lexer, parser->nodes[node].begin, "expected %s, this is %s", type_name(type), type_name(parser->nodes[node].type));
	return false;
}

static uint32_t parse_or(struct parser *parser);

static uint32_t pair(struct parser *parser, enum expression_operation operation, enum value_kind operands, enum value_kind type, uint32_t left, uint32_t right)
{
	uint32_t node;

	if (!require(parser, left, operands) || !require(parser, right, operands))
		return NO_NODE;
	node = add_node(parser, operation, type, parser->nodes[left].begin);
	adopt(parser, node, left);
	adopt(parser, node, right);
	return node;
}

static uint32_t name_node(struct parser *parser, const struct token *name)
{
	static const struct { const char *name; enum expression_operation operation; enum value_kind type; } fields[] = {
		{ "func", OP_ROW_NAME, VALUE_TEXT }, { "name", OP_ROW_NAME, VALUE_TEXT }, { "file", OP_ROW_FILE, VALUE_TEXT }, { "line", OP_ROW_LINE, VALUE_NUMBER },
	};
	const char *word = parser->lexer.text + name->begin, *close;
	size_t length = name->end - name->begin;
	struct symbol symbol;
	uint32_t node;

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		if (strlen(fields[i].name) != length || memcmp(fields[i].name, word, length) != 0)
			continue;
		return parser->in_filter ? add_node(parser, fields[i].operation, fields[i].type, name->begin) :
			lexer_refuse(&parser->lexer, name->begin, "'%s' is known inside time(), count() and their like only", fields[i].name);
	}
	if (parser->vocabulary->symbol(parser->vocabulary->context, word, length, &symbol)) {
		node = add_node(parser, OP_SYMBOL, symbol.type, name->begin);
		if (node != NO_NODE) {
			parser->nodes[node].symbol = symbol;
			parser->nodes[node].end = name->end;
		}
		return node;
	}
	close = parser->vocabulary->suggest(parser->vocabulary->context, word, length);
	if (close && !parser->lexer.failed)
		snprintf(parser->lexer.error->hint, sizeof parser->lexer.error->hint, "did you mean %s?", close);
	return lexer_refuse(&parser->lexer, name->begin, "nothing is called '%.*s'", (int)(length < 80 ? length : 80), word);
}

static const struct expression_function *function_named(const struct parser *parser, const struct token *name)
{
	size_t length = name->end - name->begin, count;
	const struct expression_function *functions = expression_functions(&count);

	for (size_t i = 0; i < count; i++)
		if (strlen(functions[i].name) == length && memcmp(functions[i].name, parser->lexer.text + name->begin, length) == 0)
			return &functions[i];
	return NULL;
}

/* within=scope */
static void parse_within(struct parser *parser, uint32_t node)
{
	lexer_advance(&parser->lexer);
	if (!lexer_expect(&parser->lexer, "="))
		return;
	if (!lexer_is_word(&parser->lexer, "scope"))
		lexer_refuse(&parser->lexer, parser->lexer.token.begin, "expected 'scope'");
	if (node != NO_NODE)
		parser->nodes[node].within = true;
	lexer_advance(&parser->lexer);
}

static void parse_set(struct parser *parser, uint32_t node)
{
	const struct token name = parser->lexer.token;
	const char *word = parser->lexer.text + name.begin, *why;
	struct symbol set;

	if (node == NO_NODE)
		return;
	if (name.kind != TOKEN_NAME || !parser->vocabulary->set(parser->vocabulary->context, word, name.end - name.begin, &set)) {
		lexer_refuse(&parser->lexer, name.begin, "expected what to look at: py, c, native, kernel, copy, api, scope …");
		return;
	}
	why = parser->vocabulary->combines(parser->vocabulary->context, (enum expression_operation)parser->nodes[node].operation, &set);
	if (why)
		lexer_refuse(&parser->lexer, name.begin, "%s", why);
	parser->nodes[node].symbol = set;
	lexer_advance(&parser->lexer);
}

/* set, then rank (of p), filters and within=scope. */
static void parse_aggregate(struct parser *parser, uint32_t node)
{
	uint32_t rank = NO_NODE, filter;
	bool nested = parser->in_filter;

	if (nested) {
		lexer_refuse(&parser->lexer, parser->lexer.token.begin, "a filter holds no call of this kind");
		return;
	}
	parse_set(parser, node);
	if (!parser->lexer.failed && parser->nodes[node].operation == OP_PERCENTILE) {
		if (!lexer_expect(&parser->lexer, ","))
			return;
		rank = parse_or(parser);
		require(parser, rank, VALUE_NUMBER);
	}
	parser->in_filter = true;
	while (!parser->lexer.failed && lexer_is_sign(&parser->lexer, ",")) {
		lexer_advance(&parser->lexer);
		if (lexer_is_word(&parser->lexer, "within")) {
			parse_within(parser, node);
			continue;
		}
		filter = parse_or(parser);
		if (require(parser, filter, VALUE_TRUTH))
			adopt(parser, node, filter);
	}
	parser->in_filter = nested;
	adopt(parser, node, rank);
}

static void parse_arguments(struct parser *parser, uint32_t node, const struct expression_function *function)
{
	unsigned count = 0;

	while (!parser->lexer.failed && !lexer_is_sign(&parser->lexer, ")")) {
		uint32_t argument = parse_or(parser);

		if (function->operation == OP_KNOWN || require(parser, argument, VALUE_NUMBER))
			adopt(parser, node, argument);
		count++;
		if (!lexer_is_sign(&parser->lexer, ","))
			break;
		lexer_advance(&parser->lexer);
	}
	if (!parser->lexer.failed && (count < function->least || count > function->most))
		lexer_refuse(&parser->lexer, parser->nodes[node].begin, "%s(%s) got %u argument%s", function->name, function->arguments, count, count == 1 ? "" : "s");
}

static uint32_t parse_call(struct parser *parser, const struct token *name)
{
	const struct expression_function *function = function_named(parser, name);
	uint32_t node;

	if (!function)
		return lexer_refuse(&parser->lexer, name->begin, "there is no function '%.*s'", (int)(name->end - name->begin < 80 ? name->end - name->begin : 80), parser->lexer.text + name->begin);
	node = add_node(parser, function->operation, function->operation == OP_KNOWN ? VALUE_TRUTH : VALUE_NUMBER, name->begin);
	lexer_advance(&parser->lexer); /* the bracket */
	if (operation_is_aggregate(function->operation))
		parse_aggregate(parser, node);
	else
		parse_arguments(parser, node, function);
	if (parser->lexer.failed)
		return NO_NODE;
	parser->nodes[node].end = parser->lexer.token.end;
	return lexer_expect(&parser->lexer, ")") ? node : NO_NODE;
}

static uint32_t parse_name(struct parser *parser)
{
	struct token name = parser->lexer.token;
	bool truth = lexer_is_word(&parser->lexer, "true"), untruth = lexer_is_word(&parser->lexer, "false");
	uint32_t node;

	lexer_advance(&parser->lexer);
	if (lexer_is_sign(&parser->lexer, "("))
		return parse_call(parser, &name);
	if (!truth && !untruth)
		return name_node(parser, &name);
	node = add_node(parser, OP_TRUTH, VALUE_TRUTH, name.begin);
	if (node != NO_NODE) {
		parser->nodes[node].number = truth;
		parser->nodes[node].end = name.end;
	}
	return node;
}

static uint32_t parse_literal(struct parser *parser)
{
	struct token token = parser->lexer.token;
	bool number = token.kind == TOKEN_NUMBER;
	uint32_t node = add_node(parser, number ? OP_NUMBER : OP_TEXT, number ? VALUE_NUMBER : VALUE_TEXT, token.begin);

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
	if (!require(parser, operand, VALUE_NUMBER))
		return NO_NODE;
	node = add_node(parser, OP_NEGATE, VALUE_NUMBER, begin);
	adopt(parser, node, operand);
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
		lexer_refuse(&parser->lexer, parser->nodes[text].begin, "not a pattern: %s", why);
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
	if (!require(parser, operand, VALUE_TRUTH))
		return NO_NODE;
	node = add_node(parser, OP_NOT, VALUE_TRUTH, begin);
	adopt(parser, node, operand);
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

static uint32_t parse_or(struct parser *parser)
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
	if (!require(parser, out->root, type))
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
	struct parser *parser = calloc(1, sizeof *parser);
	bool done = false;

	memset(error, 0, sizeof *error);
	memset(out, 0, sizeof *out);
	if (!parser) {
		error->memory = true;
		return false;
	}
	*parser = (struct parser){ .lexer = { .length = length, .error = error }, .vocabulary = vocabulary, .arena = arena };
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
