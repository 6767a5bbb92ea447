/* Beginning and end of a session. The loop between is record.c's. */
#include "session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "session/capture.h"
#include "session/state.h"

#define CALIBRATE_NS 50000000ull
#define HOLDER_WAIT_NS 5000000000ull /* longer than any deadline is pushed ahead */
#define HOLDER_POLL_NS 20000000l
#define END_POLL_NS 2000000l
#define SHUTDOWN_NS 5000000000ull
#define HOOKS_STAY "its hooks were not confirmed to be off"
#define END_NS 1000000000ull /* who lets nobody in because it is ending has ended by then */
enum {
	FIRST_SUBBUFS = 4 * 1024 * 1024 / SUBBUF_BYTES,
	GIL_TIMEOUT_MS = 5000,
	DISARM_TIMEOUT_MS = 5000,
	DISARM_TRIES = 3,
	PYTHON_3_12 = 0x030c0000,
	DESCRIPTORS_LEAST = 28, /* in hand before it is touched: with 13 a process of one thread was entered and not left in time, with 17 its samples were without native frames */
};

const char *backend_name(enum backend backend)
{
	static const char *const names[] = { "auto", "none", "monitoring", "evaluator", "setprofile", "settrace" };

	return (size_t)backend < sizeof names / sizeof *names ? names[backend] : "unknown";
}

static void chunk_keep(void *context, const struct chunk *chunk, uint64_t events)
{
	device_chunk(context, chunk, events);
}

uint32_t session_outer_tid(struct session *session, uint32_t inner_tid)
{
	return session->observe.namespaced ? observe_told(&session->observe, (pid_t)inner_tid) : inner_tid;
}

/* Of a lane, once: whoever may not look for it just now does, however long that takes. */
static uint32_t tid_outer(void *context, uint32_t inner_tid)
{
	struct session *session = context;
	pid_t tid = session->observe.namespaced && observe_outer(&session->observe, (pid_t)inner_tid) < 0 ? target_outer_tid(session->target, (pid_t)inner_tid) : 0;

	return tid > 0 ? (uint32_t)tid : session_outer_tid(session, inner_tid);
}

static void skip_fill(char *out, const char *const *patterns)
{
	size_t used = 0;

	for (; patterns && *patterns; patterns++) {
		size_t length = strlen(*patterns) + 1;

		if (length == 1 || used + length + 1 > PAGE_SKIP_BYTES)
			continue;
		memcpy(out + used, *patterns, length);
		used += length;
	}
}

enum may_start session_may_start(const struct target_facts *facts, uint64_t threads)
{
	return facts->python_hex < PYTHON_3_12 ? SWITCHER_ALWAYS : threads > 1 ? SWITCHER_BESIDE : SWITCHER_NO;
}

static struct page *settings_new(const struct session *session)
{
	const struct session_options *options = session->options;
	struct page *page = calloc(1, sizeof *page);

	if (!page)
		return NULL;
	page->clock = session->clock_kind;
	page->ticks_per_second = session->clock.ticks_per_second;
	page->attacher_pid = session->handshake.attacher_pid;
	page->backend = options->backend;
	page->c_calls = options->c_calls;
	page->max_overhead_ppm = options->max_overhead_ppm;
	page->lines = options->lines;
	page->seed = options->seed;
	page->skip_default = options->skip_default;
	page->skip_presets = options->skip_presets;
	page->may_start_thread = session_may_start(session->facts, session->facts->threads);
	page->alternate_ms = options->alternate_ms;
	page->thread_tid_offset = session->facts->tid_offset;
	page->attach_id = clock_realtime_ns();
	skip_fill(page->skip_patterns, options->skip_patterns);
	page->gpu_memory = options->gpu_memory;
	page->gpu_graphs = options->gpu_graphs;
	page->gc = options->gc;
	page->memory_interval = options->memory_interval;
	return page;
}

/* Waits until the dead man's switch of an attacher that died has freed the process; one that lives pushes its deadline ahead, and is left alone. */
static int holder_wait(const struct session *session, struct error *err)
{
	uint64_t first = 0, deadline = 0, end_ns = clock_monotonic_ns() + HOLDER_WAIT_NS;
	const volatile int *stop = session->options->stop;
	uint32_t attacher = 0;

	while (residue_busy(session->target, session->before.lanes_addr, &attacher, &deadline)) {
		if (stop && *stop)
			return fail(err, ERR_INTERRUPTED, "attaching to %d was interrupted", (int)session->facts->pid);
		first = first ? first : deadline;
		if (deadline == first && clock_monotonic_ns() < end_ns) {
			nanosleep(&(struct timespec){ 0, HOLDER_POLL_NS }, NULL);
			continue;
		}
		if (attacher)
			return fail(err, ERR_BUSY, "process %d is being measured by process %u", (int)session->facts->pid, attacher);
		return fail(err, ERR_BUSY, "process %d is being measured by another inferscope", (int)session->facts->pid);
	}
	return 0;
}

