/* doctor: what stands in the way, without touching anything; detach: freeing what a dead attacher left. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/present.h"
#include "cli/process.h"
#include "config.h"
#include "session/session.h"

#define CAPABILITY_SYS_PTRACE 19

static bool line_read(const char *path, char *out, size_t size)
{
	FILE *file = fopen(path, "re");
	bool got = file && fgets(out, (int)size, file);

	if (file)
		fclose(file);
	if (got)
		out[strcspn(out, "\n")] = '\0';
	return got;
}

struct machine {
	char kernel[256], user[80], yama[160], clock[128];
	bool may_trace;
};

static void machine_look(struct machine *out)
{
	struct proc_status status = { 0 };
	struct utsname name;
	char line[64];
	bool capable;

	memset(out, 0, sizeof *out);
	if (uname(&name) == 0)
		snprintf(out->kernel, sizeof out->kernel, "%s %s, %s", name.sysname, name.release, name.machine);
	procfs_status(&procfs_real, getpid(), 0, &status);
	capable = status.cap_effective >> CAPABILITY_SYS_PTRACE & 1;
	snprintf(out->user, sizeof out->user, "uid %u, %s CAP_SYS_PTRACE", (unsigned)geteuid(), capable ? "with" : "without");
	out->may_trace = true;
	if (!line_read("/proc/sys/kernel/yama/ptrace_scope", line, sizeof line))
		snprintf(out->yama, sizeof out->yama, "not in this kernel: processes of the same user may be measured");
	else if (line[0] == '0')
		snprintf(out->yama, sizeof out->yama, "0: processes of the same user may be measured");
	else {
		out->may_trace = capable && line[0] != '3';
		snprintf(out->yama, sizeof out->yama, "%c: %s", line[0],
		         line[0] == '3' ? "nobody may measure anything until the next boot" : capable ? "fine with CAP_SYS_PTRACE" : "run with sudo, or let the target call prctl(PR_SET_PTRACER, ...)");
	}
	snprintf(out->clock, sizeof out->clock, "%s", clock_tsc_usable() ? "time stamp counter" : "CLOCK_MONOTONIC (the time stamp counter is not invariant; events cost 30 ns more)");
}

static int machine_print(bool json)
{
	struct machine machine;

	machine_look(&machine);
	if (json)
		printf("{\"schema\":\"inferscope.doctor/1\",\"pid\":null,\"ok\":%s,\"version\":\"%s\",\"kernel\":\"%s\",\"user\":\"%s\",\"yama\":\"%s\",\"clock\":\"%s\"}\n",
		       machine.may_trace ? "true" : "false", PACKAGE_VERSION, machine.kernel, machine.user, machine.yama, machine.clock);
	else
		printf("inferscope %s\n  kernel  %s\n  user    %s\n  yama    %s\n  clock   %s\n", PACKAGE_VERSION, machine.kernel, machine.user, machine.yama, machine.clock);
	return 0;
}

int doctor_command(struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	const struct inject_options inject = { .unverified = options_flag(options, OPT_UNVERIFIED) };
	bool json = options_flag(options, OPT_JSON);
	struct target *target = NULL;
	pid_t pid;
	int result;

	if (process_named(invocation, false, &pid, err) < 0)
		return -1;
	if (pid == 0)
		return machine_print(json);
	result = target_open(pid, &inject, &target, err);
	if (json)
		findings_json(pid, target, result < 0 ? err : NULL);
	else if (target) {
		struct text name;

		text_init(&name);
		text_add_visible(&name, target_facts(target)->command, strlen(target_facts(target)->command));
		printf("process %d (%s): %s\n", (int)pid, text_string(&name), result < 0 ? "cannot be measured" : "can be measured");
		text_done(&name);
		findings_print(target, colour_wanted(options, STDOUT_FILENO));
		if (result < 0 && options_choice(options, OPT_ERROR_FORMAT) != 1)
			result = error_status(err->code); /* it has been said, with what to do */
	}
	target_close(target);
	return result;
}

int detach_command(struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	struct session_options session = { .inject.unverified = options_flag(options, OPT_UNVERIFIED) };
	struct target *target = NULL;
	bool found = false;
	pid_t pid;
	int result = -1;

	if (process_named(invocation, true, &pid, err) < 0)
		return -1;
	if (target_open(pid, &session.inject, &target, err) == 0 && session_detach(target, &session, &found, err) == 0) {
		result = 0;
		printf(found ? "process %d: hooks are off, memory is freed\n" : "process %d: nothing of InferScope is at work in it\n", (int)pid);
	}
	target_close(target);
	return result;
}
