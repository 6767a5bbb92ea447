/* Ranks of one job as JSON: inferscope.job/1, described by docs/schema/inferscope-job-1.schema.json. */
#include <math.h>
#include <stddef.h>

#include "report/document.h"
#include "report/job.h"

/* Times of a rank, in the order of the document. */
struct time_row { const char *key; size_t offset; };
#define TIME(name) { #name "_us", offsetof(struct rank, name##_ns) }
static const struct time_row CAPTURE_TIMES[] = { TIME(duration), TIME(busy), TIME(computation), TIME(communication), TIME(memory), { NULL, 0 } };
static const struct time_row THREAD_TIMES[] = { TIME(cpu), TIME(python), TIME(native), TIME(gil_wait), TIME(lock_wait), TIME(io_wait), TIME(gpu_wait), { NULL, 0 } };
#undef TIME

static void put_times(struct json *json, cJSON *object, const struct rank *rank, const struct time_row *rows)
{
	for (; rows->key; rows++)
		put_us(json, object, rows->key, *(const uint64_t *)(const void *)((const char *)rank + rows->offset));
}

static void put_rank_process(struct json *json, cJSON *object, const struct rank *rank)
{
	cJSON *hottest, *scope;

	put_u64(json, object, "pid", rank->pid);
	put_u64(json, object, "parent", rank->parent);
	put_known(json, object, "host", rank->host);
	put_known(json, object, "command", rank->command);
	put_times(json, object, rank, THREAD_TIMES);
	put_number(json, object, "overhead_pct", rank->overhead_pct, 3);
	put_u64(json, object, "lost_events", rank->lost);
	hottest = put_object(json, object, "hottest");
	put_known(json, hottest, "name", rank->hottest);
	put_number(json, hottest, "cpu_pct", rank->hottest_pct, 3);
	scope = put_object(json, object, "scope");
	put_known(json, scope, "name", rank->scope);
	put_u64(json, scope, "count", rank->scope_count);
	put_us(json, scope, "p50_us", rank->scope_p50_ns);
	put_us(json, scope, "p99_us", rank->scope_p99_ns);
}

static void put_clock(struct json *json, cJSON *object, const struct rank *rank)
{
	static const char *const ways[] = { "", "wall", "boot", "collectives" };
	cJSON *clock = put_object(json, object, "clock"), *late;

	put_bool(json, clock, "known", rank->clock.way != CLOCK_UNKNOWN);
	put_known(json, clock, "by", ways[rank->clock.way]);
	put_number(json, clock, "zero_us", (double)rank->clock.zero_ns / 1e3, 3);
	put_number(json, clock, "ahead_us", (double)rank->clock.ahead_ns / 1e3, 3);
	put_number(json, clock, "bound_us", rank->clock.way ? (double)rank->clock.bound_ns / 1e3 : NAN, 3);
	put_u64(json, clock, "collectives", rank->clock.collectives);
	late = put_object(json, object, "late");
	put_u64(json, late, "collectives", rank->late.collectives);
	put_u64(json, late, "count", rank->late.count);
	put_us(json, late, "time_us", rank->late.time_ns);
}

static void put_absent(struct json *json, cJSON *root, const struct job *job)
{
	cJSON *absents = put_array(json, root, "absent");

	for (size_t i = 0; i < job->absent_count && !json->failed; i++) {
		cJSON *row = append_object(json, absents);

		put_string(json, row, "name", job->absent[i].name);
		put_string(json, row, "why", job->absent[i].why);
	}
}

static void put_request(struct json *json, cJSON *root, const struct job *job)
{
	const struct request_path *path = &job->slowest;
	cJSON *object, *steps;

	if (!path->requests) {
		put(json, root, "slowest_request", cJSON_CreateNull());
		return;
	}
	object = put_object(json, root, "slowest_request");
	put_string(json, object, "id", path->id);
	put_u64(json, object, "requests", path->requests);
	put_us(json, object, "duration_us", path->duration_ns);
	put_us(json, object, "between_us", path->between_ns);
	put_us(json, object, "bound_us", path->bound_ns);
	put_u64(json, object, "steps_left_out", path->left_out);
	steps = put_array(json, object, "steps");
	for (size_t i = 0; i < path->step_count; i++) {
		cJSON *step = append_object(json, steps);

		put_string(json, step, "process", job->ranks[path->steps[i].rank].name);
		put_string(json, step, "scope", path->steps[i].scope);
		put_us(json, step, "start_us", path->steps[i].start_ns);
		put_us(json, step, "duration_us", path->steps[i].duration_ns);
		put_us(json, step, "self_us", path->steps[i].self_ns);
	}
}

static void put_rank(struct json *json, cJSON *ranks, const struct rank *rank, bool aligned)
{
	cJSON *object = append_object(json, ranks), *findings;

	put_string(json, object, "name", rank->name);
	if (rank->number >= 0)
		put_i64(json, object, "rank", rank->number);
	else
		put(json, object, "rank", cJSON_CreateNull());
	put_string(json, object, "class", verdict_name(rank->class_));
	put_number(json, object, "confidence", rank->confidence, 3);
	put_times(json, object, rank, CAPTURE_TIMES);
	put_number(json, object, "comm_comp_overlap_pct", job_share_pct(rank->overlap_ns, rank->communication_ns), 3);
	put_u64(json, object, "kernels_count", rank->kernels);
	put_idle_causes(json, put_object(json, object, "idle"), rank->idle_ns);
	put_rank_process(json, object, rank);
	if (aligned)
		put_clock(json, object, rank);
	findings = put_array(json, object, "findings");
	for (size_t i = 0; i < rank->finding_count; i++) {
		cJSON *row = append_object(json, findings);

		put_string(json, row, "rule", rank->findings[i].rule);
		put_string(json, row, "severity", severity_name(rank->findings[i].severity));
		put_string(json, row, "title", rank->findings[i].title);
	}
}

int job_write_json(const struct job *job, struct sink *sink, struct error *err)
{
	struct json json = { .failed = false };
	cJSON *root = cJSON_CreateObject(), *ranks;

	put_string(&json, root, "schema", "inferscope.job/1");
	put_number(&json, root, "imbalance_pct", job->imbalance_pct, 3);
	put_string(&json, root, "straggler", job->straggler == SIZE_MAX ? NULL : job->ranks[job->straggler].name);
	put_number(&json, root, "straggler_pct", job->straggler_pct, 3);
	put_number(&json, root, "communication_pct", job->communication_pct, 3);
	put_number(&json, root, "comm_comp_overlap_pct", job->overlap_pct, 3);
	put_number(&json, root, "cpus", job->cpus, 3);
	put_string(&json, root, "launcher", job->launcher == SIZE_MAX ? NULL : job->ranks[job->launcher].name);
	put_absent(&json, root, job);
	put_u64(&json, root, "brief", job->brief);
	put_request(&json, root, job);
	ranks = put_array(&json, root, "ranks");
	for (size_t i = 0; i < job->count && !json.failed; i++)
		put_rank(&json, ranks, &job->ranks[i], job->aligned);
	return document_write(&json, root, sink, err);
}
