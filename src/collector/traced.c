/* Events of profile and trace functions, and late threads. */
#include "collector/traced.h"

#include <errno.h>
#include <string.h>

#include "abi/cpython.h"
#include "collector/evaluator.h"
#include "collector/greenlets.h"
#include "collector/stack.h"

enum { OPCODE_RESUME_311 = 151, OPCODE_RESUME_QUICK_311 = 150 };

static char *frame_of(PyObject *object)
{
	return the.python.minor >= 11 ? at_pointer(object, the.python.layout->frameobject_frame) : (char *)object;
}

/* 3.11 stands at RESUME when it says CALL; its argument is 0 where the function begins. */
static uint8_t how_it_begins(const char *frame)
{
	const struct cpython_layout *layout = the.python.layout;
	const uint8_t *at;

	if (the.python.minor <= 10)
		return at_int(frame, layout->frame_instr) < 0 ? EVENT_PY_ENTER : EVENT_PY_RESUME;
	at = at_pointer(frame, layout->frame_instr);
	return (at[0] == OPCODE_RESUME_311 || at[0] == OPCODE_RESUME_QUICK_311) && (at[1] & 3) ? EVENT_PY_RESUME : EVENT_PY_ENTER;
}

/* The innermost frame before (BACK: after) the event. */
static char *innermost(char *frame, int what, int back)
{
	return what == back ? python_frame_back(&the.python, frame) : frame;
}

void traced_event(PyObject *frame_object, int what, PyObject *argument)
{
	uint64_t now = ticks_now();
	struct lane *lane = lane_mine;
	char *frame = frame_of(frame_object);
	const struct code *code;

	if (what >= WHAT_C_CALL && the.page && the.settings.c_calls != C_CALLS_ALL)
		return;
	if (!hook_may_record(now))
		return;
	code = code_find_in(&the.codes, at_pointer(frame, the.python.layout->frame_code));
	if (code->counted && what < WHAT_C_CALL) { /* by the evaluator, which another took since */
		if (what == WHAT_CALL)
			count_call(code);
		return;
	}
	if (__builtin_expect(the.greenlets, 0) && lane_is_mine(lane) && greenlets_left(lane, innermost(frame, what, WHAT_CALL)))
		lane->window = 0;
	if (!lane_is_mine(lane) || lane->window != the.window) {
		lane = lane_enter_window(innermost(frame, what, WHAT_CALL), now);
		if (!lane)
			return;
		if (!lane->stack_floor)
			lane->stack_floor = stack_floor();
	}
	/* Up to 3.10 each call of a traced thread goes through one more C function. */
	if (what == WHAT_CALL && the.python.minor <= 10 && __builtin_expect((uintptr_t)__builtin_frame_address(0) < lane->stack_floor, 0)) {
		window_close(now, WINDOW_STACK);
		return;
	}
	if (the.greenlets)
		lane->frame = innermost(frame, what, WHAT_RETURN);
	if (!code->ref && what < WHAT_C_CALL) {
		the.page->lanes[lane->slot].skipped += what == WHAT_CALL;
		return;
	}
	switch (what) {
	case WHAT_CALL:
		lane_push(lane, now, code->ref, code->flags & CODE_GENERATOR ? how_it_begins(frame) : EVENT_PY_ENTER);
		break;
	case WHAT_RETURN:
		lane_pop(lane, now, code->ref, argument && code->flags & CODE_GENERATOR && generator_suspended(frame) ? EVENT_PY_YIELD : EVENT_PY_LEAVE,
		         argument ? 0 : EVENT_FLAG_EXCEPTION);
		break;
	case WHAT_EXCEPTION:
		lane_put(lane, now, code->ref, EVENT_RAISE, 0);
		break;
	case WHAT_LINE:
		if (the.settings.lines)
			lane_put_u32(lane, now, code->ref, EVENT_LINE, (uint32_t)the.python.PyFrame_GetLineNumber(frame_object));
		break;
	case WHAT_C_CALL:
		c_call_begins(lane, now, code_c_function(argument));
		break;
	case WHAT_C_EXCEPTION:
	case WHAT_C_RETURN:
		c_call_ends(lane, now, code_c_function(argument), what == WHAT_C_EXCEPTION);
	}
}

void traced_update(char *tstate)
{
	const struct cpython_layout *layout = the.python.layout;
	bool wanted = at_pointer(tstate, layout->tstate_profilefunc) || at_pointer(tstate, layout->tstate_tracefunc);

	if (at_int(tstate, layout->tstate_tracing))
		return; /* inside such a function: what it comes back to looks again */
	if (layout->tstate_use_tracing >= 0)
		*(int *)(tstate + layout->tstate_use_tracing) = wanted;
	else if (the.python.minor == 10)
		*(int *)((char *)at_pointer(tstate, layout->tstate_cframe) + layout->cframe_use_tracing) = wanted;
	else
		*((uint8_t *)at_pointer(tstate, layout->tstate_cframe) + layout->cframe_use_tracing) = wanted ? 255 : 0;
}

void traced_leave_alone(char *tstate, const char *reason)
{
	uint64_t now = ticks_now(), pthread = (uint64_t)at_pointer(tstate, the.python.layout->tstate_thread_id);
	uint16_t length = (uint16_t)strlen(reason);
	size_t size = (sizeof(struct event) + sizeof length + length + 7) & ~(size_t)7;
	struct event *event = lane_reserve(lane_meta(), size, now);

	the.page->unhooked_threads++;
	if (!event)
		return;
	memset((char *)event + size - 8, 0, 8);
	*event = (struct event){now, thread_tid(tstate, pthread), (uint16_t)size, EVENT_UNHOOKED, 0};
	memcpy(event + 1, &length, sizeof length);
	memcpy((char *)(event + 1) + sizeof length, reason, length);
	lane_commit(lane_meta(), size);
}

/* The detector: an evaluator that only looks whether its thread is hooked. */

static PyObject *detect(char *tstate, void *frame, int throws)
{
	if (the.hooks_on && the.detector.hook) {
		if ((uintptr_t)__builtin_frame_address(0) < stack_floor())
			detector_close(); /* 3.11 would not have used C stack here; the next window looks again */
		else if (!at_pointer(tstate, the.detector.offset))
			the.detector.hook(tstate);
	}
	return NULL;
}

static PyObject *detect_38(PyObject *frame, int throws)
{
	detect(the.python.PyThreadState_Get(), frame, throws);
	return ((evaluator38)the.python.eval_default)(frame, throws);
}

static PyObject *detect_39(void *tstate, void *frame, int throws)
{
	detect(tstate, frame, throws);
	return ((evaluator39)the.python.eval_default)(tstate, frame, throws);
}

static void *detector_ours(void)
{
	return the.python.minor == 8 ? (void *)detect_38 : (void *)detect_39;
}

bool detector_open(int offset, void (*hook)(char *tstate))
{
	if (evaluator_now() != the.python.eval_default)
		return false;
	the.detector.offset = offset;
	the.detector.hook = hook;
	evaluator_set(detector_ours());
	return true;
}

void detector_close(void)
{
	if (evaluator_now() == detector_ours())
		evaluator_set(the.python.eval_default);
	the.detector.hook = NULL;
}
