/* Nodes of the tree; and what begins with a word: names, calls, and the sets, filters and ranks that calls such as time() take. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/expression_parser.h"

uint32_t parser_add(struct parser *parser, enum expression_operation operation, enum value_kind type, uint32_t begin)
{
	if (parser->lexer.failed)
		return NO_NODE;
	if (parser->count == EXPRESSION_NODES_MAX)
		return lexer_refuse(&parser->lexer, begin, "too long: more than %d parts", EXPRESSION_NODES_MAX);
	parser->nodes[parser->count] = (struct expression_node){ .operation = (uint8_t)operation, .type = (uint8_t)type, .begin = begin, .end = (uint32_t)parser->lexer.at, .child = NO_NODE, .next = NO_NODE };
	return parser->count++;
}

void parser_adopt(struct parser *parser, uint32_t parent, uint32_t child)
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

bool parser_require(struct parser *parser, uint32_t node, enum value_kind type)
{
	if (node == NO_NODE || parser->lexer.failed)
		return false;
	if (type == VALUE_UNKNOWN || parser->nodes[node].type == type)
		return true;
	lexer_refuse(&parser->lexer, parser->nodes[node].begin, "expected %s, this is %s", type_name(type), type_name(parser->nodes[node].type));
	return false;
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
		return parser->in_filter ? parser_add(parser, fields[i].operation, fields[i].type, name->begin) :
			lexer_refuse(&parser->lexer, name->begin, "'%s' is known inside time(), count() and their like only", fields[i].name);
	}
	if (parser->vocabulary->symbol(parser->vocabulary->context, word, length, &symbol)) {
		node = parser_add(parser, OP_SYMBOL, symbol.type, name->begin);
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

/* p50, p99, p99.9 */
static bool is_ranked(const char *word, size_t length)
{
	size_t digits = strspn(word + 1, "0123456789.");

	return length > 1 && word[0] == 'p' && word[1] != '.' && digits >= length - 1 && memchr(word + 1, '.', length - 1) == memrchr(word + 1, '.', length - 1);
}

