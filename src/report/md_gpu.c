/* The device's part of the Markdown report: tables of at most five columns, as the others. */
#include <math.h>

#include "report/export.h"
#include "report/md.h"
#include "report/name.h"

enum { KERNELS_SHOWN = 10, SITES_SHOWN = 8, STREAMS_SHOWN = 8, DEVICES_SHOWN = 16 };

static void add_devices(struct text *out, const struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->device_count && i < DEVICES_SHOWN; i++) {
		const struct device *device = &timeline->devices[i];
		double whole = (double)timeline->duration_ns;
		bool first = true;

		text_printf(out, "- GPU %u", device->id);
		if (device->name[0]) {
			text_add_string(out, " ");
			md_add_span(out, device->name, MD_NAME, 0);
		}
		if (device->instance[0]) {
			text_add_string(out, ", MIG ");
			md_add_span(out, device->instance, MD_NAME, 0);
		}
		text_printf(out, ": busy %s%s", device->cut ? "at least " : "", quantity_pct(whole > 0 ? 100 * (double)device->busy_ns / whole : NAN, 0).text);
		for (size_t cause = 0; cause < GPU_IDLE_CAUSES && whole > 0; cause++) {
			if (!device->idle_ns[cause])
				continue;
			text_printf(out, "%s%s %s", first ? "; idle: " : ", ", GPU_IDLE_LABELS[cause], quantity_pct(100 * (double)device->idle_ns[cause] / whole, 0).text);
			first = false;
		}
		text_add_string(out, "\n");
	}
}

static void add_launches(struct text *out, const struct gpu_facts *gpu)
{
	if (gpu->launch_calls)
		text_printf(out, "- launches: %s calls of %s (p50), %s (p95)\n", quantity_count(gpu->launch_calls, 0).text, quantity_ns(gpu->launch_call_p50_ns, 0).text, quantity_ns(gpu->launch_call_p95_ns, 0).text);
	if (gpu->launches)
		text_printf(out, "- from the end of such a call to the start of its work: %s (p50), %s (p95), %s (longest)\n", quantity_of((double)gpu->launch_delay_median_ns, "ns", 0).text,
		            quantity_of((double)gpu->launch_delay_p95_ns, "ns", 0).text, quantity_of((double)gpu->launch_delay_max_ns, "ns", 0).text);
}

static void add_gpu_table(struct text *out, const struct gpu_table *table, enum gpu_table_kind kind)
{
	const struct gpu_table_words *words = &GPU_TABLE_WORDS[kind];
	bool moves = kind == GPU_TABLE_MEMORY;

	if (!table->count)
		return;
	text_printf(out, "\n| %s | Time (%%) | Total Time | %s | Avg / Med / Min / Max / StdDev%s |\n|---|---:|---:|---:|---|\n", words->name, words->count, moves ? "; GB/s" : "");
	for (size_t i = 0; i < table->count && i < KERNELS_SHOWN; i++) {
		const struct gpu_row *row = &table->rows[i];

		text_add_string(out, "| ");
		md_add_code(out, row->name, MD_NAME, 0);
		text_printf(out, " | %s | %s | %s | %s / %s", quantity_pct(row->pct, 0).text, quantity_ns(row->total_ns, 0).text, quantity_count(row->count, 0).text, quantity_ns((uint64_t)row->mean_ns, 0).text,
		            quantity_ns((uint64_t)row->median_ns, row->median_about ? QUANTITY_ABOUT : 0).text);
		text_printf(out, " / %s / %s / %s", quantity_ns(row->min_ns, 0).text, quantity_ns(row->max_ns, 0).text, quantity_ns((uint64_t)row->deviation_ns, 0).text);
		if (moves && row->total_ns)
			text_printf(out, "; %s", quantity_plain((double)row->bytes / (double)row->total_ns, 2).text);
		text_add_string(out, " |\n");
	}
	if (table->count + table->omitted > KERNELS_SHOWN)
		text_printf(out, "\nAnd %s more.\n", quantity_count(table->count + table->omitted - KERNELS_SHOWN, 0).text);
}

static void add_sites(struct text *out, const struct timeline *timeline)
{
	const struct gpu_facts *gpu = &timeline->gpu;

	if (!gpu->site_count)
		return;
	text_add_string(out, "\n| Who calls the GPU | Call | Calls | Host time | GPU time |\n|---|---|---:|---:|---:|\n");
	for (size_t i = 0; i < gpu->site_count && i < SITES_SHOWN; i++) {
		const struct gpu_site *site = &gpu->sites[i];
		const struct function *function = site->function < timeline->function_count ? &timeline->functions[site->function] : NULL;

		text_add_string(out, "| ");
		if (function) {
			md_add_code(out, function->name, MD_NAME, 0);
			text_add_string(out, " ");
			md_add_place(out, function->file, function->line);
		} else {
			text_add_string(out, "no call was seen");
		}
		text_printf(out, " | %s | %s | %s | %s |\n", GPU_CALL_LABELS[site->class_], quantity_count(site->count, 0).text, quantity_ns(site->time_ns, 0).text, quantity_ns(site->gpu_ns, 0).text);
	}
	if (gpu->site_count > SITES_SHOWN)
		text_printf(out, "\nAnd %zu more.\n", gpu->site_count - SITES_SHOWN);
}

static void add_streams(struct text *out, const struct timeline *timeline)
{
	const struct gpu_facts *gpu = &timeline->gpu;

	if (!gpu->stream_count)
		return;
	text_add_string(out, "\n| Stream | Busy | Host late | Sync caused | Queue p50 / max |\n|---|---:|---:|---:|---:|\n");
	for (size_t i = 0; i < gpu->stream_count && i < STREAMS_SHOWN; i++) {
		const struct gpu_stream *stream = &gpu->streams[i];

		text_printf(out, "| GPU %u, stream %u%s | %s | %s | %s", stream->device, stream->stream, export_stream_owner(timeline, stream->device, stream->stream, stream->process, ", process ").text, quantity_ns(stream->busy_ns, 0).text, quantity_ns(stream->idle_ns[GPU_HOST_LATE], 0).text, quantity_ns(stream->idle_ns[GPU_SYNC_CAUSED], 0).text);
		text_printf(out, " | %u / %u |\n", stream->queue.p50, stream->queue.max);
	}
	if (gpu->stream_count > STREAMS_SHOWN)
		text_printf(out, "\nAnd %zu more.\n", gpu->stream_count - STREAMS_SHOWN);
}

void md_add_gpu(struct text *out, const struct report *report, const struct gpu_tables *tables)
{
	if (!report->timeline->device_count)
		return;
	text_add_string(out, "\n## GPU\n\n");
	add_devices(out, report->timeline);
	add_launches(out, &report->timeline->gpu);
	for (size_t kind = 0; kind < GPU_TABLES; kind++)
		add_gpu_table(out, &tables->of[kind], (enum gpu_table_kind)kind);
	add_sites(out, report->timeline);
	add_streams(out, report->timeline);
}
