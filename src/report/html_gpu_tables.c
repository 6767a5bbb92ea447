/* What devices did, by name, with the columns of Nsight Systems' statistics: kernels, copies, CUDA calls; how launches went; streams. */
#include <stdio.h>

#include "report/export.h"
#include "report/html.h"

enum { ROWS_SHOWN = 50, STREAMS_SHOWN = 50, NAME_SHOWN = 72 };

static void add_head(struct text *out, const char *name, const char *css)
{
	text_printf(out, "<th scope=\"col\"%s%s%s>%s</th>", *css ? " class=\"" : "", css, *css ? "\"" : "", name);
}

static void add_time(struct text *out, double ns, unsigned flags)
{
	html_add_number(out, ns, quantity_ns((uint64_t)ns, flags), false);
}

static void add_row(struct text *out, const struct gpu_row *row, double most_pct, bool moves)
{
	text_add_string(out, "<tr><td class=\"fn\">");
	html_add_name(out, row->name, NAME_SHOWN);
	text_printf(out, "</td><td class=\"share\"><div class=\"bar gpu\"><i style=\"width:%s%%\"></i></div></td>", quantity_plain(most_pct > 0 ? 100 * row->pct / most_pct : 0, 2).text);
	html_add_number(out, row->pct, quantity_pct(row->pct, 0), true);
	add_time(out, (double)row->total_ns, 0);
	html_add_number(out, (double)row->count, quantity_count(row->count, 0), false);
	add_time(out, row->mean_ns, 0);
	add_time(out, row->median_ns, row->median_about ? QUANTITY_ABOUT : 0);
	add_time(out, (double)row->min_ns, 0);
	add_time(out, (double)row->max_ns, 0);
	add_time(out, row->deviation_ns, 0);
	if (moves) {
		double speed = row->total_ns ? (double)row->bytes / (double)row->total_ns : 0;

		html_add_number(out, (double)row->bytes, quantity_bytes(row->bytes, 0), false);
		html_add_number(out, speed, quantity_plain(speed, 2), false);
	}
	text_add_string(out, "</tr>\n");
}

static void add_table(struct text *out, const struct gpu_table *table, enum gpu_table_kind kind)
{
	static const char *const times[] = { "Avg", "Med", "Min", "Max", "StdDev" };
	const struct gpu_table_words *words = &GPU_TABLE_WORDS[kind];
	size_t shown = table->count < ROWS_SHOWN ? table->count : ROWS_SHOWN, all = table->count + table->omitted;
	struct text heads;

	if (!table->count)
		return;
	text_init(&heads);
	add_head(&heads, words->name, "");
	add_head(&heads, "Share", "share");
	add_head(&heads, "Time (%)", "n");
	add_head(&heads, "Total Time", "n");
	add_head(&heads, words->count, "n");
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		add_head(&heads, times[i], "n");
	if (kind == GPU_TABLE_MEMORY) {
		add_head(&heads, "Bytes", "n");
		add_head(&heads, "GB/s", "n");
	}
	if (kind != GPU_TABLE_KERNELS)
		text_printf(out, "<h3 class=\"sub whole\">%s</h3>", words->title);
	html_begin_table(out, words->title, text_string(&heads));
	text_end(&heads, out);
	for (size_t i = 0; i < shown; i++)
		add_row(out, &table->rows[i], table->rows[0].pct, kind == GPU_TABLE_MEMORY);
	text_add_string(out, "</tbody></table></div>");
	if (all > shown)
		text_printf(out, "<p class=\"soft small whole\">And %s more, smaller ones: JSON and CSV have them.</p>", quantity_count(all - shown, 0).text);
}

