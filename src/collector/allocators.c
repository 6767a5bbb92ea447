/*
 * Functions of ours around the allocators of the interpreter's domains mem and object, which pass everything on.
 *
 * A set of functions around one allocator is a layer. What lies below a layer never changes once it is known, because whoever wrapped us meanwhile,
 * or kept what was there, may call it for ever: so no order of wrapping and unwrapping makes a circle, and a layer that another tool stands on
 * is left to pass on. The allocator's context stays what it was: a caller without the GIL that sees half of an exchange still calls something
 * that fits.
 */
#include "collector/memory.h"

enum { CALIBRATION_CALLS = 4000, PROBES = 16 };

/* ---- the way of every allocation: a few instructions, and a jump to the one below ---- */

/* Does a point fall into SIZE bytes? Else they are counted down. */
static inline __attribute__((always_inline)) bool is_due(size_t size)
{
	int64_t left = (int64_t)((uint64_t)the.memory.left - size);

	if (__builtin_expect(left < 0, 0))
		return true;
	the.memory.left = left;
	the.memory.calls++;
	return false;
}

/* What could not be had was not allocated. */
static void *sampled_if_had(void *block, size_t size, uint32_t domain)
{
	if (!block)
		return NULL;
	the.memory.calls++;
	memory_sampled(block, size, domain);
	return block;
}

static __attribute__((noinline)) void *malloc_due(const struct allocator *below, void *context, size_t size, uint32_t domain)
{
	return sampled_if_had(below->malloc(context, size), size, domain);
}

static __attribute__((noinline)) void *calloc_due(const struct allocator *below, void *context, size_t count, size_t size, uint32_t domain)
{
	return sampled_if_had(below->calloc(context, count, size), count * size, domain);
}

static __attribute__((noinline)) void *realloc_due(const struct allocator *below, void *context, void *block, size_t size, uint32_t domain)
{
	return sampled_if_had(below->realloc(context, block, size), size, domain);
}

static __attribute__((noinline)) void *realloc_known(const struct allocator *below, void *context, void *block, size_t size, uint32_t domain)
{
	void *changed = below->realloc(context, block, size);

	if (!changed)
		return NULL;
	if (block)
		memory_ended(block);
	return is_due(size) ? sampled_if_had(changed, size, domain) : changed;
}

static __attribute__((noinline)) void free_known(const struct allocator *below, void *context, void *block)
{
	if (block)
		memory_ended(block);
	below->free(context, block);
}

#define BELOW(domain, n) (&the.memory.layers[domain][n].below)
#define LAYER_FUNCTIONS(domain, n) \
	static void *malloc_##domain##_##n(void *context, size_t size) \
	{ \
		return is_due(size) ? malloc_due(BELOW(domain, n), context, size, domain) : BELOW(domain, n)->malloc(context, size); \
	} \
	static void *calloc_##domain##_##n(void *context, size_t count, size_t size) \
	{ \
		return is_due(count * size) ? calloc_due(BELOW(domain, n), context, count, size, domain) : BELOW(domain, n)->calloc(context, count, size); \
	} \
	static void *realloc_##domain##_##n(void *context, void *block, size_t size) \
	{ \
		if (sampled_may_hold(&the.memory.blocks, block)) \
			return realloc_known(BELOW(domain, n), context, block, size, domain); \
		return is_due(size) ? realloc_due(BELOW(domain, n), context, block, size, domain) : BELOW(domain, n)->realloc(context, block, size); \
	} \
	static void free_##domain##_##n(void *context, void *block) \
	{ \
		if (sampled_may_hold(&the.memory.blocks, block)) \
			free_known(BELOW(domain, n), context, block); \
		else \
			BELOW(domain, n)->free(context, block); \
	}
