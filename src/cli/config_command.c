/* config show: every setting, its value, where it comes from. */
#include <stdio.h>
#include <string.h>

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
		printf("]}\n");
	return 0;
}
