/*
 * What `with scope("x"):` runs. It stays in a program's hot loops while nobody measures, so that every step counts: no tuple of arguments, no allocation
 * (objects are used again), two stores into the ring of open scopes.
 */
#include "_scopes.h"

#include <pthread.h>

enum { KEPT_MAX = 64 };

struct scope {
	PyObject_HEAD
	struct scope_open open; /* next NULL: not entered */
};

struct scope_table scopes_table = { .magic = SCOPE_MAGIC, .open = { .next = &scopes_table.open, .previous = &scopes_table.open } };
static uint64_t last_id;
static PyObject *decorate, *encode;
static PyTypeObject *ready_type, *scope_type;
/* Memory of scopes that are no more, for the next ones. */
static struct scope *kept[KEPT_MAX];
static int kept_count;

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

/* ---- arguments ---- */

bool arguments_parse(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *keywords, PyObject *out[2])
{
	static const char *const names[] = { "name", "metadata" };
	Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;

	if (count > 2) {
		PyErr_Format(PyExc_TypeError, "%s() takes a name and metadata, not %zd arguments", function, count);
		return false;
	}
	for (Py_ssize_t i = 0; i < count; i++)
		out[i] = args[i];
	for (Py_ssize_t i = 0; i < named; i++) {
		PyObject *keyword = PyTuple_GetItem(keywords, i);
		int which = 0;

		while (which < 2 && PyUnicode_CompareWithASCIIString(keyword, names[which]) != 0)
			which++;
		if (which == 2 || out[which]) {
			PyErr_Format(PyExc_TypeError, which == 2 ? "%s() has no argument %R" : "%s() got %R twice", function, keyword);
			return false;
		}
		out[which] = args[count + i];
	}
	if (!out[0])
		PyErr_Format(PyExc_TypeError, "%s() needs a name", function);
	return out[0] != NULL;
}

/* What the program says of itself must not fail it, least of all only while somebody measures: metadata that cannot be told (a __repr__ that raises) says so. What is no error, a
 * KeyboardInterrupt, is the program's. */
static PyObject *encoded(PyObject *value)
{
	PyObject *text = metadata_simple(value);

	if (!text)
		text = PyObject_CallFunctionObjArgs(encode, value, NULL);
	if (text || !PyErr_ExceptionMatches(PyExc_Exception))
		return text;
	PyErr_Clear();
	return PyUnicode_FromString("<metadata without a repr()>");
}

PyObject *text_of(PyObject *value)
{
	if (!value || value == Py_None)
		return NULL;
	if (PyUnicode_CheckExact(value)) {
		Py_INCREF(value);
		return value;
	}
	if (PyUnicode_Check(value))
		return PyUnicode_FromObject(value);
	if (encode)
		return encoded(value);
	PyErr_SetString(PyExc_TypeError, "metadata is JSON in a str");
	return NULL;
}

/* ---- scopes come and go ---- */

static struct scope *scope_take(void)
{
	if (kept_count)
		return (struct scope *)PyObject_Init((PyObject *)kept[--kept_count], scope_type);
	return PyObject_New(struct scope, scope_type);
}

static PyObject *scope_make(PyObject *name, PyObject *metadata)
{
	PyObject *own_name = text_of(name), *text = metadata ? text_of(metadata) : NULL;
	struct scope *scope = NULL;

	if (own_name && (text || !metadata || !PyErr_Occurred()))
		scope = scope_take();
	if (!scope) {
		Py_XDECREF(own_name);
		Py_XDECREF(text);
		return NULL;
	}
	scope->open.next = NULL;
	scope->open.name = own_name;
	scope->open.metadata = text;
	return (PyObject *)scope;
}

/* @scope without a name: a scope named after the function, around it. */
static PyObject *scope_around(PyObject *function)
{
	PyObject *name = PyObject_GetAttrString(function, "__qualname__"), *scope = NULL, *result = NULL;

	if (name && PyUnicode_Check(name))
		scope = scope_make(name, NULL);
	else if (name)
		PyErr_SetString(PyExc_TypeError, "__qualname__ is no str");
	if (scope)
		result = PyObject_CallFunctionObjArgs(decorate, scope, function, NULL);
	Py_XDECREF(name);
	Py_XDECREF(scope);
	return result;
}

PyObject *scopes_scope(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
	PyObject *given[2] = { NULL, NULL };

	if (!arguments_parse("scope", args, count, keywords, given))
		return NULL;
	if (PyUnicode_CheckExact(given[0]) || PyUnicode_Check(given[0]))
		return scope_make(given[0], given[1]);
	if (!given[1] && decorate && PyCallable_Check(given[0]))
		return scope_around(given[0]);
	PyErr_Format(PyExc_TypeError, "the name of a scope is a str, not %R", (PyObject *)Py_TYPE(given[0]));
	return NULL;
}

