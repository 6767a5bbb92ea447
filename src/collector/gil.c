/*
 * The GIL for threads of ours. Up to CPython 3.11, PyGILState_Ensure() makes the thread's state under the runtime's HEAD_LOCK before it has the
 * GIL; a child that is forked at that moment inherits the lock and waits for it for ever, in PyOS_AfterFork_Child() (gh-112275, fixed in 3.11.7;
 * seen on 3.9.18, once in 700 attaches to a program that forks all the time). So the state is made while nobody forks. From 3.13 on who forks has
 * that lock before our handler is called: there we would wait for the lock with the turn, and the fork for the turn.
 *
 * And PyGILState_Ensure() ends the process where there is no memory for a state (3.8 to 3.15): so it is given one that is there already.
 *
 * A thread that lets go of the GIL and takes it again at once, again and again (select() that does not wait, short calls of extensions), wakes who waits for it, who comes too late; and the
 * interpreter tells the holder to give it up only where a waiter was not woken for a switch interval (take_gil() of 3.8 to 3.15). Everybody else waits for seconds then. So where we wait for
 * long, main is asked to keep the GIL for longer than that, by a pending call: it gives it up at its next bytecode that looks. To let go of it in that call would be shorter, but a child that another thread
 * forks meanwhile would keep the mark that a pending call is being made, and make none any more (3.9 to 3.14).
 */
#include "collector/collector.h"

#include <errno.h>
#include <sys/prctl.h>

#include "abi/cpython.h"
#include "collector/thread.h"

enum { STATE_LOCKED = 0 }; /* PyGILState_LOCKED: what PyGILState_Release() takes for "was held before" */
enum {
	HELP_AFTER_NS = 100000000, HELPS_MAX = 7 /* of one wait, each after twice as long */, HELPER_LOOKS_MAX = 3000, HELPER_STACK_BYTES = 256 * 1024,
	KEEP_NS = 6000000 /* a switch interval (5 ms, unless the program changed it), and time to wake up */, KEEP_TRIES = 100,
};

/* On main, with the GIL, between two bytecodes: perhaps long after we asked. Signals are handled as ever, and do not end it. The interpreter waits by the same call: no filter of main's forbids it. */
static int keep_gil(void *nothing)
{
	uint32_t nobody = 0;
	uint64_t now = monotonic_ns(), end = now + KEEP_NS;
	int saved = errno;

	__atomic_store_n(&the.gil_asked, false, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&the.gil_since, __ATOMIC_SEQ_CST) && !python_ends(&the.python))
		for (int tries = 0; now < end && tries < KEEP_TRIES; tries++, now = monotonic_ns())
			futex_wait(&nobody, 0, end - now);
	errno = saved;
	return 0;
}

/*
 * 3.8 says that it is shutting down by an exception on the thread state of who calls, and we have none. Up to 3.11, Py_AddPendingCall() looks at the state of whoever holds the GIL, which may go
 * meanwhile; what it calls then is told the interpreter. A full queue is no harm: we wait as others do. The queue has a lock, which no child may inherit; but a fork is not waited for: it may want
 * the GIL, as whoever waits for this thread has. False: another time.
 */
static bool ask_main(void)
{
	const struct python *python = &the.python;
	bool over;

	if ((python->minor < 12 && !python->add_pending) || __atomic_load_n(&the.gil_asked, __ATOMIC_SEQ_CST))
		return true;
	if (!fork_try_forbid())
		return false;
	over = __atomic_load_n(&the.gil_help_over, __ATOMIC_ACQUIRE) || !__atomic_load_n(&the.gil_since, __ATOMIC_SEQ_CST) || python_ends(python);
	__atomic_store_n(&the.gil_asked, !over, __ATOMIC_SEQ_CST);
	if (!over && (python->minor < 12 ? python->add_pending(python->interp, keep_gil, NULL) : python->Py_AddPendingCall(keep_gil, NULL)))
		__atomic_store_n(&the.gil_asked, false, __ATOMIC_SEQ_CST);
	fork_allow();
	return true;
}

/* It ends by itself, too: up to 3.13 whoever waits for the GIL of an interpreter that ends is ended, and tells nobody. */
static void *help_run(void *nothing)
{
	uint64_t helped = 0; /* the wait of that beginning … */
	int helps = 0;       /* … so often */

	prctl(PR_SET_NAME, "inferscope");
	for (int looks = 0; looks < HELPER_LOOKS_MAX && !__atomic_load_n(&the.gil_help_over, __ATOMIC_ACQUIRE); looks++) {
		uint64_t since;

		futex_wait(&the.gil_help_over, 0, HELP_AFTER_NS);
		since = __atomic_load_n(&the.gil_since, __ATOMIC_SEQ_CST);
		if (!since)
			continue;
		if (python_ends(&the.python))
			break;
		if (since != helped)
			helps = 0;
		helped = since;
		if (helps < HELPS_MAX && monotonic_ns() - since >= (uint64_t)HELP_AFTER_NS << helps && ask_main())
			helps++;
	}
	return NULL;
}

bool gil_help_begin(void)
{
	__atomic_store_n(&the.gil_help_over, 0, __ATOMIC_RELEASE);
	return thread_start(&the.gil_helper, help_run, HELPER_STACK_BYTES);
}

void gil_help_end(bool begun)
{
	if (!begun)
		return;
	futex_tell(&the.gil_help_over, 1);
	pthread_join(the.gil_helper, NULL);
}

bool gil_ensure(int *gil)
{
	const bool forbids = the.python.minor < 13;
	uint64_t nobody = 0;
	const void *state;
	bool first;

	if (forbids)
		fork_forbid();
	state = the.python.PyThreadState_New(the.python.PyInterpreterState_Main());
	if (forbids)
		fork_allow();
	if (!state)
		return false;
	first = __atomic_compare_exchange_n(&the.gil_since, &nobody, monotonic_ns(), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	*gil = the.python.PyGILState_Ensure();
	if (first)
		__atomic_store_n(&the.gil_since, 0, __ATOMIC_SEQ_CST);
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
