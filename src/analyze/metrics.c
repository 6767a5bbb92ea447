/* The published numbers. A number that cannot be known is NAN and says why. */
#include <stdlib.h>
#include <string.h>

#include "analyze/private.h"
#include "timeline/operations.h"

#define NS_PER_SECOND 1e9

static const char NOT_SEEN[] = "the trace does not show what the threads did";

double metric_unknown(const char **why, const char *reason)
{
	*why = reason;
	return NAN;
}

static double duration(const struct analysis_private *p)
{
	return (double)p->timeline->duration_ns;
}

double metric_pct(double part, double whole, const char **why)
{
	return whole > 0 ? 100 * part / whole : metric_unknown(why, "nothing was measured");
}

static double per_second(const struct analysis_private *p, double count, const char **why)
{
	return duration(p) > 0 ? count * NS_PER_SECOND / duration(p) : metric_unknown(why, "nothing was measured");
}

static bool saw_calls(const struct analysis_private *p)
{
	return p->timeline->window_count > 0 && p->load.seen;
}

double metric_capture_duration(const struct analysis_private *p, const char **why)
{
	return duration(p);
}

double metric_capture_coverage(const struct analysis_private *p, const char **why)
{
	return 100 * p->timeline->coverage;
}

double metric_capture_damaged(const struct analysis_private *p, const char **why)
{
	return (double)p->timeline->quality.damaged_chunks;
}

double metric_capture_events(const struct analysis_private *p, const char **why)
{
	return (double)p->timeline->quality.events;
}

double metric_capture_lost(const struct analysis_private *p, const char **why)
{
	return (double)p->timeline->quality.lost_events;
}

double metric_capture_lost_pct(const struct analysis_private *p, const char **why)
{
	double lost = (double)p->timeline->quality.lost_events, all = lost + (double)p->timeline->quality.events;

	return all > 0 ? 100 * lost / all : 0;
}

double metric_capture_samples(const struct analysis_private *p, const char **why)
{
	return (double)p->timeline->quality.samples;
}

double metric_capture_unmatched(const struct analysis_private *p, const char **why)
{
	return (double)p->timeline->quality.unmatched;
}

double metric_cpu_busy_cores(const struct analysis_private *p, const char **why)
{
	if (!p->load.read)
		return metric_unknown(why, "the threads' CPU clocks were not read");
	return duration(p) > 0 ? p->load.cpu_ns / duration(p) : metric_unknown(why, "nothing was measured");
}

double metric_cpu_busiest_thread(const struct analysis_private *p, const char **why)
{
	return p->load.read ? metric_pct(p->load.busiest_ns, duration(p), why) : metric_unknown(why, "the threads' CPU clocks were not read");
}

double metric_cpu_busiest_wants(const struct analysis_private *p, const char **why)
{
	if (!p->load.read)
		return metric_unknown(why, "the threads' CPU clocks were not read");
	return p->load.busiest == UINT32_MAX ? 0 : metric_pct(p->load.busiest_ns + (double)p->timeline->threads[p->load.busiest].runnable_ns, duration(p), why);
}

double metric_cpu_cores(const struct analysis_private *p, const char **why)
{
	const char *cpus = timeline_capture(p->timeline, "cpus");
	double value = cpus ? strtod(cpus, NULL) : 0;

	return value > 0 && value < 1e6 ? value : metric_unknown(why, "the trace does not say how many CPUs the process may use");
}

double metric_cpu_utilization(const struct analysis_private *p, const char **why)
{
	const char *ignored;
	double cores = metric_cpu_cores(p, why), busy = metric_cpu_busy_cores(p, isnan(cores) ? &ignored : why);

	return 100 * busy / cores;
}

double metric_cpu_involuntary(const struct analysis_private *p, const char **why)
{
	return p->load.read ? per_second(p, (double)p->load.involuntary, why) : metric_unknown(why, "the threads' CPU clocks were not read");
}

double metric_cpu_voluntary(const struct analysis_private *p, const char **why)
{
	return p->load.read ? per_second(p, (double)p->load.voluntary, why) : metric_unknown(why, "the threads' CPU clocks were not read");
}