/* Another attacher at work is left alone; one that died has left a page behind, which is cleared first. */
static int leftover_clear(struct session *session, bool *found, struct error *err)
{
	struct error failure = { 0 };
	struct residue after;

	*found = false;
	if (!session->before.lanes_addr)
		return 0;
	if (holder_wait(session, err) < 0)
		return -1;
	*found = true;
	if (handshake_disarm(&session->handshake, LIBRARY_ANY, DISARM_TIMEOUT_MS, err) < 0)
		return -1;
	/* A collector of our build is there, but it was not the one at work. */
	if (!residue_read(session->procfs, session->facts->pid, &after) || !after.lanes_addr ||
	    handshake_disarm(&session->handshake, LIBRARY_OTHER, DISARM_TIMEOUT_MS, &failure) == 0)
		return 0;
	if (failure.code == ERR_COLLECTOR)
		return 0; /* there is none: what is still mapped is the program's own look at it */
	*err = failure;
	return -1;
}

/* Another tool has the hooks and keeps them. Unless these hooks were asked for, samples alone are better than nothing. */
static int hooks_spared(struct session *session, const struct error *err)
{
	uint32_t reason = session->handshake.reason;
	bool taken = reason == REASON_HOOK_TAKEN || reason == REASON_AUDIT_HOOK || reason == REASON_TOOL_IDS_TAKEN;

	if (!taken || session->options->backend != BACKEND_AUTO || !session->options->rate_hz)
		return -1;
	session_warn(session, "samples only: %.220s", err ? err->text : "the hooks are taken");
	return 0;
}

/* Hooks in; or, where the choice was ours and somebody has them, samples only. */
static int session_arm(struct session *session, struct error *err)
{
	const struct session_options *options = session->options;
	const struct drain_sink sink = { chunk_keep, tid_outer, session };
	struct page *settings;
	bool leftover;
	int result;

	if (leftover_clear(session, &leftover, err) < 0)
		return -1;
	settings = settings_new(session);
	if (!settings)
		return fail(err, ERR_MEMORY, "attaching to %d", (int)session->facts->pid);
	device_plan(session, settings);
	heap_plan(session, settings);
	result = handshake_arm(&session->handshake, settings, pool_bytes(options->trace_size_mb), FIRST_SUBBUFS, options->gil_timeout_ms ? options->gil_timeout_ms : GIL_TIMEOUT_MS,
	                       &session->pool, err);
	free(settings);
	session->enter = session->handshake.receipt;
	session_hold(session, &session->enter);
	if (result < 0)
		return hooks_spared(session, err);
	session->armed = true;
	session->pushed_ns = session->handshake.pushed_ns;
	session->lapses_ns = session->pushed_ns + DEADLINE_AHEAD_MS * 1000000ull;
	return drain_open(&session->pool, &session->clock, FIRST_TARGET_LANE, &sink, &session->drain, err);
}

/* Without samples the rest still works. */
static void session_sample(struct session *session)
{
	const struct sampler_settings settings = {
		.target = session->target, .procfs = session->procfs, .runtime = session->observe.runtime, .clock = session->clock, .tsc = session->clock_kind == CLOCK_TSC,
		.rate_hz = session->options->rate_hz, .share = session->options->share, .max_overhead_ppm = session->options->max_overhead_ppm, .native = session->options->native,
		.debuginfod = session->options->debuginfod, .syscalls = session->options->syscalls != SYSCALLS_NONE && !session->calls, .counters = session->options->counters,
	};
	struct error err = { 0 };

	if (!session->options->rate_hz)
		return;
	if (!session->observe.runtime.start)
		session_warn(session, "no samples: %.200s", session->runtime_unread.code ? session->runtime_unread.text : "the interpreter does not tell where its state lies");
	else if (sampler_open(&settings, &session->sampler, &err) < 0)
		session_warn(session, "no samples: %.200s", err.text);
}

