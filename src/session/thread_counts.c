/* Two groups for each thread, the kernel's counters and the processor's, so that a busy processor spoils its own only; one read() tells a whole group. */
#include "session/thread_counts.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "session/switching.h"
#include "unwind/perf.h"

enum { THREADS_MAX = 1 << 14 };
#define FIRST_NS 5000000000ull /* as if it had been open for so long already: the first switches are not the ones to miss */
enum way { BY_PERF, IN_PROC };

static const struct { uint32_t type, config; enum way way; } rows[THREAD_COUNTERS] = {
#define THREAD_COUNTER(identifier, name, type, config, way, ...) { type, config, way },
#include "abi/thread_counter.def"
#undef THREAD_COUNTER
};

struct counted {
	pid_t tid;
	int fds[THREAD_COUNTERS];        /* -1: not open. The first of a group leads it */
	uint64_t base[THREAD_COUNTERS];  /* to be added to what perf_event counts; to be taken from what /proc says */
	uint64_t value[THREAD_COUNTERS]; /* as told last */
	bool told[THREAD_COUNTERS];
	bool seen;                       /* by /proc: */
	uint64_t latest[THREAD_COUNTERS];
};

struct thread_counts {
	const struct procfs *procfs;
	pid_t pid;
	LIST(struct counted) threads;
	int descriptors_end; /* a quarter of what events may have: samples and system calls need theirs */
	bool user_only;      /* what the kernel does for a thread may not be counted */
	uint32_t max_overhead_ppm;
	uint64_t opened_ns, opened_ticks; /* ticks: as threads' starts are told */
	struct thread_counts_totals totals;
};

/* As read() gives it with the format below. */
struct group_reading { uint64_t count, enabled_ns, running_ns, values[THREAD_COUNTERS]; };

static int event_open(enum thread_counter which, pid_t tid, int group, bool user_only)
{
	struct perf_event_attr attr = {
		.type = rows[which].type, .size = sizeof attr, .config = rows[which].config, .exclude_kernel = user_only, .exclude_hv = 1,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, group, PERF_FLAG_FD_CLOEXEC);
}

static enum thread_counter group_begin(bool processor)
{
	return processor ? (enum thread_counter)COUNTERS_SOFTWARE : (enum thread_counter)0;
}

static enum thread_counter group_end(bool processor)
{
	return processor ? THREAD_COUNTERS : (enum thread_counter)COUNTERS_SOFTWARE;
}

static void group_close(struct counted *counted, bool processor)
{
	/* The leader last: without it the others would be read no more. */
	for (int which = group_end(processor); which-- > (int)group_begin(processor);) {
		if (counted->fds[which] >= 0)
			close(counted->fds[which]);
		counted->fds[which] = -1;
	}
}

/* 0, or an errno; then none of the group is open. */
static int group_open(const struct thread_counts *counts, struct counted *counted, bool processor, bool user_only)
{
	enum thread_counter first = group_begin(processor);

	for (int which = first; which < (int)group_end(processor); which++) {
		int fd = event_open((enum thread_counter)which, counted->tid, which == (int)first ? -1 : counted->fds[first], user_only), error = fd < 0 ? errno : EMFILE;

		counted->fds[which] = fd;
		if (fd >= 0 && fd < counts->descriptors_end)
			continue;
		group_close(counted, processor);
		return error;
	}
	return 0;
}

/* 0, or an errno; then one group may be open. */
static int groups_open(const struct thread_counts *counts, struct counted *counted)
{
	const struct thread_counts_totals *totals = &counts->totals;
	int error;

	if (totals->given_up)
		return 0;
	error = totals->perf ? group_open(counts, counted, false, false) : 0;
	return error || *totals->why_not_processor ? error : group_open(counts, counted, true, counts->user_only);
}

static void groups_close(struct counted *counted)
{
	group_close(counted, true);
	group_close(counted, false);
}

/* ---- what /proc says ---- */

static uint64_t status_sum(const char *status)
{
	static const char *const names[] = { "\nvoluntary_ctxt_switches:", "\nnonvoluntary_ctxt_switches:" };
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *line = strstr(status, names[i]);

		sum += line ? strtoull(line + strlen(names[i]), NULL, 10) : 0;
	}
	return sum;
}

