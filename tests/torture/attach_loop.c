/*
 * Test driver: whole sessions, again and again on one process, each with other options; or attachers that die or freeze on the way.
 *
 *   attach_loop PID [rounds=N] [seed=N] [record_ms=N] [gap_ms=N] [backend=any|auto|none|monitoring|evaluator|setprofile|settrace] [patience_ms=N] [seconds=N]
 *         [tls_repeat=N] [any=1]
 *   attach_loop PID kill=moments|steps [max_ms=N] …   an attacher per round, SIGKILLed at a random moment of entering, recording or leaving, or after a
 *         step of the step table; then the next attach must work within patience_ms
 *   attach_loop PID stop=moments|steps [stop_ms=N] …  the same, but SIGSTOP, and SIGCONT after stop_ms: it must end by itself, and in order
 *   [at_step=N at_entry=1|2]   always at that step of entering (1) or leaving (2), instead of each in turn
 *   attach_loop PID send=SIGNAL at_step=N at_entry=1|2 …   the process itself gets that signal at that step
 *
 * Prints one line at the end: how the rounds ended, the longest hold, how long the process was not to be had after a kill. Exit status: 0 good,
 * 1 a round went wrong (said on stderr), 3 the process ended.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/steps.h"
#include "session/session.h"

enum outcome { OUTCOME_GOOD = 0, OUTCOME_WRONG = 1, OUTCOME_GONE = 3, OUTCOME_REFUSED = 4, OUTCOME_BUSY = 5, OUTCOME_NO_SLOT = 6 };
enum moment { MOMENT_NONE = 0, MOMENT_ENTERING, MOMENT_RECORDING, MOMENT_LEAVING, MOMENT_COUNT };

struct plan {
	pid_t pid;
	const char *kill, *stop, *backend;
	long rounds, seed, record_ms, gap_ms, patience_ms, max_ms, stop_ms, seconds, tls_repeat, any, at_step, at_entry, send;
};

/* Shared with the attachers that die. */
struct stage {
	volatile int moment, step, entries; /* entries: of this round; the second one leaves */
	int act_at, act_entry;              /* at which step of which entry to act, 0 = at none */
	int act_signal;
	bool sent;
	pid_t victim; /* who gets it: 0 = whoever takes the step and the attacher it belongs to */
	uint64_t hold_max_ns;
};

struct tally {
	long good, refused, no_slot, killed, stopped, wrong;
	long at[MOMENT_COUNT], steps[STEP_COUNT];
	uint64_t free_max_ns; /* from a kill to the next attach that worked */
};

static void nap_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static void parse(struct plan *plan, char **words, int count)
{
	const struct { const char *name; long *value; const char **text; } names[] = {
		{ "rounds", &plan->rounds, NULL }, { "seed", &plan->seed, NULL }, { "record_ms", &plan->record_ms, NULL }, { "gap_ms", &plan->gap_ms, NULL },
		{ "patience_ms", &plan->patience_ms, NULL }, { "max_ms", &plan->max_ms, NULL }, { "stop_ms", &plan->stop_ms, NULL }, { "seconds", &plan->seconds, NULL },
		{ "kill", NULL, &plan->kill }, { "stop", NULL, &plan->stop }, { "backend", NULL, &plan->backend },
		{ "tls_repeat", &plan->tls_repeat, NULL }, { "any", &plan->any, NULL }, { "at_step", &plan->at_step, NULL }, { "at_entry", &plan->at_entry, NULL },
		{ "send", &plan->send, NULL },
	};

	for (int i = 0; i < count; i++) {
		char *value = strchr(words[i], '=');
		size_t known = 0;

		if (value)
			*value++ = '\0';
		while (known < sizeof names / sizeof *names && strcmp(names[known].name, words[i]) != 0)
			known++;
		if (!value || known == sizeof names / sizeof *names) {
			fprintf(stderr, "attach_loop: what is %s?\n", words[i]);
			exit(2);
		}
		if (names[known].text)
			*names[known].text = value;
		else
			*names[known].value = atol(value);
	}
}

