/*
 * What sys.monitoring's callbacks write: one C function for each event.
 *
 * A callback is a builtin whose vectorcall slot points straight to us, which saves the interpreter's own wrapper. DISABLE is
 * never returned from PY_UNWIND or PY_THROW: that raises ValueError in the user's program (3.12-3.14).
 */
#include "collector/monitoring.h"

#include <errno.h>

#include "abi/cpython.h"
#include "collector/greenlets.h"

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
		monitoring_remove();
	errno = saved;
	return may_disable && the.armed && !the.switcher_made && the.monitoring.disable ? disable() : none();
}

/* First event of this thread in this window: its stack is said, without a frame that is only about to begin. */
static __attribute__((noinline)) struct lane *enter_window(const PyObject *code, bool begins, uint64_t now)
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

	/* A window opened right here: its seeds hold the frame of this event. Or another greenlet goes on. Say them anew. */
	if (lane_is_mine(lane) && (__builtin_expect(window != the.window, 0) || (__builtin_expect(the.greenlets, 0) && greenlets_switched(lane))))
		lane->window = 0;
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

const struct monitored monitored[] = {
#define ROW(name, function, wanted) {name, {"inferscope", function, METHOD_FASTCALL, NULL}, wanted},
	EVENTS(ROW)
#undef ROW
};
_Static_assert(sizeof monitored / sizeof *monitored == MONITORED_ROWS, "the header says how many there are");
