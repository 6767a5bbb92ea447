/* Adds up operations by kind and name. Room is bounded by the number of names; durations go into histograms of fixed size. */
#include <math.h>
#include <stdio.h>

#include "timeline/operations.h"
#include "timeline/private.h"

enum { SEQUENCES_LIMIT = 1 << 20, LANES_OF_KERNELS = 256, CALLERS_LIMIT = 1 << 20 };

struct operation_build {
	struct operation out;
	uint32_t name;
	uint32_t *durations, *bytes;
};

/* The last kernels of one stream: HASH is a polynomial in their names. */
struct kernel_sequence { uint64_t key, hash; uint32_t names[SEQUENCE_KERNELS]; uint32_t at, length; };

struct operations_build {
	struct operations out;
	LIST(struct operation_build) list;
	LIST(struct device_blocks) devices;
	struct map by_name;                /* kind << 32 | name */
	LIST(struct operation_caller) callers;
	struct map by_caller;              /* operation << 32 | tid */
	uint32_t other[EVENT_GC + 1];      /* by kind, + 1 */
	LIST(struct kernel_sequence) sequences;
	struct map seen;                   /* hash of a sequence to how often */
};

/* Eight buckets to an octave; below eight, one to a number. */
static unsigned bucket_of(uint64_t value)
{
	unsigned top;

	if (value < 8)
		return (unsigned)value;
	top = 63 - (unsigned)__builtin_clzll(value);
	return (top - 2) * 8 + (unsigned)(value >> (top - 3) & 7);
}

static double bucket_middle(unsigned bucket)
{
	double low, width;

	if (bucket < 8)
		return bucket;
	width = ldexp(1, (int)(bucket / 8) - 1);
	low = (8 + bucket % 8) * width;
	return width > 1 ? low + width / 2 : low;
}

void histogram_add(struct histogram *sum, const uint32_t *buckets, uint64_t largest)
{
	sum->largest = largest > sum->largest ? largest : sum->largest;
	for (unsigned bucket = 0; bucket < OPERATION_BUCKETS; bucket++)
		sum->buckets[bucket] += buckets[bucket];
}

double histogram_percentile(const struct histogram *histogram, double rank)
{
	uint64_t all = 0, below = 0, wanted;

	for (unsigned bucket = 0; bucket < OPERATION_BUCKETS; bucket++)
		all += histogram->buckets[bucket];
	wanted = percentile_rank(all, rank);
	for (unsigned bucket = 0; bucket < OPERATION_BUCKETS && all; bucket++) {
		below += histogram->buckets[bucket];
		if (below >= wanted)
			return fmin(bucket_middle(bucket), (double)histogram->largest);
	}
	return NAN;
}

double operation_percentile(const struct operation *operation, double rank)
{
	struct histogram durations = { 0 };

	histogram_add(&durations, operation->histogram, operation->longest_ns);
	return histogram_percentile(&durations, rank);
}

double operations_up_to(const uint32_t *histogram, uint64_t limit)
{
	double count = 0;

	for (unsigned bucket = 0; bucket <= bucket_of(limit); bucket++)
		count += histogram[bucket];
	return count;
}

static struct operation_build *operation_of(struct timeline_private *p, struct operations_build *all, enum event_kind kind, uint32_t name, bool moves)
{
	uint32_t index = map_get(&all->by_name, (uint64_t)kind << 32 | name);
	struct operation_build *operation;

	if (index != MAP_ABSENT)
		return &all->list.items[index];
	if (all->list.count >= OPERATIONS_LIMIT) {
		if (all->other[kind])
			return &all->list.items[all->other[kind] - 1];
		name = names_string(p, "(other)", 7);
	}
	operation = list_add_or_fail(&all->list, OPERATIONS_LIMIT + EVENT_GC + 1, &p->failed);
	if (!operation || !map_put(&all->by_name, (uint64_t)kind << 32 | name, (uint32_t)all->list.count - 1)) {
		p->failed = true;
		return NULL;
	}
	if (all->list.count > OPERATIONS_LIMIT)
		all->other[kind] = (uint32_t)all->list.count;
	*operation = (struct operation_build){ .name = name, .out.kind = kind, .out.number = (uint32_t)all->list.count - 1 };
	operation->durations = arena_alloc(&p->arena, OPERATION_BUCKETS * sizeof *operation->durations);
	operation->bytes = moves ? arena_alloc(&p->arena, OPERATION_BUCKETS * sizeof *operation->bytes) : NULL;
	if (operation->durations && (!moves || operation->bytes))
		return operation;
	all->list.count--;
	p->failed = true;
	return NULL;
}

