/* perf_event_open() per thread, with a ring each: threads of one process cannot share one without an event per thread and CPU. */
#include "unwind/perf.h"

#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/list.h"

enum {
	PAGE = 4096, STACK_BYTES_MAX = 65528, RATE_MAX = 10000,
	THREADS_MAX = 1 << 16,
	READ_MS = 50,       /* so often the rings are read, at worst */
	RING_MAX = 1 << 19,
	SAMPLES_MIN = 2,    /* that a ring must hold; less is no use */
	SAMPLES_PER_PERIOD = 8,
	TOLD = 16,
	DESCRIPTORS_SPARE = 32, /* for all else that the attacher opens: /proc, libraries */
};
#define NS_PER_SECOND 1000000000ull

struct watched {
	pid_t tid;
	int fd;
	struct perf_event_mmap_page *page;
	size_t ring_size;
	uint64_t period_samples; /* taken since its period was changed */
	int counters[SAMPLED_COUNTERS]; /* the first counter_count of them are open */
	uint32_t counter_count;
	uint64_t counted[SAMPLED_COUNTERS]; /* as the sample before told them */
};

struct perf {
	uint32_t rate_hz, stack_bytes;
	int epoll, descriptors_end; /* end: events do not get this number, nor those above */
	uint64_t random;
	bool user_only; /* samples of the kernel are not permitted */
	bool wakes, counted;
	struct perf_counts counts;
	uint32_t refused;
	char why[160];
	LIST(struct watched) threads;
	LIST(pid_t) refusals;
	struct thread_copy copy;
};

static const struct { uint32_t type, config; } counters[THREAD_COUNTERS] = {
#define THREAD_COUNTER(identifier, name, type, config, ...) { type, config },
#include "abi/thread_counter.def"
#undef THREAD_COUNTER
};

static int event_open(const struct perf_event_attr *attr, pid_t tid, int group)
{
	return (int)syscall(SYS_perf_event_open, attr, tid, -1, group, PERF_FLAG_FD_CLOEXEC);
}

/* The software clock has a fixed period, which would march in step with a program that has the same: it is varied. */
static uint64_t vary(struct perf *perf)
{
	uint64_t period = NS_PER_SECOND / perf->rate_hz;

	perf->random = perf->random * 6364136223846793005ull + 1442695040888963407ull;
	return period - period / 5 + (perf->random >> 33) % (period * 2 / 5);
}

static struct perf_event_attr attributes(uint32_t stack_bytes, uint64_t period_ns, bool wakes, bool user_only)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_CPU_CLOCK, .sample_period = period_ns,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = PERF_REGISTERS, .sample_stack_user = stack_bytes,
		.exclude_kernel = user_only, .exclude_hv = 1, .watermark = !wakes,
		.use_clockid = 1, .clockid = CLOCK_MONOTONIC,
	};

	if (wakes)
		attr.wakeup_events = 1;
	else
		attr.wakeup_watermark = 1u << 30;
	return attr;
}

static int paranoid_level(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = -1;

	if (file && fscanf(file, "%d", &level) != 1)
		level = -1;
	if (file)
		fclose(file);
	return level;
}

static int say_why_not(pid_t pid, int error, struct error *err)
{
	struct proc_status self = { 0 };
	int level = paranoid_level();

	if (error == ESRCH)
		return fail(err, ERR_EXITED, "process %d has ended", (int)pid);
	if (error == ENOSYS || error == ENOENT || error == EOPNOTSUPP || error == EINVAL)
		return fail(err, ERR_PERMISSION, "this kernel has no perf_event samples of the kind that is needed (%s)", strerror(error));
	if (level > 2) {
		fail(err, ERR_PERMISSION, "perf_event samples are not permitted: kernel.perf_event_paranoid is %d", level);
		return fail_hint(err, "set kernel.perf_event_paranoid to 2, or give inferscope CAP_PERFMON");
	}
	if (procfs_status(&procfs_real, getpid(), 0, &self) == 0 && self.seccomp > 0)
		return fail(err, ERR_PERMISSION, "perf_event samples are not permitted: %s, perhaps by the seccomp filter that inferscope runs under", strerror(error));
	return fail(err, ERR_PERMISSION, "perf_event samples of process %d are not permitted: %s", (int)pid, strerror(error));
}

int perf_possible(pid_t pid, struct error *err)
{
	struct perf_event_attr attr = attributes(8192, NS_PER_SECOND, true, true);
	int fd;

	attr.disabled = 1;
	fd = event_open(&attr, pid, -1);
	if (fd < 0)
		return say_why_not(pid, errno, err);
	close(fd);
	return 0;
}

static void raise_limit(__rlimit_resource_t which)
{
	struct rlimit limit;

	if (getrlimit(which, &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(which, &limit);
	}
}

int perf_descriptors_end(void)
{
	struct rlimit limit;

	raise_limit(RLIMIT_NOFILE);
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT_MAX)
		return INT_MAX;
	return (int)limit.rlim_cur - (limit.rlim_cur / 2 < DESCRIPTORS_SPARE ? (int)limit.rlim_cur / 2 : DESCRIPTORS_SPARE);
}

