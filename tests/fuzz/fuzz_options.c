/* Any text as a command line: each line is a word. The first byte chooses which options there are, and whether what follows the first argument is another program's. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/parse.h"

enum { WORDS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t split(char *text, char **words)
{
	size_t count = 0;

	for (char *rest = text; rest && count < WORDS_MAX; count++)
		words[count] = strsep(&rest, "\n");
	words[count] = NULL;
	return count;
}

static void look_at(const struct invocation *invocation, size_t word_count)
{
	if (invocation->argument_count > word_count || invocation->arguments[invocation->argument_count])
		abort();
	for (int i = 0; i < OPT_COUNT; i++) {
		char part[OPTION_PART_BYTES];

		for (size_t at = 0; at < 3 && options_list(&invocation->options, (enum option_id)i, at, part); at++)
			if (strlen(part) >= sizeof part)
				abort();
		options_percent_ppm(&invocation->options, (enum option_id)i);
		options_choice(&invocation->options, (enum option_id)i);
		options_flag(&invocation->options, (enum option_id)i);
		options_count(&invocation->options, (enum option_id)i);
		options_duration_ns(&invocation->options, (enum option_id)i);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct command_row command = { .name = "fuzz", .arguments = "WORD", .most = SIZE_MAX };
	struct invocation invocation = { .command = &command };
	struct error err = { 0 };
	char *words[WORDS_MAX + 1], *text;
	size_t count;

	if (!size)
		return 0;
	command.bit = 1u << (data[0] & 31);
	command.passes_rest = data[0] & 32;
	command.fewest = data[0] >> 6;
	text = strndup((const char *)data + 1, size - 1);
	if (text && options_init(&invocation.options, &err) == 0) {
		count = split(text, words);
		if (parse_arguments(words, &invocation, &err) == 0)
			look_at(&invocation, count);
		options_done(&invocation.options);
	}
	free(text);
	return 0;
}
