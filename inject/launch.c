/*
 * Starting a program and following it to its gate. The child is ptraced from before its exec until it stands at Py_RunMain:
 *
 *   fork → seized (killed with us) → exec ─┬→ break at the program's own entry: ld.so is done
 *                   ↑                      │     interpreter mapped → break at Py_RunMain → gate, detached
 *                   └── exec again ────────┘     shell or wrapper   → run on, wait for its exec
 *                                                anything else      → refused, ended here
 * What the gate is: launch_gate_*.S. Signals pass through as they come; forked children are never traced.
 */
#include "inject/launch.h"

#include "inject/launch_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum stage { STAGE_EXEC, STAGE_ENTRY, STAGE_RUN_MAIN, STAGE_WRAPPER, STAGE_GATE, STAGE_ENDED };

enum { SLEEP_MIN_US = 50, SLEEP_MAX_US = 10000 };

struct launch {
	pid_t pid;
	enum stage stage;
	bool execed;        /* at least once */
	bool released, ended;
	int status;         /* once ended */
	remote_addr break_addr;
	struct gate_python python;
	bool trap_ignored, trap_blocked; /* SIGTRAP, as the first exec found it: our break points change both */
	bool children_ignored; /* SIGCHLD: whoever started us has no use for what becomes of children; we have, but the program is to find it so */
	remote_addr gate_word;
	char program[256];  /* as the user named it */
};

/* Programs that are no Python but become one by exec. What they fork is theirs. */
static const char *const wrappers[] = {
	"sh", "dash", "bash", "zsh", "ksh", "fish", "busybox", "env", "coreutils", "nice", "ionice", "chrt", "taskset", "nohup", "setsid",
	"stdbuf", "setpriv", "numactl", "prlimit", "chroot", "unshare", "nsenter", "gosu", "su-exec", "setarch", "choom", "runuser", "chpst",
};

/* ---- the child, until exec ---- */

static void child_signals(const sigset_t *mask, bool children_ignored)
{
	struct sigaction action;

	if (children_ignored)
		signal(SIGCHLD, SIG_IGN);

	/* Exec would do the same; done here, so that no handler of ours runs between unblocking and exec. */
	for (int number = 1; number < NSIG; number++)
		if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
			memset(&action, 0, sizeof action);
			action.sa_handler = SIG_DFL;
			sigaction(number, &action, NULL);
		}
	sigprocmask(SIG_SETMASK, mask, NULL);
}

static _Noreturn void child_run(char *const argv[], char *const environment[], const sigset_t *mask, bool children_ignored, pid_t launcher, int go, int said)
{
	char byte;
	int cause;

	child_signals(mask, children_ignored);
	/* Yama 1 lets ancestors trace; an attach is done by a process beside this one. Ends with the launcher. */
	prctl(PR_SET_PTRACER, (unsigned long)launcher, 0, 0, 0);
	if (read(go, &byte, 1) != 1) /* the launcher died before it traced us */
		_exit(127);
	if (environment)
		execvpe(argv[0], argv, environment);
	else
		execvp(argv[0], argv);
	cause = errno;
	if (write(said, &cause, sizeof cause) < 0)
		_exit(126);
	_exit(127);
}

/* ---- what it has become ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void read_executable(pid_t pid, char *out, size_t size)
{
	char link[64];
	ssize_t length;

	snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
	length = readlink(link, out, size - 1);
	out[length > 0 ? length : 0] = '\0';
}

static bool is_wrapper(const char *executable)
{
	for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++)
		if (strcmp(base_name(executable), wrappers[i]) == 0)
			return true;
	return false;
}

/* Set-user-id and file capabilities are not given to a traced program: it would behave differently. */
static bool needs_privilege(pid_t pid)
{
	char link[64];
	struct stat file;

	snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
	if (geteuid() == 0 || stat(link, &file) < 0)
		return false;
	return (file.st_mode & S_ISUID && file.st_uid != geteuid()) || (file.st_mode & S_ISGID && file.st_mode & S_IXGRP && file.st_gid != getegid())
		|| getxattr(link, "security.capability", NULL, 0) > 0;
}

static int refuse(const struct launch *launch, struct error *err, const char *why)
{
	return fail(err, ERR_LAUNCH_REFUSED, "cannot measure %s: %s", launch->program, why);
}

