/*
 * A C profile function per thread, 3.8-3.11: when C calls are wanted, or the evaluator is taken. Stored straight into the thread
 * states under the GIL, at offsets that cpython.def pins and tests check: the interpreter's own function raises an audit event,
 * and an audit hook in Python would release the GIL in the middle of the walk (SIGSEGV on 3.10). Profilers of others are left alone.
 */
#include "collector/traced.h"

#include "abi/cpython.h"

static int profile(PyObject *self, PyObject *frame, int what, PyObject *argument)
{
	traced_event(frame, what, argument);
	return 0;
}

static void set(char *tstate, void *function)
{
	*(void **)(tstate + the.python.layout->tstate_profilefunc) = function;
	traced_update(tstate);
}

static void hook_thread(char *tstate)
{
	set(tstate, profile);
}

static int install(char *text, size_t size)
{
	return 0;
}

static bool hooked(char *tstate)
{
	return at_pointer(tstate, the.python.layout->tstate_profilefunc) == (void *)profile;
}

static bool hook_open(void)
{
	const struct cpython_layout *layout = the.python.layout;

	for (char *tstate = python_first_thread(&the.python); tstate; tstate = python_next_thread(&the.python, tstate)) {
		void *now = at_pointer(tstate, layout->tstate_profilefunc);

		if (!now)
			hook_thread(tstate);
		else if (now != (void *)profile && the.page->window_count == 0)
			traced_leave_alone(tstate, "it has a profile function of its own (cProfile, sys.setprofile)");
	}
	detector_open(layout->tstate_profilefunc, hook_thread);
	return true;
}

static void hook_close(void)
{
	detector_close();
	for (char *tstate = python_first_thread(&the.python); tstate; tstate = python_next_thread(&the.python, tstate))
		if (hooked(tstate))
			set(tstate, NULL);
}

const struct hooks hooks_setprofile = {
	.kind = BACKEND_SETPROFILE,
	.install = install,
	.open = hook_open,
	.close = hook_close,
	.remove = hook_close,
	.hooked = hooked,
	.forked = hook_close,
	.cost_factor = {[8] = 900, [9] = 900, [10] = 1200, [11] = 2100},
};
