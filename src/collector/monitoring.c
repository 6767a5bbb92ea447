/*
 * sys.monitoring, 3.12 and later: callbacks that are C functions, for every thread and all code of the main interpreter.
 *
 * A callback is a builtin whose vectorcall slot points straight to us, which saves the interpreter's own wrapper. DISABLE is
 * never returned from PY_UNWIND or PY_THROW: that raises ValueError in the user's program (3.12-3.14). Events disabled at a
 * place come back only when our tool loses its events *and that code runs* before it gets them again; so where windows are
 * ended by DISABLE (there is no switch thread to open the next), two tool ids take turns; a session begins with the other one
 * than the last session ended with, for the same reason.
 */
#include "collector/collector.h"

#include <errno.h>
#include <string.h>

#include "abi/cpython.h"

/* Numbers are looked up by name in sys.monitoring.events: some moved in 3.14. The last one says whether it is asked for. */
#define EVENTS(ROW) \
	ROW("PY_START", on_start, wants_calls) ROW("PY_RESUME", on_resume, wants_calls) ROW("PY_RETURN", on_return, wants_calls) \
	ROW("PY_YIELD", on_yield, wants_calls) ROW("PY_UNWIND", on_unwind, wants_calls) ROW("PY_THROW", on_throw, wants_calls) \
	ROW("CALL", on_call, wants_c_calls) ROW("C_RETURN", on_c_return, wants_c_calls) ROW("C_RAISE", on_c_raise, wants_c_calls) \
	ROW("RAISE", on_raise, wants_raises) ROW("LINE", on_line, wants_lines)

enum { CHEAP_CALLS = 64, CHEAP_PER_SECOND = 500000 /* calls that fit one second: 2 µs each */ };

static bool wants_calls(void)
{
	return true;
}

static bool wants_c_calls(void)
{
	return the.settings.c_calls != C_CALLS_NONE;
}

static bool wants_raises(void)
{
	return the.hooks == &hooks_monitoring_lines;
}

static bool wants_lines(void)
{
	return wants_raises() && the.settings.lines;
}

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
	return may_disable && the.armed && !the.switcher_made && the.monitoring.disable ? disable() : none();
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

/* The lane to write to, or NULL; WINDOW is the one the callback began in. */
static inline __attribute__((always_inline)) struct lane *lane_here(PyObject *object, bool begins, uint64_t now, uint64_t window)
{
	struct lane *lane = lane_mine;

	if (__builtin_expect(window != the.window, 0) && lane_is_mine(lane))
		lane->window = 0; /* a window opened right here: its seeds hold the frame of this event, say them anew */
	if (__builtin_expect(!lane_is_mine(lane) || lane->window != the.window, 0))
		lane = enter_window(object, begins, now);
	return lane;
}

