/* The options' table and values. Reading command line, environment and file is parse.c's and settings.c's. */
#include "cli/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/words.h"
#include "cli/value.h"

const struct option_row option_rows[OPT_COUNT] = {
#define OPTION(id, name, letter, kind, constraint, shown, standard, commands, reach, help) \
	[OPT_##id] = { name, letter, KIND_##kind, constraint, shown, standard, commands, REACH_##reach, help },
#include "cli/options.def"
#undef OPTION
};

static void count_limits(const struct option_row *row, uint64_t *lowest, uint64_t *highest)
{
	char *dash;

	*lowest = strtoull(row->constraint, &dash, 10);
	*highest = *dash == '-' ? strtoull(dash + 1, NULL, 10) : UINT64_MAX;
}

/* Says what would have been right. */
static int value_refuse(const struct option_row *row, const char *text, const char *where, struct error *err)
{
	struct text shown;

	text_init(&shown);
	text_add_visible(&shown, text, strlen(text));
	fail(err, ERR_OPTION_VALUE, "%s: \"%s\" is not a value of %s", where, text_string(&shown), row->name);
	text_done(&shown);
	switch (row->kind) {
	case KIND_FLAG:
		return fail_hint(err, "give yes or no");
	case KIND_DURATION:
		return fail_hint(err, "give a duration such as 30, 30s, 500ms, 2m or 1h, 30 days at most");
	case KIND_PERCENT:
		return fail_hint(err, "give a percentage such as 5%%, or none");
	case KIND_COUNT:
		return fail_hint(err, "give a whole number, %s", row->constraint);
	case KIND_CHOICE:
		return fail_hint(err, "give one of %s", row->constraint);
	default:
		return fail_hint(err, "give %s", row->shown);
	}
}

static bool value_good(const struct option_row *row, const char *text)
{
	uint64_t number, lowest, highest;
	uint32_t ppm;
	unsigned choice;
	bool flag;

	switch (row->kind) {
	case KIND_FLAG:
		return value_flag(text, &flag);
	case KIND_DURATION:
		return value_duration(text, &number);
	case KIND_PERCENT:
		return value_percent(text, &ppm);
	case KIND_COUNT:
		count_limits(row, &lowest, &highest);
		return value_count(text, lowest, highest, &number);
	case KIND_CHOICE:
		return value_choice(text, row->constraint, &choice);
	default:
		return true;
	}
}

int options_init(struct options *options, struct error *err)
{
	memset(options, 0, sizeof *options);
	for (int i = 0; i < OPT_COUNT; i++) {
		options->values[i].text = strdup(option_rows[i].standard);
		if (!options->values[i].text) {
			options_done(options);
			return fail(err, ERR_MEMORY, "reading the options");
		}
	}
	return 0;
}

void options_done(struct options *options)
{
	for (int i = 0; i < OPT_COUNT; i++)
		free(options->values[i].text);
	free(options->file);
	memset(options, 0, sizeof *options);
}

/* A part that was cut would mean something else. */
static int parts_check(const char *text, const char *where, struct error *err)
{
	for (size_t length; *text; text += length + (text[length] == ',')) {
		length = strcspn(text, ",");
		if (length >= OPTION_PART_BYTES)
			return fail(err, ERR_OPTION_VALUE, "%s: \"%.60s…\" is longer than %d bytes", where, text, OPTION_PART_BYTES - 1);
	}
	return 0;
}

int options_set(struct options *options, enum option_id id, const char *text, enum option_origin origin, const char *where, struct error *err)
{
	const struct option_row *row = &option_rows[id];
	struct option_value *value = &options->values[id];
	bool grows = row->kind == KIND_LIST && value->origin == origin && *value->text;
	char *copy;

	if (!value_good(row, text))
		return value_refuse(row, text, where, err);
	if (row->kind == KIND_LIST && parts_check(text, where, err) < 0)
		return -1;
	if (origin < value->origin)
		return 0;
	if (asprintf(&copy, "%s%s%s", grows ? value->text : "", grows ? "," : "", text) < 0)
		return fail(err, ERR_MEMORY, "reading the options");
	free(value->text);
	value->text = copy;
	value->origin = origin;
	return 0;
}

static bool name_equal(const char *row_name, const char *name, size_t length)
{
	if (strlen(row_name) != length)
		return false;
	for (size_t i = 0; i < length; i++)
		if (row_name[i] != (name[i] == '_' ? '-' : name[i]))
			return false;
	return true;
}

enum option_id option_find(const char *name, size_t length, unsigned commands)
{
	if (length == 6 && memcmp(name, "report", 6) == 0 && (!commands || commands & (ATTACH | RUN | ANALYZE)))
		return OPT_OUTPUT;
	for (int i = 0; i < OPT_COUNT; i++)
		if ((!commands || option_rows[i].commands & commands) && name_equal(option_rows[i].name, name, length))
			return (enum option_id)i;
	return OPT_COUNT;
}

enum option_id option_find_letter(char letter, unsigned commands)
{
	for (int i = 0; i < OPT_COUNT; i++)
		if (option_rows[i].letter && option_rows[i].letter == letter && option_rows[i].commands & commands)
			return (enum option_id)i;
	return OPT_COUNT;
}

const char *option_suggest(const char *name, size_t length, unsigned commands)
{
	const char *best = NULL;
	unsigned closest = 99;

	for (int i = 0; i < OPT_COUNT; i++) {
		if (commands && !(option_rows[i].commands & commands))
			continue;
		if (words_nearer(name, length, option_rows[i].name, &closest))
			best = option_rows[i].name;
	}
	return best;
}

void option_environment_name(enum option_id id, char *out, size_t size)
{
	snprintf(out, size, "INFERSCOPE_%s", option_rows[id].name);
	for (; *out; out++)
		*out = *out == '-' ? '_' : (char)toupper((unsigned char)*out);
}

const char *options_text(const struct options *options, enum option_id id)
{
	return options->values[id].text;
}

bool options_given(const struct options *options, enum option_id id)
{
	return options->values[id].origin != ORIGIN_DEFAULT;
}

bool options_typed(const struct options *options, enum option_id id)
{
	return options->values[id].origin == ORIGIN_COMMAND_LINE;
}

int options_forget(struct options *options, enum option_id id, struct error *err)
{
	struct option_value *value = &options->values[id];
	char *standard;

	if (value->origin == ORIGIN_COMMAND_LINE)
		return 0;
	standard = strdup(option_rows[id].standard);
	if (!standard)
		return fail(err, ERR_MEMORY, "reading the options");
	free(value->text);
	value->text = standard;
	value->origin = ORIGIN_DEFAULT;
	return 0;
}

bool options_flag(const struct options *options, enum option_id id)
{
	bool flag = false;

	value_flag(options_text(options, id), &flag);
	return flag;
}

uint64_t options_count(const struct options *options, enum option_id id)
{
	uint64_t number = 0;

	value_count(options_text(options, id), 0, UINT64_MAX, &number);
	return number;
}

uint64_t options_duration_ns(const struct options *options, enum option_id id)
{
	uint64_t ns = 0;

	value_duration(options_text(options, id), &ns);
	return ns;
}

uint32_t options_percent_ppm(const struct options *options, enum option_id id)
{
	uint32_t ppm = 0;

	value_percent(options_text(options, id), &ppm);
	return ppm;
}

unsigned options_choice(const struct options *options, enum option_id id)
{
	unsigned choice = 0;

	value_choice(options_text(options, id), option_rows[id].constraint, &choice);
	return choice;
}

bool options_list(const struct options *options, enum option_id id, size_t index, char out[OPTION_PART_BYTES])
{
	for (const char *at = options_text(options, id); *at;) {
		size_t length = strcspn(at, ",");

		if (length && index-- == 0) {
			snprintf(out, OPTION_PART_BYTES, "%.*s", (int)length, at);
			return true;
		}
		at += length + (at[length] == ',');
	}
	return false;
}

const char *option_origin_name(enum option_origin origin)
{
	static const char *const names[] = { "default", "file", "environment", "command line" };

	return names[origin];
}
