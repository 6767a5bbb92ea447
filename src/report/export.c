/* Names and words of the exports. */
#include "report/export.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "report/name.h"

#define SHIFTED_PID (1u << 30)
enum { NAME_COLUMNS = 400, THREAD_COLUMNS = 100, COMMAND_COLUMNS = 200, PID_END = 4194304 /* PID_MAX_LIMIT: the kernel numbers no process so high */ };

const struct export_load EXPORT_LOADS[] = {
	{ THREAD_PYTHON, "running Python" }, { THREAD_NATIVE, "running native code" }, { THREAD_GIL_WAIT, "waiting for the GIL" }, { THREAD_LOCK_WAIT, "waiting for a lock" },
	{ THREAD_IO_WAIT, "waiting for I/O" }, { THREAD_GPU_WAIT, "waiting for the GPU" }, { THREAD_RUNNABLE, "waiting for a CPU" },
};
const size_t EXPORT_LOAD_COUNT = sizeof EXPORT_LOADS / sizeof *EXPORT_LOADS;

const struct export_kind EXPORT_KINDS[] = {
	{ EVENT_PY_ENTER, "python_function", "Python" }, { EVENT_C_ENTER, "c_function", "C" }, { EVENT_SCOPE_ENTER, "user_annotation", "scope" },
	{ EVENT_CPU_SYSCALL, "syscall", "system call" }, { EVENT_GPU_API, "cuda_runtime", "CUDA call" }, { EVENT_GPU_KERNEL, "kernel", "kernel" },
	{ EVENT_H2D_COPY, "gpu_memcpy", "Memcpy HtoD" }, { EVENT_D2H_COPY, "gpu_memcpy", "Memcpy DtoH" }, { EVENT_D2D_COPY, "gpu_memcpy", "Memcpy DtoD" },
	{ EVENT_GPU_MEMSET, "gpu_memset", "Memset (Device)" }, { EVENT_GPU_SYNC, "cuda_sync", "synchronization" }, { EVENT_MEMORY_ALLOC, "memory", "allocation" },
	{ EVENT_MEMORY_FREE, "memory", "free" }, { EVENT_GC, "gc", "collection of garbage" }, { EVENT_INSTANT, "mark_event", "event" },
};
const size_t EXPORT_KIND_COUNT = sizeof EXPORT_KINDS / sizeof *EXPORT_KINDS;

size_t export_kind(unsigned kind)
{
	size_t i = 0;

	while (i + 1 < EXPORT_KIND_COUNT && EXPORT_KINDS[i].kind != kind)
		i++;
	return i;
}

const char *export_label(const struct interval *interval)
{
	return interval->name && *interval->name ? interval->name : EXPORT_KINDS[export_kind(interval->kind)].label;
}

bool export_flows(const struct interval *interval)
{
	if (!interval->flow)
		return false;
	if (interval->kind == EVENT_GPU_API)
		return strstr(interval->name, "Launch") || strstr(interval->name, "Memcpy") || strstr(interval->name, "Memset");
	return interval->kind >= EVENT_GPU_KERNEL && interval->kind <= EVENT_GPU_MEMSET;
}

void export_string(const char *string, struct text *out)
{
	text_clear(out);
	name_add(out, string, NAME_COLUMNS, 0);
	if (!out->length)
		text_add_string(out, "(no name)");
}

/* A spreadsheet would run a cell that begins as a formula does: an apostrophe keeps it text. */
void export_cell(struct text *line, const char *cell)
{
	bool quote = strpbrk(cell, ",\"") || *cell == ' ';

	text_add_string(line, quote ? ",\"" : ",");
	if (*cell && strchr("=+-@", *cell))
		text_add(line, "'", 1);
	for (; *cell; cell++) {
		if (*cell == '"')
			text_add(line, "\"", 1);
		text_add(line, cell, 1);
	}
	if (quote)
		text_add(line, "\"", 1);
}

void export_name(const struct timeline *timeline, uint32_t function, struct text *out)
{
	export_string(function < timeline->function_count ? timeline->functions[function].name : "(unknown)", out);
}

void export_file(const struct timeline *timeline, uint32_t function, struct text *out)
{
	text_clear(out);
	if (function < timeline->function_count)
		name_add(out, timeline->functions[function].file, NAME_COLUMNS, NAME_PATH);
}

void export_thread(const struct timeline *timeline, uint32_t thread, struct text *out)
{
	text_clear(out);
	if (thread >= timeline->thread_count) {
		text_add_string(out, "no thread");
		return;
	}
	name_add(out, *timeline->threads[thread].name ? timeline->threads[thread].name : "thread", THREAD_COLUMNS, 0);
	text_printf(out, " (%u)", timeline->threads[thread].tid);
}

static uint32_t pid_of(const struct report *report, uint32_t process)
{
	return process ? report->timeline->processes[process].pid : export_pid(report);
}

void export_process(const struct report *report, uint32_t process, struct text *out)
{
	const char *command = process ? report->timeline->processes[process].command : report->command;

	text_clear(out);
	name_add(out, command && *command ? command : "process", COMMAND_COLUMNS, NAME_HEAD);
	text_printf(out, " (%u)", pid_of(report, process));
}

uint32_t export_pid(const struct report *report)
{
	const struct timeline *timeline = report->timeline;

	return report->pid ? report->pid : timeline->thread_count ? timeline->threads[0].tid : 1;
}

