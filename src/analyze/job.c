#include "analyze/job.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define STRAGGLER_PCT 10

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
	const char *told = timeline_capture(timeline, "rank"), *slash = strrchr(path, '/');

	out->number = told && isdigit((unsigned char)*told) ? strtol(told, NULL, 10) : number_in(path);
	if (out->number >= 0)
		snprintf(out->name, sizeof out->name, "rank %lld", (long long)out->number);
	else
		snprintf(out->name, sizeof out->name, "%s", slash ? slash + 1 : path);
}

void rank_fill(const struct timeline *timeline, const struct analysis *analysis, const char *path, struct rank *out)
{
	const struct gpu_facts *gpu = &timeline->gpu;

	*out = (struct rank){ .class_ = analysis->verdict.class_, .confidence = analysis->verdict.confidence, .duration_ns = timeline->duration_ns, .busy_ns = gpu->any_ns,
		.computation_ns = gpu->busy_ns[GPU_COMPUTATION], .communication_ns = gpu->busy_ns[GPU_COMMUNICATION], .memory_ns = gpu->busy_ns[GPU_MEMORY],
		.overlap_ns = gpu->overlap_ns[GPU_MEMORY], .kernels = gpu->count[GPU_COMPUTATION] + gpu->count[GPU_COMMUNICATION] };
	name_rank(timeline, path, out);
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
	return strcmp(a->name, b->name);
}

static int compare_times(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* The one that computes longest lets all others wait in their communication. */
static void find_straggler(struct job *job)
{
	uint64_t *times = malloc(job->count * sizeof *times);
	size_t most = 0;
	double median;

	if (!times)
		return;
	for (size_t i = 0; i < job->count; i++) {
		times[i] = job->ranks[i].computation_ns;
		most = times[i] > times[most] ? i : most;
	}
	qsort(times, job->count, sizeof *times, compare_times);
	median = (double)(times[(job->count - 1) / 2] + times[job->count / 2]) / 2;
	if (times[job->count - 1])
		job->imbalance_pct = 100 * (1 - (double)times[0] / (double)times[job->count - 1]);
	job->straggler_pct = median > 0 ? 100 * ((double)times[job->count - 1] / median - 1) : 0;
	if (job->count > 1 && job->straggler_pct > STRAGGLER_PCT)
		job->straggler = most;
	free(times);
}

void job_build(struct rank *ranks, size_t count, struct job *out)
{
	double busy = 0, communication = 0, overlap = 0;

	*out = (struct job){ .ranks = ranks, .count = count, .imbalance_pct = NAN, .straggler = SIZE_MAX, .communication_pct = NAN, .overlap_pct = NAN };
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
}
