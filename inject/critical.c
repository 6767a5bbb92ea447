/*
 * While the target's thread is held: no allocation, no library call, no logging, no wait without limit. Raw system calls only, so that
 * nothing is resolved or paged in late. Order is everything: before SETREGS a death of this process changes nothing in the target,
 * after it the stub finishes alone.
 */
#include "inject/critical.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "inject/resume.h"
#include "inject/seccomp.h"
#include "inject/steps.h"
#include "inject/threads.h"
#include "inject/tracee.h"

/* Newer than some build machines' headers. */
#define GET_SECCOMP_FILTER 0x420c
#define GET_RSEQ_CONFIGURATION 0x420f
struct rseq_configuration {
	uint64_t pointer;
	uint32_t size, signature, flags, pad;
};

#define NS_PER_MS 1000000ull

static void step(const struct window *window, int number)
{
	if (window->step)
		window->step(window->step_context, number);
}

enum outcome { GO_ON, RETRY, END };

static enum outcome end_with(struct window *window, enum window_result result, int error)
{
	window->error = error;
	window->result = (int)result;
	return END;
}

static enum outcome retry(struct window *window, enum window_reason reason)
{
	window->reasons[reason]++;
	return RETRY;
}

/* What is looked at in its memory besides its TCB. */
struct sight {
	int32_t tid;           /* as glibc has it */
	uint64_t section;      /* rseq_cs: the restartable sequence that it is in, or has been in */
	unsigned char single;  /* __libc_single_threaded */
};

static uint64_t block_addr(const struct window *window)
{
	return registers_thread_pointer(&window->registers) - window->block_below;
}

/* All of it by one call: each takes a microsecond or two, and it is held meanwhile. */
static bool look(struct window *window, struct sight *sight)
{
	struct rseq_configuration config;
	struct iovec here[4] = { { window->tcb, sizeof window->tcb }, { &sight->tid, sizeof sight->tid } };
	struct iovec there[4] = { { (void *)block_addr(window), sizeof window->tcb }, { (void *)(block_addr(window) + window->tid_offset), sizeof sight->tid } };
	long count = 2, size = sizeof window->tcb + sizeof sight->tid;

	memset(sight, 0, sizeof *sight);
	memset(&config, 0, sizeof config);
	window->rseq_known = raw_ptrace(GET_RSEQ_CONFIGURATION, window->tid, sizeof config, &config) > 0 && config.pointer;
	if (window->rseq_known) {
		window->rseq_offset = config.pointer - registers_thread_pointer(&window->registers);
		here[count] = (struct iovec){ &sight->section, sizeof sight->section };
		there[count++] = (struct iovec){ (void *)(config.pointer + 8), sizeof sight->section };
		size += sizeof sight->section;
	}
	if (window->single_thread_flag) {
		here[count] = (struct iovec){ &sight->single, 1 };
		there[count++] = (struct iovec){ (void *)window->single_thread_flag, 1 };
		size++;
	}
	return raw_call(SYS_process_vm_readv, window->tid, (long)here, count, (long)there, count, 0) == size;
}

/* A glibc thread of this process: its control block knows its tid. */
static bool is_glibc_thread(const struct window *window, const struct sight *sight)
{
	return registers_are_native(&window->registers) && block_is_own(window->tcb, block_addr(window)) && sight->tid == window->inner_tid;
}

/* In a critical section the kernel would have to restart it; changing rip makes it drop that silently. */
static bool in_rseq(const struct window *window, const struct sight *sight)
{
	struct { uint32_t version, flags; uint64_t start, length, abort; } section;

	return sight->section && tracee_read(window->tid, sight->section, &section, sizeof section) == 0 &&
	       registers_pc(&window->registers) - section.start < section.length;
}

/*
 * While malloc believes in one thread it takes no locks, and part of its work is not even atomic. The stub tells it otherwise, which
 * only helps from its next call on: so not from within this one.
 */
static bool in_lockless_libc(const struct window *window, const struct sight *sight, const struct resume *resume)
{
	uint64_t pc = registers_pc(&window->registers);

	if ((!sight->single && block_knows_threads(window->tcb)) || resume->restarts)
		return false;
	for (int i = 0; i < 4; i++)
		if (pc >= window->libc_text[i][0] && pc < window->libc_text[i][1])
			return true;
	return false;
}

