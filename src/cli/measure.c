/* From options to a session, and from a session to files. */
#include "cli/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/launcher.h"
#include "cli/present.h"
#include "cli/recorder.h"
#include "cli/retell.h"
#include "config.h"

enum { SKIP_PRESET_DUNDER = 1, SKIP_PRESET_INTERNALS = 2, TRACE_BOUND = 10, OVERHEAD_TURN_MS = 100 };

/* dunder, internals, none, or a pattern. */
static int skips_read(struct measure *measure, struct error *err)
{
	const struct options *options = &measure->invocation->options;
	char part[OPTION_PART_BYTES];
	size_t count = 0, bytes = 1;

	measure->session.skip_default = true;
	measure->skips = calloc(strlen(options_text(options, OPT_SKIP)) + 2, sizeof *measure->skips);
	if (!measure->skips)
		return fail(err, ERR_MEMORY, "reading --skip");
	for (size_t i = 0; options_list(options, OPT_SKIP, i, part); i++) {
		if (strcmp(part, "dunder") == 0)
			measure->session.skip_presets |= SKIP_PRESET_DUNDER;
		else if (strcmp(part, "internals") == 0)
			measure->session.skip_presets |= SKIP_PRESET_INTERNALS;
		else if (strcmp(part, "none") == 0)
			measure->session.skip_default = false;
		else if (!(measure->skips[count++] = strdup(part)))
			return fail(err, ERR_MEMORY, "reading --skip");
		else
			bytes += strlen(part) + 1;
	}
	measure->session.skip_patterns = (const char *const *)measure->skips;
	if (bytes > PAGE_SKIP_BYTES)
		return fail(err, ERR_OPTION_VALUE, "--skip: the patterns are longer than %d bytes together", PAGE_SKIP_BYTES);
	return 0;
}

static const enum backend hook_backends[] = { BACKEND_AUTO, BACKEND_NONE, BACKEND_MONITORING, BACKEND_EVALUATOR, BACKEND_SETPROFILE, BACKEND_SETTRACE };

static const enum native_way native_ways[] = { NATIVE_AUTO, NATIVE_HOLD, NATIVE_BOTH, NATIVE_NONE };

static const enum syscalls_way syscall_ways[] = { SYSCALLS_SAMPLED, SYSCALLS_TRACED, SYSCALLS_NONE };

int measure_init(struct measure *measure, const struct invocation *invocation, pid_t pid, const char *mode, struct error *err)
{
	const struct options *options = &invocation->options;
	struct session_options *session = &measure->session;

	memset(measure, 0, sizeof *measure);
	measure->invocation = invocation;
	measure->level = (enum log_level)options_choice(options, OPT_LOG_LEVEL);
	measure->pid = pid;
	if (present_check(options, err) < 0 || outputs_plan(options, pid, &measure->outputs, err) < 0 || skips_read(measure, err) < 0)
		return -1;
	session->duration_ns = options_duration_ns(options, OPT_DURATION);
	session->backend = hook_backends[options_choice(options, OPT_HOOK)];
	session->lines = session->backend == BACKEND_SETTRACE;
	session->c_calls = (enum c_calls)options_choice(options, OPT_C_CALLS);
	session->max_overhead_ppm = options_percent_ppm(options, OPT_MAX_OVERHEAD);
	session->gpu = options_choice(options, OPT_GPU) == 0;
	session->gpu_memory = options_flag(options, OPT_GPU_MEMORY);
	session->gpu_graphs = (enum gpu_graphs)options_choice(options, OPT_GPU_GRAPHS);
	session->gpu_max_kernels = options_count(options, OPT_GPU_MAX_KERNELS);
	session->gc = options_flag(options, OPT_GC);
	session->memory_native = options_flag(options, OPT_MEMORY_NATIVE);
	if (options_flag(options, OPT_MEMORY) || session->memory_native)
		session->memory_interval = options_count(options, OPT_MEMORY_INTERVAL);
	session->alternate_ms = (uint32_t)(options_duration_ns(options, OPT_ALTERNATE) / 1000000);
	if (options_flag(options, OPT_MEASURE_OVERHEAD) && !session->alternate_ms)
		session->alternate_ms = OVERHEAD_TURN_MS;
	session->trace_size_mb = (uint32_t)options_count(options, OPT_TRACE_SIZE_MB);
	session->rate_hz = (uint32_t)options_count(options, OPT_RATE);
	session->native = native_ways[options_choice(options, OPT_NATIVE)];
	session->syscalls = syscall_ways[options_choice(options, OPT_SYSCALLS)];
	session->counters = options_flag(options, OPT_COUNTERS);
	session->debuginfod = options_flag(options, OPT_DEBUGINFOD);
	session->gil_timeout_ms = (uint32_t)(options_duration_ns(options, OPT_GIL_TIMEOUT) / 1000000);
	session->sync_error_margin_us = (uint32_t)options_count(options, OPT_SYNC_ERROR_MARGIN_US);
	session->inject.unverified = options_flag(options, OPT_UNVERIFIED);
	session->inject.look_only = session->backend == BACKEND_NONE;
	session->whole_arguments = options_choice(options, OPT_ARGV) == 1;
	session->seed = true;
	session->mode = mode;
	session->version = PACKAGE_VERSION;
	session->command_line = measure->command_line = command_line_retell(invocation->words, session->whole_arguments);
	if (session->backend == BACKEND_NONE && session->rate_hz == 0) {
		fail(err, ERR_USAGE, "--hook none --rate 0 would measure nothing");
		return fail_hint(err, "leave one of them out");
	}
	return 0;
}

