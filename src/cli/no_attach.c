/* The commands that enter processes, where InferScope was built without them (configure --disable-attach, the default on 64-bit ARM): each says so. */
#include "cli/command.h"

static int refuse(const struct invocation *invocation, struct error *err)
{
	fail(err, ERR_ARCHITECTURE, "%s: this InferScope was built to read traces only, and enters no processes", invocation->command->name);
	return fail_hint(err, "build it with `configure --enable-attach` (docs/SAFETY.md says what that means on 64-bit ARM); analyze, merge and diff read traces of other machines here");
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