static bool has_pending(const struct window *window, uint64_t blocked)
{
	struct __ptrace_peeksiginfo_args args = { 0, 0, 1 };
	siginfo_t info;

	for (args.flags = 0; args.flags < 2; args.flags++)
		for (args.off = 0; args.off < 128 && raw_ptrace(PTRACE_PEEKSIGINFO, window->tid, (long)&args, &info) > 0; args.off++)
			/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): the kernel has filled it */
			if (!(blocked >> (info.si_signo - 1) & 1))
				return true;
	return false;
}

/* How often it was switched out so far because it waited; 0 = not told. */
static uint64_t switches_now(const struct window *window)
{
	char text[4096];
	uint64_t switches = 0;
	long got;

	if (window->status_fd < 0)
		return 0;
	got = raw_call(SYS_pread64, window->status_fd, (long)text, sizeof text - 1, 0, 0, 0);
	for (long i = 0; i + 25 < got; i++) {
		if (text[i] != '\n' || text[i + 1] != 'v' || text[i + 10] != '_' || text[i + 24] != ':')
			continue;
		for (i += 25; i < got && (text[i] == ' ' || text[i] == '\t'); i++)
			;
		for (; i < got && text[i] >= '0' && text[i] <= '9'; i++)
			switches = switches * 10 + (uint64_t)(text[i] - '0');
		break;
	}
	return switches;
}

/* Is it in the very block in which it was seen? Only if it was switched out no more than once since (by our stop). */
static bool has_stayed(const struct window *window)
{
	uint64_t switches = window->watched_since_ns ? switches_now(window) : 0;

	return switches != 0 && switches <= window->switches + 1;
}

/* "NUMBER 0xARGUMENT … 0xSP 0xPC", as proc_pid_syscall(5) says it of a thread that waits in a call. */
static bool read_call(const struct window *window, struct waiting *out)
{
	uint64_t words[9] = { 0 };
	char text[256];
	long got = raw_call(SYS_pread64, window->call_fd, (long)text, sizeof text - 1, 0, 0, 0), i = 0;

	for (int which = 0; which < 9; which++) {
		uint64_t base = which ? 16 : 10;
		long from;

		if (which && i + 3 < got && text[i] == ' ' && text[i + 1] == '0' && text[i + 2] == 'x')
			i += 3;
		else if (which)
			return false;
		for (from = i; i < got; i++) {
			uint64_t digit = text[i] >= '0' && text[i] <= '9' ? (uint64_t)(text[i] - '0') : text[i] >= 'a' && text[i] <= 'f' ? (uint64_t)(text[i] - 'a') + 10 : 16;

			if (digit >= base)
				break;
			words[which] = words[which] * base + digit;
		}
		if (i == from)
			return false; /* "running", or "-1 …" */
	}
	*out = (struct waiting){ .nr = (long)words[0], .args = { words[1], words[2], words[3], words[4], words[5], words[6] }, .sp = words[7], .pc = words[8] };
	return true;
}

/* Where only a thread that waits can be borrowed: is it in the call for which it was judged, or another one as good? Looked at right before it is asked to stop. */
static bool waits_well(struct window *window)
{
	uint64_t switches = switches_now(window); /* before its call: what changes in between shows */
	const struct waiting *judged = &window->judged;
	struct waiting now;
	int64_t timeout_ms;
	enum thread_kind kind;

	if (switches == 0 || !read_call(window, &now))
		return false;
	kind = resume_kind(now.nr, now.args, &timeout_ms);
	if (now.nr == judged->nr && now.sp == judged->sp && now.args[0] == judged->args[0] && switches == window->switches)
		kind = window->kind;
	else if (kind > window->kind || kind == THREAD_RUNNING || (resume_needs_descriptor(now.nr) && (now.nr != judged->nr || now.args[0] != judged->args[0])))
		return false;
	else
		window->watched_since_ns = raw_now_ns();
	/* With a time limit: what is known of it begins here, and the next look finds it in there. */
	if (kind == THREAD_PRONE_FINITE && kind == window->kind && (switches != window->switches || now.sp != judged->sp)) {
		window->judged = now;
		window->switches = switches;
		return false;
	}
	window->seen = now;
	window->switches = switches;
	return kind <= window->kind;
}

