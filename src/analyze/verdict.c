/* The class, its reason, how sure we are, and where the time went. docs/metrics.md says in words what is decided here. */
#include <string.h>

#include "analyze/private.h"

/* The parts of a breakdown in the order of struct breakdown, all doubles. */
enum { PART_PYTHON, PART_NATIVE, PART_GIL, PART_LOCK, PART_IO, PART_GPU, PART_TRANSFER, PART_RUNNABLE, PART_SLEEP, PART_IDLE, PARTS };
_Static_assert(sizeof(struct breakdown) == PARTS * sizeof(double), "round_parts walks over the struct");

/* To tenths that add up to 100: rounded down, and the tenths that are missing go where rounding took most. */
static void round_parts(const double exact[PARTS], struct breakdown *out)
{
	double *rounded = (double *)out;
	int tenths[PARTS], missing = 1000;

	for (int i = 0; i < PARTS; i++) {
		tenths[i] = (int)(10 * exact[i] + 1e-9);
		missing -= tenths[i];
	}
	while (missing > 0) {
		int most = 0;

		for (int i = 1; i < PARTS; i++)
			if (10 * exact[i] - tenths[i] > 10 * exact[most] - tenths[most])
				most = i;
		tenths[most]++;
		missing--;
	}
	for (int i = 0; i < PARTS; i++)
		rounded[i] = tenths[i] / 10.0;
}

static void break_down(struct analysis_private *p)
{
	const double *share = p->load.share_ns;
	double exact[PARTS] = { 0 }, sum = 0, transfer = 0;

	if (p->device && p->device->busy_ns)
		transfer = (double)p->device->copy_exposed_ns / (double)p->device->busy_ns;
	exact[PART_PYTHON] = share[THREAD_PYTHON];
	exact[PART_NATIVE] = share[THREAD_NATIVE];
	exact[PART_GIL] = share[THREAD_GIL_WAIT];
	exact[PART_LOCK] = share[THREAD_LOCK_WAIT];
	exact[PART_IO] = share[THREAD_IO_WAIT];
	exact[PART_GPU] = share[THREAD_GPU_WAIT] * (1 - transfer);
	exact[PART_TRANSFER] = share[THREAD_GPU_WAIT] * transfer;
	exact[PART_RUNNABLE] = share[THREAD_RUNNABLE];
	exact[PART_SLEEP] = share[THREAD_SLEEP];
	exact[PART_IDLE] = share[THREAD_IDLE];
	for (int i = 0; i < PARTS; i++)
		sum += exact[i];
	if (!p->load.seen || sum <= 0)
		return;
	for (int i = 0; i < PARTS; i++)
		exact[i] *= 100 / sum;
	round_parts(exact, &p->analysis.verdict.breakdown);
}

static double of_demand(const struct analysis_private *p, enum thread_state state)
{
	return p->load.demand_ns > 0 ? 100 * p->load.share_ns[state] / p->load.demand_ns : 0;
}

static void decide(struct analysis_private *p, enum verdict_class class_, const char *reason, double confidence, const char *sentence)
{
	struct verdict *verdict = &p->analysis.verdict;

	verdict->class_ = class_;
	verdict->reason = reason;
	verdict->sentence = sentence;
	/* What the CPU does says little about a device that nobody watched. */
	verdict->confidence = round(100 * clamp(confidence, 0, p->device ? 0.95 : 0.6)) / 100;
}

/* 0.5 at the threshold, 1 at RANGE beyond it. */
static double margin(double value, double threshold, double range)
{
	return 0.5 + 0.5 * clamp((value - threshold) / range, 0, 1);
}

static double scaled(const struct analysis_private *p, double margin_)
{
	return (p->device ? 0.95 : 0.6) * margin_ * analysis_quality(p);
}

enum { OWN_CORES_PCT = 70 }; /* of the cores that a process may use: with less it is others that keep them */

