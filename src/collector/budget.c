/*
 * What the hooks may cost, and when they are on. Tokens are events that may be recorded. They are earned by running: allowed
 * share × CPU time of the process (never more than one CPU's: under the GIL one thread runs Python) ÷ cost of one event.
 *
 * A window is on for one stretch after another. How long a stretch lasts is decided before anything in it is seen, by what those before it cost:
 * a window that ended where its tokens do would end in code that calls much, and show too much of that. So tokens that run out in the middle are
 * borrowed, within a limit. At the end of a stretch the window goes on if there are savings, else it closes at that moment, even if no
 * hook called until later. The next one opens after a cycle of about a quarter of a second, or later if too little was earned: by the switch thread, by a
 * callback that still fires, or by the attacher (REARM). Cycles are jittered by a quarter, so that windows do not beat with what the program does periodically.
 */
#include "collector/greenlets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CYCLE_MS = BUDGET_CYCLE_NS / 1000000, STRETCH_LEAST_MS = 2, STRETCH_FIRST_MS = 5, CALIBRATION_EVENTS = 4000, OWN_PS_MIN = 2000, LOAD_HOPELESS = 4000, LOAD_MOST = 1000000,
	CLOCK_PART = 50 /* of the time, at most, goes for asking what CPU time the process has used */ };

/* xorshift: never zero */
static uint64_t random_next(void)
{
	the.random ^= the.random << 13;
	the.random ^= the.random >> 7;
	the.random ^= the.random << 17;
	return the.random;
}

/* What one lookup and one event of ours cost here, on a private lane: the best of a few rounds, in picoseconds. */
static uint64_t calibrate(void)
{
	enum { ROUNDS = 5, REACH = SUBBUF_BYTES - SUBBUF_HEAD };
	struct subbuf *subbuf = calloc(1, SUBBUF_BYTES);
	struct lane *lane = calloc(1, sizeof *lane);
	uint64_t best = UINT64_MAX;

	for (int round = 0; subbuf && lane && round < ROUNDS; round++) {
		uint64_t begin, ns;

		lane->subbuf = subbuf;
		lane->cursor = (struct event *)((char *)subbuf + SUBBUF_HEAD);
		lane->last = (struct event *)((char *)subbuf + SUBBUF_BYTES) - 1;
		begin = monotonic_ns();
		for (int i = 0; i < CALIBRATION_EVENTS / 2; i++) {
			lane_push(lane, ticks_now(), 7, EVENT_PY_ENTER);
			lane_pop(lane, ticks_now(), 7, EVENT_PY_LEAVE, 0);
		}
		ns = monotonic_ns() - begin;
		if (ns < best)
			best = ns;
	}
	free(subbuf);
	free(lane);
	return best == UINT64_MAX ? 10000 : best * 1000 / CALIBRATION_EVENTS;
}
_Static_assert(CALIBRATION_EVENTS * sizeof(struct event) <= SUBBUF_BYTES - SUBBUF_HEAD, "one round fits a sub-buffer");

static void cycle_begin(uint64_t now)
{
	the.cycle_end = now + the.cycle_ticks * 3 / 4 + random_next() % (the.cycle_ticks / 2 + 1);
}

uint64_t process_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* A thread that lost its CPU as it asked makes no dear clock: the cheaper one of two in a row counts. */
uint64_t cpu_clock_ask(struct cpu_clock *clock, uint64_t now, uint64_t *cost_ns)
{
	uint64_t began = ticks_now(), cpu_ns = process_cpu_ns(), took = ticks_now() - began, cost = took < clock->took || !clock->took ? took : clock->took;

	clock->took = took;
	clock->again = now + CLOCK_PART * cost;
	*cost_ns = ticks_to_ns(cost);
	return cpu_ns;
}

bool cpu_clock_is_due(const struct cpu_clock *clock, uint64_t now)
{
	return now >= clock->again;
}

static int64_t tokens_for(uint64_t ns, uint64_t ppm)
{
	return (int64_t)((__uint128_t)ns * ppm / 1000 / the.cost_ps);
}

/* A tenth is left for what is not reckoned: windows that open and close, stacks that are said anew, threads that wait for these. */
static uint64_t aim_ppm(void)
{
	return the.settings.max_overhead_ppm - the.settings.max_overhead_ppm / 10;
}

