/*
 * Samples of what Python allocates in its domains mem and object, both used under the GIL alone: an allocation that a point falls into
 * (sampled.h) is told, with its weight, its Python frames (a bounded walk, as tracemalloc makes it from the same place) and, when it comes,
 * its end. allocators.c sees to it that we are called: in all interpreters of the process, of which others may have a GIL of their own
 * (3.12 and later), and by a C thread without any, which is a bug of the program's. Who has not the main interpreter's must not look at the
 * page, which may go at that moment, nor at a thread state that is not its own: atomic words of ours alone.
 */
#include "collector/memory.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "abi/cpython.h"

enum {
	WALK_MAX = 128, TELLING_NS_MAX = 50000 /* of one sample; what took longer was a thread that had no CPU */,
	REST_LEAST_MS = 100, REST_MOST_MS = 5000, REST_PART = 16,
};

/* ---- telling ---- */

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
	struct { uint64_t address, bytes, weight; uint32_t domain, padding; } payload = {address, size, sampled_weight(size, the.memory.spending.interval), domain, 0};
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

void memory_tell_sampling(struct lane *lane, uint64_t now, bool on, bool native, uint64_t off)
{
	struct { uint64_t off_ns, cpu_ns; uint32_t on, native; } payload = {ticks_to_ns(off), 0, on, native};
	struct cpu_clock clock = {0};
	uint64_t cost_ns;

	payload.cpu_ns = cpu_clock_ask(&clock, now, &cost_ns);
	lane_charge(lane, cost_ns);
	if (native)
		__atomic_fetch_add(&the.heap.unpaid_ns, cost_ns, __ATOMIC_RELAXED);
	else
		budget_charge(cost_ns);
	lane_put_with(lane, now, 0, EVENT_MEMORY_SAMPLING, &payload, sizeof payload);
}

static void draw(void)
{
	the.memory.left = sampled_gap(&the.memory.blocks, the.memory.spending.interval);
}

static void stop_sampling(void)
{
	the.memory.left = SAMPLED_NEVER;
	the.memory.on = false;
}

/* ---- what it costs ---- */

static uint64_t ticks_of_ms(uint64_t ms)
{
	return the.settings.ticks_per_second / 1000 * ms;
}

/* A rest is worth its while when it makes up for a part of the time so far: so a short session has several, and in a long one blocks are seen to end. */
static uint64_t rest_wanted(uint64_t now)
{
	uint64_t part = (now - the.memory.begun_at) / REST_PART, least = ticks_of_ms(REST_LEAST_MS), most = ticks_of_ms(REST_MOST_MS);

	return part < least ? least : part < most ? part : most;
}

/* Three quarters more or less, so that rests do not end in step with what the program does again and again. */
static uint64_t varied(uint64_t ticks, uint64_t random)
{
	return ticks / 4 + (random * 0x9e3779b97f4a7c15ull >> 16) % (ticks / 2 * 3 + 1);
}

/* So dear that it cannot go on all the time: on until it owes a rest that is worth its while, and off for as long as makes up for it. */
static void rest(uint64_t now)
{
	const uint64_t on = now - the.memory.on_since, most = 8 * ticks_of_ms(REST_MOST_MS);
	struct spending *spending = &the.memory.spending;
	uint64_t off;

	if (!the.switcher_made || the.switcher_over) {
		the.page->memory_state = MEMORY_TOO_DEAR;
		the.page->memory_ended_ticks = now;
		spending_ends(spending);
		memory_tell_sampling(lane_meta(), now, false, false, 0);
		memory_take_off();
		return;
	}
	/* What is allowed in a time like this one pays. */
	off = spending->allowed_ns ? (uint64_t)((__uint128_t)on * spending->debt_ns / spending->allowed_ns) : on;
	if (off < rest_wanted(now))
		return;
	if (off > most)
		off = most;
	spending->debt_ns = 0;
	memory_pause();
	__atomic_store_n(&the.memory.rest_until, now + varied(off, now), __ATOMIC_RELEASE);
}

