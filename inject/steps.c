/* The step table: what each step changes in the target, and what takes it back, with the attacher alive or dead. */
#include "inject/steps.h"

#include "inject/inject.h"

static const struct inject_step table[] = {
	{ STEP_LOCKED, "lock the interpreter's file against a second attacher", "unlocked at the end; the kernel unlocks it at our death" },
	{ STEP_SLOT, "write the stub into zero padding behind code", "inert, and its slot stays free; +4 KiB of private memory" },
	{ STEP_SEIZED, "seize one thread", "detached; the kernel detaches it at our death" },
	{ STEP_INTERRUPTED, "ask it to stop", "the same" },
	{ STEP_STOPPED, "it has stopped", "the same; a call that says EINTR to a stop is made again" },
	{ STEP_REGISTERS, "read its registers and check the moment", "nothing to take back" },
	{ STEP_SAVED, "write its registers into the slot", "cleared; after our death this slot is not used again" },
	{ STEP_ENTERED, "point it at the stub", "the stub goes back by itself" },
	{ STEP_MASKED, "block its signals", "the stub restores the mask" },
	{ STEP_RELEASED, "let it go", "nothing to take back" },
	{ STEP_RAW_THREAD, "the raw thread waits, with its memory and a memfd", "it leaves by itself when nobody says go; 4 KiB stay" },
	{ STEP_LIBRARY, "fill the memfd", "closed by the raw thread" },
	{ STEP_IMAGE, "write addresses and argument", "unmapped by the raw thread" },
	{ STEP_GO, "say go", "cancelled; after our death the library loads and its entry gives up by itself" },
	{ STEP_CALLED, "the entry is about to run", "the entry's own limits" },
	{ STEP_ENDED, "its thread has ended", "nothing to take back: one control page and the dormant library stay" },
};

const struct inject_step *inject_steps(size_t *count)
{
	*count = sizeof table / sizeof *table;
	return table;
}