double metric_cpu_native(const struct analysis_private *p, const char **why)
{
	if (!p->timeline->native_split && p->load.state_ns[THREAD_NATIVE] <= 0 && p->load.python)
		return metric_unknown(why, "native code was not told from Python: neither C calls nor native samples were recorded");
	return p->load.seen ? metric_pct(p->load.state_ns[THREAD_NATIVE], duration(p), why) : metric_unknown(why, NOT_SEEN);
}

double metric_cpu_python(const struct analysis_private *p, const char **why)
{
	return p->load.seen ? metric_pct(p->load.state_ns[THREAD_PYTHON], duration(p), why) : metric_unknown(why, NOT_SEEN);
}

double metric_cpu_runnable(const struct analysis_private *p, const char **why)
{
	return p->load.read ? metric_pct(p->load.state_ns[THREAD_RUNNABLE], duration(p), why) : metric_unknown(why, "the threads' CPU clocks were not read");
}

double metric_demand(const struct analysis_private *p, const char **why)
{
	return p->load.seen ? metric_pct(p->load.demand_ns, duration(p), why) : metric_unknown(why, NOT_SEEN);
}

double metric_gil_wait(const struct analysis_private *p, const char **why)
{
	const double *ns = p->load.state_ns;
	double wanted = ns[THREAD_PYTHON] + ns[THREAD_NATIVE] + ns[THREAD_GIL_WAIT] + ns[THREAD_RUNNABLE];

	if (!p->load.seen)
		return metric_unknown(why, NOT_SEEN);
	return wanted > 0 ? 100 * ns[THREAD_GIL_WAIT] / wanted : 0;
}

static double of_wanted(const struct analysis_private *p, enum thread_state state, const char **why)
{
	if (!p->load.seen)
		return metric_unknown(why, NOT_SEEN);
	return p->load.wanted_ns > 0 ? 100 * p->load.state_ns[state] / p->load.wanted_ns : 0;
}

double metric_lock_wait(const struct analysis_private *p, const char **why)
{
	return of_wanted(p, THREAD_LOCK_WAIT, why);
}

double metric_io_wait(const struct analysis_private *p, const char **why)
{
	return of_wanted(p, THREAD_IO_WAIT, why);
}

double metric_gpu_devices(const struct analysis_private *p, const char **why)
{
	return (double)p->timeline->device_count;
}

/*
 * Time with demand for the device: all but what it idled because nobody had work for it. A host that sleeps while its device works, and a device that waits while its
 * host works, count both. Without launches nobody knows why it idled; then it is the longer of what host and device had to do, and the capture where nobody saw the host either.
 */
double gpu_demand(const struct analysis_private *p)
{
	double busy = (double)p->device->busy_ns;

	if (p->timeline->gpu.launches)
		return duration(p) - (double)p->device->idle_ns[GPU_NO_DEMAND];
	return p->load.demand_ns > busy ? p->load.demand_ns : busy;
}

double metric_gpu_busy(const struct analysis_private *p, const char **why)
{
	return p->device ? metric_pct((double)p->device->busy_ns, duration(p), why) : metric_unknown(why, "no GPU data");
}

double metric_gpu_copy_exposed(const struct analysis_private *p, const char **why)
{
	return p->device ? metric_pct((double)p->device->copy_exposed_ns, gpu_demand(p), why) : metric_unknown(why, "no GPU data");
}

double metric_gpu_idle(const struct analysis_private *p, const char **why)
{
	return p->device ? metric_pct(gpu_demand(p) - (double)p->device->busy_ns, gpu_demand(p), why) : metric_unknown(why, "no GPU data");
}

double metric_gpu_kernels(const struct analysis_private *p, const char **why)
{
	double kernels = 0;

	for (size_t i = 0; i < p->timeline->device_count; i++)
		kernels += (double)p->timeline->devices[i].kernels;
	return p->device ? per_second(p, kernels, why) : metric_unknown(why, "no GPU data");
}

static const struct process *first_process(const struct analysis_private *p)
{
	return p->timeline->process_count && p->timeline->processes[0].rss_max_bytes ? p->timeline->processes : NULL;
}

