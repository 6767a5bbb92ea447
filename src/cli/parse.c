/* Command line: --name VALUE, --name=VALUE, --no-name for flags and for choices that know none, -x VALUE, -xVALUE, "--". */
#include "cli/parse.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/value.h"

static int unknown_option(const struct command_row *command, const char *argument, size_t name_length, struct error *err)
{
	const char *close = option_suggest(argument + 2, name_length, command->bit);
	struct text shown;

	text_init(&shown);
	text_add_visible(&shown, argument, strcspn(argument, "="));
	fail(err, ERR_OPTION_UNKNOWN, "%s has no option %s", command->name, text_string(&shown));
	text_done(&shown);
	if (close)
		return fail_hint(err, "did you mean --%s?", close);
	return fail_hint(err, "see `inferscope %s --help`", command->name);
}

/* One option with its value, which may be the next argument. */
static int option_take(char **arguments, size_t *at, enum option_id id, const char *value, bool negated, struct invocation *out, struct error *err)
{
	const struct option_row *row = &option_rows[id];
	char where[64];

	snprintf(where, sizeof where, "--%s", row->name);
	if (row->kind == KIND_FLAG) {
		if (!value)
			value = "yes";
		return options_set(&out->options, id, negated ? "no" : value, ORIGIN_COMMAND_LINE, where, err);
	}
	if (!value) {
		value = arguments[*at + 1];
		if (!value) {
			fail(err, ERR_USAGE, "--%s needs a value (%s)", row->name, row->shown);
			return fail_hint(err, "see `inferscope %s --help`", out->command->name);
		}
		++*at;
	}
	return options_set(&out->options, id, value, ORIGIN_COMMAND_LINE, where, err);
}

static int long_option(char **arguments, size_t *at, struct invocation *out, struct error *err)
{
	const char *name = arguments[*at] + 2;
	size_t length = strcspn(name, "=");
	const char *value = name[length] == '=' ? name + length + 1 : NULL;
	enum option_id id = option_find(name, length, out->command->bit);
	unsigned none;

	if (id == OPT_COUNT && length > 3 && !value && memcmp(name, "no-", 3) == 0) {
		id = option_find(name + 3, length - 3, out->command->bit);
		if (id != OPT_COUNT && option_rows[id].kind == KIND_FLAG)
			return option_take(arguments, at, id, NULL, true, out, err);
		if (id != OPT_COUNT && option_rows[id].kind == KIND_CHOICE && value_choice("none", option_rows[id].constraint, &none))
			return option_take(arguments, at, id, "none", false, out, err);
		id = OPT_COUNT;
	}
	if (id == OPT_COUNT)
		return unknown_option(out->command, arguments[*at], length, err);
	return option_take(arguments, at, id, value, false, out, err);
}

static int letter_option(char **arguments, size_t *at, struct invocation *out, struct error *err)
{
	const char *argument = arguments[*at];
	enum option_id id = option_find_letter(argument[1], out->command->bit);

	if (id == OPT_COUNT)
		return unknown_option(out->command, argument, 0, err);
	if (option_rows[id].kind == KIND_FLAG && argument[2]) {
		fail(err, ERR_USAGE, "%s: -%c takes no value", argument, argument[1]);
		return fail_hint(err, "see `inferscope %s --help`", out->command->name);
	}
	return option_take(arguments, at, id, argument[2] ? argument + 2 : NULL, false, out, err);
}

static int count_check(const struct invocation *invocation, struct error *err)
{
	const struct command_row *command = invocation->command;

	if (invocation->argument_count > command->most && command->most == 0)
		fail(err, ERR_USAGE, "%s takes no argument", command->name);
	else if (invocation->argument_count > command->most && command->most > 1)
		fail(err, ERR_USAGE, "%s takes %s, not %zu arguments", command->name, command->arguments, invocation->argument_count);
	else if (invocation->argument_count > command->most)
		fail(err, ERR_USAGE, "%s takes one %s, not %zu", command->name, command->arguments, invocation->argument_count);
	else if (invocation->argument_count < command->fewest)
		fail(err, ERR_USAGE, "%s needs %s", command->name, command->arguments);
	else
		return 0;
	return fail_hint(err, "see `inferscope %s --help`", command->name);
}

int parse_arguments(char **arguments, struct invocation *out, struct error *err)
{
	size_t kept = 0, at = 0;
	bool over = false;

	out->arguments = arguments;
	for (; arguments[at]; at++) {
		char *argument = arguments[at];
		bool rest = out->command->passes_rest && (kept > 0 || options_given(&out->options, OPT_MODULE) || options_given(&out->options, OPT_CODE));

		if (over || rest || argument[0] != '-' || !argument[1] || (argument[1] >= '0' && argument[1] <= '9'))
			arguments[kept++] = argument;
		else if (strcmp(argument, "--") == 0)
			over = true;
		else if ((argument[1] == '-' ? long_option(arguments, &at, out, err) : letter_option(arguments, &at, out, err)) < 0)
			return -1;
	}
	arguments[kept] = NULL;
	out->argument_count = kept;
	if (options_flag(&out->options, OPT_HELP))
		return 0;
	return count_check(out, err);
}