bool memory_rested(uint64_t now)
{
	uint64_t until = __atomic_load_n(&the.memory.rest_until, __ATOMIC_ACQUIRE);

	return until && now >= until;
}

static void keep_to_budget(uint64_t now)
{
	uint64_t load = 0;
	enum spent spent = spending_judge(&the.memory.spending, &the.heap.spending, &load);

	if (spent == SPENT_FEWER) {
		the.page->memory_interval_now = the.memory.spending.interval;
		write_throttle(now, 0, THROTTLE_MEMORY, load);
		draw();
	} else if (spent == SPENT_TOO_MUCH) {
		rest(now);
	}
}

/* The cost of all that was passed on since the last sample, and of that one. */
static void tell_missed(void)
{
	the.page->memory_missed += __atomic_exchange_n(&the.memory.missed, 0, __ATOMIC_RELAXED);
}

static void charge(struct lane *lane, uint64_t began)
{
	uint64_t passing_ns = the.memory.calls * the.memory.call_ps / 1000, telling_ns = ticks_to_ns(ticks_now() - began);

	if (telling_ns > TELLING_NS_MAX)
		telling_ns = TELLING_NS_MAX;
	the.memory.spending.passing_ns += passing_ns;
	the.memory.spending.telling_ns += telling_ns;
	lane_charge(lane, passing_ns + telling_ns);
	budget_charge(passing_ns + telling_ns);
	the.page->memory_cost_ns += passing_ns + telling_ns;
	the.page->memory_calls += the.memory.calls;
	the.memory.calls = 0;
	tell_missed();
}

/* ---- what allocators.c calls ---- */

static void tell(const void *block, size_t size, uint32_t domain, char *tstate, uint64_t now)
{
	uint64_t address = (uint64_t)(uintptr_t)block;
	struct lane *lane = lane_attach();
	bool known;

	if (!lane) {
		the.page->lane_overflow++;
		return;
	}
	known = sampled_add(&the.memory.blocks, address);
	the.page->memory_samples++;
	the.page->memory_full += !known;
	tell_sample(lane, tstate, now, known ? address : 0, size, domain);
	charge(lane, now);
	keep_to_budget(now);
}

static void miss(void)
{
	draw();
	__atomic_fetch_add(&the.memory.missed, 1, __ATOMIC_RELAXED);
}

__attribute__((noinline)) void memory_sampled(const void *block, size_t size, uint32_t domain)
{
	uint64_t now = ticks_now();
	int saved = errno;
	char *tstate;

	if (the.memory.prober == (uint64_t)pthread_self()) {
		the.memory.probe_heard = true;
		return;
	}
	tstate = gil_holder();
	if (!tstate) {
		if (the.memory.on) /* whether sampling ends is for others to see */
			miss();
	} else if (!the.memory.on || !may_tell(now) || python_ends(&the.python)) {
		stop_sampling();
		if (!the.memory.inside)
			memory_take_off();
	} else if (the.memory.inside || the.memory.muted) {
		miss();
	} else {
		draw();
		the.memory.inside = true;
		tell(block, size, domain, tstate, now);
		the.memory.inside = false;
	}
	errno = saved;
}

__attribute__((noinline)) void memory_ended(const void *block)
{
	uint64_t now = ticks_now(), address = (uint64_t)(uintptr_t)block;
	int saved = errno;
	struct lane *lane;

	if (the.memory.on && !the.child && !the.memory.inside && gil_holder() && sampled_remove(&the.memory.blocks, address) && may_tell(now)) {
		the.memory.inside = true;
		lane = lane_attach();
		if (lane)
			lane_put_with(lane, now, 0, EVENT_MEMORY_FREE, &address, sizeof address);
		the.memory.inside = false;
	}
	errno = saved;
}

/* ---- beginning and ending ---- */