#define LAYER_ROW(domain, n) [domain][n] = {NULL, malloc_##domain##_##n, calloc_##domain##_##n, realloc_##domain##_##n, free_##domain##_##n},
/* Domains as PyMemAllocatorDomain has them: 1 mem, 2 object. */
#define LAYERS(ROW) \
	ROW(1, 0) ROW(1, 1) ROW(1, 2) ROW(1, 3) ROW(1, 4) ROW(1, 5) ROW(1, 6) ROW(1, 7) \
	ROW(2, 0) ROW(2, 1) ROW(2, 2) ROW(2, 3) ROW(2, 4) ROW(2, 5) ROW(2, 6) ROW(2, 7)
LAYERS(LAYER_FUNCTIONS)
static const struct allocator functions[MEMORY_DOMAINS][MEMORY_LAYERS] = { LAYERS(LAYER_ROW) };

/* ---- putting it in, taking it out ---- */

static bool same(const struct allocator *a, const struct allocator *b)
{
	return a->context == b->context && a->malloc == b->malloc && a->calloc == b->calloc && a->realloc == b->realloc && a->free == b->free;
}

/* Which layer of ours is on top, or -1. */
static int layer_on_top(int domain, const struct allocator *now)
{
	for (int n = 0; n < MEMORY_LAYERS; n++)
		if (now->malloc == functions[domain][n].malloc)
			return n;
	return -1;
}

/* A layer around NOW: one that was made for it, or a fresh one; -1: there is none left. */
static int layer_for(int domain, const struct allocator *now)
{
	for (int n = 0; n < MEMORY_LAYERS; n++) {
		struct layer *layer = &the.memory.layers[domain][n];

		if (layer->used && !same(&layer->below, now))
			continue;
		layer->below = *now;
		layer->used = true;
		return n;
	}
	return -1;
}

/*
 * Asks for a byte when every allocation is due, and sees whether memory_sampled() hears of it. Threads of interpreters with a GIL of their own
 * count at the same moments: the count says nothing, and may be put back to what it was.
 */
bool allocator_is_called(int domain)
{
	the.memory.probe_heard = false;
	the.memory.prober = (uint64_t)pthread_self();
	for (int i = 0; i < PROBES && !the.memory.probe_heard; i++) {
		the.memory.left = -1;
		if (domain == MEMORY_DOMAIN_FIRST)
			the.python.PyMem_Free(the.python.PyMem_Malloc(1));
		else
			the.python.PyObject_Free(the.python.PyObject_Malloc(1));
	}
	the.memory.prober = 0;
	return the.memory.probe_heard;
}

bool allocator_put_on(int domain)
{
	struct allocator now, next;
	int n;

	if (allocator_is_called(domain))
		return true; /* left there when another tool stood on us */
	the.python.PyMem_GetAllocator(domain, &now);
	n = layer_for(domain, &now);
	if (n < 0)
		return false;
	next = functions[domain][n];
	next.context = now.context;
	the.python.PyMem_SetAllocator(domain, &next);
	return true;
}

bool allocator_take_off(int domain)
{
	struct allocator now;
	int n;

	the.python.PyMem_GetAllocator(domain, &now);
	n = layer_on_top(domain, &now);
	if (n < 0)
		return false;
	the.python.PyMem_SetAllocator(domain, &the.memory.layers[domain][n].below);
	return true;
}

static __attribute__((noinline)) void *pass_allocation(void *context, size_t size)
{
	return is_due(size) ? malloc_due(BELOW(MEMORY_DOMAIN_FIRST, 0), context, size, MEMORY_DOMAIN_FIRST) : context;
}

static __attribute__((noinline)) void pass_release(void *context, void *block)
{
	if (sampled_may_hold(&the.memory.blocks, block))
		free_known(BELOW(MEMORY_DOMAIN_FIRST, 0), context, block);
}

/* The best of a few rounds. */
uint64_t allocator_calibrate(void)
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < 5; round++) {
		uint64_t begin = ticks_now(), passed;

		for (uintptr_t i = 1; i <= CALIBRATION_CALLS; i++)
			pass_release(NULL, pass_allocation((void *)(i << 4), 0));
		passed = ticks_now() - begin;
		best = passed < best ? passed : best;
	}
	the.memory.calls = 0;
	return ticks_to_ns(best) * 1000 / CALIBRATION_CALLS;
}
