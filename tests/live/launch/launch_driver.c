/* `launch_driver [options] PROGRAM ARGS…` runs a program as `inferscope run` does, without measuring: through the gate. Ends as the program
 * ends, by the same code or signal. Never touches stdio unless something is wrong.
 *   --hold MS        stay at the gate that long
 *   --poke N         at the gate: seize, interrupt and leave its thread N times, as an attach does
 *   --enter LIBRARY  at the gate: take the library in and wait until its entry has ended
 *   --report FILE    "gate PID" or "ended" there
 *   --die            SIGKILL itself while the program waits at its gate
 *   --signal N       send N to the program at its gate */
#include "inject/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct asked {
	int hold_ms, pokes, signal;
	const char *report, *library;
	bool die;
};

static void sleep_ms(int ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&time, &time) < 0 && errno == EINTR)
		;
}

static bool poke(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
		return false;
	if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
		return false;
	return ptrace(PTRACE_DETACH, pid, NULL, status >> 16 ? 0 : (void *)(intptr_t)WSTOPSIG(status)) == 0;
}

static void complain(const struct error *err)
{
	fprintf(stderr, "launch_driver: %s: %s\n  %s\n", error_name(err->code), err->text, error_hint(err));
}

static void *read_library(const char *path, size_t *size)
{
	FILE *file = fopen(path, "re");
	char *bytes = malloc(1 << 20);

	*size = file && bytes ? fread(bytes, 1, 1 << 20, file) : 0;
	if (file)
		fclose(file);
	return bytes;
}

/* True when the library's entry has run and ended. */
static bool enter(pid_t pid, const char *path)
{
	const struct inject_options options = { 0 };
	struct payload payload = { .memfd_name = "launch-payload", .entry = "launch_payload_entry" };
	struct target *target = NULL;
	struct entry *entry = NULL;
	struct receipt receipt;
	struct error err = { 0 };
	bool ended;

	payload.bytes = read_library(path, &payload.size);
	ended = target_open(pid, &options, &target, &err) == 0
		&& inject_enter(target, &payload, "", 1, &options, &entry, &receipt, &err) == 0 && entry_wait(entry, 5000, &err) == 0;
	if (!ended)
		complain(&err);
	entry_close(entry);
	target_close(target);
	free((void *)payload.bytes);
	return ended;
}

static void at_gate(const struct launch *launch, const struct asked *asked)
{
	pid_t pid = launch_pid(launch);

	for (int i = 0; i < asked->pokes; i++)
		if (!poke(pid)) {
			fprintf(stderr, "launch_driver: poke %d: %s\n", i, strerror(errno));
			exit(99);
		}
	if (asked->library && !enter(pid, asked->library))
		exit(96);
	sleep_ms(asked->hold_ms);
	if (asked->signal)
		kill(pid, asked->signal);
	if (asked->die)
		kill(getpid(), SIGKILL);
}

static void end_as(int status)
{
	struct rlimit no_core = { 0, 0 };

	if (WIFEXITED(status))
		exit(WEXITSTATUS(status));
	setrlimit(RLIMIT_CORE, &no_core);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	/* cppcheck-suppress unreachableCode ; raise returns where the signal is blocked */
	exit(128 + WTERMSIG(status));
}

static char **read_options(char **argv, struct asked *asked)
{
	for (argv++; *argv && strncmp(*argv, "--", 2) == 0; argv++) {
		if (strcmp(*argv, "--die") == 0)
			asked->die = true;
		else if (argv[1] && strcmp(*argv, "--hold") == 0)
			asked->hold_ms = atoi(*++argv);
		else if (argv[1] && strcmp(*argv, "--poke") == 0)
			asked->pokes = atoi(*++argv);
		else if (argv[1] && strcmp(*argv, "--signal") == 0)
			asked->signal = atoi(*++argv);
		else if (argv[1] && strcmp(*argv, "--enter") == 0)
			asked->library = *++argv;
		else if (argv[1] && strcmp(*argv, "--report") == 0)
			asked->report = *++argv;
		else
			break;
	}
	return argv;
}

int main(int argc, char **argv)
{
	struct asked asked = { 0 };
	struct launch *launch;
	struct error err;
	int status = 0, ended;
	char **command = read_options(argv, &asked);

	if (!*command) {
		fprintf(stderr, "usage: launch_driver [--hold MS] [--poke N] [--signal N] [--die] [--enter LIBRARY] [--report FILE] PROGRAM ARGS...\n");
		return 2;
	}
	if (launch_start(command, NULL, &launch, &err) < 0) {
		complain(&err);
		return error_status(err.code);
	}
	if (asked.report) {
		FILE *report = fopen(asked.report, "we");

		if (!report)
			return 2;
		fprintf(report, "%s %d\n", launch_at_gate(launch) ? "gate" : "ended", (int)launch_pid(launch));
		fclose(report);
	}
	if (launch_at_gate(launch)) {
		at_gate(launch, &asked);
		if (launch_release(launch, &err) < 0) {
			fprintf(stderr, "launch_driver: %s\n", err.text);
			return 98;
		}
	}
	while ((ended = launch_wait(launch, -1, &status, &err)) == 0)
		;
	if (ended < 0) {
		fprintf(stderr, "launch_driver: %s\n", err.text);
		return 97;
	}
	launch_close(launch);
	end_as(status);
}