static int pick(unsigned *seed, int count)
{
	return rand_r(seed) % count;
}

/* Any way of measuring that this Python has. */
static void options_draw(const struct plan *plan, const struct target_facts *facts, unsigned *seed, struct session_options *options)
{
	static const enum backend before_3_12[] = { BACKEND_AUTO, BACKEND_EVALUATOR, BACKEND_SETPROFILE, BACKEND_SETTRACE, BACKEND_AUTO, BACKEND_NONE };
	static const enum backend from_3_12[] = { BACKEND_AUTO, BACKEND_MONITORING, BACKEND_SETTRACE, BACKEND_MONITORING, BACKEND_AUTO, BACKEND_NONE };
	static const uint32_t rates[] = { 0, 100, 1000 };
	int choice = pick(seed, 6);

	options->backend = facts->python_hex >= 0x030c0000 ? from_3_12[choice] : before_3_12[choice];
	for (enum backend known = BACKEND_AUTO; known <= BACKEND_SETTRACE; known++)
		if (strcmp(plan->backend, backend_name(known)) == 0)
			options->backend = known;
	options->c_calls = (enum c_calls)pick(seed, 3);
	options->max_overhead_ppm = pick(seed, 2) ? 50000 : 0;
	options->rate_hz = rates[pick(seed, 3)];
	if (options->backend == BACKEND_NONE)
		options->rate_hz = 1000;
	options->lines = options->backend == BACKEND_SETTRACE && pick(seed, 2);
	options->gc = pick(seed, 4) > 0;
	options->memory_interval = pick(seed, 2) ? 1ull << (10 + pick(seed, 10)) : 0;
	options->memory_native = options->memory_interval && pick(seed, 2);
	options->skip_default = pick(seed, 2);
	options->seed = pick(seed, 2);
	options->duration_ns = 1 + (uint64_t)pick(seed, (int)plan->record_ms + 1) * 1000000;
}

static enum outcome refused(const char *when, const struct target *target, const struct session_options *options, const struct error *err)
{
	if (err->code == ERR_EXITED || !target_alive(target))
		return OUTCOME_GONE;
	if (err->code == ERR_BUSY || strstr(err->text, "another InferScope is entering"))
		return OUTCOME_BUSY;
	if (err->code == ERR_NO_SLOT)
		return OUTCOME_NO_SLOT;
	fprintf(stderr, "%s (%s, c_calls %d, overhead %u): %s: %s\n", when, backend_name(options->backend), (int)options->c_calls, options->max_overhead_ppm, error_name(err->code),
	        err->text);
	return err->code == ERR_NO_THREAD ? OUTCOME_REFUSED : OUTCOME_WRONG;
}

/* One session. */
static enum outcome round_once(struct target *target, const struct session_options *options, struct stage *stage)
{
	struct session_receipt receipt;
	struct session *session = NULL;
	struct spool *spool = NULL;
	struct error err = { 0 };
	enum outcome outcome = OUTCOME_GOOD;

	if (spool_open("/tmp", 0, 1, &spool, &err) < 0) {
		fprintf(stderr, "spool: %s\n", err.text);
		return OUTCOME_WRONG;
	}
	stage->moment = MOMENT_ENTERING;
	if (session_start(target, options, spool, &session, &err) < 0) {
		spool_close(spool);
		return refused("start", target, options, &err);
	}
	stage->moment = MOMENT_RECORDING;
	session_record(session, NULL, NULL, NULL);
	stage->moment = MOMENT_LEAVING;
	if (session_leave(session, &receipt, &err) < 0)
		outcome = refused("leave", target, options, &err);
	if (receipt.end == END_TARGET_EXITED || receipt.end == END_TARGET_EXECED)
		outcome = OUTCOME_GONE;
	if (receipt.hold_max_ns > stage->hold_max_ns)
		stage->hold_max_ns = receipt.hold_max_ns;
	session_free(session);
	spool_close(spool);
	return outcome;
}

