/*
 * scope() and mark_event(): what a program says of itself, told to the collector while one is in the process, and next to nothing otherwise. Stable ABI
 * of CPython 3.8. How the two find each other is in abi/scope.h.
 */
#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>

#include "abi/scope.h"

static struct scope_table table = { .magic = SCOPE_MAGIC, .open = { .next = &table.open, .previous = &table.open } };
static uint64_t last_id;
/* Of Python: decorate(scope, function); encode(metadata) gives JSON in a str. Set by set_helpers(). */
static PyObject *decorate, *encode;
static PyTypeObject *ready_type;
static PyObject *(*scope_alloc)(PyTypeObject *, Py_ssize_t);
static freefunc scope_free;

/* ---- an awaitable that is done ---- */

struct ready {
	PyObject_HEAD
	PyObject *value;
};

static PyObject *ready_new(PyObject *value)
{
	struct ready *ready = PyObject_New(struct ready, ready_type);

	if (!ready)
		return NULL;
	Py_INCREF(value);
	ready->value = value;
	return (PyObject *)ready;
}

static PyObject *ready_self(PyObject *self)
{
	Py_INCREF(self);
	return self;
}

static PyObject *ready_next(PyObject *self)
{
	PyErr_SetObject(PyExc_StopIteration, ((struct ready *)self)->value);
	return NULL;
}

static void ready_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	Py_XDECREF(((struct ready *)self)->value);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyType_Slot ready_slots[] = {
	{ Py_am_await, ready_self }, { Py_tp_iter, ready_self }, { Py_tp_iternext, ready_next }, { Py_tp_dealloc, ready_dealloc }, { 0, NULL },
};
static PyType_Spec ready_spec = { "inferscope._native.ready", sizeof(struct ready), 0, Py_TPFLAGS_DEFAULT, ready_slots };

/* ---- scopes ---- */

struct scope {
	PyObject_HEAD
	struct scope_open open; /* next NULL: not entered */
};

/* A new reference to a str that is one by itself: what the collector reads is its layout. NULL without an exception for None. */
static PyObject *text_of(PyObject *value)
{
	if (!value || value == Py_None)
		return NULL;
	if (PyUnicode_Check(value))
		return PyUnicode_FromObject(value);
	if (encode)
		return PyObject_CallFunctionObjArgs(encode, value, NULL);
	PyErr_SetString(PyExc_TypeError, "metadata is JSON in a str");
	return NULL;
}

static struct scope *scope_make(PyTypeObject *type, PyObject *name, PyObject *metadata)
{
	PyObject *text = text_of(metadata);
	struct scope *scope;

	if (!text && PyErr_Occurred())
		return NULL;
	scope = (struct scope *)scope_alloc(type, 0);
	if (!scope) {
		Py_XDECREF(text);
		return NULL;
	}
	scope->open.name = text_of(name);
	scope->open.metadata = text;
	return scope;
}

/* @scope without a name: a scope named after the function, around it. */
static PyObject *scope_around(PyTypeObject *type, PyObject *function)
{
	PyObject *name = PyObject_GetAttrString(function, "__qualname__"), *scope = NULL, *result = NULL;

	if (name && PyUnicode_Check(name))
		scope = (PyObject *)scope_make(type, name, NULL);
	else if (name)
		PyErr_SetString(PyExc_TypeError, "__qualname__ is no str");
	if (scope)
		result = PyObject_CallFunctionObjArgs(decorate, scope, function, NULL);
	Py_XDECREF(name);
	Py_XDECREF(scope);
	return result;
}

/* scope(name, metadata=None), or scope(function) */
static PyObject *scope_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "name", "metadata", NULL };
	PyObject *name, *metadata = NULL;

	if (!kwargs && PyTuple_Size(args) == 1)
		name = PyTuple_GetItem(args, 0);
	else if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:scope", names, &name, &metadata))
		return NULL;
	if (__builtin_expect(PyUnicode_Check(name), 1))
		return (PyObject *)scope_make(type, name, metadata);
	if (!metadata && decorate && PyCallable_Check(name))
		return scope_around(type, name);
	PyErr_Format(PyExc_TypeError, "the name of a scope is a str, not %R", (PyObject *)Py_TYPE(name));
	return NULL;
}

static void unlink_open(struct scope_open *open)
{
	open->next->previous = open->previous;
	open->previous->next = open->next;
	open->next = open->previous = NULL;
}

static void scope_dealloc(PyObject *self)
{
	struct scope *scope = (struct scope *)self;
	PyTypeObject *type = Py_TYPE(self);

	if (scope->open.next)
		unlink_open(&scope->open); /* it was never left */
	Py_XDECREF((PyObject *)scope->open.name);
	Py_XDECREF((PyObject *)scope->open.metadata);
	scope_free(self);
	Py_DECREF(type);
}

