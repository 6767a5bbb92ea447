/*
 * Collections of garbage, in the lane of the thread that ran each: by an entry of ours at the end of gc.callbacks, a C function that runs no
 * Python code, allocates nothing and never fails. It is recognised by its method, so that one that the program copied or put back is ours still.
 */
#include "collector/collector.h"

#include <errno.h>

#include "abi/cpython.h"

enum { STOP_LENGTH = 4, START_LENGTH = 5, CALL_NS = 300 /* a call with its dict, which the interpreter makes for us alone where no other callback is */ };

static PyObject *on_collection(PyObject *self, PyObject *const *args, size_t count, PyObject *names);

static const struct method method = {"inferscope", on_collection, METHOD_FASTCALL, NULL};

/* 3.8 has one collector for all interpreters. */
static char *state(void)
{
	return the.python.minor == 8 ? the.python.runtime : the.python.interp;
}

/* The list that gc.callbacks is; NULL up to 3.11 while nobody has imported gc, or when it is no list. */
static PyObject *callbacks(void)
{
	PyObject *list = at_pointer(state(), the.python.layout->gc_callbacks);

	return list && at_pointer(list, the.python.layout->object_type) == the.python.list_type ? list : NULL;
}

static bool is_ours(PyObject *entry)
{
	return at_pointer(entry, the.python.layout->object_type) == the.python.cfunction_type && at_pointer(entry, the.python.layout->cfunction_def) == &method;
}

/* The place of our entry, or -1. */
static intptr_t find(PyObject *list)
{
	for (intptr_t i = the.python.PyList_Size(list); i-- > 0;)
		if (is_ours(the.python.PyList_GetItem(list, i)))
			return i;
	return -1;
}

/*
 * Takes our entry out, unless that could keep another from being called: a collection that goes through the list right now, and has let go of the
 * GIL in some callback, goes on by number.
 */
static bool take_out(void)
{
	PyObject *list = callbacks();
	intptr_t at;

	while (list && (at = find(list)) >= 0) {
		if (at + 1 < the.python.PyList_Size(list) && at_int(state(), the.python.layout->gc_collecting))
			return false;
		if (the.python.PyList_SetSlice(list, at, at + 1, NULL)) {
			the.python.PyErr_Clear();
			return false;
		}
	}
	return true;
}

static uint64_t value_of(PyObject *info, enum garbage_key key)
{
	PyObject *value = the.python.PyDict_GetItem(info, the.garbage.keys[key]); /* borrowed */
	long number = value ? the.python.PyLong_AsLong(value) : 0;

	if (number == -1)
		the.python.PyErr_Clear();
	return number > 0 ? (uint64_t)number : 0;
}

static void tell(PyObject *info, uint64_t now)
{
	struct lane *lane = lane_attach();
	uint64_t payload[] = {ticks_to_ns(now - the.garbage.began), value_of(info, GARBAGE_COLLECTED), value_of(info, GARBAGE_UNCOLLECTABLE)};

	if (!lane)
		the.page->lane_overflow++;
	else if (lane_put_with(lane, now, (uint32_t)value_of(info, GARBAGE_GENERATION), EVENT_GC, payload, sizeof payload))
		lane_charge(lane, 2 * CALL_NS);
}

/* args: "start" or "stop", and a dict. Told by their lengths; a program may call us with anything. */
static PyObject *on_collection(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	const struct cpython_layout *layout = the.python.layout;
	uint64_t now = ticks_now();
	int saved = errno;
	intptr_t length = count == 2 && at_pointer(args[0], layout->object_type) == the.python.unicode_type ? *(const intptr_t *)((const char *)args[0] + layout->unicode_length) : 0;

	if (!may_tell(now)) {
		the.garbage.began = 0;
		take_out();
	} else if (length == START_LENGTH) {
		the.garbage.began = now;
	} else if (length == STOP_LENGTH && the.garbage.began && the.garbage.keys[GARBAGE_GENERATION]) {
		tell(args[1], now);
		the.garbage.began = 0;
	}
	errno = saved;
	the.python.Py_IncRef(the.python.none);
	return the.python.none;
}

static bool make_keys(void)
{
	static const char *const names[GARBAGE_KEYS] = {"generation", "collected", "uncollectable"};
	bool made = true;

	for (int i = 0; i < GARBAGE_KEYS; i++) {
		the.garbage.keys[i] = the.python.PyUnicode_FromString(names[i]);
		made &= the.garbage.keys[i] != NULL;
	}
	return made;
}

/* Up to 3.11 the module gc makes the list when it is imported, or takes the one that it finds. */
static PyObject *callbacks_made(void)
{
	if (!at_pointer(state(), the.python.layout->gc_callbacks))
		*(PyObject **)(state() + the.python.layout->gc_callbacks) = the.python.PyList_New(0);
	return callbacks();
}

static bool put_in(PyObject *list)
{
	PyObject *entry = the.python.PyCFunction_NewEx(&method, NULL, NULL);
	bool added = entry && !the.python.PyList_Append(list, entry);

	object_drop(&entry);
	return added;
}

void garbage_begin(void)
{
	PyObject *list;

	if (!the.settings.gc)
		return;
	the.garbage.began = 0;
	list = callbacks_made();
	if (list && make_keys() && (find(list) >= 0 || put_in(list))) {
		the.page->gc_state = GC_TOLD;
		return;
	}
	the.python.PyErr_Clear();
	the.page->gc_state = GC_UNKNOWN;
}

void garbage_end(void)
{
	if (!take_out())
		the.page->gc_state = GC_LEFT;
	for (int i = 0; i < GARBAGE_KEYS; i++)
		object_drop(&the.garbage.keys[i]);
}
