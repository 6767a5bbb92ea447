/* A turn as one line of JSON: schema inferscope.top/1. */
#include "cli/top.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"

enum { ROWS = 50 };

static void string_field(struct text *out, const char *key, const char *value)
{
	text_printf(out, "\"%s\":\"", key);
	text_add_json(out, value, strlen(value));
	text_add_string(out, "\"");
}

/* Seconds of a thread or a CPU in one second, as percent. */
static double pct(const struct live_turn *turn, uint64_t ns)
{
	return turn->length_ns ? 100.0 * (double)ns / (double)turn->length_ns : 0;
}

static void json_functions(struct text *out, const struct top_view *view, const struct live_turn *turn, size_t most)
{
	size_t count;
	const struct tally_function **rows = top_functions(view, turn, &count);
	bool gpu = top_knows_gpu(view, turn);

	for (size_t i = 0; i < count && i < most; i++) {
		const struct tally_function *row = rows[i];

		text_printf(out, "%s{\"kind\":\"%s\",", i ? "," : "", row->native ? "native" : "python");
		string_field(out, "function", row->name);
		text_add_string(out, ",");
		string_field(out, "file", row->file);
		text_printf(out, ",\"line\":%u,\"self_pct\":%.2f,\"total_pct\":%.2f,\"gil_pct\":%.2f", row->line, pct(turn, top_self_ns(view, &row->now)), pct(turn, top_total_ns(view, &row->now)),
		            pct(turn, row->now.gil_ns));
		if (gpu)
			text_printf(out, ",\"gpu_launch_pct\":%.2f,\"gpu_wait_pct\":%.2f", pct(turn, row->now.launch_ns), pct(turn, row->now.gpu_wait_ns));
		else
			text_add_string(out, ",\"gpu_launch_pct\":null,\"gpu_wait_pct\":null");
		text_printf(out, ",\"self_ns\":%llu,\"total_ns\":%llu}", (unsigned long long)top_self_ns(view, &row->all), (unsigned long long)top_total_ns(view, &row->all));
	}
	free(rows);
}

static void json_threads(struct text *out, const struct live_turn *turn)
{
	size_t count;
	const struct tally_function *functions = tally_functions(turn->tally, &count);

	for (size_t i = 0; i < turn->thread_count; i++) {
		const struct live_thread *thread = &turn->threads[i];
		const struct tally_thread *samples = thread->samples;

		text_printf(out, "%s{\"tid\":%d,", i ? "," : "", (int)thread->tid);
		string_field(out, "name", thread->name);
		text_printf(out, ",\"state\":\"%s\",\"cpu_pct\":%.2f,\"gil_pct\":%.2f,\"gil_wait_pct\":%.2f,", samples ? thread_state_name(samples->state) : "unknown", pct(turn, thread->cpu_ns),
		            pct(turn, samples ? samples->gil_ns : 0), pct(turn, samples ? samples->gil_wait_ns : 0));
		string_field(out, "function", samples && samples->function < count ? functions[samples->function].name : "");
		text_add_string(out, "}");
	}
}

static void json_gpus(struct text *out, const struct live_turn *turn)
{
	text_add_string(out, ",\"gpus\":[");
	for (size_t i = 0; i < turn->gpu_count; i++)
		text_printf(out, "%s{\"device\":%u,\"busy_pct\":%u}", i ? "," : "", turn->gpus[i].minor, turn->gpus[i].busy_pct);
	text_add_string(out, "],");
	string_field(out, "gpu_why", turn->gpu_why);
}

void top_json(struct text *out, const struct top_view *view, const struct live_turn *turn, size_t rows)
{
	text_printf(out, "{\"schema\":\"inferscope.top/1\",\"inferscope\":\"%s\",\"pid\":%d,", PACKAGE_VERSION, (int)view->pid);
	string_field(out, "command", view->command);
	text_printf(out, ",\"elapsed_ns\":%llu,\"interval_ns\":%llu,\"cpu_pct\":%.2f,\"rss_bytes\":%llu,\"gil_busy_pct\":%.2f,\"gil_waiting_count\":%.2f", (unsigned long long)turn->elapsed_ns,
	            (unsigned long long)turn->length_ns, pct(turn, turn->cpu_ns), (unsigned long long)turn->rss_bytes, pct(turn, turn->gil_ns), pct(turn, turn->gil_wait_ns) / 100);
	text_printf(out, ",\"sample_count\":%llu,\"rate_hz\":%.0f,\"own_cpu_pct\":%.2f,\"stolen_pct\":%.3f,\"native\":%s,", (unsigned long long)turn->samples, turn->rate_hz, pct(turn, turn->cost_ns),
	            pct(turn, turn->stolen_ns), turn->ways.native ? "true" : "false");
	string_field(out, "native_why", *turn->ways.why_not_native ? turn->ways.why_not_native : turn->ways.why_not_held);
	json_gpus(out, turn);
	text_add_string(out, ",\"functions\":[");
	json_functions(out, view, turn, rows ? rows : ROWS);
	text_add_string(out, "],\"threads\":[");
	json_threads(out, turn);
	text_add_string(out, "]}\n");
}
