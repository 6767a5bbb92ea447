/*
 * A C trace function per thread, 3.8-3.11: calls, exceptions and lines. A trace function that a thread has already goes on: ours
 * takes its place, keeps its object (sys.gettrace() answers as before), calls it after every event, and puts it back.
 * From 3.12 on sys.monitoring sees lines and exceptions without touching anybody's trace function (monitoring.c).
 */
#include "collector/traced.h"

#include <string.h>

#include "abi/cpython.h"

static trace_function chained_before(const char *tstate)
{
	for (uint32_t i = 0; i < the.chained_count; i++)
		if (the.chained[i].tstate == tstate)
			return the.chained[i].function;
	return NULL;
}

static int trace(PyObject *self, PyObject *frame, int what, PyObject *argument)
{
	trace_function before = chained_before(the.python.PyThreadState_Get()); /* what follows may take us off */

	if (what != WHAT_LINE || (the.page && the.settings.lines))
		if (what <= WHAT_RETURN)
			traced_event(frame, what, argument);
	return before ? before(self, frame, what, argument) : 0;
}

static trace_function function_of(char *tstate)
{
	return (trace_function)at_pointer(tstate, the.python.layout->tstate_tracefunc);
}

/* Only the function changes hands; the interpreter's counts of traced threads stay true. */
static void chain(char *tstate)
{
	if (the.chained_count == CHAINED_MAX) {
		traced_leave_alone(tstate, "too many threads have trace functions of their own");
		return;
	}
	the.chained[the.chained_count++] = (struct chained){tstate, function_of(tstate)};
	*(trace_function *)(tstate + the.python.layout->tstate_tracefunc) = trace;
}

/* The interpreter's own function counts traced threads, and works on the current one. Swapping thread states keeps the GIL
 * up to 3.12. */
static void set(char *tstate, trace_function function)
{
	char *mine = the.python.PyThreadState_Get();

	if (tstate != mine)
		the.python.PyThreadState_Swap(tstate);
	the.python.PyEval_SetTrace(function, NULL);
	if (tstate != mine)
		the.python.PyThreadState_Swap(mine);
}

/* It has no function of its own any more: the program took it off, or another thread has ended where this one's state lies. */
static void unchain(const char *tstate)
{
	for (uint32_t i = 0; i < the.chained_count; i++)
		if (the.chained[i].tstate == tstate)
			the.chained[i] = the.chained[--the.chained_count];
}

static void hook_thread(char *tstate)
{
	unchain(tstate);
	set(tstate, trace);
}

static int install(char *text, size_t size)
{
	the.chained_count = 0;
	if (!python_audited(&the.python))
		return 0;
	text_set(text, size, "an audit hook is installed, which the trace function's own audit event would run in the middle of the switch");
	return REASON_AUDIT_HOOK;
}

static bool hooked(char *tstate)
{
	return function_of(tstate) == trace;
}

static bool hook_open(void)
{
	the.chained_count = 0;
	if (python_audited(&the.python))
		return false;
	for (char *tstate = python_first_thread(&the.python); tstate; tstate = python_next_thread(&the.python, tstate)) {
		trace_function now = function_of(tstate);

		if (!now)
			hook_thread(tstate);
		else if (now != trace)
			chain(tstate);
	}
	detector_open(the.python.layout->tstate_tracefunc, hook_thread);
	return true;
}

static void hook_close(void)
{
	bool audited = python_audited(&the.python);

	detector_close();
	for (char *tstate = python_first_thread(&the.python); tstate; tstate = python_next_thread(&the.python, tstate)) {
		trace_function before = chained_before(tstate);

		if (!hooked(tstate))
			continue;
		if (before || audited) {
			*(trace_function *)(tstate + the.python.layout->tstate_tracefunc) = before;
			traced_update(tstate);
		} else {
			set(tstate, NULL);
		}
	}
	the.chained_count = 0;
}

/* In a forked child: no interpreter function, only stores. A count of traced threads that is too high costs a test per event. */
static void forked(void)
{
	detector_close();
	for (char *tstate = python_first_thread(&the.python); tstate; tstate = python_next_thread(&the.python, tstate))
		if (hooked(tstate)) {
			*(trace_function *)(tstate + the.python.layout->tstate_tracefunc) = chained_before(tstate);
			traced_update(tstate);
		}
	the.chained_count = 0;
}

const struct hooks hooks_settrace = {
	.kind = BACKEND_SETTRACE,
	.install = install,
	.open = hook_open,
	.close = hook_close,
	.remove = hook_close,
	.hooked = hooked,
	.forked = forked,
	.cost_factor = {[8] = 900, [9] = 900, [10] = 1200, [11] = 1600},
};
