/*
 * Test driver: enters a process ROUNDS times with a test payload and prints what it cost; or dies on the way, as often as asked.
 *
 *   enter PID LIBRARY [rounds=N] [gap_us=N] [work_us=N] [sleep_ms=N] [wait_ms=N] [timeout_ms=N] [tls_repeat=N] [fresh=1] [quiet=1] [raw_wait_ms=N] [any=1]
 *   enter PID LIBRARY kill=steps|N|random|seize|window rounds=N [max_us=N]     an attacher per round, SIGKILLed: after each step in turn, or always step N;
 *         at a random time; at a random time after SEIZE; only its forked window process
 *   enter PID check           the preflight alone: findings, one a line
 *
 * Exit status: 0 all good, 1 a round failed, 3 the target has ended, 4 a round was refused (its reason on stderr).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/inject.h"
#include "inject/steps.h"
#include "payload.h"

struct plan {
	pid_t pid;
	const char *library, *kill;
	long rounds, gap_us, work_us, sleep_ms, wait_ms, timeout_ms, tls_repeat, fresh, quiet, max_us, raw_wait_ms, any;
};

/* Shared with the attachers that are killed and their window processes. */
struct stage {
	volatile int step;
	volatile pid_t window;
	int kill_at;
	long windows_killed;
	long kills[STEP_COUNT];
};

struct numbers {
	double hold_us, ready_ms;
};

static void nap_us(long us)
{
	nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

static void parse(struct plan *plan, char **words, int count)
{
	const struct { const char *name; long *value; } names[] = {
		{ "rounds", &plan->rounds }, { "gap_us", &plan->gap_us }, { "work_us", &plan->work_us }, { "sleep_ms", &plan->sleep_ms },
		{ "wait_ms", &plan->wait_ms }, { "timeout_ms", &plan->timeout_ms }, { "tls_repeat", &plan->tls_repeat }, { "fresh", &plan->fresh },
		{ "quiet", &plan->quiet }, { "raw_wait_ms", &plan->raw_wait_ms }, { "any", &plan->any }, { "max_us", &plan->max_us },
	};

	for (int i = 0; i < count; i++) {
		char *value = strchr(words[i], '=');
		size_t known;

		if (!value) {
			fprintf(stderr, "enter: what is %s?\n", words[i]);
			exit(2);
		}
		*value++ = '\0';
		if (strcmp(words[i], "kill") == 0) {
			plan->kill = value;
			continue;
		}
		for (known = 0; known < sizeof names / sizeof *names && strcmp(names[known].name, words[i]) != 0; known++)
			;
		if (known == sizeof names / sizeof *names) {
			fprintf(stderr, "enter: what is %s?\n", words[i]);
			exit(2);
		}
		*names[known].value = atol(value);
	}
}

static void *load(const char *path, size_t *size)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *bytes;

	if (fd < 0 || fstat(fd, &info) < 0) {
		perror(path);
		exit(2);
	}
	*size = (size_t)info.st_size;
	bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		exit(2);
	close(fd);
	return bytes;
}

/* One entry. 0 good, 1 failed, 3 target gone, 4 refused. */
static int round_once(const struct plan *plan, struct target *target, const struct payload *payload, const struct inject_options *options,
                      struct receipt *receipt)
{
	struct payload_argument argument = { .work_us = (uint64_t)plan->work_us, .sleep_ms = (uint64_t)plan->sleep_ms };
	struct entry *entry = NULL;
	struct error err = { 0 };
	int result = 0;

	if (inject_enter(target, payload, &argument, sizeof argument, options, &entry, receipt, &err) < 0) {
		fprintf(stderr, "%s: %s\n", error_name(err.code), err.text);
		return err.code == ERR_EXITED ? 3 : 4;
	}
	if (entry_wait(entry, (int)plan->wait_ms, &err) < 0) {
		fprintf(stderr, "%s: %s\n", error_name(err.code), err.text);
		result = err.code == ERR_EXITED ? 3 : 1;
	} else if (target_read(target, entry_argument(entry), &argument, sizeof argument) < 0 || !argument.done || argument.bad) {
		fprintf(stderr, "the entry did not finish: done %llu bad %llu\n", (unsigned long long)argument.done, (unsigned long long)argument.bad);
		result = 1;
	}
	entry_close(entry);
	return result;
}

