/*
 * Samples of what Python allocates in its domains mem and object, both used under the GIL alone: functions of ours around the allocator that is
 * there, which pass everything on. Bytes are sampled, not calls: points lie on the stream of allocated bytes, at exponential distances, and an
 * allocation that one falls into is told, with its weight, its Python frames (a bounded walk, as tracemalloc makes it from the same place) and,
 * when it comes, its end.
 *
 * A set of functions around one allocator is a layer. What lies below a layer never changes once it is known, because whoever wrapped us meanwhile,
 * or kept what was there, may call it for ever: so no order of wrapping and unwrapping makes a circle, and a layer that another tool stands on
 * is left to pass on. The allocator's context stays what it was: a caller without the GIL that sees half of an exchange still calls something
 * that fits.
 */
#include "collector/collector.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/cpython.h"
#include "collector/libc.h"

enum { WALK_MAX = 128, CALIBRATION_CALLS = 4000, TABLE_SLOTS = MEMORY_LIVE_MAX * 2 };
static const int64_t NEVER = INT64_MAX / 2;

/* ---- chance, with libc alone ---- */

/* xorshift: never zero */
static uint64_t random_next(void)
{
	uint64_t *random = &the.memory.random;

	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

/* -ln of a number between 0 and 1: of its exponent, and of its mantissa m by ln m = 2 artanh((m - 1) / (m + 1)). */
static double exponential(void)
{
	uint64_t bits = random_next();
	int zeros = __builtin_clzll(bits);
	double mantissa = 1 + (double)(bits << zeros << 1 >> 12) / 4503599627370496.0, s = (mantissa - 1) / (mantissa + 1), square = s * s, sum = 0;

	for (int n = 15; n > 0; n -= 2)
		sum = sum * square + 1.0 / n;
	return (zeros + 1) * 0.6931471805599453 - 2 * s * sum;
}

/* 1 - exp(-x) */
static double chance_of(double x)
{
	double term = 1, sum = 0;
	int doublings = 0;

	if (x > 40)
		return 1;
	for (; x > 0.5; x /= 2)
		doublings++;
	for (int n = 1; n < 12; n++) {
		term *= -x / n;
		sum -= term;
	}
	while (doublings-- > 0)
		sum *= 2 - sum;
	return sum;
}

static void draw(void)
{
	double gap = exponential() * (double)the.settings.memory_interval;

	the.memory.left = gap < (double)NEVER ? (int64_t)gap : NEVER;
}

/* ---- what was sampled and lives ---- */

static inline uint32_t slot_of(uint64_t address)
{
	return (uint32_t)((address >> 4) * 0x9e3779b97f4a7c15ull >> 40) & (TABLE_SLOTS - 1);
}

static inline uint8_t *filter_of(uint64_t address)
{
	return &the.memory.filter[slot_of(address) & (MEMORY_FILTER - 1)];
}

static inline bool may_be_sampled(const void *block)
{
	return __builtin_expect(*filter_of((uint64_t)(uintptr_t)block) != 0, 0);
}

/* Where ADDRESS stands, or the empty place where it would. */
static uint32_t place_of(uint64_t address)
{
	uint32_t at = slot_of(address);

	while (the.memory.table[at] && the.memory.table[at] != address)
		at = (at + 1) & (TABLE_SLOTS - 1);
	return at;
}

static bool remember(uint64_t address)
{
	uint32_t at = place_of(address);
	uint8_t *filter = filter_of(address);

	if (the.memory.live >= MEMORY_LIVE_MAX)
		return false;
	if (the.memory.table[at])
		return true; /* its end was not seen */
	the.memory.table[at] = address;
	the.memory.live++;
	if (*filter < UINT8_MAX)
		(*filter)++;
	return true;
}

/* False when it is not there. What follows moves up, so that no search ends too early. */
static bool forget_block(uint64_t address)
{
	uint32_t hole = place_of(address);
	uint8_t *filter = filter_of(address);

	if (!the.memory.table[hole])
		return false;
	for (uint32_t at = (hole + 1) & (TABLE_SLOTS - 1); the.memory.table[at]; at = (at + 1) & (TABLE_SLOTS - 1)) {
		uint32_t home = slot_of(the.memory.table[at]);

		if (((at - home) & (TABLE_SLOTS - 1)) < ((at - hole) & (TABLE_SLOTS - 1)))
			continue;
		the.memory.table[hole] = the.memory.table[at];
		hole = at;
	}
	the.memory.table[hole] = 0;
	the.memory.live--;
	if (*filter < UINT8_MAX) /* a full one does not know its number any more */
		(*filter)--;
	return true;
}

/* ---- telling ---- */

/* This thread's state, if it holds the main interpreter's GIL; a program may call an allocator where it must not. */
static char *holder(void)
{
	const struct cpython_layout *layout = the.python.layout;
	char *tstate = the.python.minor >= 13 ? the.python.PyThreadState_GetUnchecked() : the.python._PyThreadState_UncheckedGet();

	if (!tstate || at_pointer(tstate, layout->tstate_interp) != the.python.interp || at_pointer(tstate, layout->tstate_thread_id) != (void *)pthread_self())
		return NULL;
	return tstate;
}

static uint32_t line_of(PyObject *code, const char *frame)
{
	const struct cpython_layout *layout = the.python.layout;
	intptr_t at = the.python.minor >= 11 ? (const char *)at_pointer(frame, layout->frame_instr) - ((const char *)code + layout->code_bytes)
	              : the.python.minor == 10 ? 2 * (intptr_t)at_int(frame, layout->frame_instr) : at_int(frame, layout->frame_instr);
	int line = at <= INT_MAX ? the.python.PyCode_Addr2Line(code, at < 0 ? -1 : (int)at) : 0;

	return line > 0 ? (uint32_t)line : 0;
}

struct told_frame { uint32_t ref, line; };

static uint32_t walk(char *tstate, struct told_frame frames[MEMORY_FRAMES_MAX])
{
	uint32_t count = 0;
	int seen = 0;

	for (char *frame = python_top_frame(&the.python, tstate); frame && count < MEMORY_FRAMES_MAX && seen < WALK_MAX; frame = python_frame_back(&the.python, frame), seen++) {
		PyObject *code = python_frame_code(&the.python, frame);
		uint32_t ref = code ? code_find_in(&the.codes, code)->ref : 0;

		if (ref)
			frames[count++] = (struct told_frame){ref, line_of(code, frame)};
	}
	return count;
}

static void tell_sample(struct lane *lane, char *tstate, uint64_t now, uint64_t address, size_t size, uint32_t domain)
{
	enum { FRAME_SIZE = sizeof(struct event) + 8, ALLOC_SIZE = sizeof(struct event) + 32 };
	double share = chance_of((double)size / (double)the.settings.memory_interval);
	struct { uint64_t address, bytes, weight; uint32_t domain, padding; } payload = {address, size, (uint64_t)((double)size / share + 0.5), domain, 0};
	struct told_frame frames[MEMORY_FRAMES_MAX];
	uint32_t count = walk(tstate, frames);
	char *at = (char *)lane_reserve(lane, count * FRAME_SIZE + ALLOC_SIZE, now);

	if (!at)
		return;
	for (uint32_t i = 0; i < count; i++, at += FRAME_SIZE) {
		uint32_t line[2] = {frames[i].line, 0};

		*(struct event *)at = (struct event){now, frames[i].ref, FRAME_SIZE, EVENT_MEMORY_FRAME, 0};
		memcpy(at + sizeof(struct event), line, sizeof line);
	}
	*(struct event *)at = (struct event){now, 0, ALLOC_SIZE, EVENT_MEMORY_ALLOC, 0};
	memcpy(at + sizeof(struct event), &payload, sizeof payload);
	lane->written += count;
	lane_commit(lane, count * FRAME_SIZE + ALLOC_SIZE);
}

static void stop_sampling(void)
{
	the.memory.left = NEVER;
	the.memory.on = false;
}

/* The cost of all that was passed on since the last sample, and of that one. */
static void charge(struct lane *lane, uint64_t began)
{
	uint64_t ps = the.memory.calls * the.memory.call_ps;

	lane_charge(lane, ps / 1000 + ticks_to_ns(ticks_now() - began));
	the.page->memory_calls += the.memory.calls;
	the.memory.calls = 0;
}

/* A point fell into this allocation. */
static __attribute__((noinline)) void sampled(const void *block, size_t size, uint32_t domain)
{
	uint64_t now = ticks_now();
	int saved = errno;
	char *tstate = holder();
	struct lane *lane;

	if (!the.memory.on || !may_tell(now) || python_ends(&the.python)) {
		stop_sampling();
		if (tstate && !the.memory.inside)
			memory_take_off();
	} else if (!tstate || the.memory.inside || the.memory.muted) {
		draw();
		__atomic_fetch_add(&the.page->memory_missed, 1, __ATOMIC_RELAXED);
	} else {
		draw();
		the.memory.inside = true;
		lane = lane_attach();
		if (!lane) {
			the.page->lane_overflow++;
		} else {
			uint64_t address = (uint64_t)(uintptr_t)block;
			bool known = remember(address);

			the.page->memory_samples++;
			the.page->memory_full += !known;
			tell_sample(lane, tstate, now, known ? address : 0, size, domain);
			charge(lane, now);
		}
		the.memory.inside = false;
	}
	errno = saved;
}

/* What may have been sampled is about to be given back. */
static __attribute__((noinline)) void ended(const void *block)
{
	const size_t size = sizeof(struct event) + sizeof(uint64_t);
	uint64_t now = ticks_now(), address = (uint64_t)(uintptr_t)block;
	int saved = errno;
	struct event *event;
	struct lane *lane;

	if (the.memory.on && !the.child && !the.memory.inside && holder() && forget_block(address) && may_tell(now)) {
		the.memory.inside = true;
		lane = lane_attach();
		event = lane ? lane_reserve(lane, size, now) : NULL;
		if (event) {
			*event = (struct event){now, 0, (uint16_t)size, EVENT_MEMORY_FREE, 0};
			memcpy(event + 1, &address, sizeof address);
			lane_commit(lane, size);
		}
		the.memory.inside = false;
	}
	errno = saved;
}

/* ---- the way of every allocation ---- */

static inline __attribute__((always_inline)) void *note(void *block, size_t size, uint32_t domain)
{
	the.memory.calls++;
	if (__builtin_expect(block && (the.memory.left -= (int64_t)size) < 0, 0))
		sampled(block, size, domain);
	return block;
}

static inline __attribute__((always_inline)) void *note_change(const struct allocator *below, void *context, void *block, size_t size, uint32_t domain)
{
	bool known = block && may_be_sampled(block);
	void *changed = below->realloc(context, block, size);

	if (__builtin_expect(known && changed, 0))
		ended(block);
	return note(changed, size, domain);
}

static inline __attribute__((always_inline)) void note_end(const struct allocator *below, void *context, void *block)
{
	if (block && may_be_sampled(block))
		ended(block);
	below->free(context, block);
}

#define BELOW(domain, n) (&the.memory.layers[domain][n].below)
#define LAYER_FUNCTIONS(domain, n) \
	static void *malloc_##domain##_##n(void *context, size_t size) { return note(BELOW(domain, n)->malloc(context, size), size, domain); } \
	static void *calloc_##domain##_##n(void *context, size_t count, size_t size) { return note(BELOW(domain, n)->calloc(context, count, size), count * size, domain); } \
	static void *realloc_##domain##_##n(void *context, void *block, size_t size) { return note_change(BELOW(domain, n), context, block, size, domain); } \
	static void free_##domain##_##n(void *context, void *block) { note_end(BELOW(domain, n), context, block); }
#define LAYER_ROW(domain, n) [domain][n] = {NULL, malloc_##domain##_##n, calloc_##domain##_##n, realloc_##domain##_##n, free_##domain##_##n},
/* Domains as PyMemAllocatorDomain has them: 1 mem, 2 object. */
#define LAYERS(ROW) \
	ROW(1, 0) ROW(1, 1) ROW(1, 2) ROW(1, 3) ROW(1, 4) ROW(1, 5) ROW(1, 6) ROW(1, 7) \
	ROW(2, 0) ROW(2, 1) ROW(2, 2) ROW(2, 3) ROW(2, 4) ROW(2, 5) ROW(2, 6) ROW(2, 7)
LAYERS(LAYER_FUNCTIONS)
static const struct allocator functions[MEMORY_DOMAINS][MEMORY_LAYERS] = { LAYERS(LAYER_ROW) };
enum { DOMAIN_FIRST = 1 };

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

/* Are our functions called, wherever they stand? */
static bool is_called(int domain)
{
	uint64_t before = the.memory.calls;
	void *block = domain == DOMAIN_FIRST ? the.python.PyMem_Malloc(1) : the.python.PyObject_Malloc(1);

	if (domain == DOMAIN_FIRST)
		the.python.PyMem_Free(block);
	else
		the.python.PyObject_Free(block);
	return the.memory.calls != before;
}

static bool put_on(int domain)
{
	struct allocator now, next;
	int n;

	if (is_called(domain))
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

/* True when the allocator is what it was before us. */
static bool take_off(int domain)
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

void memory_take_off(void)
{
	stop_sampling();
	for (int domain = DOMAIN_FIRST; domain < MEMORY_DOMAINS; domain++)
		if (the.memory.put_on[domain] && take_off(domain))
			the.memory.put_on[domain] = false;
}

/* What passing on a pair of calls costs here, in picoseconds: the best of a few rounds. */
static __attribute__((noinline)) void *pass(void *block, size_t size)
{
	if (may_be_sampled(block))
		ended(block);
	return note(block, size, DOMAIN_FIRST);
}

static uint64_t calibrate(void)
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < 5; round++) {
		uint64_t begin = ticks_now(), passed;

		for (uintptr_t i = 1; i <= CALIBRATION_CALLS; i++)
			pass((void *)(i << 4), 0);
		passed = ticks_now() - begin;
		best = passed < best ? passed : best;
	}
	the.memory.calls = 0;
	return ticks_to_ns(best) * 1000 / CALIBRATION_CALLS;
}

