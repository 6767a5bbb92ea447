/*
 * Threads whose Python stack is exchanged under them: greenlet (gevent, eventlet, SQLAlchemy's asyncio) switches from one to another without a call or a return.
 * What a lane knows of its thread's stack is another greenlet's then, and is said anew at the first event after it. Nothing of greenlet's is called; the stack itself tells:
 * the frame that calls is not the one that was called last, and from 3.12 on, where callbacks see no frames, its memory lies elsewhere.
 */
#include "collector/greenlets.h"

#include "abi/cpython.h"

enum { BETWEEN_MOST = 32 /* frames of functions that are only counted */, CHUNKS_MOST = 65536 };

bool greenlets_imported(void)
{
	PyObject *modules = the.python.PyImport_GetModuleDict(); /* borrowed, as is what is found in it */

	return modules && the.python.PyDict_GetItemString(modules, "greenlet");
}

bool greenlets_left(const struct lane *lane, char *caller)
{
	if (!lane->frame)
		return caller;
	for (int i = 0; i < BETWEEN_MOST && caller && caller != lane->frame; i++)
		caller = python_frame_back(&the.python, caller);
	return caller != lane->frame;
}

/* A chunk of 3.11 and later begins with the one before it. The first one stays as long as its greenlet, greenlet 2 and 3. */
bool greenlets_switched(struct lane *lane)
{
	int offset = the.python.layout->tstate_stack_chunk;
	char *chunk = offset < 0 ? NULL : at_pointer(the.python.PyThreadState_Get(), offset), *first = chunk;

	if (chunk == lane->chunk)
		return false;
	lane->chunk = chunk;
	for (int i = 0; first && i < CHUNKS_MOST && at_pointer(first, 0); i++)
		first = at_pointer(first, 0);
	if (first == lane->first_chunk)
		return false;
	lane->first_chunk = first;
	return true;
}
