/* Numbers, quoted text, names and signs. A quote ends at the next one of its kind: nothing is escaped, so that patterns read as they are. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/expression_token.h"

uint32_t lexer_refuse(struct lexer *lexer, size_t offset, const char *format, ...)
{
	va_list arguments;

	if (lexer->failed)
		return NO_NODE;
	lexer->failed = true;
	lexer->error->offset = offset;
	va_start(arguments, format);
	vsnprintf(lexer->error->message, sizeof lexer->error->message, format, arguments);
	va_end(arguments);
	return NO_NODE;
}

static bool is_name(char c, bool first)
{
	return isalpha((unsigned char)c) || c == '_' || (!first && (isdigit((unsigned char)c) || c == '.'));
}

/* Times are in ns: 200ms is 2e8. False where the letters behind a number are no unit. */
static bool take_unit(struct lexer *lexer)
{
	static const struct { const char *name; double ns; } units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "m", 60e9 }, { "h", 3600e9 } };
	size_t length = 0;

	while (lexer->at + length < lexer->length && is_name(lexer->text[lexer->at + length], false))
		length++;
	for (size_t i = 0; length && i < sizeof units / sizeof *units; i++) {
		if (strlen(units[i].name) != length || memcmp(units[i].name, lexer->text + lexer->at, length) != 0)
			continue;
		lexer->token.number *= units[i].ns;
		lexer->at += length;
		return true;
	}
	return !length;
}

static void take_number(struct lexer *lexer)
{
	char digits[64], *end;
	size_t n = 0;

	while (lexer->at < lexer->length && n < sizeof digits - 1) {
		char c = lexer->text[lexer->at];
		bool exponent = n && (digits[n - 1] == 'e' || digits[n - 1] == 'E');

		if (!isdigit((unsigned char)c) && c != '.' && c != 'e' && c != 'E' && !((c == '+' || c == '-') && exponent))
			break;
		digits[n++] = c;
		lexer->at++;
	}
	digits[n] = '\0';
	lexer->token.number = strtod(digits, &end);
	if (*end || !take_unit(lexer) || !isfinite(lexer->token.number))
		lexer_refuse(lexer, lexer->token.begin, "this is no number");
}

static void take_text(struct lexer *lexer)
{
	char quote = lexer->text[lexer->at++];

	while (lexer->at < lexer->length && lexer->text[lexer->at] != quote)
		lexer->at++;
	if (lexer->at == lexer->length)
		lexer_refuse(lexer, lexer->token.begin, "the text that begins here has no end");
	else
		lexer->at++;
}

static void take_sign(struct lexer *lexer)
{
	static const char *const signs[] = { "<=", ">=", "==", "!=", "=~", "<", ">", "+", "-", "*", "/", "(", ")", ",", "=", ":" };
	const char *at = lexer->text + lexer->at;

	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
		if (strncmp(at, signs[i], strlen(signs[i])) != 0)
			continue;
		snprintf(lexer->token.sign, sizeof lexer->token.sign, "%s", signs[i]);
		lexer->at += strlen(signs[i]);
		return;
	}
	lexer_refuse(lexer, lexer->at, isprint((unsigned char)*at) ? "'%c' means nothing here" : "byte 0x%02x means nothing here", (unsigned char)*at);
}

void lexer_advance(struct lexer *lexer)
{
	struct token *token = &lexer->token;
	char c;

	while (lexer->at < lexer->length && isspace((unsigned char)lexer->text[lexer->at]))
		lexer->at++;
	*token = (struct token){ .kind = TOKEN_END, .begin = (uint32_t)lexer->at };
	if (lexer->at < lexer->length && !lexer->failed) {
		c = lexer->text[lexer->at];
		if (isdigit((unsigned char)c)) {
			token->kind = TOKEN_NUMBER;
			take_number(lexer);
		} else if (c == '\'' || c == '"') {
			token->kind = TOKEN_TEXT;
			take_text(lexer);
		} else if (is_name(c, true)) {
			token->kind = TOKEN_NAME;
			while (lexer->at < lexer->length && is_name(lexer->text[lexer->at], false))
				lexer->at++;
		} else {
			token->kind = TOKEN_SIGN;
			take_sign(lexer);
		}
	}
	token->end = (uint32_t)lexer->at;
	if (lexer->failed)
		token->kind = TOKEN_END; /* nobody takes a part of a text for a text */
}

bool lexer_is_sign(const struct lexer *lexer, const char *sign)
{
	return lexer->token.kind == TOKEN_SIGN && strcmp(lexer->token.sign, sign) == 0;
}

bool lexer_is_word(const struct lexer *lexer, const char *word)
{
	size_t length = strlen(word);

	return lexer->token.kind == TOKEN_NAME && lexer->token.end - lexer->token.begin == length && memcmp(lexer->text + lexer->token.begin, word, length) == 0;
}

bool lexer_expect(struct lexer *lexer, const char *sign)
{
	if (lexer_is_sign(lexer, sign)) {
		lexer_advance(lexer);
		return true;
	}
	lexer_refuse(lexer, lexer->token.begin, "expected '%s'", sign);
	return false;
}