static const struct expression_function *function_named(const struct parser *parser, const struct token *name)
{
	const char *word = parser->lexer.text + name->begin;
	size_t length = is_ranked(word, name->end - name->begin) ? 1 : name->end - name->begin, count;
	const struct expression_function *functions = expression_functions(&count);

	for (size_t i = 0; i < count; i++)
		if (strlen(functions[i].name) == length && memcmp(functions[i].name, word, length) == 0)
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

/* scope:inference, scope:'POST *' */
static const char *parse_set_name(struct parser *parser)
{
	struct token name;
	bool quoted;
	const char *text;

	lexer_advance(&parser->lexer);
	if (!lexer_is_sign(&parser->lexer, ":"))
		return NULL;
	lexer_advance(&parser->lexer);
	name = parser->lexer.token;
	quoted = name.kind == TOKEN_TEXT;
	if (name.kind != TOKEN_NAME && !quoted) {
		lexer_refuse(&parser->lexer, name.begin, "expected a name, or one in quotes");
		return NULL;
	}
	text = arena_strndup(parser->arena, parser->lexer.text + name.begin + quoted, name.end - name.begin - 2 * quoted);
	if (!text) {
		parser->lexer.error->memory = true;
		lexer_refuse(&parser->lexer, 0, "out of memory");
	}
	lexer_advance(&parser->lexer);
	return text;
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
	parser->nodes[node].symbol = set;
	parser->nodes[node].text = parse_set_name(parser);
	why = parser->vocabulary->combines(parser->vocabulary->context, (enum expression_operation)parser->nodes[node].operation, &set, parser->nodes[node].text);
	if (why)
		lexer_refuse(&parser->lexer, name.begin, "%s", why);
}

/* The 99 of p99(…), a node of its own. */
static uint32_t rank_node(struct parser *parser, const struct token *name)
{
	uint32_t node = name->end - name->begin > 1 ? parser_add(parser, OP_NUMBER, VALUE_NUMBER, name->begin) : NO_NODE;

	if (node == NO_NODE)
		return node;
	parser->nodes[node].number = strtod(parser->lexer.text + name->begin + 1, NULL);
	parser->nodes[node].end = name->end;
	return node;
}

/* What would be left out in silence is refused. */
static void check_narrowing(struct parser *parser, uint32_t index)
{
	const struct expression_node *node;
	const char *why;

	if (parser->lexer.failed || index == NO_NODE)
		return;
	node = &parser->nodes[index];
	why = parser->vocabulary->narrows(parser->vocabulary->context, (enum expression_operation)node->operation, &node->symbol, node->child != NO_NODE, node->within);
	if (why)
		lexer_refuse(&parser->lexer, node->begin, "%s", why);
}

/* set, then rank (of p where its NAME has none), filters and within=scope. */
static void parse_aggregate(struct parser *parser, uint32_t node, const struct token *name)
{
	bool percentile = node != NO_NODE && parser->nodes[node].operation == OP_PERCENTILE;
	uint32_t rank = percentile ? rank_node(parser, name) : NO_NODE, filter;
	bool nested = parser->in_filter;

	if (nested) {
		lexer_refuse(&parser->lexer, parser->lexer.token.begin, "a filter holds no call of this kind");
		return;
	}
	parse_set(parser, node);
	if (!parser->lexer.failed && percentile && rank == NO_NODE) {
		if (!lexer_expect(&parser->lexer, ","))
			return;
		rank = parse_or(parser);
		parser_require(parser, rank, VALUE_NUMBER);
	}
	parser->in_filter = true;
	while (!parser->lexer.failed && lexer_is_sign(&parser->lexer, ",")) {
		lexer_advance(&parser->lexer);
		if (lexer_is_word(&parser->lexer, "within")) {
			parse_within(parser, node);
			continue;
		}
		filter = parse_or(parser);
		if (parser_require(parser, filter, VALUE_TRUTH))
			parser_adopt(parser, node, filter);
	}
	parser->in_filter = nested;
	check_narrowing(parser, node);
	parser_adopt(parser, node, rank);
}

static void parse_arguments(struct parser *parser, uint32_t node, const struct expression_function *function)
{
	unsigned count = 0;

	while (!parser->lexer.failed && !lexer_is_sign(&parser->lexer, ")")) {
		uint32_t argument = parse_or(parser);

		if (function->operation == OP_KNOWN || parser_require(parser, argument, VALUE_NUMBER))
			parser_adopt(parser, node, argument);
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
	node = parser_add(parser, function->operation, function->operation == OP_KNOWN ? VALUE_TRUTH : VALUE_NUMBER, name->begin);
	lexer_advance(&parser->lexer); /* the bracket */
	if (operation_is_aggregate(function->operation))
		parse_aggregate(parser, node, name);
	else
		parse_arguments(parser, node, function);
	if (parser->lexer.failed)
		return NO_NODE;
	parser->nodes[node].end = parser->lexer.token.end;
	return lexer_expect(&parser->lexer, ")") ? node : NO_NODE;
}

uint32_t parse_name(struct parser *parser)
{
	struct token name = parser->lexer.token;
	bool truth = lexer_is_word(&parser->lexer, "true"), untruth = lexer_is_word(&parser->lexer, "false");
	uint32_t node;

	lexer_advance(&parser->lexer);
	if (lexer_is_sign(&parser->lexer, "("))
		return parse_call(parser, &name);
	if (!truth && !untruth)
		return name_node(parser, &name);
	node = parser_add(parser, OP_TRUTH, VALUE_TRUTH, name.begin);
	if (node != NO_NODE) {
		parser->nodes[node].number = truth;
		parser->nodes[node].end = name.end;
	}
	return node;
}