/* Is the descriptor of the call no file proper? */
static bool on_stream(const struct window *window)
{
	char path[sizeof window->fd_folder + 12], digits[12], name[16];
	unsigned fd = (unsigned)registers_argument(&window->registers);
	size_t length = 0, count = 0;
	long got;

	for (; window->fd_folder[length]; length++)
		path[length] = window->fd_folder[length];
	do
		digits[count++] = (char)('0' + fd % 10);
	while ((fd /= 10) != 0);
	while (count > 0)
		path[length++] = digits[--count];
	path[length] = '\0';
	got = raw_call(SYS_readlinkat, AT_FDCWD, (long)path, (long)name, sizeof name - 1, 0, 0);
	if (got <= 0)
		return false;
	name[got] = '\0';
	return descriptor_is_stream(name);
}

static enum outcome judge_seccomp(struct window *window)
{
	for (long i = 0; ; i++) {
		long count = raw_ptrace(GET_SECCOMP_FILTER, window->tid, i, NULL);
		enum seccomp_verdict verdict;
		int nr = 0;

		if (count == -ENOENT && i > 0)
			return GO_ON;
		if (count < 0 || count > WINDOW_FILTER_MAX || raw_ptrace(GET_SECCOMP_FILTER, window->tid, i, window->filter) != count)
			return end_with(window, WINDOW_SECCOMP_UNREADABLE, count < 0 ? (int)-count : EINVAL);
		verdict = seccomp_judge(window->filter, (size_t)count, window->slot_entry, window->clone_flags, window->memory_locked, &nr);
		if (verdict != SECCOMP_FINE)
			return end_with(window, verdict == SECCOMP_KILLS ? WINDOW_SECCOMP_KILLS : WINDOW_SECCOMP_FORBIDS, nr);
	}
}

static enum outcome wait_for_stop(struct window *window, bool *stopped)
{
	const struct patience patience = { &window->alarm, window->stop_timeout_ms, window->runnable_timeout_ms, window->stat_path };
	int signal;

	*stopped = false;
	switch (tracee_wait(window->tid, &patience, &signal, &window->moving_ns)) {
	case TRACEE_STOPPED:
		*stopped = true;
		return GO_ON;
	case TRACEE_JOB:
		*stopped = true;
		return end_with(window, WINDOW_STOPPED, 0);
	case TRACEE_SIGNAL:
		tracee_pass_signal(window->tid, signal);
		return retry(window, REASON_SIGNAL);
	case TRACEE_NOT_YET:
		return end_with(window, WINDOW_NO_STOP, 0);
	case TRACEE_GONE:
		break;
	}
	return end_with(window, WINDOW_GONE, 0);
}

/* Everything that only looks. RESUME is filled first of all: whatever comes, let_go() repairs what our stop ended early. */
static enum outcome check(struct window *window, uint64_t *blocked, struct resume *resume)
{
	struct sight sight;
	long error;

	error = registers_read(window->tid, &window->registers);
	if (error < 0)
		return error == -ESRCH ? end_with(window, WINDOW_GONE, 0) : end_with(window, WINDOW_FAILED, (int)-error);
	step(window, STEP_REGISTERS);
	window->seen.known = tracee_was_waiting(&window->registers) && has_stayed(window);
	/* Until it was interrupted, and rounded down: its call must not end early. */
	window->watched_ms = window->seen.known ? (int64_t)((window->interrupted_ns - window->watched_since_ns) / NS_PER_MS) : 0;
	window->call = resume_call(&window->registers, &window->seen);
	resume_plan_held(&window->registers, &window->seen, window->watched_ms, resume);
	if (resume->part_done && !on_stream(window))
		resume->part_done = resume->heeds_signals = resume->restarts = 0;
	window->repaired = resume->repaired;
	window->part = resume->part_done != 0;
	if (window->repaired || window->part)
		raw_alarm(&window->alarm, ALARM_MS); /* our death would harm it; being held does not */
	error = raw_ptrace(PTRACE_GETSIGMASK, window->tid, 8, blocked);
	if (error < 0)
		return end_with(window, WINDOW_FAILED, (int)-error);
	/* With a signal to be delivered the kernel does the exact thing by itself. */
	if ((resume->heeds_signals || resume->unfit) && has_pending(window, *blocked)) {
		resume->leave = has_pending(window, *blocked | ~window->signals_caught);
		return retry(window, REASON_PENDING);
	}
	if (!look(window, &sight) || !is_glibc_thread(window, &sight))
		return end_with(window, WINDOW_ODD_THREAD, 0);
	if (resume->unfit)
		return retry(window, REASON_RUNNING);
	if (in_rseq(window, &sight))
		return retry(window, REASON_RSEQ);
	if (in_lockless_libc(window, &sight, resume))
		return retry(window, REASON_LIBC);
	return window->seccomp ? judge_seccomp(window) : GO_ON;
}

