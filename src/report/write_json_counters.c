/* Counters in the JSON report: of each thread, and by function. */
#include <stdio.h>

#include "report/document.h"
#include "report/model.h"

/* What is not known is null. */
static void put_values(struct json *json, cJSON *object, const struct counter_row *row, int first)
{
	for (int which = first; which < THREAD_COUNTERS; which++) {
		const char *name = thread_counter_row((enum thread_counter)which)->name;
		char key[64];

		snprintf(key, sizeof key, "%s%s", name, which == COUNTER_TASK_CLOCK ? "" : "_count");
		if (row->known >> which & 1)
			put_u64(json, object, key, row->counters[which]);
		else
			put(json, object, key, cJSON_CreateNull());
	}
}

void put_counters(struct json *json, cJSON *root, const struct report *report)
{
	cJSON *counters = put_object(json, root, "counters"), *array = put_array(json, counters, "threads");

	for (size_t i = 0; i < report->counted_threads.count && !json->failed; i++) {
		const struct counter_row *row = &report->counted_threads.rows[i];
		cJSON *object = append_object(json, array);

		put_u64(json, object, "tid", row->tid);
		put_string(json, object, "name", row->name);
		put_bool(json, object, "estimated", row->about != 0);
		put_values(json, object, row, 0);
	}
	array = put_array(json, counters, "functions");
	for (size_t i = 0; i < report->counted_functions.count && !json->failed; i++) {
		const struct counter_row *row = &report->counted_functions.rows[i];
		cJSON *object = append_object(json, array);

		put_known(json, object, "function", row->function ? row->name : NULL);
		put_line(json, object, row->function ? row->function->file : NULL, row->function ? row->function->line : 0);
		put_values(json, object, row, COUNTERS_SAMPLED);
	}
}
