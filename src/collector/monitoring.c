/*
 * sys.monitoring, 3.12 and later: tool ids and events, for every thread and all code of the main interpreter. What the callbacks write is monitored.c's business.
 *
 * Events disabled at a place come back only when our tool loses its events *and that code runs* before it gets them again; so where windows are
 * ended by DISABLE (there is no switch thread to open the next), two tool ids take turns; a session begins with the other one
 * than the last session ended with, for the same reason.
 */
#include "collector/monitoring.h"

#include <string.h>

#include "abi/cpython.h"

/* Calls FUNCTION with up to three arguments and forgets what it says. */
static bool call(PyObject *function, PyObject *a, PyObject *b, PyObject *c)
{
	PyObject *result = the.python.PyObject_CallFunctionObjArgs(function, a, b, c, NULL);

	if (!result) {
		the.python.PyErr_Clear();
		return false;
	}
	the.python.Py_DecRef(result);
	return true;
}

static bool make_callbacks(PyObject *events)
{
	struct monitoring *m = &the.monitoring;
	long all = 0;

	for (int i = 0; i < MONITORED_ROWS; i++) {
		if (!monitored[i].wanted())
			continue;
		m->events[i] = the.python.PyObject_GetAttrString(events, monitored[i].name);
		m->callbacks[i] = the.python.PyCFunction_NewEx(&monitored[i].method, NULL, NULL);
		if (!m->events[i] || !m->callbacks[i])
			return false;
		*(vector_function *)((char *)m->callbacks[i] + the.python.layout->cfunction_vectorcall) = monitored[i].method.function;
		all |= the.python.PyLong_AsLong(m->events[i]);
	}
	m->no_events = the.python.PyLong_FromLong(0);
	m->all_events = the.python.PyLong_FromLong(all);
	return m->no_events && m->all_events;
}

/* Only ids that belong to no kind of tool: a debugger, coverage or profiler that starts later must find its own free. */
static bool take_tools(PyObject *use_tool_id, int wanted)
{
	const long ids[] = {the.last_tool == 4 ? 3 : 4, the.last_tool == 4 ? 4 : 3};
	struct monitoring *m = &the.monitoring;
	PyObject *name = the.python.PyUnicode_FromString("inferscope");

	for (size_t i = 0; name && i < sizeof ids / sizeof *ids && m->tool_count < wanted; i++) {
		PyObject *id = the.python.PyLong_FromLong(ids[i]);

		if (id && call(use_tool_id, id, name, NULL)) {
			m->tools[m->tool_count++] = id;
		} else {
			the.python.PyErr_Clear();
			object_drop(&id);
		}
	}
	object_drop(&name);
	m->tool = m->tool_count - 1; /* the first window takes the next */
	return m->tool_count > 0;
}

static bool register_callbacks(void)
{
	struct monitoring *m = &the.monitoring;

	for (int t = 0; t < m->tool_count; t++)
		for (int i = 0; i < MONITORED_ROWS; i++)
			if (m->events[i] && !call(m->register_callback, m->tools[t], m->events[i], m->callbacks[i]))
				return false;
	return true;
}

/* In a forked child, by way of os.register_at_fork: nothing of ours may fire there any more that would give back the tool id. */
static PyObject *in_forked_child(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	if (the.child && the.monitoring.set_events)
		monitoring_remove();
	return the.python.none;
}

/* Once in a process, for it cannot be taken back. Where it fails, the first callback in the child gives back what there is. */
static void tell_of_forks(void)
{
	static const struct method method = {"inferscope", in_forked_child, METHOD_FASTCALL, NULL};
	PyObject *modules = the.python.PySys_GetObject("modules"), *posix, *tell, *argument, *name, *names, *done; /* the first two borrowed */

	if (the.fork_told)
		return;
	posix = modules ? the.python.PyDict_GetItemString(modules, "posix") : NULL;
	tell = posix ? the.python.PyObject_GetAttrString(posix, "register_at_fork") : NULL;
	argument = the.python.PyCFunction_NewEx(&method, NULL, NULL);
	name = the.python.PyUnicode_FromString("after_in_child");
	names = name ? the.python.PyTuple_Pack(1, name) : NULL;
	done = tell && argument && names ? the.python.PyObject_Vectorcall(tell, &argument, 0, names) : NULL;
	the.fork_told = done != NULL;
	object_drop(&done);
	object_drop(&names);
	object_drop(&name);
	object_drop(&argument);
	object_drop(&tell);
	the.python.PyErr_Clear();
}

