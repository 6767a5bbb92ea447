/*
 * sys.monitoring, 3.12 and later: callbacks that are C functions, for every thread and all code of the main interpreter.
 *
 * A callback is a builtin whose vectorcall slot points straight to us, which saves the interpreter's own wrapper. DISABLE is
 * never returned from PY_UNWIND or PY_THROW: that raises ValueError in the user's program (3.12-3.14). Events disabled at a
 * place come back only when our tool loses its events *and that code runs* before it gets them again; so where windows are
 * ended by DISABLE (there is no switch thread to open the next), two tool ids take turns.
 */
#include "collector/collector.h"

#include <errno.h>
#include <string.h>

#include "abi/cpython.h"

/* Numbers are looked up by name in sys.monitoring.events: some moved in 3.14. */
#define EVENTS(ROW) \
	ROW(START, "PY_START", on_start) ROW(RESUME, "PY_RESUME", on_resume) ROW(RETURN, "PY_RETURN", on_return) \
	ROW(YIELD, "PY_YIELD", on_yield) ROW(UNWIND, "PY_UNWIND", on_unwind) ROW(THROW, "PY_THROW", on_throw)

static void remove_all(void);

static PyObject *disable(void)
{
	the.python.Py_IncRef(the.monitoring.disable);
	return the.monitoring.disable;
}

/* None is immortal here: no reference to count. */
static inline PyObject *none(void)
{
	return the.python.none;
}

/* Hooks are off, but this place still fires. */
static __attribute__((noinline)) PyObject *refuse(bool may_disable)
{
	int saved = errno;

	if (the.child && the.monitoring.set_events)
		remove_all();
	errno = saved;
	return may_disable && the.armed && the.monitoring.disable ? disable() : none();
}

/* First event of this thread in this window: its stack is said, without a frame that is only about to begin. */
static __attribute__((noinline)) struct lane *enter_window(PyObject *code, bool begins, uint64_t now)
{
	char *frame = python_top_frame(&the.python, the.python.PyThreadState_Get());

	while (frame && !python_frame_code(&the.python, frame))
		frame = python_frame_back(&the.python, frame);
	if (begins && frame && python_frame_code(&the.python, frame) == code)
		frame = python_frame_back(&the.python, frame);
	return lane_enter_window(frame, now);
}

static inline __attribute__((always_inline)) PyObject *record(PyObject *object, uint8_t kind, uint8_t flags, bool begins, bool may_disable)
{
	uint64_t now = ticks_now(), window = the.window;
	struct lane *lane = lane_mine;
	uint32_t ref;

	if (!hook_may_record(now))
		return refuse(may_disable);
	if (__builtin_expect(window != the.window, 0) && lane_is_mine(lane))
		lane->window = 0; /* a window opened right here: its seeds hold the frame of this event, say them anew */
	ref = code_find_in(&the.codes, object)->ref;
	if (__builtin_expect(!ref, 0)) {
		if (lane_is_mine(lane))
			the.page->lanes[lane->slot].skipped += begins;
		return may_disable ? disable() : none();
	}
	if (__builtin_expect(!lane_is_mine(lane) || lane->window != the.window, 0)) {
		lane = enter_window(object, begins, now);
		if (!lane)
			return none();
	}
	if (begins)
		lane_push(lane, now, ref, kind);
	else
		lane_pop(lane, now, ref, kind, flags);
	return none();
}

#define CALLBACK(name, kind, flags, begins, may_disable) \
	static PyObject *name(PyObject *self, PyObject *const *args, size_t count, PyObject *names) \
	{ \
		return record(args[0], kind, flags, begins, may_disable); \
	}
CALLBACK(on_start, EVENT_PY_ENTER, 0, true, true)
CALLBACK(on_resume, EVENT_PY_RESUME, 0, true, true)
CALLBACK(on_return, EVENT_PY_LEAVE, 0, false, true)
CALLBACK(on_yield, EVENT_PY_YIELD, 0, false, true)
CALLBACK(on_unwind, EVENT_PY_LEAVE, EVENT_FLAG_EXCEPTION, false, false)
CALLBACK(on_throw, EVENT_PY_RESUME, 0, true, false)

static const struct {
	const char *name;
	struct method method; /* what the builtin says it is; it is never called by way of it */
} rows[] = {
#define ROW(id, name, function) {name, {"inferscope", function, METHOD_FASTCALL, NULL}},
	EVENTS(ROW)
#undef ROW
};
enum { ROWS = sizeof rows / sizeof *rows };
_Static_assert((int)ROWS <= (int)MONITORED_EVENTS, "the state has room for all");

