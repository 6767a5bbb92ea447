/*
 * What the hooks may cost, and when they are on. Tokens are events that may be recorded. They are earned by running: allowed
 * share × CPU time of the process (never more than one CPU's: under the GIL one thread runs Python) ÷ cost of one event. When
 * they are used up a window closes; the next one opens after a cycle of about a quarter of a second, or later if too little was
 * earned: by the switch thread, by a callback that still fires, or by the attacher (REARM). Cycles are jittered by a quarter, so
 * that windows do not beat with what the program does periodically.
 */
#include "collector/collector.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/libc.h"

enum { CYCLE_MS = BUDGET_CYCLE_NS / 1000000, WATCH_MS = 500, BREATH_MS = 5, CALIBRATION_EVENTS = 4000, SWITCHER_STACK_BYTES = 256 * 1024, OWN_PS_MIN = 2000, LOAD_HOPELESS = 4000, LOAD_MOST = 1000000 };

static void futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec timeout = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

static void switch_word_set(uint32_t value)
{
	__atomic_store_n(&the.page->switch_word, value, __ATOMIC_RELEASE);
	syscall(SYS_futex, &the.page->switch_word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

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
		struct timespec begin, end;
		uint64_t ns;

		lane->subbuf = subbuf;
		lane->cursor = (struct event *)((char *)subbuf + SUBBUF_HEAD);
		lane->last = (struct event *)((char *)subbuf + SUBBUF_BYTES) - 1;
		clock_gettime(CLOCK_MONOTONIC, &begin);
		for (int i = 0; i < CALIBRATION_EVENTS / 2; i++) {
			lane_push(lane, ticks_now(), 7, EVENT_PY_ENTER);
			lane_pop(lane, ticks_now(), 7, EVENT_PY_LEAVE, 0);
		}
		clock_gettime(CLOCK_MONOTONIC, &end);
		ns = (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000ull + (uint64_t)end.tv_nsec - (uint64_t)begin.tv_nsec;
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

static int64_t tokens_for(uint64_t ns, uint64_t ppm)
{
	return (int64_t)((__uint128_t)ns * ppm / 1000 / the.cost_ps);
}

/* What samples leave of the budget; but a tenth is the hooks' own. */
static uint64_t hooks_ppm(void)
{
	uint64_t whole = the.settings.max_overhead_ppm, taken = __atomic_load_n(&the.page->samples_ppm, __ATOMIC_RELAXED);

	return taken < whole - whole / 10 ? whole - taken : whole / 10;
}

void budget_charge(uint64_t ns)
{
	if (the.settings.max_overhead_ppm)
		the.unpaid += tokens_for(ns, 1000000);
}

/* What has been earned since it was last asked goes to the savings. */
static void earn(uint64_t now)
{
	uint64_t cpu_ns = process_cpu_ns(), ran_ns = cpu_ns - the.earned_cpu_ns, passed_ns = ticks_to_ns(now - the.earned_at);
	int64_t earned, paid;

	if (now <= the.earned_at)
		return;
	earned = tokens_for(ran_ns < passed_ns ? ran_ns : passed_ns, hooks_ppm());
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

/* Moves what has been saved into use, if that is enough to make a window worth its own cost. */
static bool spend(uint64_t now)
{
	if (!the.settings.max_overhead_ppm) {
		the.tokens = INT64_MAX;
		return true;
	}
	earn(now);
	if (the.saved < the.allowance / 4)
		return false;
	the.tokens = the.saved;
	the.given += the.saved;
	the.saved = 0;
	return true;
}

static void borrow(int64_t tokens)
{
	the.tokens = tokens;
	the.given += tokens;
	the.saved -= tokens;
}

/*
 * Tokens are used up. Rather than closing the window: fewer events, where some functions are hot and tiny. What is spent until
 * the savings are back is borrowed, at most half a cycle's at a time.
 */
static bool relieve(uint64_t now)
{
	const struct lane *lane = lane_mine;
	uint64_t load;

	if (!the.hooks->counts[the.python.minor] || the.saved < -the.allowance / 2 || !lane_is_mine(lane) || !lane->subbuf)
		return false;
	load = the.earned > 0 ? (uint64_t)the.given * 1000 / (uint64_t)the.earned : LOAD_MOST;
	if (load > LOAD_HOPELESS && !the.hooks->leaves_out)
		return false;
	if (load > LOAD_MOST)
		load = LOAD_MOST;
	if (lane->written < TALLY_LEAST) {
		borrow(2 * TALLY_LEAST);
		return true;
	}
	if (!counted_choose(lane, now, load))
		return false;
	the.given = the.earned = 0;
	counted_note();
	borrow(the.allowance / 2);
	the.window++; /* every thread says its stack anew, without the frames of what is only counted */
	if (the.settings.seed)
		seed_all(now);
	return true;
}

static void set_cost(void)
{
	the.cost_ps = the.own_ps * the.hooks->cost_factor[the.python.minor] / 100;
	the.page->cost_ps_py = the.cost_ps;
	the.page->cost_ps_c = the.cost_ps;
	the.allowance = tokens_for(CYCLE_MS * 1000000ull, the.settings.max_overhead_ppm);
	if (the.allowance < 100)
		the.allowance = 100;
}

void budget_init(void)
{
	the.own_ps = calibrate();
	if (the.own_ps < OWN_PS_MIN)
		the.own_ps = OWN_PS_MIN;
	the.counted_count = 0;
	the.unpaid = 0;
	set_cost();
	the.cycle_ticks = the.settings.ticks_per_second * CYCLE_MS / 1000;
	the.random = ticks_now() | 1;
	the.saved = the.allowance / 2; /* something is seen at once */
	the.earned_at = ticks_now();
	the.earned_cpu_ns = process_cpu_ns();
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

void window_open(uint64_t now, enum window_reason reason)
{
	if (the.hooks_on || the.dead || the.pausing)
		return;
	cycle_begin(now);
	the.given = 0;
	if (!spend(now))
		return;
	the.earned = 0;
	counted_note();
	the.window++;
	if (!the.hooks->open() && !hooks_change()) {
		the.window++;
		the.tokens = -1;
		write_window(now, EVENT_WINDOW_OFF, WINDOW_FOREIGN);
		return;
	}
	the.hooks_on = true;
	the.opened_at = now;
	the.page->window_count++;
	__atomic_store_n(&the.page->hooks_on, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&the.page->rearm_wanted, 0, __ATOMIC_RELEASE);
	write_window(now, EVENT_WINDOW_ON, reason);
	if (the.settings.seed)
		seed_all(now);
	if (the.switcher_made)
		switch_word_set(SWITCH_RUNNING);
}

void window_close(uint64_t now, enum window_reason reason)
{
	if (reason == WINDOW_DEADLINE || reason == WINDOW_ARM)
		the.dead = true;
	if (reason == WINDOW_DEADLINE)
		memory_take_off();
	if (!the.hooks_on) {
		the.tokens = -1;
		return;
	}
	the.saved += the.tokens; /* overdrawn perhaps */
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
	if (the.switcher_made)
		switch_word_set(the.dead ? SWITCH_QUIT : SWITCH_OFF);
	else if (!the.dead)
		__atomic_store_n(&the.page->rearm_wanted, 1, __ATOMIC_RELEASE);
}

static bool is_over(uint64_t now)
{
	return __atomic_load_n(&the.page->stop, __ATOMIC_ACQUIRE) || now > __atomic_load_n(&the.page->deadline_ticks, __ATOMIC_ACQUIRE);
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
	} else if (is_over(now)) {
		window_close(now, the.page->stop ? WINDOW_ARM : WINDOW_DEADLINE);
	} else if (!the.hooks_on) {
		the.tokens = -1;
		if (now >= the.cycle_end) {
			window_open(now, WINDOW_BUDGET);
			may = the.hooks_on;
		}
	} else {
		the.saved += the.tokens;
		may = spend(now) || relieve(now);
		if (!may) {
			the.tokens = 0;
			window_close(now, WINDOW_BUDGET);
		}
	}
	the.memory.muted--;
	errno = saved;
	return may;
}

static uint64_t ns_until(uint64_t ticks)
{
	uint64_t now = ticks_now();

	return ticks <= now ? 0 : ticks_to_ns(ticks - now) + 1;
}

static uint64_t turn_ticks(void)
{
	return the.settings.ticks_per_second * the.settings.alternate_ms / 1000;
}

/* On for a turn, off for a turn: what the program does in both can be compared. The budget is that of the turns with hooks. */
static void alternate(uint64_t now)
{
	the.alternate_at += turn_ticks();
	if (the.alternate_at < now)
		the.alternate_at = now + turn_ticks();
	if (!the.pausing) {
		if (the.hooks_on)
			window_close(now, WINDOW_ALTERNATE);
		earn(now);
		the.alternate_saved = the.saved;
	}
	the.pausing = !the.pausing;
	write_throttle(now, 0, the.pausing ? THROTTLE_TURN_OFF : THROTTLE_TURN_ON, 0);
	__atomic_store_n(&the.page->alternate_off, the.pausing, __ATOMIC_RELEASE);
	if (the.pausing) {
		memory_pause();
		return;
	}
	memory_resume();
	earn(now);
	the.saved = the.alternate_saved;
	window_open(now, WINDOW_ALTERNATE);
}

static bool is_turn(uint64_t now)
{
	return the.alternate_at && now >= the.alternate_at;
}

/* Takes the GIL, and does what is due. False: there is nothing more to do, ever. */
static bool switcher_act(void)
{
	struct timespec begin, end;
	uint64_t now, held;
	int gil;

	if (python_ends(&the.python))
		return false;
	gil = gil_ensure();
	the.memory.muted++;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	now = ticks_now();
	if (the.armed && !the.child && !the.dead) {
		if (is_over(now))
			window_close(now, the.page->stop ? WINDOW_ARM : WINDOW_DEADLINE);
		else if (is_turn(now))
			alternate(now);
		else if (!the.hooks_on && now >= the.cycle_end)
			window_open(now, WINDOW_BUDGET);
		the.page->switch_at_ticks = the.cycle_end;
		if (the.hooks_on)
			the.page->switch_word = SWITCH_RUNNING;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	held = (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000ull + (uint64_t)end.tv_nsec - (uint64_t)begin.tv_nsec;
	if (held > the.page->holder_ns_max)
		the.page->holder_ns_max = held;
	if (the.hooks_on && the.settings.max_overhead_ppm)
		the.tokens -= tokens_for(held, 1000000);
	the.memory.muted--;
	gil_release(gil);
	return !__atomic_load_n(&the.dead, __ATOMIC_ACQUIRE);
}

static void *switcher_run(void *nothing)
{
	struct page *page = the.page;
	bool acted = false;

	prctl(PR_SET_NAME, "inferscope");
	page->switch_tid = (uint32_t)syscall(SYS_gettid);
	for (;;) {
		uint32_t word = __atomic_load_n(&page->switch_word, __ATOMIC_ACQUIRE);
		uint64_t wait = WATCH_MS * 1000000ull;

		if (word == SWITCH_QUIT || __atomic_load_n(&the.switcher_quit, __ATOMIC_ACQUIRE))
			break;
		if (word == SWITCH_OFF && ns_until(__atomic_load_n(&page->switch_at_ticks, __ATOMIC_ACQUIRE)) < wait)
			wait = ns_until(page->switch_at_ticks);
		if (the.alternate_at && (word != SWITCH_OFF || the.pausing || ns_until(the.alternate_at) < wait))
			wait = ns_until(the.alternate_at);
		/* Whatever the words say: the GIL is not asked for again and again. */
		if (acted && wait < BREATH_MS * 1000000ull)
			wait = BREATH_MS * 1000000ull;
		if (wait)
			futex_wait(&page->switch_word, word, wait);
		if (__atomic_load_n(&page->switch_word, __ATOMIC_ACQUIRE) == SWITCH_QUIT || __atomic_load_n(&the.switcher_quit, __ATOMIC_ACQUIRE))
			break;
		acted = (word == SWITCH_OFF && !the.pausing && !ns_until(page->switch_at_ticks)) || is_turn(ticks_now()) || is_over(ticks_now());
		if (acted && !switcher_act())
			break;
	}
	page->switch_tid = 0;
	return NULL;
}

/* Its thread gets no signal of the target: the mask of the thread that arms, all blocked, is inherited. */
void switcher_start(void)
{
	pthread_attr_t attributes;
	sigset_t all, before;

	if (!the.settings.may_start_thread || the.switcher_made)
		return;
	the.page->switch_word = SWITCH_RUNNING;
	the.switcher_quit = false;
	the.alternate_at = the.settings.alternate_ms ? ticks_now() + turn_ticks() : 0;
	the.pausing = false;
	if (pthread_attr_init(&attributes))
		return;
	pthread_attr_setstacksize(&attributes, SWITCHER_STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	the.switcher_made = !pthread_create(&the.switcher, &attributes, switcher_run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

void switcher_stop(void)
{
	if (!the.switcher_made)
		return;
	__atomic_store_n(&the.switcher_quit, true, __ATOMIC_RELEASE);
	switch_word_set(SWITCH_QUIT);
	pthread_join(the.switcher, NULL);
	the.switcher_made = false;
}