static bool is_device(const struct timeline *timeline, uint32_t pid)
{
	for (size_t i = 0; i < timeline->device_count; i++)
		if (timeline->devices[i].id == pid)
			return true;
	return false;
}

static bool is_one_of(const uint32_t *pids, uint32_t count, uint32_t pid)
{
	for (uint32_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

uint32_t *export_pids(const struct report *report, bool devices)
{
	uint32_t count = report->timeline->process_count ? (uint32_t)report->timeline->process_count : 1, *pids = calloc(count, sizeof *pids);

	if (!pids)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		pids[i] = pid_of(report, i);
		if (devices && is_device(report->timeline, pids[i])) /* in a container it may be process 1 */
			pids[i] |= SHIFTED_PID;
		if (!pids[i] || is_one_of(pids, i, pids[i])) /* not known, or of another container */
			pids[i] = SHIFTED_PID + PID_END + i;
	}
	return pids;
}

static bool is_shared(const struct gpu_facts *gpu, uint32_t device, uint32_t stream)
{
	const struct gpu_stream *streams = gpu->streams;
	size_t at = search_first(gpu->stream_count, i, streams[i].device < device || (streams[i].device == device && streams[i].stream < stream));

	return at + 1 < gpu->stream_count && streams[at].device == device && streams[at + 1].device == device && streams[at].stream == stream && streams[at + 1].stream == stream;
}

struct export_owner export_stream_owner(const struct timeline *timeline, uint32_t device, uint32_t stream, uint32_t process, const char *separator)
{
	struct export_owner owner = { "" };
	uint32_t pid, alike = 0;

	if (process >= timeline->process_count || !is_shared(&timeline->gpu, device, stream))
		return owner;
	pid = timeline->processes[process].pid;
	for (size_t i = 0; i < timeline->process_count; i++)
		alike += timeline->processes[i].pid == pid;
	if (pid && alike == 1)
		snprintf(owner.text, sizeof owner.text, "%.12s%u", separator, pid);
	else
		snprintf(owner.text, sizeof owner.text, "%.12s#%u", separator, process + 1);
	return owner;
}

uint32_t export_process_of(const struct timeline *timeline, uint32_t thread)
{
	uint32_t process = thread < timeline->thread_count ? timeline->threads[thread].process : 0;

	return process < timeline->process_count ? process : 0;
}

void export_quality(const struct report *report, struct text *out)
{
	const struct timeline *timeline = report->timeline;
	const struct timeline_quality *quality = &timeline->quality;

	text_clear(out);
	text_printf(out, "calls were seen %llu.%llu %% of the time, %llu calls skipped, %llu events lost, %llu unmatched, %llu samples", (unsigned long long)(report->coverage_pct * 10 + 0.5) / 10,
		(unsigned long long)(report->coverage_pct * 10 + 0.5) % 10, (unsigned long long)quality->skipped_calls, (unsigned long long)quality->lost_events,
		(unsigned long long)quality->unmatched, (unsigned long long)quality->samples);
	if (quality->damaged_chunks || quality->truncated)
		text_printf(out, ", trace %s", quality->damaged_chunks ? "damaged" : "cut");
	if (isfinite(report->overhead_pct))
		text_printf(out, ", overhead %.1f %%", report->overhead_pct);
}

int export_trace(const struct report *report, const char *format, struct error *err)
{
	if (report->trace)
		return 0;
	fail(err, ERR_USAGE, "the %s format needs the trace, which was not kept", format);
	return fail_hint(err, "leave out --trace none");
}

uint64_t export_load_milli(const struct load_slot *slot, enum thread_state state)
{
	uint64_t length = slot->end_ns - slot->start_ns;

	return length ? (uint64_t)((unsigned __int128)slot->state_ns[state] * 1000 / length) : 0;
}

/* ---- values of stacks ---- */

static bool always(const struct timeline *timeline)
{
	return true;
}

static bool has_samples(const struct timeline *timeline)
{
	return timeline->moment_count > 0;
}

static bool has_devices(const struct timeline *timeline)
{
	return timeline->gpu.events > 0;
}

const struct export_value EXPORT_VALUES[] = {
	[EXPORT_VALUE_SAMPLES] = { "samples", "count", offsetof(struct tree_node, samples), always },
	[EXPORT_VALUE_CALLS] = { "calls", "count", offsetof(struct tree_node, calls), always },
	[EXPORT_VALUE_WALL] = { "wall", "nanoseconds", offsetof(struct tree_node, estimated_self_ns), always },
	[EXPORT_VALUE_CPU] = { "cpu", "nanoseconds", offsetof(struct tree_node, cpu_self_ns), always },
	[EXPORT_VALUE_GIL] = { "gil", "nanoseconds", offsetof(struct tree_node, gil_ns), has_samples },
	[EXPORT_VALUE_GPU] = { "gpu", "nanoseconds", offsetof(struct tree_node, gpu_ns), has_devices },
};

uint64_t export_value(const struct tree_node *node, size_t value)
{
	uint64_t number;

	memcpy(&number, (const char *)node + EXPORT_VALUES[value].offset, sizeof number);
	return number;
}

bool export_has_value(const struct tree_node *node)
{
	for (size_t i = 0; i < EXPORT_VALUE_COUNT; i++)
		if (export_value(node, i))
			return true;
	return false;
}
