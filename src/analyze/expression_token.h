/* The words of an expression. Nobody outside the parser includes it. */
#ifndef INFERSCOPE_ANALYZE_EXPRESSION_TOKEN_H
#define INFERSCOPE_ANALYZE_EXPRESSION_TOKEN_H

#include "analyze/expression.h"

enum token_kind { TOKEN_END, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_NAME, TOKEN_SIGN };

struct token {
	enum token_kind kind;
	uint32_t begin, end;
	double number;
	char sign[3];
};

/* TEXT ends with NUL. TOKEN is the word at hand, AT where the next one is looked for. */
struct lexer {
	const char *text;
	size_t length, at;
	struct token token;
	struct expression_error *error;
	bool failed;
};

/* To the next word; none after a failure. */
void lexer_advance(struct lexer *lexer);
bool lexer_is_sign(const struct lexer *lexer, const char *sign);
bool lexer_is_word(const struct lexer *lexer, const char *word);
/* Steps over SIGN, or fails. */
bool lexer_expect(struct lexer *lexer, const char *sign);
/* Fails, unless it has failed before. Returns NO_NODE. */
uint32_t lexer_refuse(struct lexer *lexer, size_t offset, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
