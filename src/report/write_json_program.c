/* What the program did, in the JSON document: functions, threads and who held the GIL, stacks, processes, system calls, scopes. */
#include <math.h>
#include <stdlib.h>

#include "report/document.h"
#include "report/model.h"

enum { SCOPES_SHOWN = 1000, STACKS_MAX = 2000, STACK_FRAMES_MAX = 256 };

const char *function_kind_name(enum function_kind kind)
{
	static const char *const names[] = { [FUNCTION_PYTHON] = "python", [FUNCTION_C] = "c", [FUNCTION_NATIVE] = "native", [FUNCTION_UNKNOWN] = "unknown" };

	return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

void put_functions(struct json *json, cJSON *root, const struct report *report)
{
	cJSON *functions = put_array(json, root, "functions");

	for (size_t i = 0; i < report->function_count && !json->failed; i++) {
		const struct function_row *row = &report->functions[i];
		const struct function *function = row->function;
		cJSON *object = append_object(json, functions);

		put_string(json, object, "name", function->name);
		put_line(json, object, function->file, function->line);
		put_string(json, object, "kind", function_kind_name(function->kind));
		if (row->calls_known)
			put_u64(json, object, "calls", function->calls);
		else
			put(json, object, "calls", cJSON_CreateNull());
		put_u64(json, object, "self_ns", function->self_ns);
		put_u64(json, object, "total_ns", function->total_ns);
		put_number(json, object, "self_pct", row->self_pct, 3);
		put_number(json, object, "total_pct", row->total_pct, 3);
		put_string(json, object, "precision", precision_name(function->precision));
		put_number(json, object, "coverage", function->coverage, 6);
		put_number(json, object, "self_error_pct", row->self_error_pct, 2);
		put_number(json, object, "self_low_ns", function->self_high_ns ? (double)function->self_low_ns : NAN, 0);
		put_number(json, object, "self_high_ns", function->self_high_ns ? (double)function->self_high_ns : NAN, 0);
		put_u64(json, object, "cpu_self_ns", function->cpu_self_ns);
		put_u64(json, object, "lock_wait_ns", function->lock_wait_ns);
		put_u64(json, object, "longest_ns", function->longest_ns);
		put_u64(json, object, "exceptions_count", function->exceptions);
		put_u64(json, object, "threads_count", function->threads);
		put_u64(json, object, "seen_calls_count", function->seen_calls);
		put_u64(json, object, "seen_self_ns", function->seen_self_ns);
		put_u64(json, object, "seen_total_ns", function->seen_total_ns);
		put_u64(json, object, "samples_self_count", function->samples_self);
		put_u64(json, object, "samples_total_count", function->samples_total);
		put_bool(json, object, "self_sampled", function->self_split);
		put_known(json, object, "native", function->native);
		put_known(json, object, "native_file", function->native_file);
	}
	put_u64(json, root, "functions_omitted_count", report->functions_omitted);
}

static void put_thread(struct json *json, cJSON *threads, const struct thread *thread)
{
	cJSON *object = append_object(json, threads), *states;

	put_u64(json, object, "tid", thread->tid);
	put_string(json, object, "name", thread->name);
	put_bool(json, object, "python", thread->python);
	put_known(json, object, "unhooked", thread->unhooked);
	put_u64(json, object, "first_ns", thread->first_ns);
	put_u64(json, object, "last_ns", thread->last_ns);
	put_u64(json, object, "wall_ns", thread->wall_ns);
	put_u64(json, object, "cpu_ns", thread->cpu_ns);
	put_u64(json, object, "run_wait_ns", thread->run_wait_ns);
	put_u64(json, object, "voluntary_switches_count", thread->voluntary);
	put_u64(json, object, "involuntary_switches_count", thread->involuntary);
	states = put_object(json, object, "states");
	put_u64(json, states, "python_ns", thread->python_ns);
	put_u64(json, states, "native_ns", thread->native_ns);
	put_u64(json, states, "gil_wait_ns", thread->gil_wait_ns);
	put_u64(json, states, "lock_wait_ns", thread->lock_wait_ns);
	put_u64(json, states, "io_wait_ns", thread->io_wait_ns);
	put_u64(json, states, "gpu_wait_ns", thread->gpu_wait_ns);
	put_u64(json, states, "runnable_ns", thread->runnable_ns);
	put_u64(json, states, "sleep_ns", thread->sleep_ns);
	put_u64(json, states, "idle_ns", thread->idle_ns);
	put_u64(json, states, "unknown_ns", thread->unknown_ns);
	put_u64(json, object, "events_count", thread->events);
	put_u64(json, object, "lost_events_count", thread->lost);
	put_u64(json, object, "covered_ns", thread->covered_ns);
	put_u64(json, object, "hooks_ns", thread->hooks_ns);
	put_u64(json, object, "deepest_count", thread->deepest);
}

void put_threads(struct json *json, cJSON *root, const struct timeline *timeline)
{
	cJSON *threads = put_array(json, root, "threads");

	for (size_t i = 0; i < timeline->thread_count; i++)
		put_thread(json, threads, &timeline->threads[i]);
}

void put_gil(struct json *json, cJSON *root, const struct timeline *timeline)
{
	cJSON *gil = put_object(json, root, "gil"), *waits = put_array(json, gil, "waits");

	for (size_t i = 0; i < timeline->gil_wait_count && !json->failed; i++) {
		const struct gil_wait *wait = &timeline->gil_waits[i];
		cJSON *object = append_object(json, waits);

		put_u64(json, object, "waiter_tid", timeline->threads[wait->waiter].tid);
		if (wait->holder < timeline->thread_count)
			put_u64(json, object, "holder_tid", timeline->threads[wait->holder].tid);
		else
			put(json, object, "holder_tid", cJSON_CreateNull());
		put_u64(json, object, "wait_ns", wait->wait_ns);
		put_u64(json, object, "samples_count", wait->samples);
	}
}

static void put_stack(struct json *json, cJSON *stacks, const struct timeline *timeline, const struct tree_node *node)
{
	cJSON *object = append_object(json, stacks), *frames;
	uint32_t path[STACK_FRAMES_MAX], depth = 0;
	const struct tree_node *at = node;

	for (; at->parent != UINT32_MAX && depth < STACK_FRAMES_MAX; at = &timeline->nodes[at->parent])
		path[depth++] = at->function;
	put_u64(json, object, "tid", timeline->threads[node->thread].tid);
	frames = put_array(json, object, "frames");
	while (depth-- > 0)
		append(json, frames, path[depth] < FUNCTIONS_MAX ? cJSON_CreateNumber(path[depth]) : cJSON_CreateNull());
	put_bool(json, object, "cut", at->parent != UINT32_MAX);
	put_u64(json, object, "samples_count", node->samples);
	put_u64(json, object, "calls_count", node->calls);
	put_u64(json, object, "self_ns", node->estimated_self_ns);
	put_u64(json, object, "cpu_self_ns", node->cpu_self_ns);
	put_u64(json, object, "gil_ns", node->gil_ns);
	put_u64(json, object, "gpu_ns", node->gpu_ns);
}

static int heavier_first(const void *left, const void *right)
{
	const struct tree_node *a = *(const struct tree_node *const *)left, *b = *(const struct tree_node *const *)right;

	if (a->estimated_self_ns != b->estimated_self_ns)
		return a->estimated_self_ns < b->estimated_self_ns ? 1 : -1;
	return a < b ? -1 : a > b;
}

/* Each distinct stack of each thread once, the heaviest ones. */
void put_stacks(struct json *json, cJSON *root, const struct timeline *timeline)
{
	const struct tree_node **order = calloc(timeline->node_count + 1, sizeof *order);
	cJSON *stacks = put_array(json, root, "stacks");
	size_t count = 0, shown;

	if (!order) {
		json->failed = true;
		return;
	}
	for (size_t i = 1; i < timeline->node_count; i++)
		if ((timeline->nodes[i].estimated_self_ns || timeline->nodes[i].samples || timeline->nodes[i].gpu_ns) && timeline->nodes[i].thread < timeline->thread_count)
			order[count++] = &timeline->nodes[i];
	qsort(order, count, sizeof *order, heavier_first);
	shown = count < STACKS_MAX ? count : STACKS_MAX;
	for (size_t i = 0; i < shown && !json->failed; i++)
		put_stack(json, stacks, timeline, order[i]);
	put_u64(json, root, "stacks_omitted_count", count - shown);
	free(order);
}

/* NULL where nobody read it. */
static void put_read(struct json *json, cJSON *object, const char *key, const struct process *process, uint64_t value)
{
	if (process->timed)
		put_u64(json, object, key, value);
	else
		put(json, object, key, cJSON_CreateNull());
}

static void put_process(struct json *json, cJSON *processes, const struct process *process)
{
	cJSON *object = append_object(json, processes);

	put_u64(json, object, "pid", process->pid);
	put_u64(json, object, "parent_pid", process->parent);
	put_known(json, object, "command", process->command);
	put_known(json, object, "executable", process->executable);
	put_known(json, object, "python", process->python);
	put_unix_ns(json, object, "start_unix_ns", process->start_unix_ns);
	put_read(json, object, "user_ns", process, process->user_ns);
	put_read(json, object, "system_ns", process, process->system_ns);
	put_read(json, object, "rss_first_bytes", process, process->rss_first_bytes);
	put_read(json, object, "rss_last_bytes", process, process->rss_last_bytes);
	put_read(json, object, "rss_max_bytes", process, process->rss_max_bytes);
	put_read(json, object, "minor_faults_count", process, process->minor_faults);
	put_read(json, object, "major_faults_count", process, process->major_faults);
	put_read(json, object, "threads_max_count", process, process->threads_max);
}

void put_processes(struct json *json, cJSON *root, const struct timeline *timeline)
{
	cJSON *processes = put_array(json, root, "processes");

	for (size_t i = 0; i < timeline->process_count; i++)
		put_process(json, processes, &timeline->processes[i]);
}

void put_syscalls(struct json *json, cJSON *root, const struct report *report)
{
	cJSON *syscalls = put_array(json, root, "syscalls");

	for (size_t i = 0; i < report->syscall_count && !json->failed; i++) {
		const struct syscall_row *row = &report->syscalls[i];
		const struct syscall_summary *summary = row->summary;
		cJSON *object = append_object(json, syscalls);

		put_string(json, object, "name", summary->name);
		put_bool(json, object, "sampled", summary->sampled);
		put_bool(json, object, "waits", summary->waits);
		if (summary->sampled)
			put(json, object, "calls_count", cJSON_CreateNull());
		else
			put_u64(json, object, "calls_count", summary->count);
		put_u64(json, object, "failed_count", summary->failed);
		put_u64(json, object, "total_ns", summary->time_ns);
		put_u64(json, object, "p50_ns", summary->p50_ns);
		put_u64(json, object, "p95_ns", summary->p95_ns);
		put_u64(json, object, "longest_ns", summary->longest_ns);
		put_u64(json, object, "moved_bytes", summary->bytes);
		put_known(json, object, "function", row->caller ? row->caller->name : NULL);
		put_line(json, object, row->caller ? row->caller->file : NULL, row->caller ? row->caller->line : 0);
		put_u64(json, object, "function_ns", row->caller_ns);
	}
}

void put_scopes(struct json *json, cJSON *root, const struct timeline *timeline)
{
	cJSON *scopes = put_array(json, root, "scopes");

	for (size_t i = 0; i < timeline->scope_count && i < SCOPES_SHOWN && !json->failed; i++) {
		const struct scope_latency *scope = &timeline->scopes[i];
		cJSON *object = append_object(json, scopes);

		put_string(json, object, "name", scope->name);
		put_bool(json, object, "function", scope->function != UINT32_MAX);
		put_u64(json, object, "count", scope->count);
		put_u64(json, object, "total_ns", scope->total_ns);
		put_u64(json, object, "open_ns", scope->open_ns);
		put_u64(json, object, "p50_ns", scope->p50_ns);
		put_u64(json, object, "p95_ns", scope->p95_ns);
		put_u64(json, object, "p99_ns", scope->p99_ns);
		put_u64(json, object, "max_ns", scope->max_ns);
		put_u64(json, object, "max_at_ns", scope->max_at_ns);
		put_number(json, object, "coverage", scope->coverage, 6);
		put_u64(json, object, "cut_count", scope->cut);
		put_u64(json, object, "all_count", scope->all_count);
		put_u64(json, object, "all_total_ns", scope->all_ns);
	}
}
