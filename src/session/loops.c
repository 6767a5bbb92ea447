/* Two short lists. */
#include "session/loops.h"

#include <stddef.h>
#include <string.h>

enum { MET_LEAST = 3, MET_PER_MISSED = 4 };

bool loops_have(const struct loops *loops, const char *name)
{
	static const char known[] = "_PyEval_EvalFrameDefault";

	for (uint32_t i = 0; i < loops->count; i++)
		if (loops->names[i] == name)
			return true;
	return strncmp(name, known, sizeof known - 1) == 0;
}

static struct loop_candidate *candidate_of(struct loops *loops, const char *name)
{
	for (uint32_t i = 0; i < loops->candidate_count; i++)
		if (loops->candidates[i].name == name)
			return &loops->candidates[i];
	return NULL;
}

/* Was it met often enough, this time included? */
static bool is_believed(struct loops *loops, const char *name)
{
	struct loop_candidate *candidate = candidate_of(loops, name);

	if (!candidate) {
		if (loops->candidate_count == LOOPS_MAX)
			return false;
		candidate = &loops->candidates[loops->candidate_count++];
		*candidate = (struct loop_candidate){ .name = name };
	}
	candidate->met++;
	return candidate->met >= MET_LEAST && candidate->met >= candidate->missed * MET_PER_MISSED;
}

bool loops_met(struct loops *loops, const char *name, bool alone)
{
	if (loops_have(loops, name) || loops->count == LOOPS_MAX || (!alone && !is_believed(loops, name)))
		return false;
	loops->names[loops->count++] = name;
	return true;
}

void loops_missed(struct loops *loops, const char *name)
{
	struct loop_candidate *candidate = candidate_of(loops, name);

	if (candidate)
		candidate->missed++;
}