/* What samples leave of the budget; but a tenth is the hooks' own. */
static uint64_t hooks_ppm(void)
{
	uint64_t whole = aim_ppm(), taken = __atomic_load_n(&the.page->samples_ppm, __ATOMIC_RELAXED);

	return taken < whole - whole / 10 ? whole - taken : whole / 10;
}

void budget_charge(uint64_t ns)
{
	if (the.settings.max_overhead_ppm)
		the.unpaid += tokens_for(ns, 1000000);
}

/* What has been earned since it was last asked goes to the savings. */
void budget_earn(uint64_t now)
{
	uint64_t cpu_ns, ran_ns, passed_ns, cost_ns;
	int64_t earned, paid;

	if (now <= the.earned_at)
		return;
	cpu_ns = cpu_clock_ask(&the.cpu_clock, now, &cost_ns);
	budget_charge(cost_ns);
	lane_charge(lane_meta(), cost_ns);
	ran_ns = cpu_ns - the.earned_cpu_ns;
	passed_ns = ticks_to_ns(now - the.earned_at);
	earned = tokens_for(ran_ns < passed_ns ? ran_ns : passed_ns, hooks_ppm());
	budget_charge(__atomic_exchange_n(&the.heap.unpaid_ns, 0, __ATOMIC_RELAXED));
	paid = the.unpaid < earned - earned / 10 ? the.unpaid : earned - earned / 10;
	the.unpaid -= paid;
	earned -= paid;
	the.saved += earned;
	the.earned += earned;
	if (the.saved > the.allowance)
		the.saved = the.allowance;
	the.earned_cpu_ns = cpu_ns;
	the.earned_at = now;
}

static void grant(int64_t tokens)
{
	the.tokens = the.granted = tokens;
	the.given += tokens;
	the.saved -= tokens;
}

/* What was granted and not used goes back to the savings; less than nothing, where more was used. */
static void put_back(void)
{
	if (!the.settings.max_overhead_ppm)
		return;
	the.saved += the.tokens;
	the.given -= the.tokens;
	the.used += the.granted - the.tokens;
	the.tokens = the.granted = 0;
}

/* Moves what has been saved into use, if that is enough to make a stretch worth its own cost. ASK: what was earned is asked for, however short a time ago it was. */
static bool spend(uint64_t now, bool ask)
{
	if (!the.settings.max_overhead_ppm) {
		the.tokens = the.granted = INT64_MAX;
		return true;
	}
	if (ask || cpu_clock_is_due(&the.cpu_clock, now))
		budget_earn(now);
	if (the.saved < the.allowance / 4)
		return false;
	grant(the.saved);
	return true;
}

static bool borrow(int64_t tokens, int64_t debt_most)
{
	if (the.saved < -debt_most)
		return false;
	grant(tokens);
	return true;
}

/* Hooks ask again then, however many tokens they have. */
static void look_later(void)
{
	uint64_t deadline = __atomic_load_n(&the.page->deadline_ticks, __ATOMIC_ACQUIRE);

	the.look_at = deadline < the.stretch_end ? deadline : the.stretch_end;
}

/* As long as a third of an allowance lasts, by what stretches have cost so far. */
static uint64_t stretch_ticks(void)
{
	uint64_t least = the.settings.ticks_per_second * STRETCH_LEAST_MS / 1000, ticks;

	if (!the.settings.max_overhead_ppm)
		return the.cycle_ticks;
	if (!the.stretches)
		return the.settings.ticks_per_second * STRETCH_FIRST_MS / 1000;
	ticks = the.used_per_second ? (uint64_t)((__uint128_t)the.settings.ticks_per_second * (uint64_t)the.allowance / 3 / the.used_per_second) : the.cycle_ticks;
	return ticks < least ? least : ticks < the.cycle_ticks ? ticks : the.cycle_ticks;
}

/* Planned to begin at FROM, now or later. Where asking for the process's CPU time is dear (thousands of threads), as long as that takes to come due: its end asks. */
static void stretch_begin(uint64_t now, uint64_t from)
{
	uint64_t end = from + stretch_ticks(), due = the.cpu_clock.again, latest = from + the.cycle_ticks;

	if (end < due)
		end = due < latest ? due : latest;
	the.used = 0;
	the.stretch_begin = now;
	the.stretch_end = end;
	look_later();
}

