/* One ring for each thread, which both of its tracepoints write to, so that enter and exit come in order. */
#include "session/systrace.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/smallfile.h"
#include "session/cold.h"
#include "session/switching.h"
#include "unwind/perf.h"

enum {
	PAGE = 4096, THREADS_MAX = 4096,
	RING_MOST = 1 << 19, RING_LEAST = 1 << 14,
	RINGS_BYTES = 64 << 20, /* of all threads, about */
};
#define OFF_LEAST_NS 1000000000ull /* opening and closing them costs us, too */
#define FIRST_NS 5000000000ull /* as if it had been open for so long already: the first calls are not the ones to miss */

struct watched {
	pid_t tid;
	int enter, leave;
	struct perf_event_mmap_page *page;
	size_t ring_size;
	bool refused; /* counted */
	struct systrace_open_call open;
};

struct systrace {
	struct systrace_ids ids;
	uint32_t max_overhead_ppm;
	LIST(struct watched) threads;
	struct systrace_counts counts;
	int descriptors_end; /* half of what events may have: samples need some, too */
	uint32_t refused;
	char why[160];
	uint64_t cost_ns, switch_ns, opened_ns;
	uint64_t switches_ns, switches_before; /* what switches took longer; their number when it was looked at last */
	bool off;                       /* over budget */
	uint64_t off_ns, off_since_ns;
};

static int event_open(uint16_t id, pid_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof attr, .config = id, .sample_period = 1, .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.disabled = 1, .watermark = 1, .wakeup_watermark = 1u << 30, .use_clockid = 1, .clockid = CLOCK_MONOTONIC,
	};

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The number that a tracepoint has on this machine; 0: not told. */
static uint16_t id_read(const char *tracefs, const char *name)
{
	char path[512];
	int64_t id;

	snprintf(path, sizeof path, "%s/events/raw_syscalls/%s/id", tracefs, name);
	id = smallfile_number(path, 0);
	return id > 0 && id <= UINT16_MAX ? (uint16_t)id : 0;
}

