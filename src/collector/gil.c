/*
 * The GIL for threads of ours. Up to CPython 3.11, PyGILState_Ensure() makes the thread's state under the runtime's HEAD_LOCK before it has the
 * GIL; a child that is forked at that moment inherits the lock and waits for it for ever, in PyOS_AfterFork_Child() (gh-112275, fixed in 3.11.7;
 * seen on 3.9.18, once in 700 attaches to a program that forks all the time). So the state is made while nobody forks.
 */
#include "collector/collector.h"

enum { STATE_LOCKED = 0 }; /* PyGILState_LOCKED: what PyGILState_Release() takes for "was held before" */

static bool makes_state(void)
{
	return the.python.PyThreadState_New && the.python.minor < 12;
}

int gil_ensure(void)
{
	if (makes_state()) {
		fork_forbid();
		the.python.PyThreadState_New(the.python.PyInterpreterState_Main());
		fork_allow();
	}
	return the.python.PyGILState_Ensure();
}

/* A state made by PyThreadState_New() counts as held once by itself. */
void gil_release(int gil)
{
	if (makes_state())
		the.python.PyGILState_Release(STATE_LOCKED);
	the.python.PyGILState_Release(gil);
}