static void drop(PyObject **object)
{
	if (*object)
		the.python.Py_DecRef(*object);
	*object = NULL;
}

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

	for (int i = 0; i < ROWS; i++) {
		m->events[i] = the.python.PyObject_GetAttrString(events, rows[i].name);
		m->callbacks[i] = the.python.PyCFunction_NewEx(&rows[i].method, NULL, NULL);
		if (!m->events[i] || !m->callbacks[i])
			return false;
		*(vector_function *)((char *)m->callbacks[i] + the.python.layout->cfunction_vectorcall) = rows[i].method.function;
		all |= the.python.PyLong_AsLong(m->events[i]);
	}
	m->no_events = the.python.PyLong_FromLong(0);
	m->all_events = the.python.PyLong_FromLong(all);
	return m->no_events && m->all_events;
}

/* Only ids that belong to no kind of tool: a debugger, coverage or profiler that starts later must find its own free. */
static bool take_tools(PyObject *use_tool_id, int wanted)
{
	static const long ids[] = {4, 3};
	struct monitoring *m = &the.monitoring;
	PyObject *name = the.python.PyUnicode_FromString("inferscope");

	for (size_t i = 0; name && i < sizeof ids / sizeof *ids && m->tool_count < wanted; i++) {
		PyObject *id = the.python.PyLong_FromLong(ids[i]);

		if (id && call(use_tool_id, id, name, NULL)) {
			m->tools[m->tool_count++] = id;
			the.page->tool_id = (uint32_t)ids[i] + 1;
		} else {
			the.python.PyErr_Clear();
			drop(&id);
		}
	}
	drop(&name);
	return m->tool_count > 0;
}

static bool register_callbacks(void)
{
	struct monitoring *m = &the.monitoring;

	for (int t = 0; t < m->tool_count; t++)
		for (int i = 0; i < ROWS; i++)
			if (!call(m->register_callback, m->tools[t], m->events[i], m->callbacks[i]))
				return false;
	return true;
}

static int fail_install(int reason, const char *why, char *text, size_t size)
{
	the.python.PyErr_Clear();
	remove_all();
	text_set(text, size, why);
	return reason;
}

static int install(char *text, size_t size)
{
	struct monitoring *m = &the.monitoring;
	PyObject *module = the.python.PySys_GetObject("monitoring"), *events, *use_tool_id; /* borrowed */
	bool made, taken;

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
	taken = made && take_tools(use_tool_id, the.page->may_start_thread ? 1 : MONITORING_TOOLS);
	drop(&events);
	drop(&use_tool_id);
	if (!made)
		return fail_install(REASON_PYTHON_ERROR, "sys.monitoring is not what it should be", text, size);
	if (!taken)
		return fail_install(REASON_TOOL_IDS_TAKEN, "other tools have the free tool ids 3 and 4 of sys.monitoring", text, size);
	if (!register_callbacks())
		return fail_install(REASON_AUDIT_HOOK, "an audit hook of the program refuses sys.monitoring.register_callback", text, size);
	return 0;
}

static bool hook_open(void)
{
	struct monitoring *m = &the.monitoring;

	if (m->tool_count > 1) {
		call(m->set_events, m->tools[m->tool], m->no_events, NULL);
		m->tool = !m->tool;
	}
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

static void remove_all(void)
{
	struct monitoring *m = &the.monitoring;

	for (int t = 0; t < m->tool_count; t++) {
		call(m->set_events, m->tools[t], m->no_events, NULL);
		for (int i = 0; i < ROWS; i++)
			call(m->register_callback, m->tools[t], m->events[i], the.python.none);
		call(m->free_tool_id, m->tools[t], NULL, NULL);
		drop(&m->tools[t]);
	}
	for (int i = 0; i < ROWS; i++) {
		drop(&m->events[i]);
		drop(&m->callbacks[i]);
	}
	drop(&m->set_events);
	drop(&m->register_callback);
	drop(&m->free_tool_id);
	drop(&m->no_events);
	drop(&m->all_events);
	drop(&m->disable);
	m->tool_count = 0;
}

const struct hooks hooks_monitoring = {
	.kind = BACKEND_MONITORING,
	.install = install,
	.open = hook_open,
	.close = hook_close,
	.remove = remove_all,
	.cost_factor = {[12] = 1000, [13] = 1000, [14] = 1000, [15] = 1000},
};
