#include "session/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

#define HIDDEN "***"

/* Whole words of a name: --max-tokens and --tokenizer are none of them. */
static bool word_is_secret(const char *word, size_t length)
{
	static const char *const words[] = { "password", "passwd", "passphrase", "pwd", "secret", "token", "key", "apikey", "credential", "credentials", "auth", "authorization", "bearer", "cookie" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i]) == length && strncasecmp(words[i], word, length) == 0)
			return true;
	return false;
}

static bool name_is_secret(const char *name, size_t length)
{
	for (size_t at = 0; at < length;) {
		size_t word = 0;

		while (at + word < length && isalnum((unsigned char)name[at + word]))
			word++;
		if (word && word_is_secret(name + at, word))
			return true;
		at += word + 1;
	}
	return false;
}

/* Where the host of the first URL that has user or password begins, at its last "@"; NULL: none has. */
static const char *url_host(const char *word, size_t length, const char **user)
{
	const char *end = word + length, *host = NULL, *scheme;

	while (!host && (scheme = memmem(word, (size_t)(end - word), "://", 3))) {
		*user = word = scheme + 3;
		for (const char *at = word; at < end && *at != '/' && *at != '?' && *at != '#'; at++)
			if (*at == '@')
				host = at;
	}
	return host;
}

/* Where the name of a secret ends, that of "--key=…", or of a header, "Authorization: …". NULL: there is none. */
static const char *secret_name_end(const char *word, size_t size)
{
	const char *equals = memchr(word, '=', size), *colon = memmem(word, size, ": ", 2);
	const char *first = equals && (!colon || equals < colon) ? equals : colon, *second = first == equals ? colon : equals;

	if (first && name_is_secret(word, (size_t)(first - word)))
		return first;
	return second && name_is_secret(word, (size_t)(second - word)) ? second : NULL;
}

/* There may be several, as of the brokers in a list. */
static void word_add(struct text *out, const char *word, size_t length)
{
	const char *user, *host;

	while ((host = url_host(word, length, &user))) {
		text_add(out, word, (size_t)(user - word));
		text_add_string(out, HIDDEN);
		length -= (size_t)(host - word);
		word = host;
	}
	text_add(out, word, length);
}

/* BETWEEN stands between two, and behind the last where ENDED. */
static void words_add(const char *arguments, size_t length, char between, bool ended, struct text *out)
{
	bool hide = false;

	for (size_t at = 0; at < length;) {
		const char *word = arguments + at, *name;
		size_t size = strnlen(word, length - at);

		if (at)
			text_add(out, &between, 1);
		at += size + 1;
		name = secret_name_end(word, size);
		if (hide && (size == 0 || word[0] != '-')) {
			text_add_string(out, HIDDEN);
			hide = false;
			continue;
		}
		hide = size > 1 && word[0] == '-' && !memchr(word, '=', size) && name_is_secret(word, size);
		if (name) {
			text_add(out, word, (size_t)(name - word) + 1);
			text_add_string(out, HIDDEN);
		} else
			word_add(out, word, size);
	}
	if (ended && length)
		text_add(out, &between, 1);
}

void redact_arguments(const char *arguments, size_t length, struct text *out)
{
	words_add(arguments, length, ' ', false, out);
}

void redact_words(const char *arguments, size_t length, struct text *out)
{
	words_add(arguments, length, '\0', true, out);
}
