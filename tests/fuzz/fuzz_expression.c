/* Any text as an expression of a rule: refused with a place in it, or computed in a bounded number of steps over a small world of numbers, texts and rows. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/expression.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_word(const char *name, size_t length, const char *word)
{
	return strlen(word) == length && memcmp(name, word, length) == 0;
}

static bool find_symbol(void *context, const char *name, size_t length, struct symbol *out)
{
	static const struct { const char *name; enum value_kind type; } names[] = { { "one", VALUE_NUMBER }, { "cpu.two", VALUE_NUMBER }, { "nothing", VALUE_NUMBER }, { "word", VALUE_TEXT } };

	for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
		if (is_word(name, length, names[i].name)) {
			*out = (struct symbol){ 0, i, names[i].type };
			return true;
		}
	return false;
}

static bool find_set(void *context, const char *name, size_t length, struct symbol *out)
{
	*out = (struct symbol){ 1, 0, VALUE_UNKNOWN };
	return is_word(name, length, "rows");
}

static const char *combines(void *context, enum expression_operation operation, const struct symbol *set, const char *name)
{
	return operation == OP_BYTES ? "rows have no bytes" : NULL;
}

static const char *narrows(void *context, enum expression_operation operation, const struct symbol *set, bool filtered, bool within)
{
	return within && operation == OP_LONGEST ? "no" : NULL;
}

static const char *suggest(void *context, const char *name, size_t length)
{
	return length == 1 ? "one" : NULL;
}

static struct value symbol_value(void *context, const struct symbol *symbol)
{
	static const struct value values[] = {
		{ .kind = VALUE_NUMBER, .number = 1 }, { .kind = VALUE_NUMBER, .number = 2 }, { .kind = VALUE_UNKNOWN, .text = "nobody measured it" }, { .kind = VALUE_TEXT, .text = "tokenize" },
	};

	return values[symbol->index];
}

static struct value rows_value(void *context, const struct expression_node *node, double rank, struct evaluation *evaluation)
{
	static const struct row rows[] = { { "encode", "/srv/tok.py", 10 }, { "decode", "/srv/tok.py", 20 }, { "\xff", "", 0 } };
	double sum = rank;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		sum += expression_accepts(evaluation, &rows[i]) ? rows[i].line : 0;
	return (struct value){ .kind = VALUE_NUMBER, .number = sum };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct vocabulary vocabulary = { NULL, find_symbol, find_set, combines, suggest, narrows };
	static const struct world world = { NULL, 10, symbol_value, rows_value };
	struct expression expression;
	struct expression_error error;
	static struct value seen[EXPRESSION_NODES_MAX];
	struct evaluation evaluation = { .world = &world, .tried = PATTERN_STEPS_MAX - 100000, .seen = size & 1 ? seen : NULL };
	struct arena arena;

	arena_init(&arena);
	if (!expression_parse((const char *)data, size, VALUE_UNKNOWN, &vocabulary, &arena, &expression, &error)) {
		if (error.offset > size || (!error.memory && !error.message[0]))
			abort();
		arena_done(&arena);
		return 0;
	}
	if (expression.node_count > EXPRESSION_NODES_MAX)
		abort();
	if (expression_value(&expression, &evaluation).kind > VALUE_TRUTH || evaluation.steps > EXPRESSION_STEPS_MAX + 1 || evaluation.tried > PATTERN_STEPS_MAX)
		abort();
	expression_done(&expression);
	arena_done(&arena);
	return 0;
}
