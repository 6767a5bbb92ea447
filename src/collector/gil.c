/*
 * The GIL for threads of ours. Up to CPython 3.11, PyGILState_Ensure() makes the thread's state under the runtime's HEAD_LOCK before it has the
 * GIL; a child that is forked at that moment inherits the lock and waits for it for ever, in PyOS_AfterFork_Child() (gh-112275, fixed in 3.11.7;
 * seen on 3.9.18, once in 700 attaches to a program that forks all the time). So the state is made while nobody forks. From 3.13 on who forks has
 * that lock before our handler is called: there we would wait for the lock with the turn, and the fork for the turn.
 *
 * And PyGILState_Ensure() ends the process where there is no memory for a state (3.8 to 3.15): so it is given one that is there already.
 */
#include "collector/collector.h"

#include "abi/cpython.h"

enum { STATE_LOCKED = 0 }; /* PyGILState_LOCKED: what PyGILState_Release() takes for "was held before" */

bool gil_ensure(int *gil)
{
	const bool forbids = the.python.minor < 13;
	const void *state;

	if (forbids)
		fork_forbid();
	state = the.python.PyThreadState_New(the.python.PyInterpreterState_Main());
	if (forbids)
		fork_allow();
	if (!state)
		return false;
	*gil = the.python.PyGILState_Ensure();
	return true;
}

/* A state made by PyThreadState_New() counts as held once by itself. */
void gil_release(int gil)
{
	the.python.PyGILState_Release(STATE_LOCKED);
	the.python.PyGILState_Release(gil);
}

char *gil_holder(void)
{
	const struct cpython_layout *layout = the.python.layout;
	char *tstate = the.python.minor >= 13 ? the.python.PyThreadState_GetUnchecked() : the.python._PyThreadState_UncheckedGet();

	if (!tstate || (the.python.minor < 12 && tstate != the.python.PyGILState_GetThisThreadState()) || at_pointer(tstate, layout->tstate_interp) != the.python.interp || at_pointer(tstate, layout->tstate_thread_id) != (void *)pthread_self())
		return NULL;
	return tstate;
}
