/*
 * The module: scope() and mark_event(), what a program says of itself, told to the collector while one is in the process. Stable ABI of CPython 3.8.
 * How the two find each other is in abi/scope.h; scopes are _scopes.c's.
 */
#include "_scopes.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/prctl.h>

/* Nothing is made of the metadata while nobody is told. */
static PyObject *mark_event(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
	PyObject *given[2] = { NULL, NULL }, *name, *text;

	if (!arguments_parse("mark_event", args, count, keywords, given))
		return NULL;
	if (!PyUnicode_CheckExact(given[0]) && !PyUnicode_Check(given[0])) {
		PyErr_Format(PyExc_TypeError, "the name of a mark is a str, not %R", (PyObject *)Py_TYPE(given[0]));
		return NULL;
	}
	if (scopes_table.instant) {
		text = text_of(given[1]);
		name = PyErr_Occurred() ? NULL : text_of(given[0]);
		if (name && scopes_table.instant) /* encode() may have let others run */
			scopes_table.instant(name, text);
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
	return PyBool_FromLong(scopes_table.enter != NULL);
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
	scopes_set_helpers(first, second);
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

static const char scope_doc[] = "scope(name, metadata=None)\n--\n\nA part of the program's work that reports know by name: `with scope(\"inference\"):`, `async with`, or a decorator, `@scope(\"inference\")`\n"
	"or `@scope`. metadata: anything, told as JSON; beyond 1000 bytes it is cut. Costs next to nothing while nobody measures this process.";
static const char mark_event_doc[] = "mark_event(name, metadata=None)\n--\n\nSays that something happened now. metadata: anything, told as JSON; beyond 1000 bytes it is cut.\n"
	"Costs next to nothing while nobody measures this process.";

static PyMethodDef functions[] = {
	{ "scope", (PyCFunction)(void (*)(void))scopes_scope, METH_FASTCALL | METH_KEYWORDS, scope_doc },
	{ "mark_event", (PyCFunction)(void (*)(void))mark_event, METH_FASTCALL | METH_KEYWORDS, mark_event_doc },
	{ "attached", attached, METH_NOARGS, "Is a collector at work in this process?" },
	{ "forked", scopes_forked, METH_NOARGS, NULL },
	{ "set_helpers", set_helpers, METH_VARARGS, NULL },
	{ "allow_tracer", allow_tracer, METH_VARARGS, NULL },
	{ "enter", enter, METH_VARARGS, NULL },
	{ "leave", leave, METH_NOARGS, NULL },
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
	PyObject *type = scopes_type_make(), *capsule = PyCapsule_New(&scopes_table, SCOPE_MODULE "." SCOPE_CAPSULE, NULL);

	return !type || !capsule || PyModule_AddObject(module, "Scope", type) < 0 || PyModule_AddObject(module, SCOPE_CAPSULE, capsule) < 0 ? -1 : 0;
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
		scopes(&scopes_table);
	return module;
}