static void decide_cpu_bound(struct analysis_private *p, double compute, double threshold)
{
	double gil = of_demand(p, THREAD_GIL_WAIT), runnable = of_demand(p, THREAD_RUNNABLE);
	double busiest = metric_value(p, METRIC_cpu_busiest_wants), cores = metric_value(p, METRIC_cpu_cores);
	const struct function *top = function_hottest(p->timeline);
	const char *where = !top ? "" : top->line ? analysis_printf(p, "; most CPU time is in %s (%s:%u)", top->name, top->file, top->line) :
		analysis_printf(p, "; most CPU time is in %s%s%s", top->name, *top->file ? " of " : "", top->file);
	const char *reason = p->load.share_ns[THREAD_NATIVE] > p->load.share_ns[THREAD_PYTHON] ? "native_code" : "python_code";
	const char *how = "with work is spent on a CPU";
	bool crowded = p->load.wanted_cores > cores && metric_value(p, METRIC_cpu_utilization) >= OWN_CORES_PCT; /* by this process itself */

	if (gil > 25) {
		reason = "gil_contention";
		how = "with work is spent in Python code or waiting for the GIL that such code holds";
	} else if (runnable > 25 && crowded) {
		reason = "cpu_contention";
		how = "with work is spent on a CPU or waiting for one, as its threads want more than there are";
	} else if (runnable > 25) {
		reason = "cpu_taken_by_others";
		how = "with work is spent on a CPU or waiting for one that other programs have";
	} else if (busiest >= 90 && p->load.wanted_cores <= 1.3 && !(cores < 2)) {
		reason = "one_core_saturated";
		how = "with work one thread wants a CPU, and it can use only one";
	}
	decide(p, VERDICT_CPU_BOUND, reason, scaled(p, margin(compute, threshold, 25)),
		analysis_printf(p, "CPU-bound: %.0f %% of the time %s%s", compute, how, where));
}

static void decide_balanced(struct analysis_private *p, double compute)
{
	static const struct { enum thread_state state; const char *reason, *what; } waits[] = {
		{ THREAD_LOCK_WAIT, "lock_waits", "threads waiting for locks" },
		{ THREAD_IO_WAIT, "io_waits", "waiting for files and sockets" },
		{ THREAD_GPU_WAIT, "gpu_waits", "waiting for a device" },
	};

	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
		double share = of_demand(p, waits[i].state);

		if (share < 50)
			continue;
		decide(p, VERDICT_BALANCED, waits[i].reason, scaled(p, margin(share, 50, 40)),
			analysis_printf(p, "Not limited by computing: %.0f %% of the time with work is %s, %.0f %% is computing", share, waits[i].what, compute));
		return;
	}
	decide(p, VERDICT_BALANCED, "mixed", scaled(p, 0.7),
		analysis_printf(p, "Balanced: %.0f %% of the time with work is computing, the rest is waiting for locks (%.0f %%), I/O (%.0f %%) and devices (%.0f %%)",
			compute, of_demand(p, THREAD_LOCK_WAIT), of_demand(p, THREAD_IO_WAIT), of_demand(p, THREAD_GPU_WAIT)));
}

/* Per cent of the time with demand in which the device waited for the host. */
static double host_caused(const struct analysis_private *p)
{
	return metric_value(p, METRIC_gpu_idle_late_pct) + metric_value(p, METRIC_gpu_idle_sync_pct);
}

/* The same with what nobody knows the cause of. Where no launch was recorded, that is all there is. */
static double host_caused_at_most(const struct analysis_private *p)
{
	return metric_value(p, METRIC_gpu_idle) - metric_value(p, METRIC_gpu_idle_dependency_pct);
}