static inline __attribute__((always_inline)) PyObject *record(PyObject *object, uint8_t kind, uint8_t flags, bool begins, bool may_disable)
{
	uint64_t now = ticks_now(), window = the.window;
	const struct code *code;
	struct lane *lane;
	uint32_t ref;

	if (!hook_may_record(now))
		return refuse(may_disable);
	code = code_find_in(&the.codes, object);
	if (__builtin_expect(code->counted, 0)) {
		if (kind == EVENT_PY_ENTER && !(code->flags & CODE_LEFT_OUT)) {
			count_call(code);
			return none();
		}
		return may_disable ? disable() : none(); /* half of what it costs is saved here, all of it when nothing is counted */
	}
	ref = code->ref;
	lane = lane_here(object, begins, now, window);
	if (!lane)
		return none();
	if (__builtin_expect(!ref, 0)) {
		the.page->lanes[lane->slot].skipped += begins;
		return may_disable ? disable() : none();
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

/* C calls. AUTO leaves a place alone once what it calls proves to be cheap, or is Python and seen anyway. */
static PyObject *on_call(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	uint64_t now = ticks_now(), window = the.window;
	bool all = the.page && the.settings.c_calls == C_CALLS_ALL;
	const PyObject *type = at_pointer(args[2], the.python.layout->object_type);
	struct lane *lane;
	struct code *code;

	if (!hook_may_record(now))
		return refuse(true);
	if (type == the.python.function_type || type == the.python.method_type)
		return all ? none() : disable();
	if (!code_find_in(&the.codes, args[0])->ref)
		return disable();
	code = code_c_function(args[2]);
	if (!code->ref || (!all && code->flags & CODE_CHEAP))
		return all ? none() : disable();
	lane = lane_here(args[0], false, now, window);
	if (lane)
		c_call_begins(lane, now, code);
	return none();
}

static PyObject *c_call_back(PyObject *const *args, bool raised)
{
	uint64_t now = ticks_now(), window = the.window;
	struct lane *lane;
	struct code *code;

	if (!hook_may_record(now))
		return refuse(false);
	lane = lane_here(args[0], false, now, window);
	if (!lane)
		return none();
	code = code_c_function(args[2]);
	c_call_ends(lane, now, code, raised);
	if (code->calls == CHEAP_CALLS && code->ticks * CHEAP_PER_SECOND < CHEAP_CALLS * the.settings.ticks_per_second)
		code->flags |= CODE_CHEAP;
	return none();
}

static PyObject *on_c_return(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	return c_call_back(args, false);
}

static PyObject *on_c_raise(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	return c_call_back(args, true);
}

static PyObject *on_raise(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	uint64_t now = ticks_now(), window = the.window;
	struct lane *lane;
	uint32_t ref;

	if (!hook_may_record(now))
		return refuse(false);
	ref = code_find_in(&the.codes, args[0])->ref;
	lane = ref ? lane_here(args[0], false, now, window) : NULL;
	if (lane)
		lane_put(lane, now, ref, EVENT_RAISE, 0);
	return none();
}

static PyObject *on_line(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	uint64_t now = ticks_now(), window = the.window;
	struct lane *lane;
	uint32_t ref;

	if (!hook_may_record(now))
		return refuse(true);
	ref = code_find_in(&the.codes, args[0])->ref;
	if (!ref)
		return disable();
	lane = lane_here(args[0], false, now, window);
	if (lane)
		lane_put_u32(lane, now, ref, EVENT_LINE, (uint32_t)the.python.PyLong_AsLong(args[1]));
	return none();
}

static const struct {
	const char *name;
	struct method method; /* what the builtin says it is; it is never called by way of it */
	bool (*wanted)(void);
} rows[] = {
#define ROW(name, function, wanted) {name, {"inferscope", function, METHOD_FASTCALL, NULL}, wanted},
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
		if (!rows[i].wanted())
			continue;
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
	const long ids[] = {the.last_tool == 4 ? 3 : 4, the.last_tool == 4 ? 4 : 3};
	struct monitoring *m = &the.monitoring;
	PyObject *name = the.python.PyUnicode_FromString("inferscope");

	for (size_t i = 0; name && i < sizeof ids / sizeof *ids && m->tool_count < wanted; i++) {
		PyObject *id = the.python.PyLong_FromLong(ids[i]);

		if (id && call(use_tool_id, id, name, NULL)) {
			m->tools[m->tool_count++] = id;
		} else {
			the.python.PyErr_Clear();
			drop(&id);
		}
	}
	drop(&name);
	m->tool = m->tool_count - 1; /* the first window takes the next */
	return m->tool_count > 0;
}

static bool register_callbacks(void)
{
	struct monitoring *m = &the.monitoring;

	for (int t = 0; t < m->tool_count; t++)
		for (int i = 0; i < ROWS; i++)
			if (m->events[i] && !call(m->register_callback, m->tools[t], m->events[i], m->callbacks[i]))
				return false;
	return true;
}

/* In a forked child, by way of os.register_at_fork: nothing of ours may fire there any more that would give back the tool id. */
static PyObject *in_forked_child(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	if (the.child && the.monitoring.set_events)
		remove_all();
	return none();
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
	drop(&done);
	drop(&names);
	drop(&name);
	drop(&argument);
	drop(&tell);
	the.python.PyErr_Clear();
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

	if (m->set_events)
		remove_all(); /* a forked child is attached, and has not come by to give back what it inherited */
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
	drop(&events);
	drop(&use_tool_id);
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
	the.page->tool_id = (uint32_t)the.last_tool + 1;
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
			if (m->events[i])
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
	.cost_factor = {[12] = 1200, [13] = 1200, [14] = 1200, [15] = 1200},
	.counts = {[12] = true, [13] = true, [14] = true, [15] = true},
	.leaves_out = true,
};

const struct hooks hooks_monitoring_lines = {
	.kind = BACKEND_SETTRACE,
	.install = install,
	.open = hook_open,
	.close = hook_close,
	.remove = remove_all,
	.cost_factor = {[12] = 2000, [13] = 2000, [14] = 2000, [15] = 2000},
};
