/* Devices in the JSON report: sets of numbers that docs/metrics.md defines, and lists. */
#include <math.h>
#include <stdio.h>

#include "report/document.h"
#include "report/export.h"
#include "report/gpu_tables.h"

enum { STACK_FRAMES_MAX = 256, SITES_SHOWN = 500 };

static void put_copies(struct json *json, cJSON *metrics, const struct gpu_facts *gpu)
{
	cJSON *all = put_object(json, metrics, "gpu.copies");

	for (size_t i = 0; i < gpu->copies_count; i++) {
		const struct gpu_copies *copies = &gpu->copies[i];
		char name[COPIES_NAME];
		cJSON *object;

		copies_name(copies->kind, copies->memory_kinds, name);
		object = put_object(json, all, name);
		put_u64(json, object, "count", copies->count);
		put_u64(json, object, "bytes", copies->bytes);
		put_us(json, object, "time_us", copies->time_ns);
		put_number(json, object, "gb_per_s", copies->time_ns ? (double)copies->bytes / (double)copies->time_ns : NAN, 3);
	}
}

static const char *const CAUSES[GPU_IDLE_CAUSES] = { "no_demand", "host_late", "sync_caused", "device_dependency", "unknown" };

void put_idle_causes(struct json *json, cJSON *object, const uint64_t idle_ns[GPU_IDLE_CAUSES])
{
	char key[48];

	for (int cause = 0; cause < GPU_IDLE_CAUSES; cause++) {
		snprintf(key, sizeof key, "%s_us", CAUSES[cause]);
		put_us(json, object, key, idle_ns[cause]);
	}
}

static void put_streams(struct json *json, cJSON *metrics, const struct timeline *timeline)
{
	cJSON *busy = put_object(json, metrics, "gpu.stream_busy_us"), *idle = put_object(json, metrics, "gpu.stream_idle"), *queue = put_object(json, metrics, "gpu.queue");

	for (size_t i = 0; i < timeline->gpu.stream_count; i++) {
		const struct gpu_stream *stream = &timeline->gpu.streams[i];
		char name[64];
		cJSON *object;

		snprintf(name, sizeof name, "%u/%u%s", stream->device, stream->stream, export_stream_owner(timeline, stream->device, stream->stream, stream->process, "/").text);
		put_us(json, busy, name, stream->busy_ns);
		put_idle_causes(json, put_object(json, idle, name), stream->idle_ns);
		object = put_object(json, queue, name);
		put_u64(json, object, "readings", stream->queue.readings);
		put_u64(json, object, "p50", stream->queue.p50);
		put_u64(json, object, "max", stream->queue.max);
		put_us(json, object, "full_us", stream->queue.full_ns);
	}
}

