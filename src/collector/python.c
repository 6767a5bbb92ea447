/* Finds the interpreter of this process and walks its threads and frames. Leaves what is done with them to the others. */
#include "collector/python.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/cpython.h"
#include "abi/page.h"
#include "collector/libc.h"

static __attribute__((format(printf, 4, 5))) int refuse(char *text, size_t size, int reason, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, size, format, arguments);
	va_end(arguments);
	return reason;
}

static int find_version(struct python *python, char *text, size_t size)
{
	const char *(*get_version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
	const char *version = get_version ? get_version() : NULL;
	int major = 0, minor = 0, micro = 0;

	if (!version)
		return refuse(text, size, REASON_NOT_PYTHON, "%s is not in this process", "Py_GetVersion");
	if (sscanf(version, "%d.%d.%d", &major, &minor, &micro) < 2 || major != 3 || !cpython_layout(minor))
		return refuse(text, size, REASON_VERSION, "Python %.80s is not one of 3.8-3.15", version);
	if (strstr(version, "free-threading"))
		return refuse(text, size, REASON_FREE_THREADED, "a free-threaded build: Python %.80s", version);
	python->minor = minor;
	python->hex = 3u << 24 | (uint32_t)minor << 16 | (uint32_t)micro << 8 | 0xf0;
	python->layout = cpython_layout(minor);
	return 0;
}

static int find_symbols(struct python *python, char *text, size_t size)
{
#define PYTHON_FIND(from, to, result, symbol, args) \
	*(void **)&python->symbol = dlsym(RTLD_DEFAULT, #symbol); \
	if (!python->symbol && python->minor >= from && python->minor <= to) \
		return refuse(text, size, REASON_SYMBOLS, "the interpreter does not export %s", #symbol);
	PYTHON_SYMBOLS(PYTHON_FIND)
#undef PYTHON_FIND
	python->runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
	python->none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
	python->eval_default = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
	if (python->minor >= 9 && python->minor <= 11)
		*(void **)&python->add_pending = dlsym(RTLD_DEFAULT, "_PyEval_AddPendingCall");
	python->cmethod_type = dlsym(RTLD_DEFAULT, "PyCMethod_Type");
	python->method_descriptor_type = dlsym(RTLD_DEFAULT, "PyMethodDescr_Type");
	python->code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
	python->cfunction_type = dlsym(RTLD_DEFAULT, "PyCFunction_Type");
	python->unicode_type = dlsym(RTLD_DEFAULT, "PyUnicode_Type");
	python->function_type = dlsym(RTLD_DEFAULT, "PyFunction_Type");
	python->method_type = dlsym(RTLD_DEFAULT, "PyMethod_Type");
	python->list_type = dlsym(RTLD_DEFAULT, "PyList_Type");
	if (!python->runtime || !python->none || !python->code_type || !python->cfunction_type || !python->unicode_type ||
	    !python->function_type || !python->method_type || !python->list_type)
		return refuse(text, size, REASON_SYMBOLS, "the interpreter does not export %s", "_PyRuntime, _Py_NoneStruct or its types");
	if (!python->eval_default && python->minor <= 11)
		return refuse(text, size, REASON_SYMBOLS, "the interpreter does not export %s", "_PyEval_EvalFrameDefault");
	return 0;
}

int python_find(struct python *python, char *text, size_t size)
{
	int reason;

	/* Found once, then constant: a hook that somebody kept (a forked child, another evaluator) may be looking at it right now. */
	if (!python->layout) {
		struct python found = {0};

		if ((reason = find_version(&found, text, size)) || (reason = find_symbols(&found, text, size)))
			return reason;
		*python = found;
	}
	if (!python->Py_IsInitialized())
		return refuse(text, size, REASON_NOT_INITIALIZED, "the interpreter %s", "is not initialised yet");
	if (python_ends(python))
		return refuse(text, size, REASON_FINALIZING, "the interpreter %s", "is about to end");
	python->interp = python->PyInterpreterState_Main();
	if (!python->interp)
		return refuse(text, size, REASON_NOT_INITIALIZED, "the interpreter %s", "has no main interpreter");
	return 0;
}

/* Our own thread state is known from both sides: what the layout says of it must be true. */
int python_check(const struct python *python, char *text, size_t size)
{
	const struct cpython_layout *layout = python->layout;
	char *mine = python->PyThreadState_Get();
	uint64_t tid = (uint64_t)syscall(SYS_gettid);

	if (at_pointer(python->runtime, layout->runtime_interp_main) != python->interp)
		return refuse(text, size, REASON_LAYOUT, "%s is not where it should be", "interpreters.main");
	if (at_pointer(mine, layout->tstate_interp) != python->interp)
		return refuse(text, size, REASON_LAYOUT, "%s is not where it should be", "PyThreadState.interp");
	if (at_pointer(mine, layout->tstate_thread_id) != (void *)pthread_self())
		return refuse(text, size, REASON_LAYOUT, "%s is not where it should be", "PyThreadState.thread_id");
	if (layout->tstate_native_id >= 0 && (uint64_t)at_pointer(mine, layout->tstate_native_id) != tid)
		return refuse(text, size, REASON_LAYOUT, "%s is not where it should be", "PyThreadState.native_thread_id");
	if (at_pointer(python->interp, layout->interp_threads) != python->PyInterpreterState_ThreadHead(python->interp))
		return refuse(text, size, REASON_LAYOUT, "%s is not where it should be", "PyInterpreterState.threads");
	if (at_pointer(mine, layout->tstate_profilefunc) || at_pointer(mine, layout->tstate_tracefunc))
		return refuse(text, size, REASON_LAYOUT, "%s is not where it should be", "PyThreadState.c_profilefunc");
	return 0;
}

bool python_ends(const struct python *python)
{
	return !python->Py_IsInitialized() ||
	       /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it is set before anything runs that asks */
	       __atomic_load_n((void **)(python->runtime + python->layout->runtime_finalizing), __ATOMIC_ACQUIRE);
}

bool python_audited(const struct python *python)
{
	return at_pointer(python->runtime, python->layout->runtime_audit_head) ||
	       at_pointer(python->interp, python->layout->interp_audit_hooks);
}

/* TSTATE or the next one that is whole: 3.11 lists a state before it has a cframe, and a native thread makes its own without the GIL. Its first frame finds it. */
static char *whole_thread(const struct python *python, char *tstate)
{
	while (tstate && python->layout->tstate_cframe >= 0 && !at_pointer(tstate, python->layout->tstate_cframe))
		tstate = python->PyThreadState_Next(tstate);
	return tstate;
}

char *python_first_thread(const struct python *python)
{
	return whole_thread(python, python->PyInterpreterState_ThreadHead(python->interp));
}

char *python_next_thread(const struct python *python, char *tstate)
{
	return whole_thread(python, python->PyThreadState_Next(tstate));
}

char *python_top_frame(const struct python *python, char *tstate)
{
	const struct cpython_layout *layout = python->layout;
	char *cframe;

	if (layout->tstate_frame >= 0)
		return at_pointer(tstate, layout->tstate_frame);
	cframe = at_pointer(tstate, layout->tstate_cframe);
	return cframe ? at_pointer(cframe, layout->cframe_frame) : NULL;
}

char *python_frame_back(const struct python *python, char *frame)
{
	return at_pointer(frame, python->layout->frame_previous);
}

PyObject *python_frame_code(const struct python *python, const char *frame)
{
	const struct cpython_layout *layout = python->layout;
	uintptr_t code = (uintptr_t)at_pointer(frame, layout->frame_code) & ~(uintptr_t)3;

	if (python->minor >= 12 && at_char(frame, layout->frame_owner) >= FRAME_OWNER_SHIM)
		return NULL;
	if (!code || at_pointer((void *)code, layout->object_type) != python->code_type)
		return NULL;
	/* 3.12 and later: the trampoline under an inlined __init__ calls itself and its file by the same str, and has no line. Its end is no event. */
	if (python->minor >= 12 && !at_int((void *)code, layout->code_firstlineno) && at_pointer((void *)code, layout->code_name) == at_pointer((void *)code, layout->code_filename))
		return NULL;
	return (PyObject *)code;
}