static void count_into(uint32_t *histogram, uint64_t value)
{
	uint32_t *bucket = &histogram[bucket_of(value)];

	*bucket += *bucket < UINT32_MAX;
}

static struct kernel_sequence *sequence_of(struct timeline_private *p, struct operations_build *all, uint64_t key)
{
	struct kernel_sequence *sequence;

	for (size_t i = 0; i < all->sequences.count; i++)
		if (all->sequences.items[i].key == key)
			return &all->sequences.items[i];
	sequence = list_add_or_fail(&all->sequences, LANES_OF_KERNELS, &p->failed);
	if (sequence)
		sequence->key = key;
	return sequence;
}

/* Rolls the hash of the stream's last kernels on by one, and counts the sequence that ends here. */
static void note_sequence(struct timeline_private *p, struct operations_build *all, uint32_t device, uint32_t stream, uint32_t name)
{
	static const uint64_t factor = 0x9e3779b97f4a7c15ull;
	struct kernel_sequence *sequence = sequence_of(p, all, (uint64_t)device << 32 | stream);
	uint64_t leaving = 1;
	uint32_t times;

	if (!sequence)
		return;
	for (int i = 0; i < SEQUENCE_KERNELS; i++)
		leaving *= factor;
	sequence->hash = sequence->hash * factor + mix64(name + 1);
	if (sequence->length == SEQUENCE_KERNELS)
		sequence->hash -= leaving * mix64(sequence->names[sequence->at] + 1);
	else
		sequence->length++;
	sequence->names[sequence->at] = name;
	sequence->at = (sequence->at + 1) % SEQUENCE_KERNELS;
	if (sequence->length < SEQUENCE_KERNELS)
		return;
	times = map_get(&all->seen, sequence->hash);
	if (times == MAP_ABSENT && all->seen.count >= SEQUENCES_LIMIT) {
		all->out.sequences_cut = true;
		return;
	}
	times = times == MAP_ABSENT ? 1 : times + (times < SEQUENCE_REPEATS);
	p->failed |= !map_put(&all->seen, sequence->hash, times);
	all->out.repeated_kernels += times >= SEQUENCE_REPEATS;
}

static void note_blocks(struct timeline_private *p, struct operations_build *all, uint32_t device, uint64_t blocks, uint64_t duration_ns)
{
	struct device_blocks *of = NULL;

	for (size_t i = 0; i < all->devices.count && !of; i++)
		of = all->devices.items[i].device == device ? &all->devices.items[i] : NULL;
	of = of ? of : list_add_or_fail(&all->devices, OPERATION_DEVICES_LIMIT, &p->failed);
	if (!of)
		return;
	of->device = device;
	of->ns[blocks < BLOCKS_TOLD ? blocks : BLOCKS_TOLD] += duration_ns;
}

static void note_kernel(struct timeline_private *p, struct operations_build *all, const struct event_cursor *c, uint32_t name)
{
	uint64_t blocks = 1;

	for (unsigned field = 4; field < 7; field++) {
		uint32_t extent = event_u32(c, field);

		if (__builtin_mul_overflow(blocks, extent ? extent : 1, &blocks))
			blocks = BLOCKS_TOLD;
	}
	all->out.kernels++;
	all->out.kernel_ns += event_u64(c, 0);
	if (event_u32(c, 4))
		note_blocks(p, all, event_u32(c, 2), blocks, event_u64(c, 0));
	note_sequence(p, all, event_u32(c, 2), event_u32(c, 3), name);
}

