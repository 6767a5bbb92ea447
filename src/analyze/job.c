#include "analyze/job.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define STRAGGLER_PCT 10
#define LAUNCHER_CPUS 0.05
#define BUSY_CPUS 0.08

/* 3 of "/data/train_rank3_of_128.json", "rank-3", "rank=3"; -1: none. */
static int64_t number_in(const char *path)
{
	const char *slash = strrchr(path, '/'), *at = slash ? slash + 1 : path;

	for (; *at; at++) {
		const char *digits = at + 4;

		if (strncasecmp(at, "rank", 4) != 0)
			continue;
		digits += *digits && strchr("_-=.", *digits);
		if (isdigit((unsigned char)*digits))
			return strtol(digits, NULL, 10);
	}
	return -1;
}

static void name_rank(const struct timeline *timeline, const char *path, struct rank *out)
{
	const char *told = timeline_capture(timeline, "rank"), *pod = timeline_capture(timeline, "pod"), *slash = strrchr(path, '/');

	out->number = told && isdigit((unsigned char)*told) ? strtol(told, NULL, 10) : number_in(path);
	if (out->number >= 0)
		snprintf(out->name, sizeof out->name, "rank %lld", (long long)out->number);
	else if (pod && *pod && timeline->process_count)
		snprintf(out->name, sizeof out->name, "%.40s, process %u", pod, timeline->processes[0].pid);
	else
		snprintf(out->name, sizeof out->name, "%s", slash ? slash + 1 : path);
}

static void add_threads(const struct timeline *timeline, struct rank *out)
{
	for (size_t i = 0; i < timeline->thread_count; i++) {
		const struct thread *thread = &timeline->threads[i];

		if (thread->ours)
			continue;
		out->clocked |= thread->point_count >= 2;
		out->cpu_ns += thread->cpu_ns;
		out->python_ns += thread->python_ns;
		out->native_ns += thread->native_ns;
		out->gil_wait_ns += thread->gil_wait_ns;
		out->lock_wait_ns += thread->lock_wait_ns;
		out->io_wait_ns += thread->io_wait_ns;
		out->gpu_wait_ns += thread->gpu_wait_ns;
	}
}

/* A thread that spins until the device is done works for no function: that CPU time is left out of both. */
static void find_hottest(const struct timeline *timeline, struct rank *out)
{
	uint64_t worked_ns = out->python_ns + out->native_ns;
	const struct function *most = NULL;

	for (size_t i = 0; i < timeline->function_count; i++) {
		const struct function *function = &timeline->functions[i];

		if (!function->waiter && function->cpu_self_ns > (most ? most->cpu_self_ns : 0))
			most = function;
	}
	out->hottest_pct = NAN;
	if (!most || !out->cpu_ns || !worked_ns)
		return;
	snprintf(out->hottest, sizeof out->hottest, "%s", most->name);
	out->hottest_pct = fmin(100, 100 * (double)most->cpu_self_ns / (double)worked_ns);
}

static void add_process(const struct timeline *timeline, struct rank *out)
{
	const char *host = timeline_capture(timeline, "host"), *boot = timeline_capture(timeline, "boot");
	int64_t overhead_ppm = timeline_counter(timeline, "overhead_ppm", -1);

	if (timeline->process_count) {
		out->pid = timeline->processes[0].pid;
		out->parent = timeline->processes[0].parent;
		snprintf(out->command, sizeof out->command, "%s", timeline->processes[0].command);
	}
	if (host)
		snprintf(out->host, sizeof out->host, "%s", host);
	if (boot)
		snprintf(out->boot, sizeof out->boot, "%s", boot);
	if (timeline->scope_count) {
		const struct scope_latency *scope = &timeline->scopes[0];

		snprintf(out->scope, sizeof out->scope, "%s", scope->name);
		out->scope_count = scope->all_count;
		out->scope_p50_ns = scope->p50_ns;
		out->scope_p99_ns = scope->p99_ns;
	}
	out->overhead_pct = overhead_ppm < 0 ? NAN : (double)overhead_ppm / 10000;
	out->lost = timeline->quality.lost_events;
	add_threads(timeline, out);
	find_hottest(timeline, out);
}

