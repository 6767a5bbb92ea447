/* The language of rules: what it computes, what it refuses and where, and what stays unknown. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/expression.h"

/* Names of the tests: one and two are numbers, nothing is unknown, word is a text. The set "rows" has three. */
static bool find_symbol(void *context, const char *name, size_t length, struct symbol *out)
{
	static const struct { const char *name; enum value_kind type; } names[] = { { "one", VALUE_NUMBER }, { "cpu.two", VALUE_NUMBER }, { "nothing", VALUE_NUMBER }, { "word", VALUE_TEXT } };

	for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strlen(names[i].name) != length || memcmp(names[i].name, name, length) != 0)
			continue;
		*out = (struct symbol){ 0, i, names[i].type };
		return true;
	}
	return false;
}

static bool find_set(void *context, const char *name, size_t length, struct symbol *out)
{
	*out = (struct symbol){ 1, 0, VALUE_UNKNOWN };
	return length == 4 && memcmp(name, "rows", 4) == 0;
}

static const char *combines(void *context, enum expression_operation operation, const struct symbol *set, const char *name)
{
	if (name && strcmp(name, "first") != 0)
		return "there are no such rows";
	return operation == OP_BYTES ? "rows have no bytes" : NULL;
}

static const char *narrows(void *context, enum expression_operation operation, const struct symbol *set, bool filtered, bool within)
{
	return within && operation == OP_LONGEST ? "rows of a scope have no longest" : NULL;
}

static const char *suggest(void *context, const char *name, size_t length)
{
	return length == 3 && memcmp(name, "on1", 3) == 0 ? "one" : NULL;
}

static struct value symbol_value(void *context, const struct symbol *symbol)
{
	switch (symbol->index) {
	case 0: return (struct value){ .kind = VALUE_NUMBER, .number = 1 };
	case 1: return (struct value){ .kind = VALUE_NUMBER, .number = 2 };
	case 2: return (struct value){ .kind = VALUE_UNKNOWN, .text = "nobody measured it" };
	default: return (struct value){ .kind = VALUE_TEXT, .text = "tokenize" };
	}
}

static struct value rows_value(void *context, const struct expression_node *node, double rank, struct evaluation *evaluation)
{
	static const struct row rows[] = { { "encode", "/srv/tok.py", 10 }, { "decode", "/srv/tok.py", 20 }, { "serve", "/srv/web.py", 30 } };
	double sum = rank;

	for (size_t i = 0; i < 3; i++)
		sum += expression_accepts(evaluation, &rows[i]) ? node->within ? 100 * rows[i].line : rows[i].line : 0;
	return (struct value){ .kind = VALUE_NUMBER, .number = sum };
}

static const struct vocabulary vocabulary = { NULL, find_symbol, find_set, combines, suggest, narrows };
static const struct world world = { NULL, 10, symbol_value, rows_value };

static bool parse(const char *text, struct arena *arena, struct expression *out, struct expression_error *error)
{
	arena_init(arena);
	return expression_parse(text, strlen(text), VALUE_UNKNOWN, &vocabulary, arena, out, error);
}

static struct value value_of(const char *text)
{
	struct arena arena;
	struct expression expression;
	struct expression_error error;
	struct evaluation evaluation = { .world = &world };
	struct value value;

	cr_assert(parse(text, &arena, &expression, &error), "%s: %s at %zu", text, error.message, error.offset);
	value = expression_value(&expression, &evaluation);
	if (value.kind == VALUE_TEXT)
		value.text = "(text)"; /* it dies with the arena */
	expression_done(&expression);
	arena_done(&arena);
	return value;
}

struct number_row { char text[96]; double value; };