void memory_take_off(void)
{
	stop_sampling();
	for (int domain = MEMORY_DOMAIN_FIRST; domain < MEMORY_DOMAINS; domain++)
		if (the.memory.put_on[domain] && allocator_take_off(domain))
			the.memory.put_on[domain] = false;
}

static void put_on(void)
{
	bool all = true;

	/* Every allocation is due from here on until draw(): who counted down from the large number meanwhile, with another GIL, would put that back. */
	for (int domain = MEMORY_DOMAIN_FIRST; domain < MEMORY_DOMAINS; domain++)
		all &= the.memory.put_on[domain] = allocator_put_on(domain);
	if (!all) {
		memory_take_off();
		the.page->memory_state = MEMORY_NO_LAYER;
		the.page->memory_ended_ticks = the.memory.off_since;
		return;
	}
	the.page->memory_state = MEMORY_SAMPLED;
	the.memory.on = true;
	spending_begin(&the.memory.spending);
	the.memory.on_since = ticks_now();
	memory_tell_sampling(lane_meta(), the.memory.on_since, true, false, the.memory.off_since ? the.memory.on_since - the.memory.off_since : 0);
	draw();
}

void memory_begin(void)
{
	__atomic_store_n(&the.memory.rest_until, 0, __ATOMIC_RELEASE); /* of a session that ended in it */
	if (!the.settings.memory_interval)
		return;
	stop_sampling();
	if (!sampled_begin(&the.memory.blocks, ticks_now())) {
		the.page->memory_state = MEMORY_NO_ROOM;
		return;
	}
	the.memory.inside = false;
	__atomic_store_n(&the.memory.missed, 0, __ATOMIC_RELAXED);
	the.memory.spending = (struct spending){.interval = the.settings.memory_interval};
	the.page->memory_interval_now = the.settings.memory_interval;
	the.memory.call_ps = allocator_calibrate();
	the.memory.begun_at = ticks_now();
	the.memory.off_since = 0;
	the.memory.cut = false;
	put_on();
}

/* Else its attacher was dead, and our functions were taken off then; or another tool put back the allocators of before. */
static bool are_called(void)
{
	bool called = true;

	for (int domain = MEMORY_DOMAIN_FIRST; domain < MEMORY_DOMAINS; domain++)
		called &= !the.memory.put_on[domain] || allocator_is_called(domain);
	return called;
}

/* What is released meanwhile is not seen, so all that was sampled is forgotten. */
void memory_pause(void)
{
	if (!the.memory.on)
		return;
	the.memory.cut |= !are_called();
	memory_take_off();
	sampled_end(&the.memory.blocks);
	the.memory.off_since = ticks_now();
	memory_tell_sampling(lane_meta(), the.memory.off_since, false, false, 0);
	the.page->memory_pauses++;
}

void memory_resume(void)
{
	if (__atomic_load_n(&the.memory.rest_until, __ATOMIC_RELAXED) > ticks_now())
		return;
	__atomic_store_n(&the.memory.rest_until, 0, __ATOMIC_RELEASE); /* whatever follows: nobody is to wake up for it again */
	if (the.page->memory_state == MEMORY_SAMPLED && !the.memory.on)
		put_on();
}

void memory_end(void)
{
	bool covered, gone = true, dear = the.page->memory_state == MEMORY_TOO_DEAR;

	if (the.page->memory_state != MEMORY_SAMPLED && !dear)
		return;
	stop_sampling();
	covered = are_called() && !the.memory.cut;
	the.page->memory_calls += the.memory.calls;
	tell_missed();
	memory_take_off();
	for (int domain = MEMORY_DOMAIN_FIRST; domain < MEMORY_DOMAINS; domain++)
		gone &= !the.memory.put_on[domain];
	if (!dear)
		the.page->memory_state = !covered ? MEMORY_CUT : gone ? MEMORY_TAKEN_OFF : MEMORY_LEFT;
	memset(the.memory.put_on, 0, sizeof the.memory.put_on);
	sampled_end(&the.memory.blocks);
}