void put_gpu_metrics(struct json *json, cJSON *metrics, const struct timeline *timeline)
{
	static const char *const classes[GPU_CLASSES] = { "computation", "communication", "memory" };
	static const char *const pairs[GPU_CLASSES] = { "communication_memory", "computation_memory", "computation_communication" };
	const struct gpu_facts *gpu = &timeline->gpu;
	cJSON *object;

	if (!gpu->events)
		return;
	object = put_object(json, metrics, "gpu.temporal");

	put_us(json, object, "kernel_time_us", gpu->span_ns);
	put_us(json, object, "idle_time_us", gpu->span_ns - gpu->any_ns);
	put_us(json, object, "compute_time_us", gpu->busy_ns[GPU_COMPUTATION]);
	put_us(json, object, "non_compute_time_us", gpu->any_ns - gpu->busy_ns[GPU_COMPUTATION]);
	object = put_object(json, metrics, "gpu.busy_us");
	for (size_t i = 0; i < GPU_CLASSES; i++)
		if (gpu->count[i])
			put_us(json, object, classes[i], gpu->busy_ns[i]);
	object = put_object(json, metrics, "gpu.count");
	for (size_t i = 0; i < GPU_CLASSES; i++)
		if (gpu->count[i])
			put_u64(json, object, classes[i], gpu->count[i]);
	object = put_object(json, metrics, "gpu.overlap_us");
	for (size_t i = 0; i < GPU_CLASSES; i++)
		put_us(json, object, pairs[i], gpu->overlap_ns[i]);
	put_number(json, metrics, "gpu.comm_comp_overlap_pct",
	           gpu->busy_ns[GPU_COMMUNICATION] ? 100 * (double)gpu->overlap_ns[GPU_MEMORY] / (double)gpu->busy_ns[GPU_COMMUNICATION] : NAN, 3);
	put_streams(json, metrics, timeline);
	object = put_object(json, metrics, "gpu.device_idle");
	for (size_t i = 0; i < timeline->device_count; i++) {
		char name[16];

		snprintf(name, sizeof name, "%u", timeline->devices[i].id);
		put_idle_causes(json, put_object(json, object, name), timeline->devices[i].idle_ns);
	}
	put_copies(json, metrics, gpu);
	object = put_object(json, metrics, "gpu.launch");
	put_u64(json, object, "matched", gpu->launches);
	put_number(json, object, "delay_us_p50", gpu->launches ? (double)gpu->launch_delay_median_ns / 1e3 : NAN, 3);
	put_number(json, object, "delay_us_min", gpu->launches ? (double)gpu->launch_delay_min_ns / 1e3 : NAN, 3);
	put_number(json, object, "delay_us_p95", gpu->launches ? (double)gpu->launch_delay_p95_ns / 1e3 : NAN, 3);
	put_number(json, object, "delay_us_max", gpu->launches ? (double)gpu->launch_delay_max_ns / 1e3 : NAN, 3);
	put_u64(json, object, "late", gpu->late_launches);
	put_u64(json, object, "calls", gpu->launch_calls);
	put_number(json, object, "call_us_p50", gpu->launch_calls ? (double)gpu->launch_call_p50_ns / 1e3 : NAN, 3);
	put_number(json, object, "call_us_p95", gpu->launch_calls ? (double)gpu->launch_call_p95_ns / 1e3 : NAN, 3);
	put_u64(json, object, "slow_calls", gpu->slow_launch_calls);
	put_u64(json, object, "short_kernels", gpu->short_kernels);
}

static void put_device(struct json *json, cJSON *devices, const struct device *device)
{
	cJSON *object = append_object(json, devices);

	put_u64(json, object, "device_id", device->id);
	put_known(json, object, "name", device->name);
	put_known(json, object, "uuid", device->uuid);
	put_known(json, object, "mig_uuid", device->instance);
	put_u64(json, object, "memory_bytes", device->memory_bytes);
	put_u64(json, object, "multiprocessors", device->multiprocessors);
	put_u64(json, object, "kernels_count", device->kernels);
	put_u64(json, object, "copies_count", device->copies);
	put_u64(json, object, "busy_ns", device->busy_ns);
	put_u64(json, object, "kernel_ns", device->kernel_ns);
	put_u64(json, object, "copy_ns", device->copy_ns);
	put_u64(json, object, "copy_exposed_ns", device->copy_exposed_ns);
	put_u64(json, object, "h2d_bytes", device->h2d_bytes);
	put_u64(json, object, "d2h_bytes", device->d2h_bytes);
	put_u64(json, object, "d2d_bytes", device->d2d_bytes);
	put_u64(json, object, "first_ns", device->first_ns);
	put_u64(json, object, "last_ns", device->last_ns);
	put_idle_causes(json, put_object(json, object, "idle"), device->idle_ns);
	put_bool(json, object, "lower_bound", device->cut);
}

static void put_idle_stack(struct json *json, cJSON *stacks, const struct timeline *timeline, const struct gpu_idle_stack *stack)
{
	cJSON *object = append_object(json, stacks), *frames;
	uint32_t path[STACK_FRAMES_MAX], depth = 0;

	put_string(json, object, "cause", CAUSES[stack->cause]);
	put_us(json, object, "time_us", stack->time_ns);
	put_u64(json, object, "count", stack->count);
	put_us(json, object, "p50_us", stack->p50_ns);
	put_us(json, object, "longest_us", stack->longest_ns);
	put_us(json, object, "longest_at_us", stack->longest_at_ns);
	if (stack->node == UINT32_MAX)
		put(json, object, "tid", cJSON_CreateNull());
	else
		put_u64(json, object, "tid", timeline->threads[timeline->nodes[stack->node].thread].tid);
	for (uint32_t node = stack->node; node != UINT32_MAX && timeline->nodes[node].parent != UINT32_MAX && depth < STACK_FRAMES_MAX; node = timeline->nodes[node].parent)
		path[depth++] = timeline->nodes[node].function;
	frames = put_array(json, object, "frames");
	while (depth-- > 0)
		append(json, frames, string_token(timeline->functions[path[depth]].name));
}

