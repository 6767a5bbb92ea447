/*
 * The part of CPython's C API that the collector uses, found by dlsym in whatever interpreter this process has: one library for
 * 3.8-3.15 without Python's headers. Layouts come from abi/cpython.def.
 */
#ifndef INFERSCOPE_COLLECTOR_PYTHON_H
#define INFERSCOPE_COLLECTOR_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct py_object PyObject; /* never defined: read through layouts */
typedef int (*trace_function)(PyObject *self, PyObject *frame, int what, PyObject *argument);
typedef PyObject *(*vector_function)(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names);
typedef PyObject *(*evaluator38)(PyObject *frame, int throws);
typedef PyObject *(*evaluator39)(void *tstate, void *frame, int throws);

/* struct PyMethodDef */
struct method {
	const char *name;
	vector_function function;
	int flags;
	const char *doc;
};
enum { METHOD_FASTCALL = 0x80 };

/* SYMBOL(needed from minor, needed up to minor, result, name, arguments). Outside these versions it may be missing. */
#define PYTHON_SYMBOLS(SYMBOL) \
	SYMBOL(8, 99, int, Py_IsInitialized, (void)) \
	SYMBOL(8, 99, int, PyGILState_Ensure, (void)) \
	SYMBOL(8, 99, void, PyGILState_Release, (int)) \
	SYMBOL(8, 11, void *, PyGILState_GetThisThreadState, (void)) \
	SYMBOL(8, 99, void *, PyThreadState_New, (void *)) \
	SYMBOL(8, 99, void *, PyThreadState_Get, (void)) \
	SYMBOL(8, 99, void *, PyThreadState_Swap, (void *)) \
	SYMBOL(8, 99, void *, PyInterpreterState_Main, (void)) \
	SYMBOL(8, 99, void *, PyInterpreterState_ThreadHead, (void *)) \
	SYMBOL(8, 99, void *, PyThreadState_Next, (void *)) \
	SYMBOL(8, 99, void, Py_IncRef, (PyObject *)) \
	SYMBOL(8, 99, void, Py_DecRef, (PyObject *)) \
	SYMBOL(8, 99, void, PyErr_Clear, (void)) \
	SYMBOL(12, 99, int, Py_AddPendingCall, (int (*)(void *), void *)) \
	SYMBOL(12, 99, PyObject *, PySys_GetObject, (const char *)) \
	SYMBOL(12, 99, PyObject *, PyObject_GetAttrString, (PyObject *, const char *)) \
	SYMBOL(12, 99, PyObject *, PyObject_CallFunctionObjArgs, (PyObject *, ...)) \
	SYMBOL(8, 99, PyObject *, PyLong_FromLong, (long)) \
	SYMBOL(8, 99, long, PyLong_AsLong, (PyObject *)) \
	SYMBOL(8, 99, PyObject *, PyUnicode_FromString, (const char *)) \
	SYMBOL(8, 99, PyObject *, PyCFunction_NewEx, (const struct method *, PyObject *, PyObject *)) \
	SYMBOL(8, 99, PyObject *, PyDict_GetItemString, (PyObject *, const char *)) \
	SYMBOL(8, 99, PyObject *, PyImport_GetModuleDict, (void)) \
	SYMBOL(12, 99, PyObject *, PyTuple_Pack, (intptr_t, ...)) \
	SYMBOL(12, 99, PyObject *, PyObject_Vectorcall, (PyObject *, PyObject *const *, size_t, PyObject *)) \
	SYMBOL(8, 99, PyObject *, PyDict_GetItem, (PyObject *, PyObject *)) \
	SYMBOL(8, 99, PyObject *, PyList_New, (intptr_t)) \
	SYMBOL(8, 99, intptr_t, PyList_Size, (PyObject *)) \
	SYMBOL(8, 99, PyObject *, PyList_GetItem, (PyObject *, intptr_t)) \
	SYMBOL(8, 99, int, PyList_Append, (PyObject *, PyObject *)) \
	SYMBOL(8, 99, int, PyList_SetSlice, (PyObject *, intptr_t, intptr_t, PyObject *)) \
	SYMBOL(8, 99, int, PyCode_Addr2Line, (PyObject *, int)) \
	SYMBOL(8, 99, void, PyMem_GetAllocator, (int, struct allocator *)) \
	SYMBOL(8, 99, void, PyMem_SetAllocator, (int, struct allocator *)) \
	SYMBOL(8, 99, void *, PyMem_Malloc, (size_t)) \
	SYMBOL(8, 99, void, PyMem_Free, (void *)) \
	SYMBOL(8, 99, void *, PyObject_Malloc, (size_t)) \
	SYMBOL(8, 99, void, PyObject_Free, (void *)) \
	SYMBOL(8, 12, void *, _PyThreadState_UncheckedGet, (void)) \
	SYMBOL(13, 99, void *, PyThreadState_GetUnchecked, (void)) \
	SYMBOL(9, 11, void *, _PyInterpreterState_GetEvalFrameFunc, (void *)) \
	SYMBOL(9, 11, void, _PyInterpreterState_SetEvalFrameFunc, (void *, void *)) \
	SYMBOL(8, 99, void, PyEval_SetTrace, (trace_function, PyObject *)) \
	SYMBOL(8, 99, int, PyFrame_GetLineNumber, (PyObject *))

struct cpython_layout;
struct allocator;

struct python {
	int minor;
	uint32_t hex; /* PY_VERSION_HEX, its last byte assumed to be a final release's */
	const struct cpython_layout *layout;
	char *runtime;         /* _PyRuntime */
	char *interp;          /* the main interpreter */
	void *eval_default;    /* _PyEval_EvalFrameDefault, up to 3.11 */
	int (*add_pending)(void *interp, int (*call)(void *), void *argument); /* _PyEval_AddPendingCall, 3.9 to 3.11; NULL elsewhere */
	PyObject *none;        /* _Py_NoneStruct */
	PyObject *code_type, *cfunction_type, *unicode_type, *function_type, *method_type, *list_type;
	PyObject *cmethod_type;           /* from 3.9 */
	PyObject *method_descriptor_type;
#define PYTHON_FIELD(from, to, result, name, args) result (*name) args;
	PYTHON_SYMBOLS(PYTHON_FIELD)
#undef PYTHON_FIELD
};

/* Fills PYTHON from this process. 0, or an enum collector_reason with the cause in TEXT. Needs no GIL and touches no object. */
int python_find(struct python *python, char *text, size_t size);
/* Compares what can be seen with the layouts, holding the GIL. 0 or a reason. */
int python_check(const struct python *python, char *text, size_t size);
/* True once the interpreter has begun to end: the GIL must not be asked for any more. */
bool python_ends(const struct python *python);
bool python_audited(const struct python *python);

/* Thread states of the main interpreter, under the GIL. */
char *python_first_thread(const struct python *python);
char *python_next_thread(const struct python *python, char *tstate);
/* The innermost frame of a thread state, shims included, or NULL. */
char *python_top_frame(const struct python *python, char *tstate);
char *python_frame_back(const struct python *python, char *frame);
/* Its code object; NULL for a shim. */
PyObject *python_frame_code(const struct python *python, const char *frame);

static inline void *at_pointer(const void *base, int offset)
{
	return *(void *const *)((const char *)base + offset);
}

static inline int at_int(const void *base, int offset)
{
	return *(const int *)((const char *)base + offset);
}

static inline signed char at_char(const void *base, int offset)
{
	return *((const signed char *)base + offset);
}

#endif