static enum outcome hand_over(struct window *window, uint64_t blocked, const struct resume *resume)
{
	struct stub_saved saved;
	uint64_t all = UINT64_MAX;
	long error;

	if (!stub_save(&saved, window->slot_saved, &window->registers, resume))
		return end_with(window, WINDOW_ODD_THREAD, 0);
	saved.mask = blocked;
	saved.caught = resume->heeds_signals ? window->signals_caught & ~blocked : 0;
	saved.ask_restart = resume->ask_restart;
	saved.borrowed_tid = (uint64_t)window->tid;
	window->entering = true;
	if (raw_call(SYS_pwrite64, window->memory_fd, (long)&saved, sizeof saved, (long)window->slot_saved, 0, 0) != (long)sizeof saved) {
		window->entering = false;
		return end_with(window, WINDOW_FAILED, EIO);
	}
	step(window, STEP_SAVED);
	error = registers_enter(window->tid, &window->registers, window->slot_entry);
	if (error < 0) {
		/* The thread is as it was: the slot too. */
		memset(&saved, 0, sizeof saved);
		raw_call(SYS_pwrite64, window->memory_fd, (long)&saved, sizeof saved, (long)window->slot_saved, 0, 0);
		window->entering = false;
		return end_with(window, WINDOW_FAILED, (int)-error);
	}
	step(window, STEP_ENTERED);
	/* Only after SETREGS: the stub puts the mask back, nobody else would. Not under seccomp: it may be unable to. */
	if (!window->seccomp)
		raw_ptrace(PTRACE_SETSIGMASK, window->tid, 8, &all);
	step(window, STEP_MASKED);
	window->result = WINDOW_ENTERED;
	return END;
}

static enum outcome try_once(struct window *window)
{
	struct resume resume = { 0 };
	enum outcome outcome;
	bool stopped = false;
	uint64_t blocked = 0, held_ns = 0;
	long error;

	if (window->call_fd >= 0 && !waits_well(window))
		return retry(window, REASON_RUNNING);
	raw_alarm(&window->alarm, ALARM_MS);
	error = raw_ptrace(PTRACE_SEIZE, window->tid, 0, NULL);
	if (error < 0)
		return error == -ESRCH ? end_with(window, WINDOW_GONE, 0) : end_with(window, WINDOW_NO_SEIZE, (int)-error);
	step(window, STEP_SEIZED);
	/* A stranger has its number now: it goes on undisturbed when this process ends. */
	if (!tracee_is_of(window->stat_path)) {
		raw_alarm(&window->alarm, 0);
		return end_with(window, WINDOW_GONE, 0);
	}
	window->interrupted_ns = raw_now_ns();
	raw_ptrace(PTRACE_INTERRUPT, window->tid, 0, NULL);
	step(window, STEP_INTERRUPTED);
	outcome = wait_for_stop(window, &stopped);
	window->held = stopped;
	raw_alarm(&window->alarm, window->hold_timeout_ms);
	step(window, STEP_STOPPED);
	if (outcome == GO_ON)
		outcome = check(window, &blocked, &resume);
	if (outcome == GO_ON)
		outcome = hand_over(window, blocked, &resume);
	if (stopped && window->result == WINDOW_ENTERED)
		tracee_detach(window->tid, 0);
	else if (stopped)
		resume_let_go(window->tid, &window->registers, &resume);
	if (stopped)
		held_ns = raw_now_ns() - window->moving_ns;
	window->held = false;
	raw_alarm(&window->alarm, 0);
	if (held_ns > window->hold_ns)
		window->hold_ns = held_ns;
	window->hold_total_ns += held_ns;
	return outcome;
}

void window_process(struct window *window)
{
	struct timespec nap = { 0, 0 };

	window->alarm = raw_process(window, sizeof *window, (uintptr_t)&window_process, 0);
	while (window->tries < window->max_tries) {
		enum outcome outcome;

		window->tries++;
		outcome = try_once(window);
		if (outcome == END)
			break;
		/* Off the beat of whatever the target does, 100 to 350 us. */
		nap.tv_nsec = 100000 + (long)(raw_now_ns() % 250000);
		raw_call(SYS_nanosleep, (long)&nap, 0, 0, 0, 0, 0);
	}
	if (window->result == WINDOW_NOT_RUN)
		window->result = WINDOW_NO_MOMENT;
	step(window, STEP_RELEASED);
	raw_call(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}