static int look_at_exec(struct launch *launch, struct error *err)
{
	struct proc_status status;

	launch->execed = true;
	launch->stage = STAGE_ENTRY;
	if (needs_privilege(launch->pid)) {
		refuse(launch, err, "its file gives it another user's rights or capabilities, which a traced program does not get");
		return fail_hint(err, "start it without inferscope, then `inferscope attach PID` as root");
	}
	if (!gate_is_native(launch->pid))
		return refuse(launch, err, "it is a 32-bit program");
	if (procfs_status(&procfs_real, launch->pid, 0, &status) == 0 && status.signals_blocked >> (SIGTRAP - 1) & 1)
		launch->trap_blocked = true;
	launch->break_addr = gate_program_entry(launch->pid);
	if (!launch->break_addr || gate_break_at(launch->pid, launch->break_addr) < 0) {
		bool unseen = !launch->break_addr && errno == ENOENT;

		fail(err, ERR_LAUNCH_REFUSED, "cannot stop %s at its entry: %s", launch->program, launch->break_addr || errno ? strerror(errno) : "it has none");
		return unseen ? fail_hint(err, "mount -t proc proc /proc: what /proc tells of the program is not there") : fail_hint(err, "debug registers seem to be unavailable here; start the program, then `inferscope attach PID`");
	}
	return 0;
}

/* A break point that stays would kill the program by its trap. */
static int break_nowhere(struct launch *launch, struct error *err)
{
	if (gate_break_at(launch->pid, 0) == 0 || errno == ESRCH)
		return 0;
	return fail(err, ERR_LAUNCH_REFUSED, "cannot take the break point off %s: %s", launch->program, strerror(errno));
}

static int look_at_entry(struct launch *launch, struct error *err)
{
	char executable[256];
	int trouble;
	bool old;

	if (break_nowhere(launch, err) < 0)
		return -1;
	launch->break_addr = 0;
	if (gate_find_python(launch->pid, &launch->python, &old, &trouble) == 0) {
		launch->stage = STAGE_RUN_MAIN;
		launch->break_addr = launch->python.run_main;
		if (gate_break_at(launch->pid, launch->break_addr) < 0)
			return fail(err, ERR_LAUNCH_REFUSED, "cannot stop %s at its first line: %s", launch->program, strerror(errno));
		return 0;
	}
	if (trouble)
		return fail(err, ERR_LAUNCH_REFUSED, "cannot measure %s: its memory cannot be read: %s", launch->program, strerror(trouble));
	if (old) {
		refuse(launch, err, "its Python is older than 3.8");
		return fail_hint(err, "CPython 3.8 to 3.15 are supported");
	}
	read_executable(launch->pid, executable, sizeof executable);
	if (is_wrapper(executable)) {
		launch->stage = STAGE_WRAPPER;
		return 0;
	}
	fail(err, ERR_LAUNCH_REFUSED, "cannot measure %s: %s is not a Python interpreter", launch->program, executable);
	return fail_hint(err, "give a Python program; if it starts Python later, run it without inferscope and `inferscope attach` to that pid");
}

static int look_at_run_main(struct launch *launch, struct error *err)
{
	if (break_nowhere(launch, err) < 0)
		return -1;
	if (launch->trap_blocked) {
		uint64_t mask;

		if (ptrace(PTRACE_GETSIGMASK, launch->pid, sizeof mask, &mask) == 0) {
			mask |= 1ull << (SIGTRAP - 1);
			ptrace(PTRACE_SETSIGMASK, launch->pid, sizeof mask, &mask);
		}
	}
	if (gate_install(launch->pid, &launch->python, getpid(), launch->trap_ignored, &launch->gate_word, err) < 0)
		return -1;
	launch->stage = STAGE_GATE;
	return 0;
}

/* ---- following it ---- */

static int go_on(const struct launch *launch, int request, int number, struct error *err)
{
	/* ESRCH: it has been killed meanwhile, and waitpid() says so next. */
	if (ptrace(request, launch->pid, NULL, (void *)(intptr_t)number) == 0 || errno == ESRCH)
		return 0;
	return fail(err, ERR_LAUNCH_REFUSED, "cannot let %s go on: %s", launch->program, strerror(errno));
}