static void session_look(struct session *session)
{
	const struct target_facts *facts = session->facts;
	uint64_t size = 0;
	remote_addr runtime = target_symbol(session->target, "_PyRuntime", &size);

	session->observe.runtime = block_runtime_at(runtime, size, facts->python_hex);
	if (runtime)
		session->observe.naming = naming_open(session->target, runtime);
	else
		target_unread(session->target, &session->runtime_unread);
	session->startstack = session_startstack(session);
	session_read_cpu(session);
	session->cpu_start_ns = session->cpu_now_ns;
}

/* The collector would refuse it, too, but from within. */
static int backend_check(const struct target_facts *facts, enum backend backend, struct error *err)
{
	bool monitoring = facts->python_minor >= 12;

	if (monitoring ? backend != BACKEND_SETPROFILE && backend != BACKEND_EVALUATOR : backend != BACKEND_MONITORING)
		return 0;
	fail(err, ERR_OPTION_VALUE, "--hook %s does not exist on Python %d.%d, which process %d runs", backend_name(backend), facts->python_major, facts->python_minor, (int)facts->pid);
	return fail_hint(err, monitoring ? "leave --hook out, or take monitoring or settrace" : "leave --hook out, or take evaluator, setprofile or settrace");
}

static int alternate_check(const struct target_facts *facts, const struct session_options *options, struct error *err)
{
	int pid = (int)facts->pid;

	if (!options->alternate_ms)
		return 0;
	if (options->backend == BACKEND_NONE)
		return fail(err, ERR_ALTERNATE, "process %d cannot be switched on and off by turns: without hooks there is nothing to switch", pid);
	if (!session_may_start(facts, facts->threads))
		return fail(err, ERR_ALTERNATE, "process %d cannot be switched on and off by turns: it has one thread, and from Python 3.12 on a second one of ours would make os.fork() warn", pid);
	return 0;
}

int session_check(const struct target_facts *facts, const struct session_options *options, struct error *err)
{
	if (backend_check(facts, options->backend, err) < 0)
		return -1;
	return alternate_check(facts, options, err);
}

/* Why, or NULL. */
static const char *hooks_stay(const struct session *session)
{
	return session->pool.page ? handshake_stay(session->pool.page) : NULL;
}

/* An interpreter that shuts down lets nobody take the GIL, and takes its hooks along: seen to it, rather than called not clean. */
static void shutdown_wait(const struct session *session)
{
	uint64_t until_ns = clock_monotonic_ns() + SHUTDOWN_NS;

	while (hooks_stay(session) && target_alive(session->target) && clock_monotonic_ns() < until_ns)
		nanosleep(&(struct timespec){ 0, HOLDER_POLL_NS }, NULL);
}

/* It may have ended, or replaced itself, since the loop looked; or be about to. False: it goes on. */
static bool is_over(struct session *session, uint64_t patience_ns)
{
	uint64_t until_ns = clock_monotonic_ns() + patience_ns;

	if (session->end == END_TARGET_EXITED || session->end == END_TARGET_EXECED)
		return true;
	while (target_alive(session->target)) {
		if (clock_monotonic_ns() >= until_ns)
			return false;
		nanosleep(&(struct timespec){ 0, END_POLL_NS }, NULL);
	}
	if (session->end != END_ABANDONED)
		session->end = session_execed(session) ? END_TARGET_EXECED : END_TARGET_EXITED;
	return true;
}

/* Hooks off: asked for by the flag at once, then in order. */
static int session_disarm(struct session *session, struct error *err)
{
	int result = -1;

	__atomic_store_n(&session->pool.page->stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < DISARM_TRIES && result < 0; i++) {
		result = handshake_disarm(&session->handshake, LIBRARY_OWN, DISARM_TIMEOUT_MS, err);
		session->leave = session->handshake.receipt;
		session_hold(session, &session->leave);
		if (result < 0 && is_over(session, END_NS))
			return 0;
		if (result < 0 && (err->code == ERR_TIMEOUT || err->code == ERR_NO_THREAD))
			break; /* it is on its way in there, and a second one would wait behind it; or it was tried for long */
	}
	if (result == 0) {
		session->armed = false;
		shutdown_wait(session);
	}
	return result;
}