static PyObject *scope_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	PyErr_SetString(PyExc_TypeError, "scope(name) makes scopes");
	return NULL;
}

static void unlink_open(struct scope_open *open)
{
	open->next->previous = open->previous;
	open->previous->next = open->next;
	open->next = NULL;
}

/* The threads that entered them stayed with the parent, and new ones may well have their pthread_self(): these would be told as inside of them, for ever. */
PyObject *scopes_forked(PyObject *module, PyObject *none)
{
	uint64_t own = (uint64_t)pthread_self();
	struct scope_open *head = &scopes_table.open, *next;

	for (struct scope_open *open = head->next; open != head; open = next) {
		next = open->next;
		if (open->pthread != own)
			unlink_open(open);
	}
	Py_INCREF(Py_None);
	return Py_None;
}

static void scope_dealloc(PyObject *self)
{
	struct scope *scope = (struct scope *)self;
	PyTypeObject *type = Py_TYPE(self);

	if (scope->open.next)
		unlink_open(&scope->open); /* it was never left */
	Py_DECREF((PyObject *)scope->open.name);
	Py_XDECREF((PyObject *)scope->open.metadata);
	if (kept_count < KEPT_MAX)
		kept[kept_count++] = scope;
	else
		PyObject_Free(self);
	Py_DECREF(type);
}

/* ---- in and out ---- */

static int scope_begin(struct scope *scope)
{
	struct scope_open *open = &scope->open, *head = &scopes_table.open;

	if (__builtin_expect(open->next != NULL, 0)) {
		PyErr_Format(PyExc_RuntimeError, "scope %R is open already: make another one", (PyObject *)open->name);
		return -1;
	}
	open->id = ++last_id;
	open->pthread = (uint64_t)pthread_self();
	open->next = head;
	open->previous = head->previous;
	open->previous->next = open;
	head->previous = open;
	if (__builtin_expect(scopes_table.enter != NULL, 0))
		scopes_table.enter(open);
	return 0;
}

static void scope_end(struct scope *scope)
{
	if (!scope->open.next)
		return;
	unlink_open(&scope->open);
	if (__builtin_expect(scopes_table.leave != NULL, 0))
		scopes_table.leave(scope->open.id);
}

static PyObject *scope_enter(PyObject *self, PyObject *none)
{
	if (scope_begin((struct scope *)self) < 0)
		return NULL;
	Py_INCREF(self);
	return self;
}

static PyObject *scope_exit(PyObject *self, PyObject *const *exception, Py_ssize_t count)
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

/* ---- the type ---- */

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
	{ "__enter__", scope_enter, METH_NOARGS, NULL },
	{ "__exit__", (PyCFunction)(void (*)(void))scope_exit, METH_FASTCALL, NULL },
	{ "__aenter__", scope_aenter, METH_NOARGS, NULL },
	{ "__aexit__", scope_aexit, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};
static PyGetSetDef scope_attributes[] = {
	{ "name", scope_name, NULL, "its name", NULL }, { "metadata", scope_metadata, NULL, "its metadata as JSON, or None", NULL }, { NULL, NULL, NULL, NULL, NULL },
};
static const char scope_doc[] = "What scope(name) makes: `with`, `async with`, or a decorator.";
static PyType_Slot scope_slots[] = {
	{ Py_tp_doc, (void *)scope_doc }, { Py_tp_new, scope_new }, { Py_tp_dealloc, scope_dealloc }, { Py_tp_methods, scope_methods },
	{ Py_tp_getset, scope_attributes }, { Py_tp_call, scope_call }, { Py_tp_repr, scope_repr }, { 0, NULL },
};
static PyType_Spec scope_spec = { "inferscope._native.Scope", sizeof(struct scope), 0, Py_TPFLAGS_DEFAULT, scope_slots };

PyObject *scopes_type_make(void)
{
	ready_type = (PyTypeObject *)PyType_FromSpec(&ready_spec);
	scope_type = ready_type ? (PyTypeObject *)PyType_FromSpec(&scope_spec) : NULL;
	Py_XINCREF((PyObject *)scope_type);
	return (PyObject *)scope_type;
}

void scopes_set_helpers(PyObject *to_decorate, PyObject *to_encode)
{
	Py_INCREF(to_decorate);
	Py_INCREF(to_encode);
	Py_XDECREF(decorate);
	Py_XDECREF(encode);
	decorate = to_decorate;
	encode = to_encode;
}
