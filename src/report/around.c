/* What surrounds the process, in words: limits and pressure of its control group, its memory, memory nodes, pools of threads. Rows whose data are missing are not there. */
#include <math.h>
#include <string.h>

#include "report/model.h"

enum { AROUND_ROWS_MAX = 8 };

static void add(struct report *report, const char *label, const char *value)
{
	if (report->around_count < AROUND_ROWS_MAX)
		report->around[report->around_count++] = (struct around_row){ label, value };
}

static double metric(const struct report *report, const char *name)
{
	return analysis_metric(report->analysis, name);
}

static const char *pct(struct report *report, double value)
{
	return report_note(report, "%s", quantity_pct(value, 0).text);
}

static const char *bytes(struct report *report, double value)
{
	return report_note(report, "%s", quantity_bytes(value > 0 ? (uint64_t)value : 0, 0).text);
}

static void add_quota(struct report *report)
{
	const char *quota = timeline_capture(report->timeline, "cpus.quota");
	double throttled = metric(report, "cpu.cgroup_throttled_pct"), ns = metric(report, "cpu.cgroup_throttled_ns");

	if (!quota && timeline_capture(report->timeline, "cpus.quota.why"))
		add(report, "CPU quota", report_note(report, "not known: %.100s", timeline_capture(report->timeline, "cpus.quota.why")));
	if (!quota)
		return;
	if (isnan(throttled))
		add(report, "CPU quota", report_note(report, "%.20s CPUs", quota));
	else
		add(report, "CPU quota", report_note(report, "%.20s CPUs; used up in %s of its periods, which held threads back for %s in all", quota, pct(report, throttled), quantity_of(ns, "ns", 0).text));
}

static void add_memory(struct report *report)
{
	double share = metric(report, "memory.pss_bytes"), growth = metric(report, "memory.rss_growth_bytes"), most = metric(report, "memory.rss_max_bytes");
	int64_t swapped = timeline_counter(report->timeline, "swap_bytes", 0);

	if (isnan(most) || isnan(growth) || (isnan(share) && !timeline_capture(report->timeline, "memory.share")))
		return;
	add(report, "Memory", report_note(report, "%s resident at most, %s%s while it was measured; its share (PSS) %s%s%s", bytes(report, most), growth < 0 ? "-" : "+", bytes(report, fabs(growth)),
		isnan(share) ? "was not read: that would hold a process of this size up" : bytes(report, share), swapped > 0 ? "; swapped out " : "", swapped > 0 ? bytes(report, (double)swapped) : ""));
}

static void add_limit(struct report *report)
{
	double used = metric(report, "memory.cgroup_limit_pct"), reclaims = metric(report, "memory.cgroup_reclaims_per_second");
	int64_t limit = timeline_counter(report->timeline, "cgroup_memory_limit_bytes", -1), kills = timeline_counter(report->timeline, "cgroup_oom_kills", 0);

	if (isnan(used) || limit <= 0)
		return;
	add(report, "Memory limit", report_note(report, "%s, %s of it in use at most; reached %s times per second%s", bytes(report, (double)limit), pct(report, used), isnan(reclaims) ? "?" : quantity_plain(reclaims, 1).text,
		kills > 0 ? "; the OOM killer was there" : ""));
}

static void add_pressure(struct report *report)
{
	double cpu = metric(report, "pressure.cpu_pct"), memory = metric(report, "pressure.memory_pct"), io = metric(report, "pressure.io_pct");
	const char *of = timeline_capture(report->timeline, "pressure");

	if (isnan(cpu) || isnan(memory) || isnan(io))
		return;
	add(report, "Held up for want of", report_note(report, "a CPU %s, memory %s, a disk %s of the time%s%.60s", pct(report, cpu), pct(report, memory), pct(report, io), of ? ", some thread " : "", of ? of : ""));
}

static void add_nodes(struct report *report)
{
	double remote = metric(report, "memory.numa_remote_pct"), far = metric(report, "numa.device_far_pct"), moves = metric(report, "numa.migrations_per_second");
	const char *nodes = timeline_capture(report->timeline, "numa"), *sampled = timeline_capture(report->timeline, "numa.pages");
	struct text text;

	if (!nodes)
		return;
	text_init(&text);
	text_printf(&text, "%.60s", nodes);
	if (!isnan(remote))
		text_printf(&text, "; %s of the pages on others than those of its CPUs%s", quantity_pct(remote, 0).text, sampled && strncmp(sampled, "by", 2) == 0 ? " (by a sample)" : "");
	if (!isnan(moves))
		text_printf(&text, "; threads changed nodes %s times per second", quantity_plain(moves, 1).text);
	if (!isnan(far))
		text_printf(&text, "; %s of the CPU time far from the device", quantity_pct(far, 0).text);
	for (size_t i = 0; i < report->timeline->capture_count; i++)
		if (strncmp(report->timeline->captures[i].key, "numa.device.", strlen("numa.device.")) == 0)
			text_printf(&text, "; device %.60s", report->timeline->captures[i].value);
	add(report, "NUMA", report_note(report, "%s", text_string(&text)));
	report->failed |= text.failed;
	text_done(&text);
}

static void add_pools(struct report *report)
{
	const char *pools = timeline_capture(report->timeline, "pools");

	if (pools)
		add(report, "Native thread pools", report_note(report, "%.600s", pools));
}

int around_build(struct report *report, struct error *err)
{
	report->around = arena_alloc(&report->arena, AROUND_ROWS_MAX * sizeof *report->around);
	if (!report->around)
		return fail(err, ERR_MEMORY, "building the report");
	add_quota(report);
	add_limit(report);
	add_memory(report);
	add_pressure(report);
	add_nodes(report);
	add_pools(report);
	return 0;
}