static void stretch_ends(uint64_t at)
{
	uint64_t passed = at > the.stretch_begin ? at - the.stretch_begin : 1;
	uint64_t per_second = the.used > 0 ? (uint64_t)((__uint128_t)(uint64_t)the.used * the.settings.ticks_per_second / passed) : 0;

	the.used_per_second = the.stretches++ ? (3 * the.used_per_second + per_second) / 4 : per_second;
}

/* Every thread says its stack anew. */
static void stacks_anew(uint64_t now)
{
	the.window++;
	if (the.settings.seed)
		seed_all(now);
}

/*
 * Tokens are used up. Rather than closing the window: fewer events, where some functions are hot and tiny. What is spent until
 * the savings are back is borrowed, at most half a cycle's at a time. *CHOSEN: something was, enough or not.
 */
static bool relieve(uint64_t now, bool *chosen)
{
	const struct lane *lane = lane_mine;
	uint64_t load;

	/* What was earned may not be known yet. */
	if (the.earned_at < now || !the.hooks->counts[the.python.minor] || the.saved < -the.allowance / 2 || !lane_is_mine(lane) || !lane->subbuf)
		return false;
	/* Too little was seen since the last choice to judge by: the stretch may have ended right behind it. */
	if (the.given < the.allowance / 8) {
		grant(the.allowance / 2);
		return true;
	}
	load = the.earned > 0 ? (uint64_t)the.given * 1000 / (uint64_t)the.earned : LOAD_MOST;
	if (load > LOAD_HOPELESS && !the.hooks->leaves_out)
		return false;
	if (load > LOAD_MOST)
		load = LOAD_MOST;
	if (lane->written < TALLY_LEAST) {
		grant(2 * TALLY_LEAST);
		return true;
	}
	if (!counted_choose(lane, now, load, chosen))
		return false;
	the.given = the.earned = 0;
	counted_note();
	grant(the.allowance / 2);
	return true;
}

static void set_cost(void)
{
	the.cost_ps = the.own_ps * the.hooks->cost_factor[the.python.minor] / 100;
	the.page->cost_ps_py = the.cost_ps;
	the.page->cost_ps_c = the.cost_ps;
	the.allowance = tokens_for(CYCLE_MS * 1000000ull, aim_ppm());
	if (the.allowance < 100)
		the.allowance = 100;
}

void budget_init(void)
{
	uint64_t cost_ns;

	the.own_ps = calibrate();
	if (the.own_ps < OWN_PS_MIN)
		the.own_ps = OWN_PS_MIN;
	the.counted_count = 0;
	the.unpaid = 0;
	set_cost();
	the.cycle_ticks = the.settings.ticks_per_second * CYCLE_MS / 1000;
	the.random = ticks_now() | 1;
	the.saved = the.allowance / 2; /* something is seen at once */
	the.stretches = the.used_per_second = 0;
	the.earned_at = ticks_now();
	the.cpu_clock = (struct cpu_clock){0};
	the.earned_cpu_ns = cpu_clock_ask(&the.cpu_clock, the.earned_at, &cost_ns);
	the.cpu_clock.again = 0;
}

bool budget_is_over(uint64_t now)
{
	return __atomic_load_n(&the.page->stop, __ATOMIC_ACQUIRE) || now > __atomic_load_n(&the.page->deadline_ticks, __ATOMIC_ACQUIRE);
}

static void write_window(uint64_t now, uint8_t kind, uint32_t reason)
{
	lane_put_u32(lane_meta(), now, 0, kind, reason);
}

/* Somebody took the evaluator in the middle (torch.compile does): a profile function then, unless one way was asked for. */
static bool hooks_change(void)
{
	if (the.hooks != &hooks_evaluator || the.settings.backend != BACKEND_AUTO)
		return false;
	the.hooks = &hooks_setprofile;
	set_cost();
	__atomic_store_n(&the.page->backend_used, the.hooks->kind, __ATOMIC_RELEASE);
	return the.hooks->open();
}

/* From FROM on the window stands for the time since the one before. */
static void write_plan(uint64_t from)
{
	uint64_t duration_ns = ticks_to_ns(the.stretch_end - from);

	lane_put_with(lane_meta(), from, 0, EVENT_WINDOW_PLAN, &duration_ns, sizeof duration_ns);
}

