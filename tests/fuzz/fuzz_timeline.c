/* Any sequence of events in any lanes: a timeline and an analysis come out whose parts fit together, whatever the events claim. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "base/text.h"
#include "tests/fuzz/rules.h"
#include "trace/event_info.h"
#include "trace/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input { const uint8_t *at, *end; };

static uint64_t take(struct input *input, size_t bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < bytes && input->at < input->end; i++)
		value |= (uint64_t)*input->at++ << 8 * i;
	return value;
}

/* Mostly small steps, sometimes a wild jump. */
static uint64_t take_time(struct input *input, uint64_t now)
{
	uint64_t step = take(input, 1);

	if (step < 200)
		return now + step * 1000;
	return step < 250 ? now + step * 5000000 : step < 254 ? now - step * 100000 : take(input, 8);
}

static uint32_t take_ref(struct input *input)
{
	uint32_t ref = (uint32_t)take(input, 1);

	return ref < 250 ? ref % 12 : ref < 254 ? 0x40000000 + ref % 12 : (uint32_t)take(input, 4);
}

static uint64_t take_number(struct input *input)
{
	uint64_t number = take(input, 1);

	return number < 64 ? number : number < 200 ? number * 1000 : number < 250 ? number * 5000000 : take(input, 8);
}

/* Mostly what somebody looks for. */
static const char *take_word(struct input *input)
{
	static const char *const words[] = {
		"", "read(socket)", "futex(gil)", "fsync", "epoll_wait", "cpus", "2", "8.5", "clock", "end", "target_exited", "hook", "memory", "memory.interval", "memory.native", "memory.raw", "allocators", "pools",
		"cpus.quota", "threads_unhooked", "process_cpu_ns", "overhead_ppm", "lost_events", "skipped_calls", "syscalls_covered_ns", "cgroup_memory_limit_bytes", "cgroup_memory_bytes", "cgroup_throttled_ns",
		"pressure_memory_some_ns", "numa_pages", "numa_remote_pages", "torn_samples", "sampler_hold_max_ns", "pss_bytes", "memory_full", "syscalls", "c_calls_off", "pinned", "task_clock_ns",
		"context_switches", "cpu_migrations", "minor_faults", "major_faults", "cycles", "instructions", "cache_misses", "ncclDevKernel_AllReduce", "Memcpy", "cudaLaunchKernel", "cudaStreamSynchronize",
		"cudaGraphLaunch", "Optimizer.step", "/usr/lib/libcublas.so", "/usr/lib/python3.12/asyncio/base_events.py", "tokenize", "Task-1", "main", "Future", "sleep", "{\"request_id\": 7}",
	};

	return words[take(input, 1) % (sizeof words / sizeof *words)];
}

/* An event of any kind, by the table of all kinds. */
static void add_any(struct input *input, struct event_builder *b, uint64_t at, uint32_t ref, unsigned kind)
{
	static const char zeros[8];
	const struct event_info *info = event_info(kind);
	struct event event = { .ticks = at, .ref = ref, .kind = (uint8_t)kind, .flags = kind & 1 ? (uint8_t)take(input, 1) : 0 };
	unsigned char bytes[1024];
	size_t size = sizeof event;
	struct event_field field;

	if (!info)
		return;
	for (const char *rest = info->fields; event_field_next(&rest, &field);) {
		const char *word = field.type == FIELD_STR ? take_word(input) : NULL;
		uint64_t number = word ? strlen(word) : field.type == FIELD_U32 ? take_ref(input) : take_number(input);
		size_t width = word ? 2 : field.type == FIELD_U32 ? 4 : 8;

		memcpy(bytes + size, &number, width);
		size += width;
		if (word)
			memcpy(bytes + size, word, number);
		size += word ? number : 0;
	}
	memcpy(bytes + size, zeros, -size & 7);
	size += -size & 7;
	event.size = (uint16_t)size;
	memcpy(bytes, &event, sizeof event);
	event_builder_append(b, bytes, size);
}

