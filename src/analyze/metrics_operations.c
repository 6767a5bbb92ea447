/* Published numbers that come from operations by name, and shares of the capture. */
#include <stdlib.h>
#include <string.h>

#include "analyze/private.h"
#include "timeline/operations.h"

static const char NO_GPU[] = "no GPU data", NO_CLOCKS[] = "the threads' CPU clocks were not read";

static double duration(const struct analysis_private *p)
{
	return (double)p->timeline->duration_ns;
}

static double per_second(const struct analysis_private *p, double count, const char **why)
{
	return duration(p) > 0 ? count * 1e9 / duration(p) : metric_unknown(why, "nothing was measured");
}

static double capture_share(const struct analysis_private *p, enum thread_state state, const char **why)
{
	return p->load.read ? metric_pct(p->load.share_ns[state], duration(p), why) : metric_unknown(why, NO_CLOCKS);
}

/* ---- threads ---- */

double metric_aio_callback_undisturbed(const struct analysis_private *p, const char **why)
{
	uint32_t function, index;
	uint64_t longest = longest_callback(p, &function, &index);
	const struct thread *thread;
	double working;

	if (!longest)
		return metric_unknown(why, "no callback of an asyncio event loop was seen");
	thread = &p->timeline->threads[index];
	working = (double)thread->wall_ns - (double)thread->idle_ns;
	return (double)longest * (working > 0 ? 1 - clamp((double)thread->runnable_ns / working, 0, 1) : 1);
}

double metric_cpu_runnable_capture(const struct analysis_private *p, const char **why)
{
	return capture_share(p, THREAD_RUNNABLE, why);
}

double metric_gil_capture(const struct analysis_private *p, const char **why)
{
	return capture_share(p, THREAD_GIL_WAIT, why);
}

double metric_lock_capture(const struct analysis_private *p, const char **why)
{
	return capture_share(p, THREAD_LOCK_WAIT, why);
}

double metric_cpu_waiting(const struct analysis_private *p, const char **why)
{
	const double *ns = p->load.state_ns;

	return p->load.read ? metric_pct(ns[THREAD_RUNNABLE], ns[THREAD_PYTHON] + ns[THREAD_NATIVE] + ns[THREAD_RUNNABLE], why) : metric_unknown(why, NO_CLOCKS);
}

double metric_cpu_wanted_cores(const struct analysis_private *p, const char **why)
{
	return p->load.read ? p->load.wanted_cores : metric_unknown(why, NO_CLOCKS);
}

double metric_cpu_system(const struct analysis_private *p, const char **why)
{
	double system = 0;

	if (!p->timeline->process_count || !p->timeline->processes[0].rss_max_bytes)
		return metric_unknown(why, "the process's counters were not read");
	for (size_t i = 0; i < p->timeline->process_count; i++)
		system += (double)p->timeline->processes[i].system_ns;
	return metric_pct(system, duration(p), why);
}

double metric_demand_thread(const struct analysis_private *p, const char **why)
{
	return p->load.wanted_ns > 0 ? p->load.wanted_ns : metric_unknown(why, "no thread had anything to do");
}

double metric_python_tokenizer(const struct analysis_private *p, const char **why)
{
	if (!p->timeline->window_count || !p->load.seen)
		return metric_unknown(why, "no calls were recorded");
	return p->load.wanted_ns > 0 ? 100 * inclusive_time(p, function_is_tokenizer, false).ns / p->load.wanted_ns : 0;
}

/* ---- devices ---- */

static bool is_host_copy(const struct operation *operation)
{
	return operation->kind == EVENT_H2D_COPY || operation->kind == EVENT_D2H_COPY;
}

double metric_gpu_copies_rate(const struct analysis_private *p, const char **why)
{
	const struct operations *all = timeline_operations(p->timeline);
	double count = 0;

	for (size_t i = 0; i < all->count; i++)
		count += is_host_copy(&all->items[i]) ? (double)all->items[i].count : 0;
	return p->device ? per_second(p, count, why) : metric_unknown(why, NO_GPU);
}

