/* In libcuda.so.1, what is no call of CUDA: records that a test makes up, and the ranges of NVTX. */
#include "engine.h"
#include "settings.h"

#include <pthread.h>
#include <stdlib.h>

enum { RANGES_MAX = 64 };

/* ---- records: times of CLOCK_MONOTONIC, 0 stays 0 ---- */

void fakecuda_play_kernel(const char *name, uint32_t device, uint32_t stream, uint32_t corr, uint64_t start_ns, uint64_t end_ns)
{
	const struct op op = { .kind = OP_KERNEL, .name = engine_driver.name(name), .device = device, .context = device + 1, .stream = stream, .correlation = corr, .start_ns = start_ns,
		.end_ns = end_ns, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .raw = 1 };
	const struct call call = { .correlation = corr, .tid = own_tid() };
	const struct hooks *seen = engine_hooks();

	if (seen)
		seen->ops(&op, 1, &call);
}

void fakecuda_play_call(const char *function, uint32_t cbid, uint32_t corr, uint64_t start_ns, uint64_t end_ns)
{
	struct call call = { .domain = DOMAIN_RUNTIME, .cbid = cbid, .correlation = corr, .tid = own_tid(), .start_ns = start_ns, .end_ns = end_ns, .function = engine_driver.name(function) };
	const struct hooks *seen = engine_hooks();

	if (seen)
		seen->leave(&call);
}

void fakecuda_play_lost(size_t records)
{
	const struct hooks *seen = engine_hooks();

	if (seen)
		seen->lost(records);
}

/* ---- ranges: as NVTX, which looks once, at its first call, for the library that wants them ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int wanted;
static uint32_t next_range;
static __thread uint32_t open_ranges[RANGES_MAX];
static __thread int depth;

static void look(void)
{
	wanted = getenv("NVTX_INJECTION64_PATH") != NULL;
}

static void tell(const struct range *range)
{
	const struct hooks *seen = engine_hooks();

	pthread_once(&once, look);
	if (seen && wanted)
		seen->range(range);
}

void fakecuda_range_push(const char *name, const char *domain)
{
	const struct range range = { RANGE_START, __atomic_add_fetch(&next_range, 1, __ATOMIC_RELAXED), own_tid(), engine_driver.name(name), domain ? engine_driver.name(domain) : NULL };

	if (depth == RANGES_MAX)
		return;
	open_ranges[depth++] = range.id;
	tell(&range);
}

void fakecuda_range_pop(void)
{
	struct range range = { .what = RANGE_END, .tid = own_tid() };

	if (!depth)
		return;
	range.id = open_ranges[--depth];
	tell(&range);
}

void fakecuda_mark(const char *name)
{
	const struct range range = { RANGE_MARK, __atomic_add_fetch(&next_range, 1, __ATOMIC_RELAXED), own_tid(), engine_driver.name(name), NULL };

	tell(&range);
}