static bool proc_read(const struct thread_counts *counts, pid_t tid, uint64_t out[THREAD_COUNTERS], uint64_t *start_ticks)
{
	struct procfs_text status;
	struct proc_times times;
	uint64_t waited_ns;

	if (procfs_times(counts->procfs, counts->pid, tid, &times) < 0 || procfs_status_text(counts->procfs, counts->pid, tid, &status) < 0)
		return false;
	if (start_ticks)
		*start_ticks = times.start_ticks;
	memset(out, 0, THREAD_COUNTERS * sizeof *out);
	if (procfs_schedstat(counts->procfs, counts->pid, tid, &out[COUNTER_TASK_CLOCK], &waited_ns) < 0)
		out[COUNTER_TASK_CLOCK] = times.user_ns + times.system_ns;
	out[COUNTER_SWITCHES] = status_sum(status.text);
	procfs_text_done(&status);
	out[COUNTER_MINOR_FAULTS] = times.minor_faults;
	out[COUNTER_MAJOR_FAULTS] = times.major_faults;
	return true;
}

/* ---- */

/* May the kernel's work be counted, and has the processor counters that we get? Asked of ourselves; no thread of the process is touched. */
static void find_ways(struct thread_counts *counts)
{
	struct counted self = { .tid = gettid() };
	struct thread_counts_totals *totals = &counts->totals;
	int error, processor;

	memset(self.fds, -1, sizeof self.fds);
	error = group_open(counts, &self, false, false);
	group_close(&self, false);
	counts->user_only = error == EACCES || error == EPERM;
	totals->perf = !error;
	if (error)
		snprintf(totals->why_not_perf, sizeof totals->why_not_perf, "%s", counts->user_only ? "not permitted (kernel.perf_event_paranoid, CAP_PERFMON)" : strerror(error));
	processor = group_open(counts, &self, true, counts->user_only);
	group_close(&self, true);
	if (processor == ENOENT || processor == ENODEV || processor == EOPNOTSUPP)
		snprintf(totals->why_not_processor, sizeof totals->why_not_processor, "this machine shows no counters of its processor, as most virtual machines do");
	else if (processor)
		snprintf(totals->why_not_processor, sizeof totals->why_not_processor, "%s", strerror(processor));
}

struct measured { const struct thread_counts *counts; struct counted threads[2]; };

static bool measured_add(void *context, const pid_t tids[2], int round)
{
	struct measured *measured = context;

	for (int i = 0; i < 2; i++) {
		measured->threads[i] = (struct counted){ .tid = tids[i] };
		memset(measured->threads[i].fds, -1, sizeof measured->threads[i].fds);
		groups_open(measured->counts, &measured->threads[i]);
	}
	return true;
}

static void measured_remove(void *context)
{
	struct measured *measured = context;

	for (int i = 0; i < 2; i++)
		groups_close(&measured->threads[i]);
}

static uint64_t measure_cost(const struct thread_counts *counts)
{
	struct measured measured = { .counts = counts };
	struct switching_load load = { measured_add, measured_remove, &measured, 1 };

	return switching_extra_ns(&load);
}

int thread_counts_open(const struct procfs *procfs, pid_t pid, uint32_t max_overhead_ppm, struct thread_counts **out, struct error *err)
{
	struct thread_counts *counts = calloc(1, sizeof *counts);

	if (!counts)
		return fail(err, ERR_MEMORY, "counting");
	counts->procfs = procfs;
	counts->pid = pid;
	counts->descriptors_end = perf_descriptors_end() / 4;
	counts->max_overhead_ppm = max_overhead_ppm;
	find_ways(counts);
	counts->totals.cost_ns = measure_cost(counts);
	counts->opened_ns = clock_monotonic_ns();
	counts->opened_ticks = procfs_now_ticks();
	*out = counts;
	return 0;
}

static void refuse(struct thread_counts *counts, int error)
{
	counts->totals.refused++;
	snprintf(counts->totals.why, sizeof counts->totals.why, "after %zu threads: %s", counts->threads.count, strerror(error));
}

void thread_counts_add(struct thread_counts *counts, pid_t tid, bool born)
{
	struct counted counted = { .tid = tid }, *place;
	uint64_t now[THREAD_COUNTERS], start_ticks = 0;
	int error;

	memset(counted.fds, -1, sizeof counted.fds);
	if (!proc_read(counts, tid, now, &start_ticks))
		return; /* it has ended */
	born = born && start_ticks >= counts->opened_ticks; /* or it was only missed before */
	error = groups_open(counts, &counted);
	if (error && error != ESRCH)
		refuse(counts, error);
	if (born == (counted.fds[0] >= 0))
		memcpy(counted.base, now, sizeof now);
	place = list_add(&counts->threads, THREADS_MAX);
	if (place)
		*place = counted;
	else
		groups_close(&counted);
}