static bool ids_find(const char *tracefs, struct systrace_ids *out)
{
	static const char *const usual[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

	*out = (struct systrace_ids){ tracefs ? id_read(tracefs, "sys_enter") : 0, tracefs ? id_read(tracefs, "sys_exit") : 0 };
	for (size_t i = 0; i < sizeof usual / sizeof *usual && !tracefs && !out->leave; i++)
		*out = (struct systrace_ids){ id_read(usual[i], "sys_enter"), id_read(usual[i], "sys_exit") };
	return out->enter && out->leave;
}

static size_t ring_size(const struct systrace *systrace)
{
	size_t size = RING_MOST;

	while (size > RING_LEAST && size * (systrace->threads.count + 1) > RINGS_BYTES)
		size /= 2;
	return size;
}

static void unwatch(struct watched *watched)
{
	if (watched->page)
		munmap(watched->page, PAGE + watched->ring_size);
	if (watched->leave >= 0)
		close(watched->leave);
	if (watched->enter >= 0)
		close(watched->enter);
	watched->page = NULL;
	watched->enter = watched->leave = -1;
}

static int event_within(const struct systrace *systrace, uint16_t id, pid_t tid)
{
	int fd = event_open(id, tid);

	if (fd < systrace->descriptors_end)
		return fd;
	close(fd);
	errno = EMFILE;
	return -1;
}

/* False with errno. */
static bool watch(const struct systrace *systrace, struct watched *out)
{
	out->ring_size = ring_size(systrace);
	out->enter = event_within(systrace, systrace->ids.enter, out->tid);
	if (out->enter < 0)
		return false;
	out->leave = event_within(systrace, systrace->ids.leave, out->tid);
	if (out->leave < 0)
		return false;
	out->page = mmap(NULL, PAGE + out->ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, out->enter, 0);
	if (out->page == MAP_FAILED) {
		out->page = NULL;
		return false;
	}
	return ioctl(out->leave, PERF_EVENT_IOC_SET_OUTPUT, out->enter) == 0;
}

/* Exit first, or a call could be seen to begin that is never seen to end; what is seen to end only is left out. */
static bool begin(struct systrace *systrace, struct watched *watched)
{
	if (watch(systrace, watched)) {
		ioctl(watched->leave, PERF_EVENT_IOC_ENABLE, 0);
		ioctl(watched->enter, PERF_EVENT_IOC_ENABLE, 0);
		return true;
	}
	if (errno != ESRCH && !watched->refused) { /* else it has ended, or was told */
		watched->refused = true;
		systrace->refused++;
		snprintf(systrace->why, sizeof systrace->why, "after %zu threads: %s", systrace->threads.count, strerror(errno));
	}
	unwatch(watched);
	return false;
}

bool systrace_add(struct systrace *systrace, pid_t tid)
{
	struct watched watched = { .tid = tid, .enter = -1, .leave = -1 }, *place;

	if (!systrace->off && !begin(systrace, &watched))
		return false;
	place = list_add(&systrace->threads, THREADS_MAX);
	if (!place) {
		unwatch(&watched);
		systrace->refused++;
		snprintf(systrace->why, sizeof systrace->why, "after %zu threads: too many", systrace->threads.count);
		return false;
	}
	*place = watched;
	return true;
}

void systrace_prune(struct systrace *systrace, bool (*lives)(const void *context, pid_t tid), const void *context)
{
	for (size_t i = systrace->threads.count; i-- > 0;) {
		struct watched *watched = &systrace->threads.items[i];

		if (lives(context, watched->tid))
			continue;
		unwatch(watched);
		*watched = systrace->threads.items[--systrace->threads.count];
	}
}

/* ---- the budget ---- */

/*
 * Off is closed: as long as an event of a tracepoint is open, even a disabled one, every system call of the machine goes the kernel's slower way, which cost a program
 * that makes many of them a tenth of its time (Linux 6.18).
 */
static void turn_all(struct systrace *systrace, bool on, uint64_t now_ns)
{
	for (size_t i = 0; i < systrace->threads.count; i++) {
		systrace->threads.items[i].open.open = false; /* how it went on was not seen */
		if (on)
			begin(systrace, &systrace->threads.items[i]);
		else
			unwatch(&systrace->threads.items[i]);
	}
	if (on)
		systrace->off_ns += now_ns - systrace->off_since_ns;
	else
		systrace->off_since_ns = now_ns;
	systrace->off = !on;
}

static uint64_t spent_ns(const struct systrace *systrace)
{
	return systrace->counts.calls * systrace->cost_ns + systrace->switches_ns;
}

static void charge_switches(struct systrace *systrace, uint64_t switches)
{
	if (!systrace->off)
		systrace->switches_ns += (switches - systrace->switches_before) * systrace->switch_ns;
	systrace->switches_before = switches;
}

/* What was spent may be a share of all CPU time so far, and of a process that mostly sleeps a thousandth of the time of the day: it is off as long as it was more. */
static void hold_budget(struct systrace *systrace, uint64_t cpu_ns, uint64_t now_ns)
{
	uint64_t least_ns = (now_ns - systrace->opened_ns + FIRST_NS) / 1000, most_ns = cpu_ns / 1000000 * systrace->max_overhead_ppm;
	bool over = systrace->max_overhead_ppm && spent_ns(systrace) > (most_ns > least_ns ? most_ns : least_ns);

	if (systrace->off && now_ns - systrace->off_since_ns < OFF_LEAST_NS)
		return;
	if (over != systrace->off)
		turn_all(systrace, !over, now_ns);
}

/* ---- what a call costs ---- */

static bool some_call(const void *context)
{
	return syscall(SYS_getppid) >= 0;
}

static bool is_none(const void *context, pid_t tid)
{
	return false;
}

static void read_thread(struct systrace *systrace, struct watched *watched, systrace_each *each, void *context)
{
	uint64_t head, tail;

	if (!watched->page)
		return;
	head = __atomic_load_n(&watched->page->data_head, __ATOMIC_ACQUIRE);
	tail = watched->page->data_tail;
	if (head == tail)
		return;
	tail = systrace_parse((const unsigned char *)watched->page + PAGE, watched->ring_size, tail, head, systrace->ids, &watched->open, each, context, &systrace->counts);
	__atomic_store_n(&watched->page->data_tail, tail, __ATOMIC_RELEASE);
}

/* On ourselves, with and without. */
static uint64_t measure_call(struct systrace *systrace)
{
	uint64_t without_ns = cold_ns(some_call, cold_clock_ns, NULL), with_ns;

	if (!systrace_add(systrace, gettid()))
		return 0;
	with_ns = cold_ns(some_call, cold_clock_ns, NULL);
	systrace_prune(systrace, is_none, NULL);
	return without_ns && with_ns > without_ns ? with_ns - without_ns : 0;
}

static void let_go(void *context)
{
	systrace_prune(context, is_none, NULL);
}

static bool watch_both(void *context, const pid_t tids[2], int round)
{
	if (systrace_add(context, tids[0]) && systrace_add(context, tids[1]))
		return true;
	let_go(context);
	return false;
}

/* ---- */

int systrace_open(const char *tracefs, uint32_t max_overhead_ppm, struct systrace **out, struct error *err)
{
	struct systrace_ids ids;
	struct systrace *systrace;
	struct switching_load load = { watch_both, let_go, NULL, 1 };
	int fd;

	if (!ids_find(tracefs, &ids)) {
		fail(err, ERR_PERMISSION, "the kernel's tracepoints cannot be read: %s", tracefs ? tracefs : "/sys/kernel/tracing is not mounted, or only root may look into it");
		return fail_hint(err, "mount -t tracefs tracefs /sys/kernel/tracing");
	}
	fd = event_open(ids.enter, gettid());
	if (fd < 0) {
		fail(err, ERR_PERMISSION, "tracepoints are not permitted: %s", strerror(errno));
		return fail_hint(err, "be root, or give inferscope CAP_PERFMON");
	}
	close(fd);
	systrace = calloc(1, sizeof *systrace);
	if (!systrace)
		return fail(err, ERR_MEMORY, "tracing system calls");
	systrace->ids = ids;
	systrace->max_overhead_ppm = max_overhead_ppm;
	systrace->descriptors_end = perf_descriptors_end() / 2;
	systrace->cost_ns = measure_call(systrace);
	load.context = systrace;
	systrace->switch_ns = switching_extra_ns(&load);
	systrace->switch_ns -= systrace->switch_ns > 2 * systrace->cost_ns ? 2 * systrace->cost_ns : systrace->switch_ns; /* it takes a write and a read */
	systrace->opened_ns = clock_monotonic_ns();
	*out = systrace;
	return 0;
}

void systrace_close(struct systrace *systrace)
{
	if (!systrace)
		return;
	for (size_t i = 0; i < systrace->threads.count; i++)
		unwatch(&systrace->threads.items[i]);
	list_done(&systrace->threads);
	free(systrace);
}

void systrace_read(struct systrace *systrace, uint64_t cpu_ns, uint64_t switches, systrace_each *each, void *context)
{
	for (size_t i = 0; i < systrace->threads.count; i++)
		read_thread(systrace, &systrace->threads.items[i], each, context);
	charge_switches(systrace, switches);
	hold_budget(systrace, cpu_ns, clock_monotonic_ns());
}

struct systrace_totals systrace_totals(const struct systrace *systrace)
{
	uint64_t now_ns = clock_monotonic_ns(), off_ns = systrace->off_ns + (systrace->off ? now_ns - systrace->off_since_ns : 0);
	struct systrace_totals totals = {
		.calls = systrace->counts.calls, .lost = systrace->counts.lost + systrace->counts.damaged, .open_ns = now_ns - systrace->opened_ns, .covered_ns = now_ns - systrace->opened_ns - off_ns,
		.cost_ns = systrace->cost_ns, .switch_ns = systrace->switch_ns, .spent_ns = spent_ns(systrace), .threads = (uint32_t)systrace->threads.count, .refused = systrace->refused,
	};

	memcpy(totals.why, systrace->why, sizeof totals.why);
	return totals;
}