static uint32_t copy_name(struct timeline_private *p, uint32_t memory_kinds)
{
	/* CUpti_ActivityMemoryKind, CUDA 11 to 13; 8 is ours. */
	static const char *const memory[] = { "unknown", "pageable", "pinned", "device", "array", "managed", "device", "managed", "host" };
	unsigned from = memory_kinds & 255, to = memory_kinds >> 8 & 255, count = sizeof memory / sizeof *memory;
	char name[64];
	int length = snprintf(name, sizeof name, "%s-%s%s", memory[from < count ? from : 0], memory[to < count ? to : 0], memory_kinds >> 16 & 1 ? " between devices" : "");

	return strings_add(p->strings, name, (size_t)length);
}

static uint32_t name_of(struct timeline_private *p, const struct event_cursor *c)
{
	static const struct { uint8_t kind, field; } named[] = { { EVENT_GPU_KERNEL, 10 }, { EVENT_GPU_API, 3 }, { EVENT_CPU_SYSCALL, 3 } };
	char number[24];
	size_t length;
	const char *name;
	bool copy = c->event.kind == EVENT_H2D_COPY || c->event.kind == EVENT_D2H_COPY || c->event.kind == EVENT_D2D_COPY;

	if (copy)
		return copy_name(p, event_u32(c, 5));
	for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
		if (named[i].kind != c->event.kind)
			continue;
		name = event_str(c, named[i].field, &length);
		return strings_add(p->strings, name, length);
	}
	if (c->event.kind == EVENT_GC) {
		length = (size_t)snprintf(number, sizeof number, "generation %u", c->event.ref);
		return strings_add(p->strings, number, length);
	}
	if (c->event.kind != EVENT_GPU_SYNC && c->event.kind != EVENT_GPU_OVERHEAD)
		return 0;
	/* CUpti_ActivitySynchronizationType and CUpti_ActivityOverheadKind have no names in the trace. */
	length = (size_t)snprintf(number, sizeof number, "%u", event_u32(c, c->event.kind == EVENT_GPU_SYNC ? 4 : 1));
	return strings_add(p->strings, number, length);
}

static void note_caller(struct timeline_private *p, struct operations_build *all, const struct operation_build *operation, uint32_t tid, uint64_t duration_ns)
{
	uint64_t key = (uint64_t)operation->out.number << 32 | tid;
	uint32_t index = map_get(&all->by_caller, key);

	if (index == MAP_ABSENT) {
		struct operation_caller *caller = list_add_or_fail(&all->callers, CALLERS_LIMIT, &p->failed);

		if (!caller)
			return;
		*caller = (struct operation_caller){ operation->out.number, tid, 0 };
		index = (uint32_t)all->callers.count - 1;
		p->failed |= !map_put(&all->by_caller, key, index);
	}
	all->callers.items[index].time_ns += duration_ns;
}

static struct operations_build *build_of(struct timeline_private *p)
{
	if (!p->operations)
		p->operations = calloc(1, sizeof *p->operations);
	p->failed |= !p->operations;
	return p->operations;
}

void operations_add(struct timeline_private *p, const struct event_cursor *c)
{
	struct operations_build *all = build_of(p);
	enum event_kind kind = (enum event_kind)c->event.kind;
	bool moves = (kind >= EVENT_H2D_COPY && kind <= EVENT_GPU_MEMSET) || kind == EVENT_MEMORY_ALLOC;
	uint64_t duration = kind == EVENT_MEMORY_ALLOC ? 0 : event_u64(c, 0), bytes = !moves ? 0 : event_u64(c, kind == EVENT_MEMORY_ALLOC ? 1 : 4);
	uint32_t name = name_of(p, c);
	struct operation_build *operation;

	if (!all || name == UINT32_MAX || p->failed) { /* a row for which there was no memory is half made */
		p->failed = true;
		return;
	}
	operation = operation_of(p, all, kind, name, moves);
	if (!operation)
		return;
	operation->out.count++;
	operation->out.time_ns += duration;
	operation->out.bytes += bytes;
	operation->out.freed += kind == EVENT_GC ? event_u64(c, 1) : 0;
	if (duration > operation->out.longest_ns)
		operation->out.longest_ns = duration;
	count_into(operation->durations, duration);
	if (operation->bytes)
		count_into(operation->bytes, bytes);
	if (kind == EVENT_GPU_KERNEL)
		note_kernel(p, all, c, name);
	if (kind == EVENT_GPU_API)
		note_caller(p, all, operation, event_u32(c, 2), duration);
}

