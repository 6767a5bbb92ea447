/*
 * The rules: each looks at metrics and functions, and makes at most one finding, or says why it cannot be judged. Precision before
 * recall: a healthy program has no finding of medium severity or above.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/private.h"

enum { FINDINGS_LIMIT = 64, SKIPPED_LIMIT = 64, EVIDENCE_LIMIT = 4, LOCATIONS_LIMIT = 5 };

struct rules {
	struct analysis_private *p;
	const struct rule *rule; /* being judged */
	struct finding_report *findings;
	struct not_evaluated *skipped;
	size_t finding_count, skipped_count;
};

struct rule {
	struct rule_info info;
	const char *suggestion;
	void (*judge)(struct rules *rules, double threshold);
};

/* Rules of the catalogue whose data are never there yet. They are listed so that silence is no all-clear. */
static const struct not_evaluated not_yet[] = {
	{ "cpu.cgroup_throttle", "the cgroup's counters are not recorded" },
	{ "gpu.alloc_churn", "device allocations are not recorded" },
	{ "gpu.h2d_pageable", "needs the memory kinds of copies" },
	{ "gpu.idle_nodemand", "needs scopes around requests" },
	{ "gpu.jit_recompile", "needs compiler events" },
	{ "gpu.launch_bound", "needs launches joined to kernels" },
	{ "gpu.no_graph", "needs launches joined to kernels" },
	{ "gpu.small_batch", "needs the number of multiprocessors" },
	{ "gpu.small_copies", "needs launches joined to copies" },
	{ "gpu.sync_item", "needs launches joined to kernels" },
	{ "io.dataloader_wait", "no GPU data" },
	{ "io.net_wait", "needs scopes around requests" },
	{ "mem.numa_remote", "NUMA counters are not recorded" },
	{ "py.gc_pause", "runs of the garbage collector are not recorded" },
	{ "req.tail", "needs scopes around requests" },
	{ "sys.hot_syscalls", "system calls are not recorded" },
};

static void skip(struct rules *rules, const char *reason)
{
	if (rules->skipped_count < SKIPPED_LIMIT)
		rules->skipped[rules->skipped_count++] = (struct not_evaluated){ rules->rule->info.id, reason };
}

/* The value of a metric the rule cannot do without; NAN after saying so. */
static double need(struct rules *rules, enum metric_index index)
{
	const struct metric *metric = &rules->p->metrics[index];

	if (isnan(metric->value))
		skip(rules, metric->why);
	return metric->value;
}

static const char *finding_id(struct rules *rules, const struct location *location)
{
	uint32_t hash = 2166136261u; /* FNV-1a: the same place has the same id in every capture */

	if (location) {
		const char *const parts[] = { location->file, location->function };

		for (size_t i = 0; i < 2; i++)
			for (const char *at = parts[i]; *at; at++)
				hash = (hash ^ (unsigned char)*at) * 16777619u;
	}
	return analysis_printf(rules->p, "%s-%08x", rules->rule->info.id, hash);
}

static struct finding_report *find(struct rules *rules, enum severity severity, double confidence, double recoverable_ns, const char *title)
{
	struct analysis_private *p = rules->p;
	double duration = (double)p->timeline->duration_ns;
	struct finding_report *finding;
	struct evidence *evidence = analysis_keep(p, EVIDENCE_LIMIT, sizeof *evidence);
	struct location *locations = analysis_keep(p, LOCATIONS_LIMIT, sizeof *locations);

	if (rules->finding_count >= FINDINGS_LIMIT || p->failed)
		return NULL;
	finding = &rules->findings[rules->finding_count++];
	recoverable_ns = clamp(recoverable_ns, 0, duration);
	*finding = (struct finding_report){ .rule = rules->rule->info.id, .rule_version = rules->rule->info.version, .title = title, .severity = severity,
		.confidence = round(100 * clamp(confidence * analysis_quality(p), 0, 1)) / 100, .class_ = p->analysis.verdict.class_,
		.recoverable_ns = (uint64_t)recoverable_ns, .recoverable_pct = duration > 0 ? 100 * recoverable_ns / duration : 0,
		.evidence = evidence, .locations = locations, .suggestion = rules->rule->suggestion };
	finding->id = finding_id(rules, NULL);
	return finding;
}