/* One report of waitpid(). 0, or -1 when the program is to be refused. */
static int handle_stop(struct launch *launch, int status, struct error *err)
{
	int number = WSTOPSIG(status), event = status >> 16, reached;

	if (event == PTRACE_EVENT_EXEC) {
		if (look_at_exec(launch, err) < 0)
			return -1;
		return go_on(launch, PTRACE_CONT, 0, err);
	}
	if (event == PTRACE_EVENT_STOP) {
		/* Job control: it stays stopped until somebody continues it, which is reported as SIGTRAP. */
		return go_on(launch, number == SIGTRAP ? PTRACE_CONT : PTRACE_LISTEN, 0, err);
	}
	if (event == 0 && number == SIGTRAP && launch->break_addr && (reached = gate_reached(launch->pid, launch->break_addr)) != 0) {
		/* It would die of our trap. (ESRCH: it has been killed.) */
		if (reached < 0 && errno != ESRCH)
			return fail(err, ERR_LAUNCH_REFUSED, "cannot look at %s where it stopped: %s", launch->program, strerror(errno));
		if (reached < 0)
			return 0;
		if (launch->stage == STAGE_RUN_MAIN)
			return look_at_run_main(launch, err);
		if (look_at_entry(launch, err) < 0)
			return -1;
		return go_on(launch, PTRACE_CONT, 0, err);
	}
	return go_on(launch, PTRACE_CONT, event ? 0 : number, err);
}

static void sleep_us(uint32_t us)
{
	struct timespec time = { 0, (long)us * 1000 };

	nanosleep(&time, NULL);
}

static int follow(struct launch *launch, void (*tick)(void *context, pid_t pid), void *context, struct error *err)
{
	uint32_t wait_us = SLEEP_MIN_US;
	uint64_t since_tick_us = 0;

	while (launch->stage != STAGE_GATE && launch->stage != STAGE_ENDED) {
		int status;
		pid_t pid = waitpid(launch->pid, &status, WNOHANG | __WALL);

		if (pid < 0 && errno != EINTR)
			return fail(err, ERR_LAUNCH, "waiting for %s: %s", launch->program, strerror(errno));
		if (pid == launch->pid) {
			if (!WIFSTOPPED(status)) {
				launch->stage = STAGE_ENDED;
				launch->ended = true;
				launch->status = status;
			} else if (handle_stop(launch, status, err) < 0)
				return -1;
			wait_us = SLEEP_MIN_US;
			continue;
		}
		sleep_us(wait_us);
		since_tick_us += wait_us;
		wait_us += wait_us / 16 + 1; /* a start of 20 ms is followed closely, a wrapper that runs for minutes costs nothing */
		if (wait_us > SLEEP_MAX_US)
			wait_us = SLEEP_MAX_US;
		if (tick && since_tick_us >= SLEEP_MAX_US) {
			tick(context, launch->pid);
			since_tick_us = 0;
		}
	}
	return 0;
}

/* ---- starting it ---- */

static void kill_and_collect(struct launch *launch)
{
	if (launch->pid <= 0 || launch->ended)
		return;
	kill(launch->pid, SIGKILL);
	for (;;) {
		pid_t pid = waitpid(launch->pid, &launch->status, __WALL);

		if ((pid == launch->pid && !WIFSTOPPED(launch->status)) || (pid < 0 && errno != EINTR))
			break;
	}
	launch->ended = true;
}

static void close_pair(int pair[2])
{
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
}

/* Forks the child with all signals blocked, so that it never runs a handler of ours. It waits for a byte on GO[0]. */
static pid_t fork_child(char *const argv[], char *const environment[], bool children_ignored, int go[2], int said[2])
{
	sigset_t all, mask;
	pid_t launcher = getpid(), pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		close(said[0]);
		child_run(argv, environment, &mask, children_ignored, launcher, go[0], said[1]);
	}
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return pid;
}

/* Why exec failed, as the child said; 0 = it did not. */
static int exec_error(int said)
{
	int cause = 0;

	return read(said, &cause, sizeof cause) == (ssize_t)sizeof cause ? cause : 0;
}