double metric_gpu_copy_exposed_ns(const struct analysis_private *p, const char **why)
{
	return p->device ? (double)p->device->copy_exposed_ns : metric_unknown(why, NO_GPU);
}

double metric_gpu_copy_bytes(const struct analysis_private *p, const char **why)
{
	const struct operations *all = timeline_operations(p->timeline);
	struct histogram bytes = { 0 };
	double median;

	for (size_t i = 0; i < all->count; i++)
		if (is_host_copy(&all->items[i]))
			histogram_add(&bytes, all->items[i].by_bytes, UINT64_MAX);
	median = histogram_percentile(&bytes, 50);
	return isnan(median) ? metric_unknown(why, p->device ? "nothing was copied between host and devices" : NO_GPU) : median;
}

double metric_gpu_small_reads(const struct analysis_private *p, const char **why)
{
	const struct operations *all = timeline_operations(p->timeline);
	double count = 0;

	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].kind == EVENT_D2H_COPY)
			count += operations_up_to(all->items[i].by_bytes, 64);
	return p->device ? per_second(p, count, why) : metric_unknown(why, NO_GPU);
}

double metric_gpu_imbalance(const struct analysis_private *p, const char **why)
{
	const struct timeline *timeline = p->timeline;
	uint64_t most = 0, least = UINT64_MAX;

	if (timeline->device_count < 2)
		return metric_unknown(why, p->device ? "one device" : NO_GPU);
	for (size_t i = 0; i < timeline->device_count; i++) {
		most = timeline->devices[i].busy_ns > most ? timeline->devices[i].busy_ns : most;
		least = timeline->devices[i].busy_ns < least ? timeline->devices[i].busy_ns : least;
	}
	return metric_pct((double)(most - least), duration(p), why);
}

double metric_gpu_kernel(const struct analysis_private *p, const char **why)
{
	return p->device ? metric_pct((double)p->device->kernel_ns, duration(p), why) : metric_unknown(why, NO_GPU);
}

double metric_gpu_repeated(const struct analysis_private *p, const char **why)
{
	const struct operations *all = timeline_operations(p->timeline);

	return all->kernels ? 100 * (double)all->repeated_kernels / (double)all->kernels : metric_unknown(why, p->device ? "no kernels ran" : NO_GPU);
}

/* As the device's own description says; imported traces may tell one number without saying of which device. */
static uint32_t multiprocessors_of(const struct analysis_private *p, uint32_t device)
{
	const char *told = timeline_capture(p->timeline, "gpu.multiprocessors");

	for (size_t i = 0; i < p->timeline->device_count; i++)
		if (p->timeline->devices[i].id == device && p->timeline->devices[i].multiprocessors)
			return p->timeline->devices[i].multiprocessors;
	return told ? (uint32_t)strtoul(told, NULL, 10) : 0;
}

double metric_gpu_underfilled(const struct analysis_private *p, const char **why)
{
	const struct operations *all = timeline_operations(p->timeline);
	double known = 0, under = 0;
	bool told = false;

	for (size_t i = 0; i < all->device_count; i++) {
		uint32_t multiprocessors = multiprocessors_of(p, all->devices[i].device);

		if (!multiprocessors || multiprocessors > BLOCKS_TOLD)
			continue;
		told = true;
		for (uint32_t blocks = 0; blocks <= BLOCKS_TOLD; blocks++) {
			known += (double)all->devices[i].ns[blocks];
			under += blocks < multiprocessors ? (double)all->devices[i].ns[blocks] : 0;
		}
	}
	if (known > 0)
		return 100 * under / known;
	if (!p->device)
		return metric_unknown(why, NO_GPU);
	return metric_unknown(why, told || !all->device_count ? "the kernels' grids are not known" : "the trace does not say how many multiprocessors the device has");
}