static void show(struct finding_report *finding, enum metric_index metric, double value, double threshold, const char *op)
{
	struct evidence *evidence = finding ? (struct evidence *)finding->evidence : NULL;

	if (evidence && finding->evidence_count < EVIDENCE_LIMIT)
		evidence[finding->evidence_count++] = (struct evidence){ metric_name(metric), value, metric_unit(metric), threshold, op };
}

static void point_at(struct rules *rules, struct finding_report *finding, uint32_t index)
{
	const struct function *function;
	struct location *locations;

	if (!finding || index == UINT32_MAX || finding->location_count >= LOCATIONS_LIMIT)
		return;
	function = &rules->p->timeline->functions[index];
	locations = (struct location *)finding->locations;
	for (size_t i = 0; i < finding->location_count; i++)
		if (locations[i].function == function->name && locations[i].line == function->line)
			return;
	locations[finding->location_count++] = (struct location){ function->file, function->line, function->name, function->kind };
	if (finding->location_count == 1)
		finding->id = finding_id(rules, locations);
}

typedef double (*function_value)(const struct function *function);

/* Points at the functions with most of VALUE, at most COUNT that have a tenth of the first. */
static void point_at_most(struct rules *rules, struct finding_report *finding, function_value value, size_t count)
{
	const struct timeline *timeline = rules->p->timeline;
	double before = INFINITY, first = 0;
	uint32_t before_index = UINT32_MAX;

	for (size_t n = 0; n < count; n++) {
		uint32_t best = UINT32_MAX;

		for (size_t i = 0; i < timeline->function_count; i++) {
			double at = value(&timeline->functions[i]);

			if (at <= 0 || at > before || (at == before && (before_index == UINT32_MAX || i <= before_index)))
				continue;
			if (best == UINT32_MAX || at > value(&timeline->functions[best]))
				best = (uint32_t)i;
		}
		if (best == UINT32_MAX || value(&timeline->functions[best]) < first / 10)
			return;
		before = value(&timeline->functions[best]);
		before_index = best;
		if (!n)
			first = before;
		point_at(rules, finding, best);
	}
}

static double cpu_of(const struct function *function)
{
	return function->waiter ? 0 : (double)function->cpu_work_ns;
}

static double lock_wait_of(const struct function *function)
{
	return (double)function->lock_wait_ns;
}

static double exceptions_of(const struct function *function)
{
	return (double)function->exceptions;
}

static enum severity grade(double value, double medium, double high)
{
	return value >= high ? SEVERITY_HIGH : value >= medium ? SEVERITY_MEDIUM : SEVERITY_LOW;
}

static double share(const struct rules *rules, enum thread_state state)
{
	return rules->p->load.share_ns[state];
}

/* The part of a stretch of a thread's time that it did not wait for a CPU. */
static double undisturbed(const struct thread *thread)
{
	double working = (double)thread->wall_ns - (double)thread->idle_ns;

	return working > 0 ? 1 - clamp((double)thread->runnable_ns / working, 0, 1) : 1;
}

static void rule_aio_loop_block(struct rules *rules, double threshold)
{
	double longest = need(rules, METRIC_aio_callback_max), limit = threshold * 1e6;
	struct finding_report *finding;
	uint32_t function, thread;

	if (isnan(longest) || longest <= limit)
		return;
	longest_callback(rules->p, &function, &thread);
	/* On a machine that others keep busy any callback takes long: that is not the callback's doing. */
	if (longest * undisturbed(&rules->p->timeline->threads[thread]) <= limit)
		return;
	finding = find(rules, grade(longest, limit, 10 * limit), 0.85, longest - limit,
		analysis_printf(rules->p, "A callback kept the event loop for %.0f ms", longest / 1e6));
	show(finding, METRIC_aio_callback_max, longest, limit, ">");
	point_at(rules, finding, function);
}

static void rule_cpu_lock_wait(struct rules *rules, double threshold)
{
	double pct = need(rules, METRIC_lock_wait);
	struct finding_report *finding;

	if (!rules->p->load.read) {
		skip(rules, "the threads' CPU clocks were not read");
		return;
	}
	/* A share of next to nothing is nothing. */
	if (isnan(pct) || pct <= threshold || rules->p->load.share_ns[THREAD_LOCK_WAIT] < 0.02 * (double)rules->p->timeline->duration_ns)
		return;
	finding = find(rules, grade(pct, 4 * threshold, 10 * threshold), 0.7, share(rules, THREAD_LOCK_WAIT),
		analysis_printf(rules->p, "Threads wait for locks: %.0f %% of the time of all threads with something to do", pct));
	show(finding, METRIC_lock_wait, pct, threshold, ">");
	show(finding, METRIC_cpu_voluntary, metric_value(rules->p, METRIC_cpu_voluntary), NAN, "");
	point_at_most(rules, finding, lock_wait_of, 3);
}

