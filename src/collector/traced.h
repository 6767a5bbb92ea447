/*
 * What the two backends that hook thread by thread share (3.8-3.11): the events of a C profile or trace function, the walk over
 * thread states, and the detector that catches threads born later.
 */
#ifndef INFERSCOPE_COLLECTOR_TRACED_H
#define INFERSCOPE_COLLECTOR_TRACED_H

#include "collector/collector.h"

enum { WHAT_CALL = 0, WHAT_EXCEPTION = 1, WHAT_LINE = 2, WHAT_RETURN = 3, WHAT_C_CALL = 4, WHAT_C_EXCEPTION = 5, WHAT_C_RETURN = 6 };

/* Writes what one call of a profile or trace function says. */
void traced_event(PyObject *frame_object, int what, PyObject *argument);

/* After c_profilefunc or c_tracefunc of a thread state was stored: whether its evaluator must look at them. */
void traced_update(char *tstate);

/* UNHOOKED in META, for a thread that is left alone. */
void traced_leave_alone(char *tstate, const char *reason);

/* Calls HOOK(tstate) at the first frame of a thread whose pointer at OFFSET is NULL. False: the evaluator is taken. */
bool detector_open(int offset, void (*hook)(char *tstate));
void detector_close(void);

#endif