void rank_fill(const struct timeline *timeline, const struct analysis *analysis, const char *path, struct rank *out)
{
	const struct gpu_facts *gpu = &timeline->gpu;

	*out = (struct rank){ .class_ = analysis->verdict.class_, .confidence = analysis->verdict.confidence, .duration_ns = timeline->duration_ns, .busy_ns = gpu->any_ns,
		.computation_ns = gpu->busy_ns[GPU_COMPUTATION], .communication_ns = gpu->busy_ns[GPU_COMMUNICATION], .memory_ns = gpu->busy_ns[GPU_MEMORY],
		.overlap_ns = gpu->overlap_ns[GPU_MEMORY], .kernels = gpu->count[GPU_COMPUTATION] + gpu->count[GPU_COMMUNICATION] };
	name_rank(timeline, path, out);
	add_process(timeline, out);
	for (size_t i = 0; i < timeline->device_count; i++)
		for (int cause = 0; cause < GPU_IDLE_CAUSES; cause++)
			out->idle_ns[cause] += timeline->devices[i].idle_ns[cause];
	for (size_t i = 0; i < analysis->finding_count && out->finding_count < RANK_FINDINGS; i++, out->finding_count++) {
		snprintf(out->findings[i].rule, sizeof out->findings[i].rule, "%s", analysis->findings[i].rule);
		snprintf(out->findings[i].title, sizeof out->findings[i].title, "%s", analysis->findings[i].title);
		out->findings[i].severity = analysis->findings[i].severity;
	}
}

static int compare_ranks(const void *left, const void *right)
{
	const struct rank *a = left, *b = right;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	if (a->cpu_ns != b->cpu_ns)
		return a->cpu_ns > b->cpu_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int compare_times(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* A server beside its engine, or what starts the ranks, computes nothing and is none of them. */
static bool works_on_device(const struct rank *rank)
{
	return rank->computation_ns || rank->communication_ns;
}

/* The one that computes longest lets all others wait in their communication. */
static void find_straggler(struct job *job)
{
	uint64_t *times = malloc(job->count * sizeof *times);
	size_t most = 0, count = 0;
	double median;

	if (!times)
		return;
	for (size_t i = 0; i < job->count; i++) {
		if (works_on_device(&job->ranks[i]))
			times[count++] = job->ranks[i].computation_ns;
		most = job->ranks[i].computation_ns > job->ranks[most].computation_ns ? i : most;
	}
	qsort(times, count, sizeof *times, compare_times);
	job->computing = count && times[count - 1] ? count : 0;
	if (job->computing > 1) {
		median = (double)(times[(count - 1) / 2] + times[count / 2]) / 2;
		job->imbalance_pct = 100 * (1 - (double)times[0] / (double)times[count - 1]);
		job->straggler_pct = median > 0 ? 100 * ((double)times[count - 1] / median - 1) : 0;
	}
	if (job->straggler_pct > STRAGGLER_PCT)
		job->straggler = most;
	free(times);
}

/* What starts a job may give all its processes the same number: srun does, to those of one task. */
static void names_part(struct job *job)
{
	for (size_t i = 0; i < job->count; i++) {
		struct rank *rank = &job->ranks[i];
		bool shared = (i > 0 && rank[-1].number == rank->number) || (i + 1 < job->count && rank[1].number == rank->number);

		if (shared && rank->number >= 0 && rank->pid)
			snprintf(rank->name, sizeof rank->name, "rank %lld, process %u", (long long)rank->number, rank->pid);
	}
}

static double cpus_of(const struct rank *rank)
{
	return rank->duration_ns ? (double)rank->cpu_ns / (double)rank->duration_ns : 0;
}

static double cpus_started_by(const struct job *job, const struct rank *parent)
{
	double cpus = 0;

	for (size_t i = 0; i < job->count; i++)
		if (job->ranks[i].parent == parent->pid && strcmp(job->ranks[i].host, parent->host) == 0)
			cpus += cpus_of(&job->ranks[i]);
	return cpus;
}

/* The process that people attach to often only waits for those that it started. */
static void find_launcher(struct job *job)
{
	bool known = true;

	job->cpus = 0;
	for (size_t i = 0; i < job->count; i++) {
		job->cpus += cpus_of(&job->ranks[i]);
		known &= job->ranks[i].pid != 0 && job->ranks[i].clocked;
		if (job->launcher == SIZE_MAX && job->ranks[i].pid && job->ranks[i].clocked && cpus_of(&job->ranks[i]) < LAUNCHER_CPUS && cpus_started_by(job, &job->ranks[i]) > BUSY_CPUS)
			job->launcher = i;
	}
	if (!known)
		job->cpus = NAN;
}

void job_build(struct rank *ranks, size_t count, struct job *out)
{
	double busy = 0, communication = 0, overlap = 0;

	*out = (struct job){ .ranks = ranks, .count = count, .imbalance_pct = NAN, .straggler = SIZE_MAX, .launcher = SIZE_MAX, .cpus = NAN, .communication_pct = NAN, .overlap_pct = NAN };
	qsort(ranks, count, sizeof *ranks, compare_ranks);
	for (size_t i = 0; i < count; i++) {
		busy += (double)ranks[i].busy_ns;
		communication += (double)ranks[i].communication_ns;
		overlap += (double)ranks[i].overlap_ns;
	}
	if (communication > 0) {
		out->communication_pct = 100 * communication / busy;
		out->overlap_pct = 100 * overlap / communication;
	}
	find_straggler(out);
	names_part(out);
	find_launcher(out);
}