static void tell(struct thread_counts *counts, struct counted *counted, enum thread_counter which, uint64_t value, bool scaled, thread_counts_each *each, void *context)
{
	struct thread_counts_totals *totals = &counts->totals;

	if (value < counted->value[which])
		value = counted->value[which]; /* a scaled one may go back a little */
	totals->sums[which] += value - counted->value[which];
	if (which == COUNTER_SWITCHES && counted->fds[0] >= 0)
		totals->spent_ns += (value - counted->value[which]) * totals->cost_ns;
	totals->told[which] = counted->told[which] = true;
	counted->value[which] = value;
	each(context, counted->tid, which, value, scaled);
}

static void read_group(struct thread_counts *counts, struct counted *counted, bool processor, thread_counts_each *each, void *context)
{
	enum thread_counter first = group_begin(processor), end = group_end(processor);
	struct group_reading reading;
	bool scaled;

	if (counted->fds[first] < 0 || read(counted->fds[first], &reading, sizeof reading) < (ssize_t)(3 + end - first) * 8 || reading.count != (uint64_t)(end - first))
		return;
	scaled = reading.running_ns < reading.enabled_ns;
	if (!reading.running_ns && (processor || reading.enabled_ns))
		return; /* it has not run, or another one has the processor's counters */
	for (int which = first; which < (int)end; which++) {
		uint64_t value = reading.values[which - (int)first];

		if (scaled)
			value = (uint64_t)((double)value * (double)reading.enabled_ns / (double)reading.running_ns);
		tell(counts, counted, (enum thread_counter)which, value + counted->base[which], scaled, each, context);
	}
}

static void look(const struct thread_counts *counts, struct counted *counted)
{
	uint64_t now[THREAD_COUNTERS];

	if (!proc_read(counts, counted->tid, now, NULL))
		return;
	memcpy(counted->latest, now, sizeof now);
	counted->seen = true;
}

void thread_counts_look(struct thread_counts *counts)
{
	for (size_t i = 0; i < counts->threads.count; i++)
		if (counts->threads.items[i].fds[0] < 0)
			look(counts, &counts->threads.items[i]);
}

static void read_proc(struct thread_counts *counts, struct counted *counted, thread_counts_each *each, void *context)
{
	look(counts, counted);
	if (!counted->seen)
		return;
	for (int which = 0; which < COUNTERS_SOFTWARE; which++)
		if (rows[which].way == IN_PROC)
			tell(counts, counted, (enum thread_counter)which, counted->latest[which] - counted->base[which], false, each, context);
}

void thread_counts_read(struct thread_counts *counts, bool (*lives)(const void *context, pid_t tid), const void *living, thread_counts_each *each, void *context)
{
	for (size_t i = counts->threads.count; i-- > 0;) {
		struct counted *counted = &counts->threads.items[i];

		if (counted->fds[0] >= 0)
			read_group(counts, counted, false, each, context);
		else
			read_proc(counts, counted, each, context);
		read_group(counts, counted, true, each, context);
		if (!lives || lives(living, counted->tid))
			continue;
		groups_close(counted);
		*counted = counts->threads.items[--counts->threads.count];
	}
}

/* From now on what /proc says counts, from where perf_event was. */
static void give_up(struct thread_counts *counts)
{
	uint64_t now[THREAD_COUNTERS];

	counts->totals.given_up = true;
	for (size_t i = 0; i < counts->threads.count; i++) {
		struct counted *counted = &counts->threads.items[i];

		if (counted->fds[0] >= 0 && proc_read(counts, counted->tid, now, NULL))
			for (int which = 0; which < COUNTERS_SOFTWARE; which++)
				counted->base[which] = now[which] - counted->value[which];
		groups_close(counted);
	}
}

/* Of a process that mostly sleeps a thousandth of the time of the day is no harm. */
void thread_counts_hold_budget(struct thread_counts *counts, uint64_t cpu_ns)
{
	uint64_t most_ns = cpu_ns / 1000000 * counts->max_overhead_ppm, least_ns = (clock_monotonic_ns() - counts->opened_ns + FIRST_NS) / 1000;

	if (counts->max_overhead_ppm && !counts->totals.given_up && counts->totals.spent_ns > (most_ns > least_ns ? most_ns : least_ns))
		give_up(counts);
}

struct thread_counts_totals thread_counts_totals(const struct thread_counts *counts)
{
	struct thread_counts_totals totals = counts->totals;

	totals.threads = (uint32_t)counts->threads.count;
	return totals;
}

void thread_counts_close(struct thread_counts *counts)
{
	if (!counts)
		return;
	for (size_t i = 0; i < counts->threads.count; i++)
		groups_close(&counts->threads.items[i]);
	list_done(&counts->threads);
	free(counts);
}