int perf_open(uint32_t rate_hz, uint32_t stack_bytes, bool wakes, struct perf **out, struct error *err)
{
	struct perf *perf;

	if (rate_hz == 0 || rate_hz > RATE_MAX || stack_bytes == 0 || stack_bytes > STACK_BYTES_MAX || stack_bytes % 8)
		return fail(err, ERR_USAGE, "cannot sample at %u Hz with %u bytes of stack", rate_hz, stack_bytes);
	perf = calloc(1, sizeof *perf);
	if (!perf)
		return fail(err, ERR_MEMORY, "preparing to sample");
	perf->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (perf->epoll < 0) {
		free(perf);
		return fail(err, ERR_MEMORY, "preparing to sample: %s", strerror(errno));
	}
	perf->rate_hz = rate_hz;
	perf->stack_bytes = stack_bytes;
	perf->wakes = wakes;
	perf->random = (uint64_t)getpid();
	raise_limit(RLIMIT_MEMLOCK);
	perf->descriptors_end = perf_descriptors_end();
	*out = perf;
	return 0;
}

void perf_count(struct perf *perf)
{
	perf->counted = true;
}

static size_t sample_size(const struct perf *perf)
{
	return 8 + 32 + 17 * 8 + 16 + perf->stack_bytes + (perf->counted ? 8 * (SAMPLED_COUNTERS + 2) : 0);
}

/* Room for what comes between two reads; not much, because every thread has a ring. */
static size_t wanted_ring(const struct perf *perf)
{
	size_t wanted = (perf->rate_hz * READ_MS / 1000 + 1) * sample_size(perf), least = SAMPLES_MIN * sample_size(perf), size = PAGE;

	while (size < wanted && (size < RING_MAX || size < least))
		size *= 2;
	return size;
}

static struct watched *find(const struct perf *perf, pid_t tid)
{
	for (size_t i = 0; i < perf->threads.count; i++)
		if (perf->threads.items[i].tid == tid)
			return &perf->threads.items[i];
	return NULL;
}

/* Each thread counts once, however often it is tried. */
static int refuse(struct perf *perf, pid_t tid, const char *what, int error)
{
	pid_t *refusal;

	snprintf(perf->why, sizeof perf->why, "%s after %zu threads: %s", what, perf->threads.count, strerror(error));
	for (size_t i = 0; i < perf->refusals.count; i++)
		if (perf->refusals.items[i] == tid)
			return -1;
	refusal = list_add(&perf->refusals, THREADS_MAX);
	if (refusal)
		*refusal = tid;
	perf->refused++;
	return -1;
}

static int open_for(struct perf *perf, pid_t tid)
{
	struct perf_event_attr attr = attributes(perf->stack_bytes, vary(perf), perf->wakes, perf->user_only);
	int fd;

	if (perf->counted) {
		attr.sample_type |= PERF_SAMPLE_READ;
		attr.read_format = PERF_FORMAT_GROUP;
	}
	fd = event_open(&attr, tid, -1);

	if (fd < 0 && !perf->user_only && (errno == EACCES || errno == EPERM)) {
		attr.exclude_kernel = 1;
		fd = event_open(&attr, tid, -1);
		perf->user_only = fd >= 0;
	}
	if (fd < perf->descriptors_end)
		return fd;
	close(fd);
	errno = EMFILE;
	return -1;
}

/* A smaller ring where the memory that may be locked ends; it loses samples sooner, which is counted. */
static bool map_ring(const struct perf *perf, struct watched *watched)
{
	for (size_t size = wanted_ring(perf); size >= SAMPLES_MIN * sample_size(perf); size /= 2) {
		void *page = mmap(NULL, PAGE + size, PROT_READ | PROT_WRITE, MAP_SHARED, watched->fd, 0);

		if (page != MAP_FAILED) {
			watched->page = page;
			watched->ring_size = size;
			return true;
		}
		if (errno != EPERM && errno != ENOMEM)
			break;
	}
	return false;
}

/* Counters that the machine does not have, or for which no descriptor is left, and those after them are not told. */
static void open_counters(const struct perf *perf, struct watched *watched)
{
	for (int which = COUNTERS_SAMPLED; which < THREAD_COUNTERS; which++) {
		struct perf_event_attr attr = { .type = counters[which].type, .size = sizeof attr, .config = counters[which].config, .exclude_kernel = perf->user_only, .exclude_hv = 1,
			.use_clockid = 1, .clockid = CLOCK_MONOTONIC /* a group has one clock, or EINVAL (Linux 6.18) */ };
		int fd = event_open(&attr, watched->tid, watched->fd);

		if (fd >= perf->descriptors_end)
			close(fd);
		if (fd < 0 || fd >= perf->descriptors_end)
			return;
		watched->counters[watched->counter_count++] = fd;
	}
}

static void unwatch(struct watched *watched)
{
	for (uint32_t i = 0; i < watched->counter_count; i++)
		close(watched->counters[i]);
	munmap(watched->page, PAGE + watched->ring_size);
	close(watched->fd); /* which takes it out of the epoll, too */
}