static void add_event(struct input *input, struct event_builder *b, uint64_t *now)
{
	static const char *const names[] = { "", "f", "<module>", "Handle._run", "acquire", "wait" };
	static const char *const files[] = { "", "/srv/a.py", "/usr/lib/python3.11/threading.py", "/usr/lib/python3.11/asyncio/events.py", "/x/logging/__init__.py" };
	static const char *const waits[] = { "", "futex", "gil", "read", "epoll_wait", "clock_nanosleep" };
	uint32_t ref = take_ref(input), pick = (uint32_t)take(input, 1);
	const char *name = names[pick % 6], *file = files[pick / 6 % 5];
	uint64_t at = *now = take_time(input, *now);
	unsigned which = (unsigned)take(input, 1);

	if (which >= 192) {
		add_any(input, b, at, ref, pick);
		return;
	}
	switch (which % 24) {
	case 0: case 1: event_add(b, at, EVENT_PY_ENTER, ref, 0); break;
	case 2: case 3: event_add(b, at, EVENT_PY_LEAVE, ref, pick & 1); break;
	case 4: event_add(b, at, EVENT_PY_RESUME, ref, 0); break;
	case 5: event_add(b, at, EVENT_PY_YIELD, ref, 0); break;
	case 6: event_add(b, at, EVENT_C_ENTER, ref, 0); break;
	case 7: event_add(b, at, EVENT_C_LEAVE, ref, 0); break;
	case 8: event_add(b, at, EVENT_STACK_BEGIN, 0, 0, pick % 3); break;
	case 9: event_add(b, at, EVENT_SEED, ref, 0); break;
	case 10: event_add(b, at, EVENT_WINDOW_ON, 0, 0, pick % 7); break;
	case 11: event_add(b, at, EVENT_WINDOW_OFF, 0, 0, pick % 7); break;
	case 12: event_add(b, at, EVENT_CODE, ref, 0, (uint64_t)pick, pick, 0u, name, name, file); break;
	case 13: event_add(b, at, EVENT_C_FUNCTION, ref, 0, (uint64_t)pick, name, "m"); break;
	case 14: event_add(b, at, EVENT_THREAD_TIME, ref, 0, take(input, 5), take(input, 4), take(input, 2), take(input, 2), pick, waits[pick % 6]); break;
	case 15: event_add(b, at, EVENT_SAMPLE, ref, 0, take_ref(input), pick % 12, (uint64_t)1); break;
	case 16: event_add(b, at, EVENT_STACK, ref, 0, take_ref(input), take_ref(input), pick % 3); break;
	case 17: event_add(b, at, EVENT_NATIVE, ref, 0, (uint64_t)pick, ref, 0u, name, ""); break;
	case 18: event_add(b, at, EVENT_LOST, 0, 0, take(input, 3)); break;
	case 19: event_add(b, at, EVENT_THREAD, ref, 0, take(input, 5), name); break;
	case 20: event_add(b, at, EVENT_GPU_KERNEL, 0, 0, take(input, 5), 0u, pick % 3, ref, 1u, 1u, 1u, 1u, 1u, 1u, name); break;
	case 21: event_add(b, at, EVENT_H2D_COPY, 0, 0, take(input, 5), 0u, pick % 3, ref, take(input, 4), 0u); break;
	case 22: event_add(b, at, EVENT_SCOPE_ENTER, 0, 0, (uint64_t)(pick % 4), name, ""); break;
	default: event_add(b, at, EVENT_SCOPE_EXIT, 0, 0, (uint64_t)(pick % 4)); break;
	}
}