void measure_tell(struct measure *measure)
{
	char why[128];

	measure->status = status_open(measure->level > LOG_INFO);
	if (measure->status)
		measure->nvml = nvml_open(NULL, why, sizeof why);
}

void measure_begun(const struct measure *measure)
{
	int fd = (int)options_count(&measure->invocation->options, OPT_READY_FD);

	if (fd > 0 && write(fd, "", 1) == 1)
		close(fd);
}

void measure_done(struct measure *measure)
{
	status_close(measure->status);
	nvml_close(measure->nvml);
	for (char **skip = measure->skips; skip && *skip; skip++)
		free(*skip);
	free(measure->skips);
	free(measure->command_line);
	launcher_close(measure->launcher);
	inside_close(measure->session.inside);
	spool_close(measure->spool);
	measure->skips = NULL;
	measure->command_line = NULL;
	measure->launcher = NULL;
	measure->session.inside = NULL;
	measure->spool = NULL;
}

int measure_spool(struct measure *measure, struct error *err)
{
	const char *temporary = getenv("TMPDIR");
	char folder[OUTPUT_PATH];

	if (*measure->outputs.trace && !path_is_special(measure->outputs.trace))
		path_folder(measure->outputs.trace, folder, sizeof folder);
	else
		snprintf(folder, sizeof folder, "%s", temporary && *temporary ? temporary : "/tmp");
	return spool_open(folder, (uint64_t)measure->session.trace_size_mb * TRACE_BOUND * 1024 * 1024, clock_realtime_ns(), &measure->spool, err);
}

static void count_format(char *out, size_t size, uint64_t count)
{
	if (count < 10000)
		snprintf(out, size, "%llu", (unsigned long long)count);
	else if (count < 10000000)
		snprintf(out, size, "%.1fk", (double)count / 1e3);
	else
		snprintf(out, size, "%.1fM", (double)count / 1e6);
}

/* The devices that the process uses: busy, as the driver says. */
static void gpu_format(struct measure *measure, char *out, size_t size)
{
	struct nvml_use use[NVML_DEVICES_MAX];
	size_t count = measure->nvml ? nvml_read(measure->nvml, &procfs_real, measure->pid, use) : 0, used = 0;

	*out = '\0';
	for (size_t i = 0; i < count && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "  GPU%u %u %%", use[i].minor, use[i].busy_pct);
}

void measure_launcher(struct measure *measure, uint64_t elapsed_ns)
{
	char where[512];

	if (!measure->launcher || elapsed_ns < LAUNCHER_NS)
		return;
	if (launcher_judge(measure->launcher, where, sizeof where)) {
		status_clear(measure->status);
		log_print(measure->level, LOG_WARN, "%s", where);
	}
	launcher_close(measure->launcher);
	measure->launcher = NULL;
}

static void measure_progress(void *context, const struct session_progress *progress)
{
	struct measure *measure = context;
	char events[32], gpu[64], line[256];
	int length;

	measure_launcher(measure, progress->elapsed_ns);
	if (!status_due(measure->status))
		return;
	count_format(events, sizeof events, progress->events);
	gpu_format(measure, gpu, sizeof gpu);
	length = snprintf(line, sizeof line, "recording %.1f", (double)progress->elapsed_ns / 1e9);
	if (progress->duration_ns)
		length += snprintf(line + length, sizeof line - (size_t)length, "/%.4g", (double)progress->duration_ns / 1e9);
	snprintf(line + length, sizeof line - (size_t)length, " s  events %s  lost %llu  samples %llu  overhead %.1f %%  coverage %.0f %%%s", events, (unsigned long long)progress->lost,
	         (unsigned long long)progress->samples, progress->overhead_pct, progress->coverage * 100, gpu);
	status_say(measure->status, line, "Ctrl-C stops and writes");
}