double metric_memory_major_faults(const struct analysis_private *p, const char **why)
{
	return first_process(p) ? per_second(p, (double)first_process(p)->major_faults, why) : metric_unknown(why, "the process's counters were not read");
}

double metric_memory_minor_faults(const struct analysis_private *p, const char **why)
{
	return first_process(p) ? per_second(p, (double)first_process(p)->minor_faults, why) : metric_unknown(why, "the process's counters were not read");
}

double metric_memory_rss_growth(const struct analysis_private *p, const char **why)
{
	const struct process *process = first_process(p);

	return process ? (double)process->rss_last_bytes - (double)process->rss_first_bytes : metric_unknown(why, "the process's counters were not read");
}

double metric_memory_rss_max(const struct analysis_private *p, const char **why)
{
	return first_process(p) ? (double)first_process(p)->rss_max_bytes : metric_unknown(why, "the process's counters were not read");
}

double metric_profiler_hold_max(const struct analysis_private *p, const char **why)
{
	int64_t hold = timeline_counter(p->timeline, "hold_max_ns", -1), sampled = timeline_counter(p->timeline, "sampler_hold_max_ns", -1);

	hold = sampled > hold ? sampled : hold;
	return hold >= 0 ? (double)hold : metric_unknown(why, "the trace does not say");
}

double metric_profiler_overhead(const struct analysis_private *p, const char **why)
{
	int64_t ppm = timeline_counter(p->timeline, "overhead_ppm", -1);

	return ppm >= 0 ? (double)ppm / 10000 : metric_unknown(why, "the trace does not say");
}

double metric_python_calls(const struct analysis_private *p, const char **why)
{
	double calls = 0;

	for (size_t i = 0; i < p->timeline->function_count; i++)
		calls += (double)p->timeline->functions[i].calls;
	return saw_calls(p) ? per_second(p, calls, why) : metric_unknown(why, "no calls were recorded");
}

double metric_python_exceptions(const struct analysis_private *p, const char **why)
{
	double exceptions = 0;

	for (size_t i = 0; i < p->timeline->function_count; i++) {
		const struct function *function = &p->timeline->functions[i];

		/* Exceptions were seen in the windows; as many calls are missing of them as of all calls. */
		exceptions += (double)function->exceptions * (function->coverage > 0 ? 1 / function->coverage : 1);
	}
	return saw_calls(p) ? per_second(p, exceptions, why) : metric_unknown(why, "no calls were recorded");
}

static bool is_collection(const struct operation *operation)
{
	return operation->kind == EVENT_GC;
}

static bool saw_collections(const struct analysis_private *p)
{
	const char *told = timeline_capture(p->timeline, "gc");

	return (told && strncmp(told, "told", 4) == 0) || operations_sum(p->timeline, is_collection).count;
}

double metric_python_gc(const struct analysis_private *p, const char **why)
{
	if (saw_collections(p))
		return (double)operations_sum(p->timeline, is_collection).time_ns;
	for (size_t i = 0; i < p->timeline->function_count; i++)
		if (p->timeline->functions[i].kind == FUNCTION_C && p->timeline->functions[i].calls)
			return inclusive_time(p, function_is_collector, false).ns;
	return metric_unknown(why, "calls of C functions were not recorded");
}

double metric_python_gc_longest(const struct analysis_private *p, const char **why)
{
	uint64_t longest = operations_sum(p->timeline, is_collection).longest_ns;
	bool calls = false;

	for (size_t i = 0; i < p->timeline->function_count && !saw_collections(p); i++) {
		const struct function *function = &p->timeline->functions[i];

		calls |= function->kind == FUNCTION_C && function->calls;
		if (function_is_collector(function) && function->longest_ns > longest)
			longest = function->longest_ns;
	}
	return calls || saw_collections(p) ? (double)longest : metric_unknown(why, "calls of C functions were not recorded");
}

double metric_python_gc_rate(const struct analysis_private *p, const char **why)
{
	return saw_collections(p) ? per_second(p, (double)operations_sum(p->timeline, is_collection).count, why) : metric_unknown(why, "collections of garbage were not told");
}

