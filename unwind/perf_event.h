/* One thread's perf_event, with its ring: software clock, user registers, user stack, and counters that are told with each sample. */
#ifndef INFERSCOPE_UNWIND_PERF_EVENT_H
#define INFERSCOPE_UNWIND_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stddef.h>

#include "unwind/perf_record.h"

#define PERF_NS_PER_SECOND 1000000000ull

/* What the events of all threads have in common. */
struct perf_settings {
	uint32_t rate_hz;
	int descriptors_end; /* events do not get this number, nor those above */
	bool wakes;          /* who waits for a sample, at each */
	bool counted;        /* counters are wanted */
	bool user_only;      /* samples of the kernel are not permitted */
};

struct perf_event {
	pid_t tid;
	int fd;      /* -1: it rests, and has no ring */
	uint32_t stack_bytes;
	bool widest; /* no more stack can be had */
	struct perf_event_mmap_page *page;
	size_t ring_size;
	uint64_t period_samples; /* taken since its period was changed */
	uint64_t told_ns;        /* what its clock stood at when its last sample was taken */
	uint64_t owed_ns;        /* of the thread's CPU time before the event was opened, for its first sample */
	bool once;               /* it stops at its first sample, which came sooner for that */
	int counters[SAMPLED_COUNTERS]; /* the first counter_count of them are open */
	uint32_t counter_count;
	uint64_t counted[SAMPLED_COUNTERS]; /* as the sample before told them */
};

enum perf_event_result { PERF_EVENT_OPEN, PERF_EVENT_GONE /* the thread has ended */, PERF_EVENT_NONE, PERF_EVENT_NO_DESCRIPTOR, PERF_EVENT_NO_RING, PERF_EVENT_NO_LOCKED_MEMORY };

/* Samples of TID with STACK_BYTES each, the first one after PERIOD_NS of CPU time, and no more if only ONCE. Learns SETTINGS->user_only. Unless it is open errno says why, and OUT is of no use. */
enum perf_event_result perf_event_start(struct perf_settings *settings, pid_t tid, uint32_t stack_bytes, uint64_t period_ns, bool once, struct perf_event *out);
/* CPU time of the thread since its last sample, as far as a sample would have come since: for that of the event that follows. */
uint64_t perf_event_owed(const struct perf_settings *settings, const struct perf_event *event);
void perf_event_end(struct perf_event *event);
/* The ring's records. */
const unsigned char *perf_event_ring(const struct perf_event *event);

#endif
