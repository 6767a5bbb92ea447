#include "cli/retell.h"

#include <string.h>

#include "base/text.h"
#include "session/redact.h"

static void word_add(struct text *line, const char *word)
{
	const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,%+@";

	text_add_string(line, " ");
	if (*word && word[strspn(word, plain)] == '\0') {
		text_add_string(line, word);
		return;
	}
	text_add_string(line, "'");
	for (; *word; word++) {
		if (*word == '\'')
			text_add_string(line, "'\\''");
		else
			text_add(line, word, 1);
	}
	text_add_string(line, "'");
}

char *command_line_retell(char *const *words, bool whole)
{
	struct text given, told, line;
	const struct text *from;

	text_init(&given);
	text_init(&told);
	text_init(&line);
	for (; *words; words++)
		text_add(&given, *words, strlen(*words) + 1);
	if (!whole && given.length)
		redact_words(given.data, given.length, &told);
	from = whole ? &given : &told;
	text_add_string(&line, "inferscope");
	for (size_t at = 0; at < from->length; at += strlen(from->data + at) + 1)
		word_add(&line, from->data + at);
	line.failed |= given.failed || told.failed;
	if (line.failed)
		text_done(&line);
	text_done(&given);
	text_done(&told);
	return line.data;
}