/* In the process that takes the step: the attacher, or the small forked one that holds a thread. */
static void on_step(void *context, int step)
{
	struct stage *stage = context;

	stage->step = step;
	if (step == STEP_LOCKED)
		stage->entries++;
	if (stage->act_at != step || stage->act_entry != stage->entries)
		return;
	stage->act_at = 0;
	if (stage->victim) {
		stage->sent = kill(stage->victim, stage->act_signal) == 0;
		return;
	}
	/* The window process and the attacher that watches it, as a signal to their process group would. */
	if (step >= STEP_SEIZED && step <= STEP_RELEASED)
		kill(getppid(), stage->act_signal);
	kill(getpid(), stage->act_signal);
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Waits for the drawn moment of the attacher's life, and a little more. */
static void moment_wait(const struct stage *stage, pid_t attacher, int moment, uint64_t more_ns)
{
	uint64_t until_ns = clock_monotonic_ns() + 20000000000ull;

	while (stage->moment < moment && clock_monotonic_ns() < until_ns && !has_ended(attacher))
		usleep(50);
	until_ns = clock_monotonic_ns() + more_ns;
	while (clock_monotonic_ns() < until_ns && !has_ended(attacher))
		usleep(20);
}

/* Until it ends by itself; frozen in between when it froze itself at a step. */
static int attacher_wait(const struct plan *plan, struct tally *tally, pid_t attacher)
{
	int status;

	for (;;) {
		if (waitpid(attacher, &status, WUNTRACED) < 0)
			return 1 << 8;
		if (!WIFSTOPPED(status))
			return status;
		tally->stopped++;
		nap_ms(plan->stop_ms);
		kill(attacher, SIGCONT);
	}
}

/* The next attach: possible in time, whatever the one before left. */
static void recover(const struct plan *plan, struct target *target, struct stage *stage, struct tally *tally)
{
	const struct session_options options = { .backend = BACKEND_AUTO, .duration_ns = 1000000 };
	uint64_t begin_ns = clock_monotonic_ns(), took_ns;
	enum outcome outcome;

	do {
		outcome = round_once(target, &options, stage);
		took_ns = clock_monotonic_ns() - begin_ns;
		if (outcome != OUTCOME_GOOD)
			nap_ms(20); /* slots rest for a second when their attacher died */
	} while ((outcome == OUTCOME_BUSY || outcome == OUTCOME_REFUSED || outcome == OUTCOME_NO_SLOT) && took_ns < (uint64_t)plan->patience_ms * 1000000);
	if (outcome == OUTCOME_NO_SLOT)
		tally->no_slot++;
	else if (outcome != OUTCOME_GOOD && outcome != OUTCOME_GONE) {
		fprintf(stderr, "not to be had %.1f s after the attacher's death (moment %d, step %d)\n", (double)took_ns / 1e9, stage->moment, stage->step);
		tally->wrong++;
	}
	if (took_ns > tally->free_max_ns)
		tally->free_max_ns = took_ns;
}

static void act_draw(const struct plan *plan, const char *way, long round, struct stage *stage)
{
	stage->act_at = strcmp(way, "steps") == 0 ? 1 + (int)(round % (STEP_COUNT - 1)) : 0;
	stage->act_entry = 1 + (int)(round / (STEP_COUNT - 1) % 2);
	if (plan->at_step) {
		stage->act_at = (int)plan->at_step;
		stage->act_entry = (int)plan->at_entry;
	}
	stage->act_signal = plan->kill ? SIGKILL : SIGSTOP;
	stage->moment = stage->step = stage->entries = 0;
}

/* One attacher in a process of its own, that dies or freezes. */
static void round_harmed(const struct plan *plan, struct target *target, struct session_options *options, struct stage *stage, struct tally *tally, long round, unsigned *seed)
{
	const char *way = plan->kill ? plan->kill : plan->stop;
	int moment = 1 + pick(seed, MOMENT_COUNT - 1), status;
	uint64_t more_ns = (uint64_t)pick(seed, (int)plan->max_ms * 1000 + 1) * 1000;
	pid_t attacher;

	act_draw(plan, way, round, stage);
	attacher = fork();
	if (attacher == 0)
		_exit(round_once(target, options, stage));
	if (strcmp(way, "moments") == 0) {
		moment_wait(stage, attacher, moment, more_ns);
		kill(attacher, stage->act_signal);
	}
	status = attacher_wait(plan, tally, attacher);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && plan->kill) {
		tally->killed++;
		tally->at[stage->moment]++;
		tally->steps[stage->step]++;
	} else if (WIFSIGNALED(status)) {
		fprintf(stderr, "the attacher died of signal %d\n", WTERMSIG(status));
		tally->wrong++;
	} else if (WEXITSTATUS(status) == OUTCOME_GOOD)
		tally->good++;
	else if (WEXITSTATUS(status) == OUTCOME_WRONG && !plan->stop)
		tally->wrong++;
	else
		tally->refused++;
	if (target_alive(target))
		recover(plan, target, stage, tally);
}