static int scope_begin(struct scope *scope)
{
	struct scope_open *open = &scope->open;

	if (__builtin_expect(open->next != NULL, 0)) {
		PyErr_Format(PyExc_RuntimeError, "scope %R is open already: make another one", (PyObject *)open->name);
		return -1;
	}
	open->id = ++last_id;
	open->pthread = (uint64_t)pthread_self();
	open->next = &table.open;
	open->previous = table.open.previous;
	open->previous->next = open;
	table.open.previous = open;
	if (__builtin_expect(table.enter != NULL, 0))
		table.enter(open);
	return 0;
}

static void scope_end(struct scope *scope)
{
	if (!scope->open.next)
		return;
	unlink_open(&scope->open);
	if (__builtin_expect(table.leave != NULL, 0))
		table.leave(scope->open.id);
}

static PyObject *scope_enter(PyObject *self, PyObject *none)
{
	if (scope_begin((struct scope *)self) < 0)
		return NULL;
	Py_INCREF(self);
	return self;
}

static PyObject *scope_exit(PyObject *self, PyObject *exception)
{
	scope_end((struct scope *)self);
	Py_INCREF(Py_None);
	return Py_None;
}

static PyObject *scope_aenter(PyObject *self, PyObject *none)
{
	return scope_begin((struct scope *)self) < 0 ? NULL : ready_new(self);
}

static PyObject *scope_aexit(PyObject *self, PyObject *exception)
{
	scope_end((struct scope *)self);
	return ready_new(Py_None);
}

static PyObject *scope_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *function;

	if (!PyArg_ParseTuple(args, "O:scope", &function))
		return NULL;
	return PyObject_CallFunctionObjArgs(decorate, self, function, NULL);
}

static PyObject *attribute(void *value)
{
	PyObject *result = value ? (PyObject *)value : Py_None;

	Py_INCREF(result);
	return result;
}

static PyObject *scope_name(PyObject *self, void *closure)
{
	return attribute(((struct scope *)self)->open.name);
}

static PyObject *scope_metadata(PyObject *self, void *closure)
{
	return attribute(((struct scope *)self)->open.metadata);
}

static PyObject *scope_repr(PyObject *self)
{
	return PyUnicode_FromFormat("<scope %R%s>", (PyObject *)((struct scope *)self)->open.name, ((struct scope *)self)->open.next ? ", open" : "");
}

static PyMethodDef scope_methods[] = {
	{ "__enter__", scope_enter, METH_NOARGS, NULL }, { "__exit__", scope_exit, METH_VARARGS, NULL },
	{ "__aenter__", scope_aenter, METH_NOARGS, NULL }, { "__aexit__", scope_aexit, METH_VARARGS, NULL }, { NULL, NULL, 0, NULL },
};
static PyGetSetDef scope_attributes[] = {
	{ "name", scope_name, NULL, "its name", NULL }, { "metadata", scope_metadata, NULL, "its metadata as JSON, or None", NULL }, { NULL, NULL, NULL, NULL, NULL },
};
static const char scope_doc[] = "scope(name, metadata=None)\n--\n\nA part of the program's work that reports know by name: `with scope(\"inference\"):`, `async with`, or a decorator, `@scope(\"inference\")`\n"
	"or `@scope`. metadata: anything that JSON can hold; beyond 1000 bytes it is cut. Costs next to nothing while nobody measures this process.";

static PyType_Slot scope_slots[] = {
	{ Py_tp_doc, (void *)scope_doc },
	{ Py_tp_new, scope_new }, { Py_tp_dealloc, scope_dealloc }, { Py_tp_methods, scope_methods }, { Py_tp_getset, scope_attributes }, { Py_tp_call, scope_call }, { Py_tp_repr, scope_repr },
	{ 0, NULL },
};
static PyType_Spec scope_spec = { "inferscope._native.scope", sizeof(struct scope), 0, Py_TPFLAGS_DEFAULT, scope_slots };

/* ---- functions ---- */

/* Nothing is made of the metadata while nobody is told. */
static PyObject *mark_event(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "name", "metadata", NULL };
	PyObject *name, *metadata = NULL, *text;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|O:mark_event", names, &name, &metadata))
		return NULL;
	if (table.instant) {
		text = text_of(metadata);
		name = PyErr_Occurred() ? NULL : text_of(name);
		if (name && table.instant) /* encode() may have let others run */
			table.instant(name, text);
		Py_XDECREF(text);
		if (!name)
			return NULL;
		Py_DECREF(name);
	}
	Py_INCREF(Py_None);
	return Py_None;
}

