/* The frame evaluator of the main interpreter (PEP 523), up to 3.11, and what frames of generators tell. */
#ifndef INFERSCOPE_COLLECTOR_EVALUATOR_H
#define INFERSCOPE_COLLECTOR_EVALUATOR_H

#include "collector/collector.h"

#include "abi/cpython.h"

static inline void *evaluator_now(void)
{
	if (the.python.minor == 8)
		return at_pointer(the.python.interp, the.python.layout->interp_eval_frame);
	return the.python._PyInterpreterState_GetEvalFrameFunc(the.python.interp);
}

static inline void evaluator_set(void *function)
{
	if (the.python.minor == 8)
		*(void **)(the.python.interp + the.python.layout->interp_eval_frame) = function;
	else
		the.python._PyInterpreterState_SetEvalFrameFunc(the.python.interp, function);
}

/* After its evaluation: did this generator's frame suspend? */
static inline bool generator_suspended(const char *frame)
{
	const struct cpython_layout *layout = the.python.layout;

	if (the.python.minor <= 9)
		return at_pointer(frame, layout->frame_stacktop);
	if (the.python.minor == 10)
		return at_char(frame, layout->frame_state) == -1;
	return at_char(frame - layout->generator_frame, layout->generator_state) == -1;
}

#endif