static void round_plain(struct target *target, const struct session_options *options, struct stage *stage, struct tally *tally)
{
	switch (round_once(target, options, stage)) {
	case OUTCOME_GOOD:
		tally->good++;
		break;
	case OUTCOME_WRONG:
		tally->wrong++;
		break;
	case OUTCOME_NO_SLOT:
		tally->no_slot++;
		break;
	default:
		tally->refused++;
	}
}

static void tally_print(const struct plan *plan, const struct tally *tally, const struct stage *stage)
{
	printf("seed=%ld good=%ld refused=%ld wrong=%ld no_slot=%ld killed=%ld stopped=%ld hold_max_us=%.0f free_max_ms=%.0f", plan->seed, tally->good, tally->refused, tally->wrong,
	       tally->no_slot, tally->killed, tally->stopped, (double)stage->hold_max_ns / 1e3, (double)tally->free_max_ns / 1e6);
	if (stage->victim)
		printf(" sent=%d", stage->sent);
	if (tally->killed) {
		printf(" moments=%ld/%ld/%ld steps=", tally->at[MOMENT_ENTERING], tally->at[MOMENT_RECORDING], tally->at[MOMENT_LEAVING]);
		for (int i = 1; i < STEP_COUNT; i++)
			printf("%s%ld", i > 1 ? "/" : "", tally->steps[i]);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	struct plan plan = { .rounds = 1, .seed = getpid(), .record_ms = 20, .backend = "any", .patience_ms = 15000, .max_ms = 40, .stop_ms = 3000, .seconds = 3600, .at_entry = 1 };
	struct stage *stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct session_options options = { 0 };
	struct target *target = NULL;
	struct tally tally = { 0 };
	struct error err = { 0 };
	uint64_t end_ns;
	unsigned seed;

	if (argc < 2 || stage == MAP_FAILED)
		return 2;
	plan.pid = (pid_t)atol(argv[1]);
	parse(&plan, argv + 2, argc - 2);
	seed = (unsigned)plan.seed;
	end_ns = clock_monotonic_ns() + (uint64_t)plan.seconds * 1000000000;
	options.inject.step = on_step;
	options.inject.step_context = stage;
	options.inject.tls_init_repeat = (int)plan.tls_repeat;
	options.inject.any_thread = plan.any;
	if (target_open(plan.pid, &options.inject, &target, &err) < 0) {
		fprintf(stderr, "%s: %s\n", error_name(err.code), err.text);
		target_close(target);
		return 1;
	}
	for (long i = 0; i < plan.rounds && target_alive(target) && !tally.no_slot && clock_monotonic_ns() < end_ns; i++) {
		options_draw(&plan, target_facts(target), &seed, &options);
		stage->act_at = stage->entries = 0;
		if (plan.send) {
			act_draw(&plan, "steps", i, stage);
			stage->act_signal = (int)plan.send;
			stage->victim = plan.pid;
		}
		if (plan.kill || plan.stop)
			round_harmed(&plan, target, &options, stage, &tally, i, &seed);
		else
			round_plain(target, &options, stage, &tally);
		if (plan.gap_ms)
			nap_ms(plan.gap_ms);
	}
	tally_print(&plan, &tally, stage);
	if (!target_alive(target))
		return 3;
	target_close(target);
	return tally.wrong ? 1 : 0;
}