static int fail_install(int reason, const char *why, char *text, size_t size)
{
	the.python.PyErr_Clear();
	monitoring_remove();
	text_set(text, size, why);
	return reason;
}

static int install(char *text, size_t size)
{
	struct monitoring *m = &the.monitoring;
	PyObject *module = the.python.PySys_GetObject("monitoring"), *events, *use_tool_id; /* borrowed */
	bool made, taken;

	if (m->set_events)
		monitoring_remove(); /* a forked child is attached, and has not come by to give back what it inherited */
	memset(m, 0, sizeof *m);
	if (!module)
		return fail_install(REASON_SYMBOLS, "sys.monitoring is not there", text, size);
	m->set_events = the.python.PyObject_GetAttrString(module, "set_events");
	m->register_callback = the.python.PyObject_GetAttrString(module, "register_callback");
	m->free_tool_id = the.python.PyObject_GetAttrString(module, "free_tool_id");
	m->disable = the.python.PyObject_GetAttrString(module, "DISABLE");
	events = the.python.PyObject_GetAttrString(module, "events");
	use_tool_id = the.python.PyObject_GetAttrString(module, "use_tool_id");
	made = m->set_events && m->register_callback && m->free_tool_id && m->disable && events && use_tool_id && make_callbacks(events);
	taken = made && take_tools(use_tool_id, the.settings.may_start_thread ? 1 : MONITORING_TOOLS);
	object_drop(&events);
	object_drop(&use_tool_id);
	if (!made)
		return fail_install(REASON_PYTHON_ERROR, "sys.monitoring is not what it should be", text, size);
	if (!taken)
		return fail_install(REASON_TOOL_IDS_TAKEN, "other tools have the free tool ids 3 and 4 of sys.monitoring", text, size);
	if (!register_callbacks())
		return fail_install(REASON_AUDIT_HOOK, "an audit hook of the program refuses sys.monitoring.register_callback", text, size);
	tell_of_forks();
	return 0;
}

static bool hook_open(void)
{
	struct monitoring *m = &the.monitoring;

	if (m->tool_count > 1) {
		call(m->set_events, m->tools[m->tool], m->no_events, NULL);
		m->tool = !m->tool;
	}
	the.last_tool = the.python.PyLong_AsLong(m->tools[m->tool]);
	return call(m->set_events, m->tools[m->tool], m->all_events, NULL);
}

/* Without a switch thread the places stay armed until each has said DISABLE once: some that are rare go on firing, and open the
 * next window in time. */
static void hook_close(void)
{
	struct monitoring *m = &the.monitoring;

	if (the.switcher_made || the.dead)
		call(m->set_events, m->tools[m->tool], m->no_events, NULL);
}

void monitoring_remove(void)
{
	struct monitoring *m = &the.monitoring;

	for (int t = 0; t < m->tool_count; t++) {
		call(m->set_events, m->tools[t], m->no_events, NULL);
		for (int i = 0; i < MONITORED_ROWS; i++)
			if (m->events[i])
				call(m->register_callback, m->tools[t], m->events[i], the.python.none);
		call(m->free_tool_id, m->tools[t], NULL, NULL);
		object_drop(&m->tools[t]);
	}
	for (int i = 0; i < MONITORED_ROWS; i++) {
		object_drop(&m->events[i]);
		object_drop(&m->callbacks[i]);
	}
	object_drop(&m->set_events);
	object_drop(&m->register_callback);
	object_drop(&m->free_tool_id);
	object_drop(&m->no_events);
	object_drop(&m->all_events);
	object_drop(&m->disable);
	m->tool_count = 0;
}

const struct hooks hooks_monitoring = {
	.kind = BACKEND_MONITORING,
	.install = install,
	.open = hook_open,
	.close = hook_close,
	.remove = monitoring_remove,
	.cost_factor = {[12] = 1200, [13] = 1200, [14] = 1200, [15] = 1200},
	.counts = {[12] = true, [13] = true, [14] = true, [15] = true},
	.leaves_out = true,
};

const struct hooks hooks_monitoring_lines = {
	.kind = BACKEND_SETTRACE,
	.install = install,
	.open = hook_open,
	.close = hook_close,
	.remove = monitoring_remove,
	.cost_factor = {[12] = 2000, [13] = 2000, [14] = 2000, [15] = 2000},
};
