/* What devices and the calls that ask them for work did, by name: kernels, copies, runtime calls, waits, system calls, collections of garbage. Built while the trace is read. */
#ifndef INFERSCOPE_TIMELINE_OPERATIONS_H
#define INFERSCOPE_TIMELINE_OPERATIONS_H

#include "timeline/timeline.h"

enum {
	OPERATIONS_LIMIT = 4096,    /* names; what comes later goes under "(other)" of its kind */
	OPERATION_DEVICES_LIMIT = 1024, /* kernels of others are not told by their blocks */
	OPERATION_BUCKETS = 512,    /* eight to an octave: a percentile is at most 7 % off */
	BLOCKS_TOLD = 512,          /* kernels with more thread blocks count as this many */
	SEQUENCE_KERNELS = 20,      /* so many kernels in a row … */
	SEQUENCE_REPEATS = 10,      /* … so many times make a sequence that repeats */
};

struct operation {
	enum event_kind kind;   /* GPU_KERNEL, H2D_COPY …, GPU_MEMSET, GPU_SYNC, GPU_API, GPU_OVERHEAD, CPU_SYSCALL, MEMORY_ALLOC, GC */
	const char *name;       /* of copies: where from and where to, "pageable-device"; of collections "generation 2" */
	uint64_t count, time_ns, longest_ns, bytes;
	uint64_t freed;         /* of collections: objects */
	uint32_t number;        /* that callers know it by; below the count of operations */
	const uint32_t *histogram; /* of durations; of copies also by_bytes */
	const uint32_t *by_bytes;  /* NULL for what moves none */
};

/* How long thread TID was in calls of one name, of the device's runtime. */
struct operation_caller { uint32_t operation /* its number */, tid; uint64_t time_ns; };

/* Time of a device's kernels by the number of their thread blocks. */
struct device_blocks { uint32_t device; uint64_t ns[BLOCKS_TOLD + 1]; };

struct operations {
	size_t count;
	const struct operation *items; /* by kind, then most time first, then name */
	size_t caller_count;
	const struct operation_caller *callers; /* by thread */
	uint64_t kernel_ns;            /* a sum: what overlaps counts twice */
	size_t device_count;
	const struct device_blocks *devices; /* the same by device */
	uint64_t kernels, repeated_kernels;  /* the latter end a sequence that was seen SEQUENCE_REPEATS times */
	bool sequences_cut;            /* too many different ones to remember: repeated_kernels is a lower bound */
};

const struct operations *timeline_operations(const struct timeline *timeline);
/* Of all that pass TEST: count, time, longest, bytes and freed; nothing else is set. */
struct operation operations_sum(const struct timeline *timeline, bool (*test)(const struct operation *operation));
/* The most that one thread was in calls of a device's runtime, ns: of those operations alone that are ACCEPTED, by number (NULL: all). *TID: which. */
uint64_t operations_busiest(const struct operations *all, const bool *accepted, uint32_t *tid);
/* Histograms added up; zeroed. LARGEST: of what is in BUCKETS, UINT64_MAX where that is not known. */
struct histogram { uint64_t buckets[OPERATION_BUCKETS], largest; };
void histogram_add(struct histogram *sum, const uint32_t *buckets, uint64_t largest);
/* The value that RANK per cent do not exceed, no more than the largest. NAN of nothing. */
double histogram_percentile(const struct histogram *histogram, double rank);
double operation_percentile(const struct operation *operation, double rank); /* of its durations */
/* How many were at most LIMIT, to the bucket. */
double operations_up_to(const uint32_t *histogram, uint64_t limit);

#endif