int perf_descriptor(const struct perf *perf)
{
	return perf->epoll;
}

int perf_add(struct perf *perf, pid_t tid)
{
	struct epoll_event wanted = { .events = EPOLLIN | EPOLLET };
	struct watched watched = { .tid = tid }, *place;

	if (find(perf, tid))
		return 0;
	watched.fd = open_for(perf, tid);
	if (watched.fd < 0 && errno == ESRCH)
		return -1; /* it has ended */
	if (watched.fd < 0)
		return refuse(perf, tid, errno == EMFILE || errno == ENFILE ? "no descriptor left" : "no event", errno);
	if (!map_ring(perf, &watched)) {
		int error = errno;

		close(watched.fd);
		return refuse(perf, tid, error == EPERM || error == ENOMEM ? "no memory that may be locked left" : "no ring", error);
	}
	if (perf->counted)
		open_counters(perf, &watched);
	place = epoll_ctl(perf->epoll, EPOLL_CTL_ADD, watched.fd, &wanted) == 0 ? list_add(&perf->threads, THREADS_MAX) : NULL;
	if (!place) {
		unwatch(&watched);
		return refuse(perf, tid, "no memory", ENOMEM);
	}
	*place = watched;
	return 0;
}

void perf_remove(struct perf *perf, pid_t tid)
{
	struct watched *watched = find(perf, tid);

	if (!watched)
		return;
	unwatch(watched);
	*watched = perf->threads.items[--perf->threads.count];
}

static void set_period(struct perf *perf, struct watched *watched)
{
	uint64_t period = vary(perf);

	watched->period_samples = 0;
	ioctl(watched->fd, PERF_EVENT_IOC_PERIOD, &period);
}

/* Not at every sample: a new period begins anew, and what was left of the old one is not counted. */
static void vary_period(struct perf *perf, struct watched *watched, uint64_t samples)
{
	watched->period_samples += samples;
	if (watched->period_samples >= SAMPLES_PER_PERIOD)
		set_period(perf, watched);
}

void perf_rate(struct perf *perf, uint32_t rate_hz)
{
	perf->rate_hz = rate_hz;
	for (size_t i = 0; i < perf->threads.count; i++)
		set_period(perf, &perf->threads.items[i]);
}

void perf_pause(struct perf *perf, bool paused)
{
	for (size_t i = 0; i < perf->threads.count; i++)
		ioctl(perf->threads.items[i].fd, paused ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, 0);
}

struct gaining { struct perf *perf; struct watched *watched; perf_each *each; void *context; };

/* From what counters stand at to what they gained. */
static void gain(void *context, const struct thread_copy *copy, uint64_t cpu_ns)
{
	const struct gaining *gaining = context;
	struct thread_copy *own = &gaining->perf->copy;

	for (uint32_t i = 0; i < copy->gained_count; i++) {
		uint64_t now = copy->gained[i], before = gaining->watched->counted[i];

		own->gained[i] = now > before ? now - before : 0;
		gaining->watched->counted[i] = now;
	}
	gaining->each(gaining->context, own, cpu_ns);
}

int perf_read(struct perf *perf, perf_each *each, void *context)
{
	uint64_t before_all = perf->counts.samples;
	struct epoll_event told[TOLD];

	while (epoll_wait(perf->epoll, told, TOLD, 0) == TOLD)
		;

	for (size_t i = 0; i < perf->threads.count; i++) {
		struct watched *watched = &perf->threads.items[i];
		uint64_t before = perf->counts.samples, head = __atomic_load_n(&watched->page->data_head, __ATOMIC_ACQUIRE), tail = watched->page->data_tail;

		if (head == tail)
			continue;
		tail = perf_parse((const unsigned char *)watched->page + PAGE, watched->ring_size, tail, head, perf->counted, &perf->copy, gain, &(struct gaining){ perf, watched, each, context }, &perf->counts);
		__atomic_store_n(&watched->page->data_tail, tail, __ATOMIC_RELEASE);
		vary_period(perf, watched, perf->counts.samples - before);
	}
	return (int)(perf->counts.samples - before_all);
}

uint64_t perf_waiting(const struct perf *perf)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < perf->threads.count; i++)
		bytes += __atomic_load_n(&perf->threads.items[i].page->data_head, __ATOMIC_ACQUIRE) - perf->threads.items[i].page->data_tail;
	return bytes;
}

struct perf_totals perf_totals(const struct perf *perf)
{
	struct perf_totals totals = {
		.samples = perf->counts.samples, .lost = perf->counts.lost, .throttled = perf->counts.throttled, .without_stack = perf->counts.without_stack,
		.threads = (uint32_t)perf->threads.count, .refused = perf->refused, .kernel = !perf->user_only,
	};

	memcpy(totals.why, perf->why, sizeof totals.why);
	return totals;
}

void perf_close(struct perf *perf)
{
	if (!perf)
		return;
	for (size_t i = 0; i < perf->threads.count; i++)
		unwatch(&perf->threads.items[i]);
	close(perf->epoll);
	list_done(&perf->threads);
	list_done(&perf->refusals);
	free(perf);
}