static void write_chunks(struct input *input, struct trace_writer *writer)
{
	static const uint64_t rates[] = { 1000000000, 3000000000, 1000000, 0, UINT64_MAX, 999999999 };
	uint64_t now[8] = { 0 };
	struct event_builder builder;
	struct error err;

	event_builder_init(&builder);
	while (input->at < input->end) {
		static const uint32_t kinds[] = { LANE_META, LANE_SESSION, LANE_GPU, LANE_THREAD, LANE_THREAD, LANE_THREAD, LANE_THREAD, LANE_MEMORY };
		uint32_t lane = (uint32_t)take(input, 1) % 8;
		uint8_t shape = (uint8_t)take(input, 1);
		struct chunk chunk = { .lane = lane, .lane_kind = kinds[lane], .tid = lane, .process = shape & 1, .sequence = take(input, 1), .lost_before = take(input, 1), .depth = shape >> 4 };

		chunk.clock = (struct clock_map){ take(input, 1), take(input, 1), rates[shape < 200 ? 0 : shape % 6] };
		chunk.ref_count = chunk.depth < 4 ? chunk.depth : 4;
		for (uint32_t i = 0; i < chunk.ref_count; i++)
			chunk.refs[i] = take_ref(input);
		for (uint64_t count = take(input, 1) % 40; count && input->at < input->end; count--)
			add_event(input, &builder, &now[lane]);
		chunk.events = builder.bytes;
		chunk.size = builder.size;
		if (builder.size && trace_writer_add(writer, &chunk, &err) < 0)
			abort();
		event_builder_clear(&builder);
	}
	event_builder_done(&builder);
}

struct checks { const struct timeline *timeline; uint64_t self_ns; };

static bool check_interval(void *context, const struct interval *interval)
{
	const struct checks *checks = context;

	if (interval->end_ns < interval->start_ns)
		abort();
	if (interval->thread != UINT32_MAX && interval->thread >= checks->timeline->thread_count)
		abort();
	if (interval->function != UINT32_MAX && interval->function >= checks->timeline->function_count)
		abort();
	return true;
}

static void check_timeline(const struct timeline *timeline)
{
	uint64_t functions = 0, nodes = 0;

	for (size_t i = 0; i < timeline->function_count; i++) {
		functions += timeline->functions[i].seen_self_ns;
		if (timeline->functions[i].seen_total_ns < timeline->functions[i].seen_self_ns && strcmp(timeline->functions[i].name, "(unknown)"))
			abort();
	}
	for (size_t i = 1; i < timeline->node_count; i++) {
		const struct tree_node *node = &timeline->nodes[i];

		if (node->parent >= i || node->function >= timeline->function_count || node->thread >= timeline->thread_count || node->total_ns < node->self_ns)
			abort();
		nodes += node->self_ns;
	}
	if (functions != nodes || (timeline->node_count && timeline->nodes[0].total_ns != nodes))
		abort();
	for (size_t i = 0; i < timeline->thread_count; i++) {
		const struct thread *t = &timeline->threads[i];

		if (t->python_ns + t->native_ns + t->gil_wait_ns + t->lock_wait_ns + t->io_wait_ns + t->gpu_wait_ns + t->sleep_ns + t->runnable_ns + t->idle_ns + t->unknown_ns != t->wall_ns)
			abort();
		if (t->wall_ns > timeline->duration_ns || t->covered_ns > t->wall_ns)
			abort();
	}
}

static void check_analysis(const struct analysis *analysis)
{
	const double *parts = (const double *)&analysis->verdict.breakdown;
	double sum = 0;

	for (size_t i = 0; i < sizeof analysis->verdict.breakdown / sizeof *parts; i++)
		sum += parts[i];
	if (!(fabs(sum - 100) < 1e-6 || sum == 0) || !(analysis->verdict.confidence >= 0 && analysis->verdict.confidence <= 1))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, data + size };
	struct timeline *timeline;
	struct analysis *analysis;
	struct trace_writer *writer;
	struct checks checks;
	struct trace *trace;
	struct sink *sink;
	struct text text;
	struct error err;

	text_init(&text);
	if (sink_open_text(&text, &sink, &err) < 0 || trace_writer_open(sink, CODEC_RAW, 1, &writer, &err) < 0)
		abort();
	write_chunks(&input, writer);
	trace_writer_close(writer);
	if (sink_commit(sink, &err) < 0 || trace_open_memory(text.data, text.length, &trace, &err) < 0 || timeline_build(trace, &timeline, &err) < 0)
		abort();
	check_timeline(timeline);
	checks = (struct checks){ .timeline = timeline };
	if (timeline_intervals(timeline, trace, check_interval, &checks, &err) < 0 || analysis_build_with(timeline, fuzz_rules(), NULL, 0, &analysis, &err) < 0)
		abort();
	check_analysis(analysis);
	analysis_free(analysis);
	timeline_free(timeline);
	trace_close(trace);
	text_done(&text);
	return 0;
}