static void add_launches(struct text *out, const struct gpu_facts *gpu)
{
	if (!gpu->launch_calls && !gpu->launches)
		return;
	text_add_string(out, "<h3 class=\"sub whole\">Launches</h3><ul class=\"whole\">");
	if (gpu->launch_calls)
		text_printf(out, "<li>%s calls that launch kernels or graphs took %s (p50), %s (p95); %s of them more than %s</li>", quantity_count(gpu->launch_calls, 0).text, quantity_ns(gpu->launch_call_p50_ns, 0).text,
			    quantity_ns(gpu->launch_call_p95_ns, 0).text, quantity_count(gpu->slow_launch_calls, 0).text, quantity_ns(GPU_SLOW_CALL_NS, 0).text);
	if (gpu->launches)
		text_printf(out, "<li>from the end of the call to the start of its work: %s (p50), %s (p95), %s (longest); more than %s for %s of %s calls</li>", quantity_of((double)gpu->launch_delay_median_ns, "ns", 0).text,
			    quantity_of((double)gpu->launch_delay_p95_ns, "ns", 0).text, quantity_of((double)gpu->launch_delay_max_ns, "ns", 0).text, quantity_ns(GPU_LATE_LAUNCH_NS, 0).text, quantity_count(gpu->late_launches, 0).text,
			    quantity_count(gpu->launch_delays, 0).text);
	text_printf(out, "<li>%s kernels ran for less time than their part of the call that launched them</li></ul>", quantity_count(gpu->short_kernels, 0).text);
}

static void add_stream(struct text *out, const struct timeline *timeline, const struct gpu_stream *stream)
{
	uint64_t duration_ns = timeline->duration_ns;
	double busy_pct = duration_ns ? 100 * (double)stream->busy_ns / (double)duration_ns : 0;

	text_printf(out, "<tr><td class=\"nb\">GPU %u, stream %u%s</td>", stream->device, stream->stream, export_stream_owner(timeline, stream->device, stream->stream, stream->process, ", process ").text);
	html_add_number(out, busy_pct, quantity_pct(busy_pct, 0), true);
	add_time(out, (double)stream->busy_ns, 0);
	for (size_t cause = 0; cause < GPU_IDLE_CAUSES; cause++)
		add_time(out, (double)stream->idle_ns[cause], 0);
	html_add_number(out, stream->queue.p50, quantity_count(stream->queue.p50, 0), false);
	html_add_number(out, stream->queue.max, quantity_count(stream->queue.max, 0), false);
	text_add_string(out, "</tr>\n");
}

static void add_streams(struct text *out, const struct timeline *timeline)
{
	const struct gpu_facts *gpu = &timeline->gpu;
	struct text heads;

	if (!gpu->stream_count)
		return;
	text_init(&heads);
	add_head(&heads, "Stream", "");
	add_head(&heads, "Busy (%)", "n");
	add_head(&heads, "Busy", "n");
	for (size_t cause = 0; cause < GPU_IDLE_CAUSES; cause++) {
		char name[64];

		snprintf(name, sizeof name, "Idle: %s", GPU_IDLE_LABELS[cause]);
		add_head(&heads, name, "n");
	}
	add_head(&heads, "Queue p50", "n");
	add_head(&heads, "Queue max", "n");
	text_add_string(out, "<h3 class=\"sub whole\">Streams</h3>");
	html_begin_table(out, "Streams", text_string(&heads));
	text_end(&heads, out);
	for (size_t i = 0; i < gpu->stream_count && i < STREAMS_SHOWN; i++)
		add_stream(out, timeline, &gpu->streams[i]);
	text_add_string(out, "</tbody></table></div>");
	if (gpu->stream_count > STREAMS_SHOWN)
		text_printf(out, "<p class=\"soft small whole\">And %zu more: JSON has them.</p>", gpu->stream_count - STREAMS_SHOWN);
}

void html_add_gpu_tables(struct text *out, const struct report *report, const struct gpu_tables *tables)
{
	const struct gpu_table *kernels = &tables->of[GPU_TABLE_KERNELS];
	bool any = report->timeline->gpu.stream_count > 0;

	for (size_t kind = 0; kind < GPU_TABLES; kind++)
		any |= tables->of[kind].count > 0;
	if (!any)
		return;
	text_printf(out, "<section id=\"kernels\"><h2>Kernels<small>%s name%s, most time first; times are sums, also of those that ran at once</small></h2>", quantity_count(kernels->count + kernels->omitted, 0).text,
		    kernels->count + kernels->omitted == 1 ? "" : "s");
	for (size_t kind = 0; kind < GPU_TABLES; kind++)
		add_table(out, &tables->of[kind], (enum gpu_table_kind)kind);
	add_launches(out, &report->timeline->gpu);
	add_streams(out, report->timeline);
	text_add_string(out, "</section>\n");
}