static PyObject *attached(PyObject *module, PyObject *none)
{
	return PyBool_FromLong(table.enter != NULL);
}

/* Not all of the names are in the stable ABI, nor in 3.8. */
static bool in_main_interpreter(void)
{
	void *current = dlsym(RTLD_DEFAULT, "PyInterpreterState_Get"), *number = dlsym(RTLD_DEFAULT, "PyInterpreterState_GetID");
	void *(*get)(void);
	int64_t (*id)(void *);

	if (!current)
		current = dlsym(RTLD_DEFAULT, "_PyInterpreterState_Get");
	if (!current || !number)
		return true;
	memcpy(&get, &current, sizeof get);
	memcpy(&id, &number, sizeof id);
	return id(get()) == 0;
}

/* One interpreter's objects must not be used in another one, and helpers and the ring of open scopes are the process's. From 3.12 on those with a GIL of
 * their own do not get as far as here. */
static PyObject *set_helpers(PyObject *module, PyObject *args)
{
	PyObject *first, *second;

	if (!PyArg_ParseTuple(args, "OO:set_helpers", &first, &second))
		return NULL;
	if (!in_main_interpreter()) {
		PyErr_SetString(PyExc_ImportError, "inferscope: sub-interpreters are not supported: import it in the main interpreter");
		return NULL;
	}
	Py_XDECREF(decorate);
	Py_XDECREF(encode);
	decorate = first;
	encode = second;
	Py_INCREF(decorate);
	Py_INCREF(encode);
	Py_INCREF(Py_None);
	return Py_None;
}

/* Lets PID trace this process, where Yama asks for that; -1: anybody of this user; 0: nobody but ancestors. */
static PyObject *allow_tracer(PyObject *module, PyObject *args)
{
	long pid;

	if (!PyArg_ParseTuple(args, "l:allow_tracer", &pid))
		return NULL;
	return PyBool_FromLong(prctl(PR_SET_PTRACER, pid, 0, 0, 0) == 0);
}

static const char mark_event_doc[] = "mark_event(name, metadata=None)\n--\n\nSays that something happened now. metadata: anything that JSON can hold; beyond 1000 bytes it is cut.\n"
	"Costs next to nothing while nobody measures this process.";

static PyMethodDef functions[] = {
	{ "mark_event", (PyCFunction)(void (*)(void))mark_event, METH_VARARGS | METH_KEYWORDS, mark_event_doc },
	{ "attached", attached, METH_NOARGS, "Is a collector at work in this process?" },
	{ "set_helpers", set_helpers, METH_VARARGS, NULL },
	{ "allow_tracer", allow_tracer, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

/* A collector that is loaded already: it has the name of the file that it came from, a memfd's. */
static int collector_tell(struct dl_phdr_info *info, size_t size, void *context)
{
	void (*scopes)(struct scope_table *);
	void *library, *symbol;

	if (strncmp(info->dlpi_name, "/proc/self/fd/", 14) != 0)
		return 0;
	library = dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
	symbol = library ? dlsym(library, SCOPE_REGISTER) : NULL;
	if (symbol) {
		memcpy(&scopes, &symbol, sizeof scopes);
		((void (**)(struct scope_table *))context)[0] = scopes;
	}
	if (library)
		dlclose(library);
	return 0;
}

static int module_fill(PyObject *module)
{
	PyObject *type = PyType_FromSpec(&scope_spec), *capsule = PyCapsule_New(&table, SCOPE_MODULE "." SCOPE_CAPSULE, NULL);

	ready_type = (PyTypeObject *)PyType_FromSpec(&ready_spec);
	if (!type || !capsule || !ready_type || PyModule_AddObject(module, "scope", type) < 0 || PyModule_AddObject(module, SCOPE_CAPSULE, capsule) < 0)
		return -1;
	scope_alloc = (PyObject * (*)(PyTypeObject *, Py_ssize_t)) PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
	scope_free = (freefunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_free);
	return 0;
}

static struct PyModuleDef definition = { PyModuleDef_HEAD_INIT, SCOPE_MODULE, "Scopes and marks, for the collector", -1, functions, NULL, NULL, NULL, NULL };

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void)
{
	PyObject *module = PyModule_Create(&definition);
	void (*scopes)(struct scope_table *) = NULL;

	if (!module)
		return NULL;
	if (module_fill(module) < 0) {
		Py_DECREF(module);
		return NULL;
	}
	dl_iterate_phdr(collector_tell, &scopes);
	if (scopes)
		scopes(&table);
	return module;
}