ParameterizedTestParameters(analyze_expression, computes)
{
	static struct number_row rows[] = {
		{ "1 + 2 * 3", 7 }, { "(1 + 2) * 3", 9 }, { "8 / 2 / 2", 2 }, { "-one - -cpu.two", 1 }, { "1.5e3", 1500 }, { "min(3, 1, 2)", 1 }, { "max(3, 1, 2)", 3 },
		{ "clamp(7, 0, 5)", 5 }, { "pct(1, 4)", 25 }, { "rate(50)", 5 }, { "either(nothing, 4)", 4 }, { "either(one, nothing)", 1 },
		{ "time(rows)", 60 }, { "time(rows, func =~ 'code$')", 30 }, { "time(rows, file == '/srv/web.py')", 30 }, { "count(rows, func =~ 'code' and line > 15)", 20 },
		{ "time(rows, func =~ 'code', within=scope)", 3000 }, { "p(rows, 99)", 159 }, { "p(rows, 50 + 1, line > 25)", 81 }, { "1 < 2", 1 }, { "one >= cpu.two", 0 }, { "not one > 2", 1 },
		{ "one == 1 and word =~ 'token' or nothing > 1", 1 }, { "nothing > 1 and 1 > 2", 0 }, { "true or nothing > 1", 1 }, { "known(nothing)", 0 }, { "known(one)", 1 },
		{ "p99(rows)", 159 }, { "p99.9(rows, line > 25)", 129.9 }, { "p50(rows:first)", 110 }, { "count(rows:'first', line > 15)", 50 },
		{ "200ms", 2e8 }, { "1.5s > 1400ms", 1 }, { "1us + 3ns", 1003 }, { "2m / 1h", 1.0 / 30 },
		{ "word == \"tokenize\"", 1 }, { "word != 'x'", 1 }, { "false", 0 }, { "word =~ '^t[a-z]{3,8}$'", 1 }, { "word =~ '^t+o+k+e+n+i+z+[]e+]+$'", 1 }, { "word =~ '(to{1,9}){1,7}'", 1 },
	};

	return cr_make_param_array(struct number_row, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(struct number_row *row, analyze_expression, computes)
{
	struct value value = value_of(row->text);

	cr_assert(value.kind == VALUE_NUMBER || value.kind == VALUE_TRUTH, "%s is unknown: %s", row->text, value.text);
	cr_assert_float_eq(value.number, row->value, 1e-9, "%s = %g", row->text, value.number);
}

struct unknown_row { char text[64], why[48]; };

ParameterizedTestParameters(analyze_expression, does_not_know)
{
	static struct unknown_row rows[] = {
		{ "1 / 0", "a division by zero" }, { "pct(1, one - 1) > 3", "a division by zero" }, { "nothing + 1", "nobody measured it" }, { "nothing > 1", "nobody measured it" },
		{ "nothing > 1 or 1 > 2", "nobody measured it" }, { "one > 0 and nothing > 1", "nobody measured it" }, { "not nothing > 1", "nobody measured it" },
		{ "max(1, nothing)", "nobody measured it" }, { "1e308 * 1e308", "not a finite number" }, { "either(nothing, 1 / 0)", "a division by zero" }, { "p(rows, nothing)", "nobody measured it" },
	};

	return cr_make_param_array(struct unknown_row, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(struct unknown_row *row, analyze_expression, does_not_know)
{
	struct value value = value_of(row->text);

	cr_assert_eq(value.kind, VALUE_UNKNOWN, "%s = %g", row->text, value.number);
	cr_assert_str_eq(value.text, row->why);
}

/* All of a rule are counted together; when none are left nothing of it is known, though another side would decide. */
Test(analyze_expression, steps_of_patterns_end_the_rule)
{
	const char *text = "count(rows, func =~ '^[a-z]*[xyz]$') > 0 or true";
	struct arena arena;
	struct expression expression;
	struct expression_error error;
	struct evaluation evaluation = { .world = &world };

	cr_assert(parse(text, &arena, &expression, &error));
	cr_assert_eq(expression_value(&expression, &evaluation).kind, VALUE_TRUTH);
	cr_assert(evaluation.tried > 0 && evaluation.tried < 100, "%lu", (unsigned long)evaluation.tried);
	evaluation.tried = PATTERN_STEPS_MAX - evaluation.tried + 1;
	cr_assert_str_eq(expression_value(&expression, &evaluation).text, "it takes too many steps on this trace");
	expression_done(&expression);
	arena_done(&arena);
}

struct refused_row { char text[64]; size_t offset; char message[64]; };

ParameterizedTestParameters(analyze_expression, refuses)
{
	static struct refused_row rows[] = {
		{ "", 0, "something is missing at the end" }, { "1 +", 3, "something is missing at the end" }, { "1 + * 2", 4, "expected a value" }, { "(1 + 2", 6, "expected ')'" },
		{ "on1 > 2", 0, "nothing is called 'on1'" }, { "one > 'a'", 6, "expected a number, this is a text" }, { "word + 1", 0, "expected a number, this is a text" },
		{ "one and true", 0, "expected true or false, this is a number" }, { "1 < 2 < 3", 6, "compare two at a time, and join with 'and'" }, { "word =~ word", 8, "after =~ stands a pattern in quotes" },
		{ "word =~ '('", 8, "not a pattern: missing closing parenthesis" },
		{ "func == 'a'", 0, "'func' is known inside time(), count() and their like only" }, { "bytes(rows)", 6, "rows have no bytes" },
		{ "time(one)", 5, "expected what to look at: py, c, native, kernel, copy, api" }, { "clamp(1, 2)", 0, "clamp(x, low, high) got 2 arguments" }, { "foo(1)", 0, "there is no function 'foo'" },
		{ "1 ; 2", 2, "';' means nothing here" }, { "'abc", 0, "the text that begins here has no end" }, { "1 2", 2, "expected the end, or an operator" }, { "1e999", 0, "this is no number" }, { "1x", 0, "this is no number" }, { "1msec", 0, "this is no number" },
		{ "time(rows:second)", 5, "there are no such rows" }, { "time(rows:)", 10, "expected a name, or one in quotes" }, { "time(rows:'", 10, "the text that begins here has no end" }, { "word == '", 8, "the text that begins here has no end" }, { "p9.9.9(rows)", 0, "there is no function 'p9.9.9'" }, { "p.(rows)", 0, "there is no function 'p.'" },
		{ "time(rows, within=one)", 18, "expected 'scope'" }, { "1 + longest(rows, within=scope)", 4, "rows of a scope have no longest" }, { "time(rows, time(rows) > 1)", 16, "a filter holds no call of this kind" }, { "a\x01", 1, "byte 0x01 means nothing here" },
	};

	return cr_make_param_array(struct refused_row, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(struct refused_row *row, analyze_expression, refuses)
{
	struct arena arena;
	struct expression expression;
	struct expression_error error;

	cr_assert_not(parse(row->text, &arena, &expression, &error), "%s is taken", row->text);
	cr_expect(strncmp(error.message, row->message, strlen(row->message)) == 0, "%s: %s", row->text, error.message);
	cr_expect_eq(error.offset, row->offset, "%s: %s at %zu", row->text, error.message, error.offset);
	arena_done(&arena);
}

Test(analyze_expression, suggests_the_name_that_was_meant)
{
	struct arena arena;
	struct expression expression;
	struct expression_error error;

	cr_assert_not(parse("1 + on1", &arena, &expression, &error));
	cr_expect_str_eq(error.hint, "did you mean one?");
	arena_done(&arena);
}

/* COUNT times PART, then END. */
static bool taken(const char *part, size_t count, const char *end)
{
	size_t length = strlen(part);
	char *text = calloc(1, count * length + strlen(end) + 1);
	struct arena arena;
	struct expression expression;
	struct expression_error error;
	bool result;

	for (size_t i = 0; i < count; i++)
		memcpy(text + i * length, part, length);
	strcat(text, end);
	result = parse(text, &arena, &expression, &error);
	expression_done(&expression);
	arena_done(&arena);
	free(text);
	return result;
}

Test(analyze_expression, has_bounds)
{
	cr_expect(taken("(", 20, "1))))))))))))))))))))"));
	cr_expect_not(taken("(", 4000, "1"));
	cr_expect_not(taken("-", 4000, "1"));
	cr_expect_not(taken("not ", 900, "true"));
	cr_expect(taken("1 + ", 200, "1"));
	cr_expect_not(taken("1 + ", 1000, "1"));
	cr_expect_not(taken("1 + ", 2000, "1"));
}