static void rule_cpu_one_core(struct rules *rules, double threshold)
{
	double busiest = need(rules, METRIC_cpu_busiest_wants), cores, busy = metric_value(rules->p, METRIC_cpu_busy_cores);
	struct finding_report *finding;

	if (isnan(busiest))
		return;
	cores = need(rules, METRIC_cpu_cores);
	if (isnan(cores) || cores < 2 || busiest < threshold || busy > 1.3 || rules->p->load.wanted_cores > 1.3)
		return;
	finding = find(rules, SEVERITY_MEDIUM, 0.85, busiest / 200 * (double)rules->p->timeline->duration_ns,
		analysis_printf(rules->p, "One thread wants one core for %.0f %% of the time; %.0f cores are there", busiest, cores));
	show(finding, METRIC_cpu_busiest_wants, busiest, threshold, ">=");
	show(finding, METRIC_cpu_busy_cores, busy, 1.3, "<=");
	show(finding, METRIC_cpu_cores, cores, 2, ">=");
	point_at_most(rules, finding, cpu_of, 3);
}

static void rule_cpu_oversub(struct rules *rules, double threshold)
{
	const double *ns = rules->p->load.state_ns;
	double running = ns[THREAD_PYTHON] + ns[THREAD_NATIVE], wanted = running + ns[THREAD_RUNNABLE], duration = (double)rules->p->timeline->duration_ns;
	double runnable = need(rules, METRIC_cpu_runnable), cores, pct;
	struct finding_report *finding;

	if (isnan(runnable))
		return;
	cores = need(rules, METRIC_cpu_cores);
	if (isnan(cores) || wanted <= 0)
		return;
	pct = 100 * ns[THREAD_RUNNABLE] / wanted;
	/* On a machine that others keep busy even one thread waits: it is this program's doing only when it wants more than there is. */
	if (pct <= threshold || wanted / duration <= cores)
		return;
	finding = find(rules, grade(pct, threshold, 2.5 * threshold), 0.8, share(rules, THREAD_RUNNABLE),
		analysis_printf(rules->p, "Threads want %.1f cores, %.0f are there", wanted / duration, cores));
	show(finding, METRIC_cpu_runnable, runnable, threshold, ">");
	show(finding, METRIC_cpu_cores, cores, wanted / duration, "<");
	show(finding, METRIC_cpu_involuntary, metric_value(rules->p, METRIC_cpu_involuntary), NAN, "");
}

static void rule_gil_contention(struct rules *rules, double threshold)
{
	double pct = need(rules, METRIC_gil_wait);
	struct finding_report *finding;

	if (!rules->p->load.read) {
		skip(rules, "the threads' CPU clocks were not read");
		return;
	}
	if (isnan(pct) || pct <= threshold || rules->p->load.share_ns[THREAD_GIL_WAIT] < 0.02 * (double)rules->p->timeline->duration_ns)
		return;
	finding = find(rules, grade(pct, threshold, 4 * threshold), 0.85, share(rules, THREAD_GIL_WAIT),
		analysis_printf(rules->p, "Threads wait for the GIL for %.0f %% of the time that they want to run", pct));
	show(finding, METRIC_gil_wait, pct, threshold, ">");
	show(finding, METRIC_cpu_python, metric_value(rules->p, METRIC_cpu_python), NAN, "");
	point_at_most(rules, finding, cpu_of, 3);
}

static void rule_gpu_copy_exposed(struct rules *rules, double threshold)
{
	double pct = need(rules, METRIC_gpu_copy_exposed);
	struct finding_report *finding;

	if (isnan(pct) || pct <= threshold)
		return;
	finding = find(rules, grade(pct, threshold, 2 * threshold), 0.8, (double)rules->p->device->copy_exposed_ns,
		analysis_printf(rules->p, "Copies run alone for %.0f %% of the time with work", pct));
	show(finding, METRIC_gpu_copy_exposed, pct, threshold, ">");
}