void session_free(struct session *session)
{
	struct error err = { 0 };

	if (!session)
		return;
	if (session->armed && !session->left && target_alive(session->target))
		session_disarm(session, &err);
	drain_close(session->drain);
	pool_close(&session->pool);
	sampler_close(session->sampler);
	device_done(session);
	naming_close(session->observe.naming);
	kernel_calls_end(session);
	thread_counts_close(session->counting.counts);
	around_done(&session->around);
	observe_done(&session->observe);
	event_builder_done(&session->events);
	if (session->pidfd >= 0)
		close(session->pidfd);
	free(session);
}

/* WHAT stayed in the process, and WHY, "" = not known. */
static int fail_not_clean(const struct session *session, const char *what, const char *why, struct error *err)
{
	fail(err, ERR_NOT_CLEAN, "process %d was left, but %s%s%.300s", (int)session->facts->pid, what, *why ? ": " : "", why);
	return fail_hint(err, "hooks take themselves off within 2 s; `inferscope detach %d` tries again", (int)session->facts->pid);
}

/* What began is taken back. */
static void start_undo(struct session *session, struct error *err)
{
	struct error failure = { 0 }, left;

	if (session->armed && target_alive(session->target) && session_disarm(session, &failure) < 0) {
		fail_not_clean(session, HOOKS_STAY, failure.text, &left);
		fail_over(err, &left);
	}
	session->left = true;
	session->spool = NULL;
	session_free(session);
}

int session_start(struct target *target, const struct session_options *options, struct spool *spool, struct session **out, struct error *err)
{
	struct session *session;
	struct environment environment;
	uint64_t ticks;

	if (session_check(target_facts(target), options, err) < 0 || descriptors_check(DESCRIPTORS_LEAST, err) < 0)
		return -1;
	session = calloc(1, sizeof *session);
	if (!session)
		return fail(err, ERR_MEMORY, "attaching");
	session->target = target;
	session->facts = target_facts(target);
	session->options = options;
	session->procfs = options->inject.procfs ? options->inject.procfs : &procfs_real;
	session->spool = spool;
	session->clock_kind = clock_tsc_usable() ? CLOCK_TSC : CLOCK_MONOTONIC_NS;
	session->clock = session->clock_kind == CLOCK_TSC ? clock_calibrate(CALIBRATE_NS) : clock_map_monotonic();
	session->pidfd = (int)syscall(SYS_pidfd_open, session->facts->pid, 0);
	session->handshake = (struct handshake){ .target = target, .inject = &options->inject, .inside = options->inside, .stop = options->stop, .notice = options->notice,
		.notice_context = options->notice_context };
	event_builder_init(&session->events);
	observe_init(&session->observe, session->procfs, session->facts->pid, session->facts->pid != session->facts->inner_pid);
	session->handshake.attacher_pid = session->observe.namespaced ? 0 : (uint32_t)getpid();
	around_init(&session->around, session->procfs, "/sys", session->facts->pid);
	session_look(session);
	if (session->pidfd >= 0 && !target_alive(target)) { /* else that is certainly its, and tells when it ends */
		fail(err, ERR_EXITED, "process %d has ended", (int)session->facts->pid);
		goto out;
	}
	if (session->clock_kind != CLOCK_TSC && session->facts->clock_ahead_ns && options->backend != BACKEND_NONE) {
		fail(err, ERR_INJECT, "process %d lives in another time namespace, and this machine has no time stamp counter that both could use", (int)session->facts->pid);
		fail_hint(err, "--hook none measures it by samples alone");
		goto out;
	}
	if (!residue_read(session->procfs, session->facts->pid, &session->before)) {
		fail(err, error_of(errno, target_alive(target) ? ERR_PERMISSION : ERR_EXITED), "process %d cannot be looked at: %s", (int)session->facts->pid, strerror(errno));
		goto out;
	}
	ticks = session_ticks(session);
	environment_read(session->procfs, session->facts->pid, &environment);
	capture_begin(&session->events, ticks, session->facts, options, &environment, session->clock_kind);
	observe_read(&session->observe, ticks, &session->events);
	around_begin(&session->around, &environment, capture_affinity(session->facts->pid), ticks, &session->events);
	environment_done(&environment);
	if (options->backend != BACKEND_NONE && session_arm(session, err) < 0)
		goto out;
	if (session->armed) /* said again at the end; a trace that has none is of a flight recorder, or cut off */
		capture_add(&session->events, session_ticks(session), "backend", "%s", backend_name((enum backend)session->pool.page->backend_used));
	counting_begin(session);
	session_hooks_keep(session);
	kernel_calls_begin(session);
	session_hooks_keep(session);
	session_sample(session);
	session_hooks_keep(session);
	if (!session->armed && !session->sampler) {
		fail(err, ERR_COLLECTOR, "nothing to measure with: no hooks, and %s", session->warning_count ? session->warnings[0] : "no samples");
		goto out;
	}
	session->start_ns = clock_monotonic_ns();
	session_wall(session);
	session_flush(session);
	*out = session;
	return 0;
out:
	start_undo(session, err);
	return -1;
}