static int by_hold(const void *a, const void *b)
{
	double x = ((const struct numbers *)a)->hold_us, y = ((const struct numbers *)b)->hold_us;

	return (x > y) - (x < y);
}

static int by_ready(const void *a, const void *b)
{
	double x = ((const struct numbers *)a)->ready_ms, y = ((const struct numbers *)b)->ready_ms;

	return (x > y) - (x < y);
}

static void print_numbers(struct numbers *numbers, long count, long failed, const struct receipt *last, uint64_t tries)
{
	if (count == 0) {
		printf("ok=0 fail=%ld\n", failed);
		return;
	}
	qsort(numbers, (size_t)count, sizeof *numbers, by_hold);
	printf("ok=%ld fail=%ld tries=%llu hold_us p50=%.1f p95=%.1f p99=%.1f max=%.1f", count, failed, (unsigned long long)tries,
	       numbers[count / 2].hold_us, numbers[count * 95 / 100].hold_us, numbers[count * 99 / 100].hold_us, numbers[count - 1].hold_us);
	qsort(numbers, (size_t)count, sizeof *numbers, by_ready);
	printf(" ready_ms p50=%.2f p95=%.2f max=%.2f last=%s slot=%s left=%u reused=%d\n", numbers[count / 2].ready_ms,
	       numbers[count * 95 / 100].ready_ms, numbers[count - 1].ready_ms, last->thread_state, last->slot, last->slots_left, last->reused_library);
}

static int run_rounds(const struct plan *plan, struct target *target, const struct payload *payload, const struct inject_options *options)
{
	struct numbers *numbers = calloc((size_t)plan->rounds + 1, sizeof *numbers);
	struct receipt receipt = { 0 }, last = { 0 };
	long good = 0, failed = 0;
	uint64_t tries = 0;
	int worst = 0;

	if (!numbers) {
		fprintf(stderr, "no memory for %ld rounds\n", plan->rounds);
		return 2;
	}
	for (long i = 0; i < plan->rounds; i++) {
		int result = round_once(plan, target, payload, options, &receipt);

		tries += receipt.tries;
		if (result == 0) {
			numbers[good++] = (struct numbers){ receipt.hold_ns / 1e3, receipt.ready_ns / 1e6 };
			last = receipt;
			if (!plan->quiet && plan->rounds <= 10)
				printf("round %ld tid %d %s hold %.1f us total %.1f us tries %u ready %.2f ms slot %s left %llu bytes reused %d\n", i,
				       (int)receipt.tid, receipt.thread_state, receipt.hold_ns / 1e3, receipt.hold_total_ns / 1e3, receipt.tries,
				       receipt.ready_ns / 1e6, receipt.slot, (unsigned long long)receipt.left_bytes, receipt.reused_library);
		} else {
			failed++;
			worst = worst ? worst : result;
		}
		if (result == 3)
			break;
		if (plan->gap_us)
			nap_us(plan->gap_us);
	}
	print_numbers(numbers, good, failed, &last, tries);
	free(numbers);
	return worst;
}