void window_open(uint64_t now, enum window_reason reason, uint64_t planned)
{
	uint64_t from = planned > now ? planned : now;

	if (the.hooks_on || the.dead || the.pausing)
		return;
	cycle_begin(now);
	the.given = 0;
	if (!spend(now, false))
		return;
	the.earned = 0;
	counted_note();
	the.window++;
	the.greenlets |= greenlets_imported();
	if (!the.hooks->open() && !hooks_change()) {
		the.window++;
		the.tokens = -1;
		write_window(now, EVENT_WINDOW_OFF, WINDOW_FOREIGN);
		return;
	}
	the.hooks_on = true;
	the.opened_at = now;
	__atomic_fetch_add(&the.page->window_count, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&the.page->hooks_on, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&the.page->rearm_wanted, 0, __ATOMIC_RELEASE);
	stretch_begin(now, from);
	write_window(now, EVENT_WINDOW_ON, reason);
	write_plan(from);
	if (the.settings.seed)
		seed_all(now);
	if (the.switcher_made)
		switcher_tell(SWITCH_RUNNING);
}

void window_close(uint64_t now, enum window_reason reason)
{
	if (reason == WINDOW_DEADLINE || reason == WINDOW_ARM)
		__atomic_store_n(&the.dead, true, __ATOMIC_RELEASE);
	if (reason == WINDOW_DEADLINE)
		memory_take_off();
	if (!the.hooks_on) {
		the.tokens = -1;
		return;
	}
	put_back();
	stretch_ends(now);
	the.tokens = -1;
	cycle_begin(now);
	the.hooks_on = false;
	the.window++;
	the.hooks->close();
	the.page->on_ticks += now - the.opened_at;
	if (reason == WINDOW_BUDGET)
		the.page->brake_count++;
	__atomic_store_n(&the.page->hooks_on, 0, __ATOMIC_RELEASE);
	write_window(now, EVENT_WINDOW_OFF, reason);
	__atomic_store_n(&the.page->switch_at_ticks, the.cycle_end, __ATOMIC_RELEASE);
	if (the.switcher_made && !the.switcher_over)
		switcher_tell(the.dead ? SWITCH_QUIT : SWITCH_OFF);
	else if (!the.dead)
		__atomic_store_n(&the.page->rearm_wanted, 1, __ATOMIC_RELEASE);
}

/* Tokens are used up, or the stretch is over. True: hooks stay on. */
static bool window_goes_on(uint64_t now)
{
	bool over = now > the.stretch_end, quiet = over && now - the.stretch_end > the.cycle_ticks, chosen = false;

	put_back();
	/* Nobody called for a whole cycle: what begins now is what the window is on for. */
	if (!spend(now, over) && !relieve(now, &chosen) && !((!over || quiet) && borrow(the.allowance / 4, quiet ? 0 : the.allowance / 2)))
		return false;
	if (over) {
		stretch_ends(the.stretch_end);
		stretch_begin(now, now);
	} else {
		look_later();
	}
	if (!the.greenlets && greenlets_imported())
		the.greenlets = chosen = true;
	if (chosen)
		stacks_anew(now); /* without the frames of what is only counted */
	return true;
}

bool budget_ask(uint64_t now)
{
	int saved = errno;
	bool may = false;

	the.memory.muted++; /* turning hooks on or off allocates, and a lane's events come in the order of time */
	if (!the.armed || the.child) {
		the.tokens = -1;
	} else if (the.dead) {
		the.tokens = -1;
	} else if (budget_is_over(now)) {
		window_close(now, __atomic_load_n(&the.page->stop, __ATOMIC_RELAXED) ? WINDOW_ARM : WINDOW_DEADLINE);
	} else if (!the.hooks_on) {
		the.tokens = -1;
		if (now >= the.cycle_end) {
			window_open(now, WINDOW_BUDGET, now);
			may = the.hooks_on;
		}
	} else {
		may = window_goes_on(now);
		if (!may)
			window_close(now < the.stretch_end ? now : the.stretch_end, WINDOW_BUDGET);
	}
	the.memory.muted--;
	errno = saved;
	return may;
}