/* Says what stayed. The target opens files and starts threads of its own, so that only what bears our name counts. */
static bool clean_check(struct session *session, struct session_receipt *receipt)
{
	const char *stay = hooks_stay(session);
	struct residue after;

	if (!residue_read(session->procfs, session->facts->pid, &after))
		return true; /* it ended */
	receipt->fds_after = after.fds;
	receipt->threads_after = after.threads;
	receipt->mappings_after = after.mappings;
	if (session->armed)
		snprintf(receipt->not_clean, sizeof receipt->not_clean, HOOKS_STAY);
	else if (stay)
		snprintf(receipt->not_clean, sizeof receipt->not_clean, "%s", stay);
	else if (after.descriptors > session->before.descriptors)
		snprintf(receipt->not_clean, sizeof receipt->not_clean, "%u descriptors of ours are still open in it", after.descriptors);
	else if (after.lanes_addr && session->options->backend != BACKEND_NONE) /* else it is an earlier attach's, whose thread still waits for the GIL */
		snprintf(receipt->not_clean, sizeof receipt->not_clean, "our shared memory is still mapped in it");
	return receipt->not_clean[0] == '\0';
}

static void receipt_sum(struct session *session, struct session_receipt *receipt)
{
	if (session->drain) {
		struct drain_totals totals = drain_totals(session->drain);

		receipt->events = totals.events;
		receipt->lost = totals.lost;
		receipt->backend_used = (enum backend)session->pool.page->backend_used;
		receipt->collector = (enum collector_state)session->pool.page->state;
	} else
		receipt->backend_used = BACKEND_NONE;
	receipt->samples = session->sampler ? sampler_totals(session->sampler).digest.samples : 0;
	receipt->enter = session->enter;
	receipt->leave = session->leave;
	receipt->hold_max_ns = session->hold_max_ns;
	receipt->end = session->end;
	receipt->fds_before = session->before.fds;
	receipt->threads_before = session->before.threads;
	receipt->mappings_before = session->before.mappings;
}

int session_leave(struct session *session, struct session_receipt *receipt, struct error *err)
{
	struct error failure = { 0 };
	bool over;

	memset(receipt, 0, sizeof *receipt);
	session->left = true;
	over = is_over(session, 0);
	kernel_calls_read(session);
	counting_end(session);
	if (!sampler_stop(session->sampler))
		session_warn(session, "the sampler did not end in time; its last samples are missing");
	if (!over)
		observe_read(&session->observe, session_ticks(session), &session->events);
	if (session->armed && !over) {
		device_leave(session);
		session_disarm(session, &failure);
	}
	if (!is_over(session, 0))
		around_end(&session->around, session_ticks(session), &session->events);
	receipt->clean = is_over(session, 0) || clean_check(session, receipt) || is_over(session, END_NS);
	if (session->drain)
		drain_last(session->drain);
	if (!sampler_finish(session->sampler))
		session_warn(session, "naming what was sampled takes too long; the last samples are missing");
	if (session->sampler)
		sampler_take(session->sampler, &session->events);
	receipt_sum(session, receipt);
	device_rows(session, session_ticks(session));
	session_closing(session, receipt);
	session_flush(session);
	memcpy(receipt->warnings, session->warnings, sizeof receipt->warnings);
	receipt->warning_count = session->warning_count;
	if (receipt->clean)
		return 0;
	return fail_not_clean(session, receipt->not_clean, failure.text, err);
}

int session_detach(struct target *target, const struct session_options *options, bool *found, struct error *err)
{
	struct session session = { .target = target, .facts = target_facts(target), .options = options };

	*found = false;
	session.procfs = options->inject.procfs ? options->inject.procfs : &procfs_real;
	session.handshake = (struct handshake){ .target = target, .inject = &options->inject };
	if (!residue_read(session.procfs, session.facts->pid, &session.before))
		return fail(err, error_of(errno, ERR_PERMISSION), "process %d cannot be looked at: %s", (int)session.facts->pid, strerror(errno));
	return leftover_clear(&session, found, err);
}