static void rule_gpu_starved(struct rules *rules, double threshold)
{
	double pct = need(rules, METRIC_gpu_idle), demand = metric_value(rules->p, METRIC_demand);
	struct finding_report *finding;

	if (isnan(pct) || pct <= threshold || demand < 100 - rules->p->parameters[PARAMETER_NO_DEMAND])
		return;
	finding = find(rules, grade(pct, 2 * threshold, 4 * threshold), 0.8, pct / 100 * rules->p->load.demand_ns,
		analysis_printf(rules->p, "The device has nothing to do for %.0f %% of the time with work", pct));
	show(finding, METRIC_gpu_idle, pct, threshold, ">");
	point_at_most(rules, finding, cpu_of, 3);
}

static void rule_mem_faults(struct rules *rules, double threshold)
{
	double rate = need(rules, METRIC_memory_major_faults);
	struct finding_report *finding;

	if (isnan(rate) || rate <= threshold)
		return;
	finding = find(rules, grade(rate, 5 * threshold, 50 * threshold), 0.7, 0, analysis_printf(rules->p, "%.0f page faults per second read a disk", rate));
	show(finding, METRIC_memory_major_faults, rate, threshold, ">");
}

static void rule_prof_drops(struct rules *rules, double threshold)
{
	double pct = need(rules, METRIC_capture_lost_pct);
	struct finding_report *finding;

	if (isnan(pct) || pct <= threshold)
		return;
	finding = find(rules, grade(pct, 10 * threshold, 100 * threshold), 1, 0, analysis_printf(rules->p, "%.1f %% of the events were lost", pct));
	show(finding, METRIC_capture_lost_pct, pct, threshold, ">");
	show(finding, METRIC_capture_lost, metric_value(rules->p, METRIC_capture_lost), NAN, "");
}

static void rule_prof_overhead(struct rules *rules, double threshold)
{
	double pct = need(rules, METRIC_profiler_overhead);
	struct finding_report *finding;

	if (isnan(pct) || pct <= threshold)
		return;
	finding = find(rules, grade(pct, 2 * threshold, 10 * threshold), 1, 0, analysis_printf(rules->p, "Measuring cost the program %.1f %%", pct));
	show(finding, METRIC_profiler_overhead, pct, threshold, ">");
}

static void rule_py_exceptions_hot(struct rules *rules, double threshold)
{
	double rate = need(rules, METRIC_python_exceptions);
	struct finding_report *finding;

	if (isnan(rate) || rate <= threshold)
		return;
	/* An exception costs about a microsecond or two to raise and handle. */
	finding = find(rules, grade(rate, 10 * threshold, 100 * threshold), 0.6, rate * (double)rules->p->timeline->duration_ns / 1e9 * 1500,
		analysis_printf(rules->p, "%.0f calls per second end by an exception", rate));
	show(finding, METRIC_python_exceptions, rate, threshold, ">");
	point_at_most(rules, finding, exceptions_of, 3);
}

static void rule_py_hot_function(struct rules *rules, double threshold)
{
	double pct = need(rules, METRIC_python_hottest);
	struct finding_report *finding;
	uint32_t top = UINT32_MAX;

	if (isnan(pct) || pct <= threshold)
		return;
	for (size_t i = 0; i < rules->p->timeline->function_count; i++)
		if (top == UINT32_MAX || cpu_of(&rules->p->timeline->functions[i]) > cpu_of(&rules->p->timeline->functions[top]))
			top = (uint32_t)i;
	/* Twice as fast is a fair hope for code that nobody has looked at yet. */
	finding = find(rules, pct >= 2 * threshold ? SEVERITY_MEDIUM : SEVERITY_LOW, 0.8, pct / 200 * (double)rules->p->timeline->duration_ns,
		analysis_printf(rules->p, "%s accounts for %.0f %% of the time", rules->p->timeline->functions[top].name, pct));
	show(finding, METRIC_python_hottest, pct, threshold, ">");
	point_at_most(rules, finding, cpu_of, 3);
}

static void rule_py_import_in_request(struct rules *rules, double threshold)
{
	double pct = need(rules, METRIC_python_import_in_call);
	struct inclusive imports;
	struct finding_report *finding;

	if (isnan(pct) || pct <= threshold)
		return;
	imports = inclusive_time(rules->p, function_is_import, true);
	finding = find(rules, grade(pct, 5 * threshold, 20 * threshold), 0.8, imports.ns,
		analysis_printf(rules->p, "Functions import modules while they are called: %.1f %% of the time", pct));
	show(finding, METRIC_python_import_in_call, pct, threshold, ">");
	point_at(rules, finding, imports.caller);
	point_at(rules, finding, imports.top);
}

