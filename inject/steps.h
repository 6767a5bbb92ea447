/* The steps of one entry, in order; docs/SAFETY.md has the same table, and tests kill the attacher after each of them. */
#ifndef INFERSCOPE_INJECT_STEPS_H
#define INFERSCOPE_INJECT_STEPS_H

enum step {
	STEP_LOCKED = 1,
	STEP_SLOT,
	STEP_SEIZED,
	STEP_INTERRUPTED,
	STEP_STOPPED,
	STEP_REGISTERS,
	STEP_SAVED,
	STEP_ENTERED,
	STEP_MASKED,
	STEP_RELEASED,
	STEP_RAW_THREAD,
	STEP_LIBRARY,
	STEP_IMAGE,
	STEP_GO,
	STEP_CALLED,
	STEP_ENDED,
	STEP_COUNT
};

#endif