double metric_python_hottest(const struct analysis_private *p, const char **why)
{
	const struct function *hottest = function_hottest(p->timeline);
	const double *share = p->load.share_ns;
	double computing = share[THREAD_PYTHON] + share[THREAD_NATIVE] + share[THREAD_GIL_WAIT] + share[THREAD_RUNNABLE];

	if (!p->load.read)
		return metric_unknown(why, "the threads' CPU clocks were not read");
	return hottest && p->load.cpu_ns > 0 ? clamp((double)hottest->cpu_work_ns / p->load.cpu_ns, 0, 1) * metric_pct(computing, duration(p), why) : 0;
}

double metric_python_hottest_native(const struct analysis_private *p, const char **why)
{
	const struct function *hottest = function_hottest(p->timeline);

	if (!p->load.read)
		return metric_unknown(why, "the threads' CPU clocks were not read");
	return hottest && hottest->cpu_work_ns > hottest->cpu_self_ns ? 100 * (double)(hottest->cpu_work_ns - hottest->cpu_self_ns) / (double)hottest->cpu_work_ns : 0;
}

double metric_python_import(const struct analysis_private *p, const char **why)
{
	return saw_calls(p) ? metric_pct(inclusive_time(p, function_is_import, false).ns, duration(p), why) : metric_unknown(why, "no calls were recorded");
}

double metric_python_import_in_call(const struct analysis_private *p, const char **why)
{
	return saw_calls(p) ? metric_pct(inclusive_time(p, function_is_import, true).ns, duration(p), why) : metric_unknown(why, "no calls were recorded");
}

double metric_python_logging(const struct analysis_private *p, const char **why)
{
	if (!saw_calls(p))
		return metric_unknown(why, "no calls were recorded");
	return p->load.wanted_ns > 0 ? 100 * inclusive_time(p, function_is_logging, false).ns / p->load.wanted_ns : 0;
}

double metric_aio_callback_max(const struct analysis_private *p, const char **why)
{
	uint32_t function, thread;
	uint64_t longest = longest_callback(p, &function, &thread);

	return longest ? (double)longest : metric_unknown(why, "no callback of an asyncio event loop was seen");
}

double metric_threads_active(const struct analysis_private *p, const char **why)
{
	return p->load.active;
}

double metric_threads_all(const struct analysis_private *p, const char **why)
{
	return p->load.threads;
}

double metric_threads_python(const struct analysis_private *p, const char **why)
{
	return p->load.python;
}

double metric_threads_unhooked(const struct analysis_private *p, const char **why)
{
	return p->load.unhooked;
}

static const struct metric_definition definitions[] = {
#define METRIC(id, name, unit, definition) { name, unit, definition },
#include "analyze/metrics.def"
#undef METRIC
};

static const metric_function functions[] = {
#define METRIC(id, name, unit, definition) metric_##id,
#include "analyze/metrics.def"
#undef METRIC
};

const struct metric_definition *metric_definitions(size_t *count)
{
	*count = METRIC_COUNT;
	return definitions;
}

const char *metric_name(enum metric_index index)
{
	return definitions[index].name;
}

const char *metric_unit(enum metric_index index)
{
	return definitions[index].unit;
}

static int compare_metrics(const void *left, const void *right)
{
	return strcmp(((const struct metric *)left)->name, ((const struct metric *)right)->name);
}

void metrics_build(struct analysis_private *p)
{
	struct metric *sorted = analysis_keep(p, METRIC_COUNT, sizeof *sorted);

	for (int i = 0; i < METRIC_COUNT; i++) {
		const char *why = "";
		double value = functions[i](p, &why);

		p->metrics[i] = (struct metric){ definitions[i].name, definitions[i].unit, value, why };
	}
	if (!sorted)
		return;
	memcpy(sorted, p->metrics, sizeof p->metrics);
	qsort(sorted, METRIC_COUNT, sizeof *sorted, compare_metrics);
	p->analysis.metrics = sorted;
	p->analysis.metric_count = METRIC_COUNT;
}