static void judge_part(struct rules *rules, double pct, enum metric_index metric, function_test test, double threshold, const char *what)
{
	struct inclusive part;
	struct finding_report *finding;

	if (isnan(pct) || pct <= threshold)
		return;
	part = inclusive_time(rules->p, test, false);
	finding = find(rules, grade(pct, 5 * threshold, 15 * threshold), 0.8, rules->p->load.wanted_ns > 0 ? part.ns * rules->p->load.demand_ns / rules->p->load.wanted_ns : 0,
		analysis_printf(rules->p, "%s takes %.1f %% of the time of threads with something to do", what, pct));
	show(finding, metric, pct, threshold, ">");
	point_at(rules, finding, part.caller);
	point_at(rules, finding, part.top);
}

static void rule_py_logging_hot(struct rules *rules, double threshold)
{
	judge_part(rules, need(rules, METRIC_python_logging), METRIC_python_logging, function_is_logging, threshold, "Logging");
}

static void rule_py_tokenize_hot(struct rules *rules, double threshold)
{
	double wanted = rules->p->load.wanted_ns;
	struct finding_report *finding;
	struct inclusive part;

	if (!rules->p->timeline->window_count) {
		skip(rules, "no calls were recorded");
		return;
	}
	part = inclusive_time(rules->p, function_is_tokenizer, false);
	if (wanted <= 0 || 100 * part.ns / wanted <= threshold)
		return;
	finding = find(rules, grade(100 * part.ns / wanted, 2 * threshold, 5 * threshold), 0.7, part.ns * rules->p->load.demand_ns / wanted,
		analysis_printf(rules->p, "Tokenizing takes %.0f %% of the time of threads with something to do", 100 * part.ns / wanted));
	show(finding, METRIC_cpu_python, metric_value(rules->p, METRIC_cpu_python), NAN, "");
	point_at(rules, finding, part.caller);
	point_at(rules, finding, part.top);
}

static const struct rule rules_table[] = {
#define RULE(id, name, version, title, threshold_name, threshold, definition, suggestion) \
	{ { name, version, title, definition, threshold, threshold_name }, suggestion, rule_##id },
#include "analyze/rules.def"
#undef RULE
};
enum { RULE_COUNT = sizeof rules_table / sizeof *rules_table };

static const struct rule_info infos[] = {
#define RULE(id, name, version, title, threshold_name, threshold, definition, suggestion) { name, version, title, definition, threshold, threshold_name },
#include "analyze/rules.def"
#undef RULE
};

const struct rule_info *rule_infos(size_t *count)
{
	*count = RULE_COUNT;
	return infos;
}

static int compare_findings(const void *left, const void *right)
{
	const struct finding_report *a = left, *b = right;

	if (a->severity != b->severity)
		return a->severity > b->severity ? -1 : 1;
	if (a->recoverable_ns != b->recoverable_ns)
		return a->recoverable_ns > b->recoverable_ns ? -1 : 1;
	return strcmp(a->id, b->id);
}

static int compare_skipped(const void *left, const void *right)
{
	return strcmp(((const struct not_evaluated *)left)->rule, ((const struct not_evaluated *)right)->rule);
}

void rules_build(struct analysis_private *p)
{
	struct rules rules = { .p = p };

	rules.findings = analysis_keep(p, FINDINGS_LIMIT, sizeof *rules.findings);
	rules.skipped = analysis_keep(p, SKIPPED_LIMIT, sizeof *rules.skipped);
	if (p->failed)
		return;
	for (size_t i = 0; i < RULE_COUNT; i++) {
		rules.rule = &rules_table[i];
		rules.rule->judge(&rules, analysis_parameter(p, rules.rule->info.threshold_name, rules.rule->info.threshold));
	}
	for (size_t i = 0; i < sizeof not_yet / sizeof *not_yet; i++)
		rules.skipped[rules.skipped_count++] = not_yet[i];
	qsort(rules.findings, rules.finding_count, sizeof *rules.findings, compare_findings);
	qsort(rules.skipped, rules.skipped_count, sizeof *rules.skipped, compare_skipped);
	p->analysis.findings = rules.findings;
	p->analysis.finding_count = rules.finding_count;
	p->analysis.not_evaluated = rules.skipped;
	p->analysis.not_evaluated_count = rules.skipped_count;
}