static int compare_operations(const void *left, const void *right)
{
	const struct operation *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int compare_callers(const void *left, const void *right)
{
	const struct operation_caller *a = left, *b = right;

	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

void operations_build(struct timeline_private *p)
{
	struct operations_build *all = build_of(p);
	struct operation *items;
	struct operation_caller *callers;
	struct device_blocks *devices;

	if (!all)
		return;
	items = arena_alloc(&p->arena, all->list.count * sizeof *items + 1);
	devices = arena_alloc(&p->arena, all->devices.count * sizeof *devices + 1);
	callers = arena_alloc(&p->arena, all->callers.count * sizeof *callers + 1);
	if (!items || !devices || !callers) {
		p->failed = true;
		return;
	}
	for (size_t i = 0; i < all->list.count; i++) {
		struct operation_build *from = &all->list.items[i];

		items[i] = from->out;
		items[i].name = strings_get(p->strings, from->name);
		items[i].histogram = from->durations;
		items[i].by_bytes = from->bytes;
	}
	qsort(items, all->list.count, sizeof *items, compare_operations);
	all->out.items = items;
	all->out.count = all->list.count;
	if (all->callers.count) {
		qsort(all->callers.items, all->callers.count, sizeof *callers, compare_callers);
		memcpy(callers, all->callers.items, all->callers.count * sizeof *callers);
	}
	all->out.callers = callers;
	all->out.caller_count = all->callers.count;
	if (all->devices.count)
		memcpy(devices, all->devices.items, all->devices.count * sizeof *devices);
	all->out.devices = devices;
	all->out.device_count = all->devices.count;
	list_done(&all->list);
	list_done(&all->devices);
	list_done(&all->sequences);
	list_done(&all->callers);
	map_done(&all->by_caller);
	map_done(&all->by_name);
	map_done(&all->seen);
}

void operations_done(struct timeline_private *p)
{
	if (!p->operations)
		return;
	list_done(&p->operations->list);
	list_done(&p->operations->devices);
	list_done(&p->operations->sequences);
	list_done(&p->operations->callers);
	map_done(&p->operations->by_caller);
	map_done(&p->operations->by_name);
	map_done(&p->operations->seen);
	free(p->operations);
}

const struct operations *timeline_operations(const struct timeline *timeline)
{
	static const struct operations nothing;

	return timeline->private_ ? &timeline->private_->operations->out : &nothing; /* a timeline that was made by hand has none */
}

struct operation operations_sum(const struct timeline *timeline, bool (*test)(const struct operation *operation))
{
	const struct operations *all = timeline_operations(timeline);
	struct operation sum = { .name = "" };

	for (size_t i = 0; i < all->count; i++) {
		const struct operation *one = &all->items[i];

		if (!test(one))
			continue;
		sum.count += one->count;
		sum.time_ns += one->time_ns;
		sum.bytes += one->bytes;
		sum.freed += one->freed;
		sum.longest_ns = one->longest_ns > sum.longest_ns ? one->longest_ns : sum.longest_ns;
	}
	return sum;
}

uint64_t operations_busiest(const struct operations *all, const bool *accepted, uint32_t *tid)
{
	uint64_t most = 0, sum = 0;

	*tid = 0;
	for (size_t i = 0; i < all->caller_count; i++) {
		const struct operation_caller *caller = &all->callers[i];

		if (i && caller->tid != caller[-1].tid)
			sum = 0;
		sum += !accepted || accepted[caller->operation] ? caller->time_ns : 0;
		if (sum >= most) {
			most = sum;
			*tid = caller->tid;
		}
	}
	return most;
}