static bool make_table(void)
{
	if (!the.memory.table) {
		void *table = mmap(NULL, TABLE_SLOTS * sizeof *the.memory.table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (table == MAP_FAILED)
			return false;
		the.memory.table = table;
	}
	return true;
}

void memory_begin(void)
{
	bool all = true;

	if (!the.settings.memory_interval)
		return;
	if (!make_table()) {
		the.page->memory_state = MEMORY_NO_ROOM;
		return;
	}
	stop_sampling();
	the.memory.live = 0;
	the.memory.inside = false;
	memset(the.memory.filter, 0, sizeof the.memory.filter);
	the.memory.random = ticks_now() | 1;
	the.memory.call_ps = calibrate();
	for (int domain = DOMAIN_FIRST; domain < MEMORY_DOMAINS; domain++)
		all &= the.memory.put_on[domain] = put_on(domain);
	if (!all) {
		memory_take_off();
		the.page->memory_state = MEMORY_NO_LAYER;
		return;
	}
	the.page->memory_state = MEMORY_SAMPLED;
	the.memory.on = true;
	draw();
}

void memory_end(void)
{
	bool covered = true, gone = true;

	if (the.page->memory_state != MEMORY_SAMPLED)
		return;
	stop_sampling();
	for (int domain = DOMAIN_FIRST; domain < MEMORY_DOMAINS; domain++)
		covered &= !the.memory.put_on[domain] || is_called(domain); /* else its attacher was dead, and it was taken off then */
	the.page->memory_calls += the.memory.calls;
	memory_take_off();
	for (int domain = DOMAIN_FIRST; domain < MEMORY_DOMAINS; domain++)
		gone &= !the.memory.put_on[domain];
	the.page->memory_state = !covered ? MEMORY_CUT : gone ? MEMORY_TAKEN_OFF : MEMORY_LEFT;
	memset(the.memory.put_on, 0, sizeof the.memory.put_on);
	memset(the.memory.filter, 0, sizeof the.memory.filter);
	madvise(the.memory.table, TABLE_SLOTS * sizeof *the.memory.table, MADV_DONTNEED);
}
