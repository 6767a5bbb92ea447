/* config show: every setting, its value, where it comes from; and variables that look like one and are none. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/command.h"

static void value_shown(struct text *out, const struct options *options, enum option_id id)
{
	const char *value = options_text(options, id);

	if (option_rows[id].kind == KIND_FLAG)
		value = options_flag(options, id) ? "yes" : "no";
	text_add_visible(out, value, strlen(value));
}

static void row_print(const struct options *options, enum option_id id, bool json, bool first)
{
	enum option_origin origin = options->values[id].origin;
	char environment[64];
	struct text value;

	text_init(&value);
	option_environment_name(id, environment, sizeof environment);
	if (json) {
		text_add_json(&value, options_text(options, id), strlen(options_text(options, id)));
		printf("%s{\"name\":\"%s\",\"value\":\"%s\",\"origin\":\"%s\",\"environment\":\"%s\"}", first ? "" : ",", option_rows[id].name, text_string(&value),
		       option_origin_name(origin), environment);
	} else {
		value_shown(&value, options, id);
		printf("%-22s %-14s %s", option_rows[id].name, value.length ? value.data : "\"\"", option_origin_name(origin));
		if (origin == ORIGIN_FILE)
			printf(" %s", options->file ? options->file : "");
		if (origin == ORIGIN_ENVIRONMENT)
			printf(" %s", environment);
		putchar('\n');
	}
	text_done(&value);
}

#define PREFIX "INFERSCOPE_"
enum { KEY_LENGTH_MAX = 40 };

/* The setting that KEY may have meant, which is named as options are; OPT_COUNT: none is like it. */
static enum option_id setting_meant(const char *key)
{
	enum option_id id = option_find(key, strlen(key), 0);
	const char *close = id == OPT_COUNT ? option_suggest(key, strlen(key), 0) : NULL;

	if (close)
		id = option_find(close, strlen(close), 0);
	return id != OPT_COUNT && option_rows[id].reach == REACH_SETTING ? id : OPT_COUNT;
}

/* Is VARIABLE, of LENGTH, called like a setting, and none? *MEANT is the nearest, or OPT_COUNT. */
static bool is_ignored(const char *variable, size_t length, enum option_id *meant)
{
	static const char *const others[] = { PREFIX "PROGRAM" /* what the Python package starts */, PREFIX "START_IN" /* contrib/slurm/profile */ };
	char key[KEY_LENGTH_MAX + 1] = "", name[64];
	size_t prefix = strlen(PREFIX);

	if (length <= prefix || memcmp(variable, PREFIX, prefix) != 0)
		return false;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strlen(others[i]) == length && memcmp(variable, others[i], length) == 0)
			return false;
	for (size_t i = prefix; i < length && length - prefix <= KEY_LENGTH_MAX; i++)
		key[i - prefix] = variable[i] == '_' ? '-' : (char)tolower((unsigned char)variable[i]);
	*meant = setting_meant(key);
	if (*meant == OPT_COUNT)
		return true;
	option_environment_name(*meant, name, sizeof name);
	return strlen(name) != length || memcmp(name, variable, length) != 0;
}

static void ignored_print(bool json)
{
	bool first = true;

	for (char **at = environ; *at; at++) {
		size_t length = strcspn(*at, "=");
		enum option_id meant;
		struct text name;
		char close[64];

		if (!is_ignored(*at, length, &meant))
			continue;
		text_init(&name);
		if (json) {
			text_add_json(&name, *at, length);
			printf("%s\"%s\"", first ? "" : ",", text_string(&name));
		} else {
			text_add_visible(&name, *at, length);
			printf("%s is no setting, and has no effect", text_string(&name));
			if (meant != OPT_COUNT) {
				option_environment_name(meant, close, sizeof close);
				printf(": did you mean %s?", close);
			}
			putchar('\n');
		}
		text_done(&name);
		first = false;
	}
}

int config_command(struct invocation *invocation, struct error *err)
{
	bool json = options_flag(&invocation->options, OPT_JSON), first = true;

	if (json)
		printf("{\"schema\":\"inferscope.config/1\",\"settings\":[");
	for (int i = 0; i < OPT_COUNT; i++) {
		if (option_rows[i].reach != REACH_SETTING)
			continue;
		row_print(&invocation->options, (enum option_id)i, json, first);
		first = false;
	}
	if (json)
		printf("],\"ignored\":[");
	ignored_print(json);
	if (json)
		printf("]}\n");
	return 0;
}
