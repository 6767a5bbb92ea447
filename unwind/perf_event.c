/* perf_event_open() and what it maps. */
#include "unwind/perf_event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "unwind/perf.h"

enum {
	PAGE = 4096,
	READ_MS = 50,       /* so often the rings are read, at worst */
	RING_MAX = 1 << 20,
	SAMPLES_MIN = 2,    /* that a ring must hold; less is no use */
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

static struct perf_event_attr attributes(uint32_t stack_bytes, uint64_t period_ns, bool wakes, bool user_only)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_CPU_CLOCK, .sample_period = period_ns,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
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

/* ---- may it be done? ---- */

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
	struct perf_event_attr attr = attributes(8192, 1000000000, true, true);
	int fd;

	attr.disabled = 1;
	fd = event_open(&attr, pid, -1);
	if (fd < 0)
		return say_why_not(pid, errno, err);
	close(fd);
	return 0;
}

/* ---- one thread ---- */

static int open_for(struct perf_settings *settings, pid_t tid, uint32_t stack_bytes, uint64_t period_ns, bool once)
{
	struct perf_event_attr attr = attributes(stack_bytes, period_ns, settings->wakes, settings->user_only);
	int fd;

	attr.disabled = once;
	if (settings->counted)
		attr.read_format = PERF_FORMAT_GROUP;
	fd = event_open(&attr, tid, -1);

	if (fd < 0 && !settings->user_only && (errno == EACCES || errno == EPERM)) {
		attr.exclude_kernel = 1;
		fd = event_open(&attr, tid, -1);
		settings->user_only = fd >= 0;
	}
	if (fd < settings->descriptors_end)
		return fd;
	close(fd);
	errno = EMFILE;
	return -1;
}

static size_t sample_size(const struct perf_settings *settings, uint32_t stack_bytes)
{
	return 8 + 32 + DWARF_COUNT * 8 + 16 + stack_bytes + (settings->counted ? 8 * (SAMPLED_COUNTERS + 2) : 0);
}

/* Room for what comes between two reads; not much, because every thread has a ring. */
static size_t wanted_ring(const struct perf_settings *settings, size_t sample)
{
	size_t wanted = (settings->rate_hz * READ_MS / 1000 + 1) * sample, least = SAMPLES_MIN * sample, size = PAGE;

	while (size < least || (size < wanted && size < RING_MAX))
		size *= 2;
	return size;
}

/* A smaller ring where the memory that may be locked ends; it loses samples sooner, which is counted. */
static bool map_ring(const struct perf_settings *settings, struct perf_event *event)
{
	size_t sample = sample_size(settings, event->stack_bytes);

	for (size_t size = wanted_ring(settings, sample); size >= SAMPLES_MIN * sample; size /= 2) {
		void *page = mmap(NULL, PAGE + size, PROT_READ | PROT_WRITE, MAP_SHARED, event->fd, 0);

		if (page != MAP_FAILED) {
			event->page = page;
			event->ring_size = size;
			return true;
		}
		if (errno != EPERM && errno != ENOMEM)
			break;
	}
	return false;
}

/* Counters that the machine does not have, or for which no descriptor is left, and those after them are not told. */
static void open_counters(const struct perf_settings *settings, struct perf_event *event)
{
	for (int which = COUNTERS_SAMPLED; which < THREAD_COUNTERS; which++) {
		struct perf_event_attr attr = { .type = counters[which].type, .size = sizeof attr, .config = counters[which].config, .exclude_kernel = settings->user_only, .exclude_hv = 1,
			.use_clockid = 1, .clockid = CLOCK_MONOTONIC /* a group has one clock, or EINVAL (Linux 6.18) */ };
		int fd = event_open(&attr, event->tid, event->fd);

		if (fd >= settings->descriptors_end)
			close(fd);
		if (fd < 0 || fd >= settings->descriptors_end)
			return;
		event->counters[event->counter_count++] = fd;
	}
}

enum perf_event_result perf_event_start(struct perf_settings *settings, pid_t tid, uint32_t stack_bytes, uint64_t period_ns, bool once, struct perf_event *out)
{
	struct perf_event event = { .tid = tid, .stack_bytes = stack_bytes };

	event.fd = open_for(settings, tid, stack_bytes, period_ns, once);
	if (event.fd < 0)
		return errno == ESRCH ? PERF_EVENT_GONE : errno == EMFILE || errno == ENFILE ? PERF_EVENT_NO_DESCRIPTOR : PERF_EVENT_NONE;
	if (!map_ring(settings, &event)) {
		int error = errno;

		close(event.fd);
		errno = error;
		return error == EPERM || error == ENOMEM ? PERF_EVENT_NO_LOCKED_MEMORY : PERF_EVENT_NO_RING;
	}
	if (settings->counted)
		open_counters(settings, &event);
	if (once)
		ioctl(event.fd, PERF_EVENT_IOC_REFRESH, 1);
	*out = event;
	return PERF_EVENT_OPEN;
}

uint64_t perf_event_owed(const struct perf_settings *settings, const struct perf_event *event)
{
	uint64_t values[SAMPLED_COUNTERS + 2] = { 0 }, clock_ns, most_ns = PERF_NS_PER_SECOND / settings->rate_hz;
	ssize_t size = event->fd < 0 ? 0 : read(event->fd, values, sizeof values);

	clock_ns = event->owed_ns + values[settings->counted && size > 8] - event->told_ns;
	return size < 8 ? event->owed_ns : clock_ns < most_ns ? clock_ns : most_ns;
}

void perf_event_end(struct perf_event *event)
{
	if (event->fd < 0)
		return;
	for (uint32_t i = 0; i < event->counter_count; i++)
		close(event->counters[i]);
	munmap(event->page, PAGE + event->ring_size);
	close(event->fd); /* which takes it out of an epoll, too */
	event->fd = -1;
}

const unsigned char *perf_event_ring(const struct perf_event *event)
{
	return (const unsigned char *)event->page + PAGE;
}