static int start_child(struct launch *launch, char *const argv[], char *const environment[], int go[2], int said[2], struct error *err)
{
	struct sigaction trap, children;

	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(said, O_CLOEXEC) < 0)
		return fail(err, ERR_LAUNCH, "starting %s: %s", launch->program, strerror(errno));
	launch->trap_ignored = sigaction(SIGTRAP, NULL, &trap) == 0 && trap.sa_handler == SIG_IGN;
	launch->children_ignored = sigaction(SIGCHLD, NULL, &children) == 0 && children.sa_handler == SIG_IGN;
	if (launch->children_ignored)
		signal(SIGCHLD, SIG_DFL); /* else the kernel would collect the program, and its pid would be free while we still mean it */
	launch->pid = fork_child(argv, environment, launch->children_ignored, go, said);
	if (launch->pid < 0)
		return fail(err, ERR_LAUNCH, "starting %s: %s", launch->program, strerror(errno));
	if (ptrace(PTRACE_SEIZE, launch->pid, NULL, (void *)(PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC)) < 0) {
		fail(err, ERR_LAUNCH_REFUSED, "cannot trace %s, though it is our own child: %s", launch->program, strerror(errno));
		return fail_hint(err, "kernel.yama.ptrace_scope above 1, or a container without ptrace, forbids it");
	}
	close(said[1]);
	said[1] = -1;
	if (write(go[1], "", 1) != 1)
		return fail(err, ERR_LAUNCH, "starting %s: %s", launch->program, strerror(errno));
	return 0;
}

int launch_start_watched(char *const argv[], char *const environment[], void (*tick)(void *context, pid_t pid), void *context,
                         struct launch **out, struct error *err)
{
	struct launch *launch = calloc(1, sizeof *launch);
	int go[2] = { -1, -1 }, said[2] = { -1, -1 }, result = -1, cause;

	if (!launch)
		return fail(err, ERR_MEMORY, "starting %s", argv[0]);
	snprintf(launch->program, sizeof launch->program, "%s", argv[0]);
	if (start_child(launch, argv, environment, go, said, err) < 0 || follow(launch, tick, context, err) < 0)
		goto out;
	if (!launch->execed) {
		cause = exec_error(said[0]);
		fail(err, ERR_LAUNCH, "cannot start %s: %s", launch->program, cause ? strerror(cause) : "it was killed");
		if (err)
			err->sys_errno = cause;
		goto out;
	}
	*out = launch;
	launch = NULL;
	result = 0;
out:
	close_pair(go);
	close_pair(said);
	if (launch)
		kill_and_collect(launch);
	free(launch);
	return result;
}

int launch_start(char *const argv[], char *const environment[], struct launch **out, struct error *err)
{
	return launch_start_watched(argv, environment, NULL, NULL, out, err);
}

/* ---- afterwards ---- */

bool launch_at_gate(const struct launch *launch)
{
	return launch->stage == STAGE_GATE;
}

pid_t launch_pid(const struct launch *launch)
{
	return launch->pid;
}

int launch_release(struct launch *launch, struct error *err)
{
	if (launch->stage != STAGE_GATE || launch->released)
		return 0;
	if (!launch->ended && gate_open(launch->pid, launch->gate_word) < 0 && errno != ESRCH)
		return fail(err, ERR_LAUNCH, "letting %s run: %s", launch->program, strerror(errno));
	launch->released = true;
	return 0;
}

/* Sleeps until the child ends, a signal comes or the time is over. Kernels before 5.3 have no pidfd: then 10 ms at a time. */
static void sleep_until_end(pid_t pid, int timeout_ms)
{
	struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };

	if (end.fd < 0 && timeout_ms < 0) {
		siginfo_t info;

		waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
		return;
	}
	if (end.fd < 0) {
		poll(NULL, 0, timeout_ms >= 0 && timeout_ms < 10 ? timeout_ms : 10);
		return;
	}
	poll(&end, 1, timeout_ms);
	close(end.fd);
}

int launch_wait(struct launch *launch, int timeout_ms, int *status, struct error *err)
{
	for (int look = 0; !launch->ended; look++) {
		pid_t pid = waitpid(launch->pid, &launch->status, WNOHANG);

		if (pid < 0 && errno != EINTR)
			return fail(err, ERR_LAUNCH, "waiting for %s: %s", launch->program, strerror(errno));
		launch->ended = pid == launch->pid;
		if (!launch->ended && look > 0)
			return 0;
		if (!launch->ended)
			sleep_until_end(launch->pid, timeout_ms);
	}
	*status = launch->status;
	return 1;
}

void launch_close(struct launch *launch)
{
	if (!launch)
		return;
	if (launch->stage == STAGE_GATE && !launch->released)
		kill_and_collect(launch);
	free(launch);
}