static void put_site(struct json *json, cJSON *sites, const struct timeline *timeline, const struct gpu_site *site)
{
	static const char *const classes[GPU_CALL_CLASSES] = { "other", "launch", "graph_launch", "sync", "copy", "alloc", "module" };
	const struct function *function = site->function == UINT32_MAX ? NULL : &timeline->functions[site->function];
	cJSON *object = append_object(json, sites);

	put_string(json, object, "class", classes[site->class_]);
	put_known(json, object, "function", function ? function->name : NULL);
	put_known(json, object, "file", function ? function->file : NULL);
	if (function && function->line)
		put_u64(json, object, "line", function->line);
	else
		put(json, object, "line", cJSON_CreateNull());
	put_u64(json, object, "count", site->count);
	put_us(json, object, "time_us", site->time_ns);
	put_u64(json, object, "blocked_count", site->blocked);
	put_us(json, object, "blocked_us", site->blocked_ns);
	put_u64(json, object, "bytes", site->bytes);
	put_us(json, object, "gpu_us", site->gpu_ns);
}

static void put_row(struct json *json, cJSON *array, const struct gpu_row *row, bool moves)
{
	cJSON *object = append_object(json, array);

	put_string(json, object, "name", row->name);
	put_u64(json, object, "count", row->count);
	put_u64(json, object, "total_ns", row->total_ns);
	put_u64(json, object, "longest_ns", row->max_ns);
	put_u64(json, object, "shortest_ns", row->min_ns);
	put_number(json, object, "avg_ns", row->mean_ns, 1);
	put_number(json, object, "median_ns", row->median_ns, 1);
	put_bool(json, object, "median_estimated", row->median_about);
	put_number(json, object, "stddev_ns", row->deviation_ns, 1);
	put_number(json, object, "time_pct", row->pct, 3);
	if (!moves)
		return;
	put_u64(json, object, "bytes", row->bytes);
	put_number(json, object, "gb_per_s", row->total_ns ? (double)row->bytes / (double)row->total_ns : NAN, 3);
}

/* Names beyond GPU_ROWS_MAX are counted. */
void put_gpu_tables(struct json *json, cJSON *root, const struct gpu_tables *tables)
{
	for (size_t kind = 0; kind < GPU_TABLES; kind++) {
		const struct gpu_table *table = &tables->of[kind];
		cJSON *array = put_array(json, root, GPU_TABLE_WORDS[kind].key);
		char key[64];

		for (size_t i = 0; i < table->count && !json->failed; i++)
			put_row(json, array, &table->rows[i], kind == GPU_TABLE_MEMORY);
		snprintf(key, sizeof key, "%s_omitted_count", GPU_TABLE_WORDS[kind].key);
		put_u64(json, root, key, table->omitted);
	}
}

void put_gpu_lists(struct json *json, cJSON *root, const struct timeline *timeline)
{
	const struct gpu_facts *gpu = &timeline->gpu;
	cJSON *array = put_array(json, root, "devices");

	for (size_t i = 0; i < timeline->device_count; i++)
		put_device(json, array, &timeline->devices[i]);
	array = put_array(json, root, "gpu_idle_stacks");
	for (size_t i = 0; i < gpu->idle_stack_count && !json->failed; i++)
		put_idle_stack(json, array, timeline, &gpu->idle_stacks[i]);
	array = put_array(json, root, "gpu_sites");
	for (size_t i = 0; i < gpu->site_count && i < SITES_SHOWN && !json->failed; i++)
		put_site(json, array, timeline, &gpu->sites[i]);
}