/* With GPU data, in the order of docs/metrics.md. False: they do not decide. */
static bool decide_by_gpu(struct analysis_private *p)
{
	double busy = 100 - metric_value(p, METRIC_gpu_idle), copies = metric_value(p, METRIC_gpu_copy_exposed);
	double kernels = (double)p->device->kernel_ns, starved = host_caused_at_most(p), waits = metric_value(p, METRIC_gpu_idle_dependency_pct);
	double ratio = p->parameters[PARAMETER_GPU_RATIO];

	if (isnan(busy) || isnan(copies))
		return false;
	if (copies > p->parameters[PARAMETER_TRANSFER]) {
		decide(p, VERDICT_MEMORY_BOUND, "exposed_copies", scaled(p, margin(copies, p->parameters[PARAMETER_TRANSFER], 20)),
			analysis_printf(p, "Transfer-bound: for %.0f %% of the time with work the device copies and computes nothing", copies));
		return true;
	}
	if (busy >= p->parameters[PARAMETER_GPU_BUSY] || (p->load.seen && kernels > ratio * p->load.cpu_ns && !(host_caused(p) > p->parameters[PARAMETER_GPU_RATIO_IDLE]))) {
		double by_busy = margin(busy, p->parameters[PARAMETER_GPU_BUSY], 15), by_ratio = margin(kernels, ratio * p->load.cpu_ns, ratio * p->load.cpu_ns + 1);

		decide(p, VERDICT_GPU_BOUND, busy >= p->parameters[PARAMETER_GPU_BUSY] ? "gpu_busy" : "gpu_over_cpu", scaled(p, by_busy > by_ratio ? by_busy : by_ratio),
			analysis_printf(p, "GPU-bound: the device is busy for %.0f %% of the time with work", busy));
		return true;
	}
	if (!p->load.seen && !p->timeline->gpu.launches)
		return false; /* nobody knows why it idles */
	if (starved > p->parameters[PARAMETER_GPU_IDLE]) {
		decide(p, VERDICT_CPU_BOUND, "gpu_starved", scaled(p, margin(starved, p->parameters[PARAMETER_GPU_IDLE], 30)),
			analysis_printf(p, "CPU-bound: for %.0f %% of the time with work the device has nothing to do%s", starved, p->timeline->gpu.launches ? " because the host did not ask for it in time" : ""));
		return true;
	}
	if (waits > p->parameters[PARAMETER_GPU_IDLE]) {
		decide(p, VERDICT_BALANCED, "device_dependency", scaled(p, 0.7),
			analysis_printf(p, "Balanced: for %.0f %% of the time with work the device waits for itself (streams, events, dispatch), for %.0f %% for the host", waits, starved));
		return true;
	}
	return false;
}

/* A device's work alone, or scopes alone. */
static void decide_without_host(struct analysis_private *p)
{
	const char *sentence = "Unknown: the trace does not show what the process did";

	if (p->device)
		sentence = analysis_printf(p, "Unknown: the device is busy for %.0f %% of the capture, and the trace does not show what the process did meanwhile; record its calls, too", metric_value(p, METRIC_gpu_busy));
	decide(p, VERDICT_UNKNOWN, "no_host_data", scaled(p, 0.5), sentence);
}

static void decide_class(struct analysis_private *p)
{
	const struct timeline *timeline = p->timeline;
	double seconds = (double)timeline->duration_ns / 1e9, idle_threshold = p->parameters[PARAMETER_NO_DEMAND], threshold = p->parameters[PARAMETER_CPU_BOUND];
	double resting = 100 - metric_value(p, METRIC_demand), compute;

	if (!timeline->duration_ns || (!timeline->thread_count && !p->device)) {
		decide(p, VERDICT_UNKNOWN, "no_data", 0, "Unknown: the trace holds nothing to judge by");
		return;
	}
	if (seconds < p->parameters[PARAMETER_DURATION]) {
		decide(p, VERDICT_UNKNOWN, "too_short", 0, analysis_printf(p, "Unknown: %.2f seconds are too short to judge by", seconds));
		return;
	}
	if (p->device && (double)p->device->busy_ns / (double)timeline->duration_ns * 100 > 100 - idle_threshold)
		resting = 0; /* the device had work, whatever the host did */
	if (resting > idle_threshold) {
		decide(p, VERDICT_UNKNOWN, "no_demand", scaled(p, margin(resting, idle_threshold, 25)),
			analysis_printf(p, "Unknown: the process had nothing to do for %.0f %% of the time; measure it under load", resting));
		return;
	}
	if (p->device && decide_by_gpu(p))
		return;
	if (!p->load.seen) {
		decide_without_host(p);
		return;
	}
	compute = of_demand(p, THREAD_PYTHON) + of_demand(p, THREAD_NATIVE) + of_demand(p, THREAD_GIL_WAIT) + of_demand(p, THREAD_RUNNABLE);
	if (compute >= threshold)
		decide_cpu_bound(p, compute, threshold);
	else
		decide_balanced(p, compute);
}

void verdict_build(struct analysis_private *p)
{
	const char *gpu = timeline_capture(p->timeline, "gpu");

	p->analysis.verdict.gpu = p->device ? "" : gpu && *gpu ? gpu : "no GPU data in this trace";
	p->analysis.verdict.sentence = p->analysis.verdict.reason = "";
	break_down(p);
	decide_class(p);
}