void measure_notice(void *context, const char *text)
{
	const struct measure *measure = context;

	status_clear(measure->status);
	if (measure->status)
		log_print(measure->level, LOG_INFO, "%s", text);
}

static void receipt_log(const struct measure *measure)
{
	static const char *const states[] = { "uninitialized", "idle", "collecting", "finalized" };
	const struct session_receipt *receipt = &measure->receipt;

	log_print(measure->level, LOG_DEBUG, "enter: thread %d (%s), held %.1f us, %u tries, slot %s%s", (int)receipt->enter.tid, receipt->enter.thread_state, (double)receipt->enter.hold_ns / 1e3,
	          receipt->enter.tries, receipt->enter.slot, receipt->enter.reused_library ? ", library reused" : "");
	log_print(measure->level, LOG_DEBUG, "leave: held %.1f us; backend %s, collector %s, %llu events, %llu lost", (double)receipt->leave.hold_ns / 1e3, backend_name(receipt->backend_used),
	          states[receipt->collector % 4], (unsigned long long)receipt->events, (unsigned long long)receipt->lost);
	log_print(measure->level, LOG_DEBUG, "fds %llu -> %llu, threads %llu -> %llu, mappings %llu -> %llu", (unsigned long long)receipt->fds_before, (unsigned long long)receipt->fds_after,
	          (unsigned long long)receipt->threads_before, (unsigned long long)receipt->threads_after, (unsigned long long)receipt->mappings_before, (unsigned long long)receipt->mappings_after);
	for (uint32_t i = 0; i < receipt->warning_count; i++)
		log_print(measure->level, LOG_WARN, "%s", receipt->warnings[i]);
}

void measure_record(struct measure *measure, struct session *session, const volatile int *stop, struct error *left)
{
	status_phase(measure->status, "recording");
	if (measure->recorder)
		session_record(session, recorder_stop(measure->recorder), recorder_progress, measure->recorder);
	else
		session_record(session, stop, measure_progress, measure);
	measure_launcher(measure, LAUNCHER_NS); /* a short measurement may have ended first */
	status_phase(measure->status, "detaching");
	session_leave(session, &measure->receipt, left);
	status_phase(measure->status, NULL);
	receipt_log(measure);
}

int measure_outcome(int result, const struct error *left, struct error *err)
{
	if (left->code == ERR_NONE)
		return result;
	if (result < 0)
		return fail_over(err, left);
	*err = *left;
	return -1;
}

/* The trace where it is to stay, or where it can be read from. */
static int trace_keep(struct measure *measure, char *readable, size_t size, int *descriptor, struct error *err)
{
	const char *path = measure->outputs.trace;
	struct sink *sink;

	*descriptor = -1;
	if (*path && !path_is_special(path)) {
		if (sink_open_path(path, measure->outputs.force, &sink, err) < 0)
			return -1;
		snprintf(readable, size, "%s", path);
	} else {
		*descriptor = spool_temporary(measure->spool, err);
		if (*descriptor < 0 || sink_open_fd(*descriptor, &sink, err) < 0)
			return -1;
		snprintf(readable, size, "/proc/self/fd/%d", *descriptor);
	}
	if (spool_finish(measure->spool, sink, err) < 0) {
		sink_discard(sink);
		return -1;
	}
	if (sink_commit(sink, err) < 0)
		return -1;
	if (*descriptor < 0 || !*path)
		return 0;
	if (sink_open_path(path, measure->outputs.force, &sink, err) < 0)
		return -1;
	if (spool_finish(measure->spool, sink, err) < 0) {
		sink_discard(sink);
		return -1;
	}
	return sink_commit(sink, err);
}

int measure_present(struct measure *measure, int summary_fd, struct error *err)
{
	const struct options *options = &measure->invocation->options;
	char readable[OUTPUT_PATH], root[32];
	const struct presentation how = { .options = options, .outputs = &measure->outputs, .summary_fd = summary_fd, .level = measure->level, .status = measure->status,
		.source_root = root, .rank = measure->rank, .rank_name = measure->rank_name };
	struct present_result result;
	int descriptor, status = -1;

	snprintf(root, sizeof root, "/proc/%d/root", (int)measure->pid); /* a container's files are not ours */
	status_phase(measure->status, "analysing");
	if (trace_keep(measure, readable, sizeof readable, &descriptor, err) == 0 && present_trace(readable, measure->outputs.trace, &how, &result, err) == 0)
		status = present_status(options, &result, err);
	status_phase(measure->status, NULL);
	if (descriptor >= 0)
		close(descriptor);
	return status;
}
