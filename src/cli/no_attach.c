/* The commands that enter processes, on machines whose registers and instructions InferScope does not know: each says so. */
#include <sys/utsname.h>

#include "cli/command.h"

static int refuse(const struct invocation *invocation, struct error *err)
{
	struct utsname machine = { 0 };

	uname(&machine);
	fail(err, ERR_ARCHITECTURE, "%s: InferScope enters processes on x86-64 only; this is %s", invocation->command->name, machine.machine);
	return fail_hint(err, "measure on an x86-64 machine; analyze, merge and diff read its traces here");
}

int attach_command(struct invocation *invocation, struct error *err)
{
	return refuse(invocation, err);
}

int run_command(struct invocation *invocation, struct error *err)
{
	return refuse(invocation, err);
}

int dump_process_command(struct invocation *invocation, struct error *err)
{
	return refuse(invocation, err);
}

int top_command(struct invocation *invocation, struct error *err)
{
	return refuse(invocation, err);
}

int detach_command(struct invocation *invocation, struct error *err)
{
	return refuse(invocation, err);
}

int doctor_command(struct invocation *invocation, struct error *err)
{
	return refuse(invocation, err);
}
