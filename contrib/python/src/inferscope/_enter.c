/*
 * The collector, loaded by the process that it is to measure: what abi/inside.h calls ENTER. Its entry runs on a thread of its own, without signals and without the GIL, as it
 * does where an attacher put it there.
 */
#include "_scopes.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/handover.h"
#include "abi/inside.h"

enum { LEAVE_WAIT_MS = 2500 };

typedef void (*collector_entry)(struct handover *handover);

/* Loaded once, and never unloaded: hooks may still point into it. Under the GIL. */
static collector_entry loaded;

struct call {
	collector_entry entry;
	struct handover *handover;
};

static void *call_entry(void *context)
{
	struct call *call = context;

	call->entry(call->handover);
	return NULL;
}

/* Signals stay with the program's own threads, and with them what Python does about them. */
static int call_make(struct call *call)
{
	sigset_t all, before;
	pthread_t thread;
	int failed;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&thread, NULL, call_entry, call);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failed)
		pthread_join(thread, NULL);
	return failed;
}

/* The name is one that no other library has: the loader compares names before it opens a file. */
static bool library_load(int fd)
{
	char path[64];
	void *library, *symbol;

	if (loaded)
		return true;
	snprintf(path, sizeof path, "/proc/self/fd/./%d", fd);
	library = dlopen(path, RTLD_NOW | RTLD_NODELETE);
	symbol = library ? dlsym(library, COLLECTOR_ENTRY) : NULL;
	if (symbol)
		memcpy(&loaded, &symbol, sizeof loaded);
	return symbol;
}

PyObject *enter(PyObject *module, PyObject *args)
{
	struct call call = { 0 };
	int library, page, failed;
	PyThreadState *state;

	if (!PyArg_ParseTuple(args, "ii:enter", &library, &page))
		return NULL;
	if (!library_load(library)) {
		const char *why = dlerror();

		return PyErr_Format(PyExc_OSError, "%s", why ? why : "it is no collector");
	}
	call.entry = loaded;
	call.handover = mmap(NULL, INSIDE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
	if (call.handover == MAP_FAILED)
		return PyErr_SetFromErrno(PyExc_OSError);
	state = PyEval_SaveThread();
	failed = call_make(&call);
	munmap(call.handover, INSIDE_PAGE_BYTES);
	PyEval_RestoreThread(state);
	if (failed) {
		errno = failed;
		return PyErr_SetFromErrno(PyExc_OSError);
	}
	Py_INCREF(Py_None);
	return Py_None;
}

PyObject *leave(PyObject *module, PyObject *none)
{
	struct handover handover = { .magic = HANDOVER_MAGIC, .command = HANDOVER_DISARM, .wait_ms = LEAVE_WAIT_MS };
	struct call call = { loaded, &handover };
	PyThreadState *state;

	if (loaded) {
		state = PyEval_SaveThread();
		call_make(&call);
		PyEval_RestoreThread(state);
	}
	Py_INCREF(Py_None);
	return Py_None;
}