static void on_step(void *context, int step)
{
	struct stage *stage = context;

	stage->step = step;
	if (step >= STEP_SEIZED && step <= STEP_RELEASED)
		stage->window = getpid();
	if (stage->kill_at != step)
		return;
	if (step >= STEP_SEIZED && step <= STEP_RELEASED)
		kill(getppid(), SIGKILL);
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

static int has_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Kills the attacher ATTACHER (and its window) when the plan says. */
static void kill_in_time(const struct plan *plan, struct stage *stage, pid_t attacher, unsigned *seed)
{
	uint64_t until_ns = clock_monotonic_ns() + 2000000000ull;

	if (strcmp(plan->kill, "steps") == 0 || atoi(plan->kill))
		return;
	if (strcmp(plan->kill, "random") != 0)
		while (stage->step < STEP_SEIZED && clock_monotonic_ns() < until_ns && !has_ended(attacher))
			;
	until_ns = clock_monotonic_ns() + (uint64_t)(rand_r(seed) % plan->max_us) * 1000;
	while (clock_monotonic_ns() < until_ns)
		;
	if (strcmp(plan->kill, "window") != 0)
		kill(attacher, SIGKILL);
	if (stage->window && kill(stage->window, SIGKILL) == 0)
		stage->windows_killed++;
}

static int run_kills(const struct plan *plan, struct target *target, const struct payload *payload, struct inject_options *options)
{
	struct stage *stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long killed = 0, finished = 0, refused = 0;
	unsigned seed = (unsigned)getpid();

	if (stage == MAP_FAILED) {
		perror("mmap");
		return 2;
	}
	options->step = on_step;
	options->step_context = stage;
	for (long i = 0; i < plan->rounds && target_alive(target); i++) {
		struct receipt receipt;
		pid_t attacher;
		int status;

		stage->step = 0;
		stage->window = 0;
		stage->kill_at = strcmp(plan->kill, "steps") == 0 ? 1 + (int)(i % (STEP_COUNT - 1)) : atoi(plan->kill);
		attacher = fork();
		if (attacher == 0)
			_exit(round_once(plan, target, payload, options, &receipt));
		kill_in_time(plan, stage, attacher, &seed);
		waitpid(attacher, &status, 0);
		if (WIFSIGNALED(status)) {
			killed++;
			stage->kills[stage->step]++;
		} else if (WEXITSTATUS(status) == 0) {
			finished++;
		} else {
			refused++;
		}
		if (plan->gap_us)
			nap_us(plan->gap_us);
	}
	printf("killed=%ld windows=%ld finished=%ld refused=%ld after step:", killed, stage->windows_killed, finished, refused);
	for (int i = 0; i < STEP_COUNT; i++)
		if (stage->kills[i])
			printf(" %d:%ld", i, stage->kills[i]);
	printf("\n");
	return target_alive(target) ? 0 : 3;
}

static int print_findings(const struct target *target, int result, const struct error *err)
{
	const struct target_facts *facts = target ? target_facts(target) : NULL;

	for (size_t i = 0; target && i < target_finding_count(target); i++) {
		const struct finding *finding = target_finding(target, i);

		printf("%s: %s%s%s\n", finding->check, finding->code ? error_name(finding->code) : "", finding->code ? " " : "", finding->text);
	}
	if (facts)
		printf("facts: python %d.%d.%d hex %08x file %s base 0x%llx libc %s tls %d tid 0x%x inner %d\n", facts->python_major,
		       facts->python_minor, facts->python_micro, facts->python_hex, facts->python_file, (unsigned long long)facts->python_base,
		       facts->libc, facts->tls_init_argument, facts->tid_offset, (int)facts->inner_pid);
	if (result < 0)
		printf("refused: %s: %s (%s)\n", error_name(err->code), err->text, error_hint(err));
	return result < 0 ? 4 : 0;
}

int main(int argc, char **argv)
{
	struct plan plan = { .rounds = 1, .wait_ms = 10000, .max_us = 2000 };
	struct inject_options options = { 0 };
	struct payload payload = { .memfd_name = "inferscope-test", .entry = "payload_entry" };
	struct target *target = NULL;
	struct error err = { 0 };
	int result;

	if (argc < 3)
		return 2;
	plan.pid = (pid_t)atol(argv[1]);
	if (strcmp(argv[2], "check") == 0) {
		result = target_open(plan.pid, &options, &target, &err);
		result = print_findings(target, result, &err);
		target_close(target);
		return result;
	}
	plan.library = argv[2];
	parse(&plan, argv + 3, argc - 3);
	options.fresh_library = plan.fresh;
	options.total_timeout_ms = (int)plan.timeout_ms;
	options.any_thread = plan.any;
	options.raw_wait_ms = (int)plan.raw_wait_ms;
	options.tls_init_repeat = (int)plan.tls_repeat;
	payload.bytes = load(plan.library, &payload.size);
	if (target_open(plan.pid, &options, &target, &err) < 0) {
		fprintf(stderr, "%s: %s\n", error_name(err.code), err.text);
		target_close(target);
		return 4;
	}
	result = plan.kill ? run_kills(&plan, target, &payload, &options) : run_rounds(&plan, target, &payload, &options);
	target_close(target);
	return result;
}
