/*
 * PEP 523: our function in the place of _PyEval_EvalFrameDefault, 3.8-3.11. Interpreter-wide by one pointer, leaves profilers and
 * tracers alone, sees Python functions only. Each resume of a generator is one call of it.
 *
 * It uses C stack where 3.11 would use none (measured: 8 MiB hold 20 000 calls with it, 100 000 without), and 100 bytes per call
 * more on 3.8-3.10, which recurse in C anyway (500 bytes). So below the first sixteenth of a thread's stack it takes itself off until the
 * next window (a profile function would be no way out: with one, those call each function through one more C function).
 */
#include "collector/evaluator.h"

#include "abi/cpython.h"
#include "collector/greenlets.h"
#include "collector/libc.h"
#include "collector/stack.h"

enum { OPCODE_RETURN_GENERATOR_311 = 75 };

static void *evaluator_ours(void);

/* Somebody saved our pointer and put it back after we had left, or the hooks are off for good. */
static __attribute__((noinline)) void take_off_if_ours(void)
{
	if ((!the.armed || the.child || the.dead) && evaluator_now() == evaluator_ours())
		evaluator_set(the.python.eval_default);
}

/* Which frame calls: what the thread state says is innermost, as ours is not entered yet. */
static inline char *caller_of(void *tstate, char *frame)
{
	if (the.python.minor <= 10)
		return at_pointer(frame, the.python.layout->frame_previous);
	return python_top_frame(&the.python, tstate);
}

/*
 * We stand on frames that no hook of ours will see return. The caller tells which of them are gone: all above it. When it is
 * none of them (the outer ones were too many to keep), the stack is said anew.
 */
static __attribute__((noinline)) void seeds_repair(struct lane *lane, char *caller, uint64_t now)
{
	for (char *frame = caller; frame; frame = python_frame_back(&the.python, frame)) {
		for (uint32_t i = lane->seed_count; i > 0; i--) {
			if (lane->seeds[i - 1].frame != frame)
				continue;
			while (lane->seed_count > i) {
				uint32_t ref = lane->seeds[--lane->seed_count].ref;

				if (ref)
					lane_pop(lane, now, ref, EVENT_PY_LEAVE, 0);
			}
			return;
		}
	}
	seed_lane(lane, caller, now);
}

static inline bool seeds_match(const struct lane *lane, const char *caller)
{
	return lane->above || (lane->seed_count ? lane->seeds[lane->seed_count - 1].frame == caller : !caller);
}

/* Asking may change what is counted: then the stack has been said anew, without the frame that has just ended, and its end is told by that. */
static inline bool may_record_leave(uint64_t now, uint64_t window)
{
	return hook_may_record(now) && __builtin_expect(window == the.window, 1);
}

/* A frame has ended in a thread that came back to it from another greenlet. */
static __attribute__((noinline)) void say_anew(struct lane *lane, uint64_t now)
{
	the.window++;
	seed_lane(lane, python_top_frame(&the.python, the.python.PyThreadState_Get()), now);
}

/* A frame that began in an earlier window, and is now a seed, returns. */
static __attribute__((noinline)) void seed_leaves(const char *frame, uint8_t kind, uint8_t flags)
{
	struct lane *lane = lane_mine;
	uint64_t now = ticks_now(), window = the.window;
	struct seed *top;

	if (!the.armed || !the.hooks_on || the.hooks != &hooks_evaluator || !lane_is_mine(lane))
		return;
	top = lane->window == window && !lane->above && lane->seed_count ? &lane->seeds[lane->seed_count - 1] : NULL;
	if ((!top || top->frame != frame) && !the.greenlets)
		return;
	if (!may_record_leave(now, window))
		return;
	if (!top || top->frame != frame) {
		say_anew(lane, now); /* what the lane knows is the stack of the greenlet before: what goes on here without a call would be its time */
		return;
	}
	lane->seed_count--;
	if (top->ref)
		lane_pop(lane, now, top->ref, kind, flags);
}

/* Generators: 0 = nothing begins here (3.11: the frame that makes the generator object), else how its frame begins. */
static inline uint8_t generator_begins(const char *frame)
{
	const struct cpython_layout *layout = the.python.layout;

	if (the.python.minor <= 10)
		return at_int(frame, layout->frame_instr) < 0 ? EVENT_PY_ENTER : EVENT_PY_RESUME;
	if (at_char(frame, layout->frame_owner) != FRAME_OWNER_GENERATOR)
		return 0;
	return *(const uint8_t *)at_pointer(frame, layout->frame_instr) == OPCODE_RETURN_GENERATOR_311 ? EVENT_PY_ENTER : EVENT_PY_RESUME;
}

/* Calls that are open here are another greenlet's: nobody may take them for what it returns to. */
static inline bool switched_before(const struct lane *lane, void *tstate, char *frame)
{
	return lane_is_mine(lane) && lane->window == the.window && lane->above && greenlets_left(lane, caller_of(tstate, frame));
}

static inline PyObject *run_default(void *tstate, char *frame, int throws)
{
	if (the.python.minor == 8)
		return ((evaluator38)the.python.eval_default)((PyObject *)frame, throws);
	return ((evaluator39)the.python.eval_default)(tstate, frame, throws);
}

static __attribute__((noinline)) struct lane *enter_window(char *caller, uint64_t now)
{
	struct lane *lane = lane_enter_window(caller, now);

	if (lane && !lane->stack_floor)
		lane->stack_floor = stack_floor();
	return lane;
}

/* Always inlined, so that one C frame of ours is all that a call adds. */
static inline __attribute__((always_inline)) PyObject *evaluate(void *tstate, char *frame, int throws)
{
	uint64_t now = ticks_now(), window;
	struct lane *lane = lane_mine;
	const struct code *code;
	char *before;
	bool generator; /* the table may be gone when we are back */
	uint8_t kind = EVENT_PY_ENTER, flags = 0;
	PyObject *result;
	uint32_t ref;

	/* Another evaluator that was put over ours may go on calling it when a profile function has taken over. */
	if (__builtin_expect(the.hooks != &hooks_evaluator, 0) || !hook_may_record(now)) {
		take_off_if_ours();
		return run_default(tstate, frame, throws);
	}
	if (__builtin_expect(the.greenlets, 0) && switched_before(lane, tstate, frame))
		the.window++;
	window = the.window;
	if (__builtin_expect(!lane_is_mine(lane) || lane->window != window || !lane->stack_floor, 0)) {
		lane = enter_window(caller_of(tstate, frame), now);
		if (!lane)
			return run_default(tstate, frame, throws);
	}
	if (__builtin_expect((uintptr_t)__builtin_frame_address(0) < lane->stack_floor, 0)) {
		window_close(now, WINDOW_STACK);
		return run_default(tstate, frame, throws);
	}
	code = code_find_in(&the.codes, at_pointer(frame, the.python.layout->frame_code));
	if (__builtin_expect(code->counted, 0)) {
		count_call(code);
		return run_default(tstate, frame, throws);
	}
	ref = code->ref;
	generator = code->flags & CODE_GENERATOR;
	if (__builtin_expect(!lane->above, 0)) {
		char *caller = caller_of(tstate, frame);

		if (!seeds_match(lane, caller))
			seeds_repair(lane, caller, now);
	}
	if (generator) {
		kind = generator_begins(frame);
		if (!kind)
			ref = 0;
		else if (throws)
			kind = EVENT_PY_RESUME; /* closed before it began: no call, as sys.monitoring sees it */
	}
	lane->above++;
	before = lane->frame;
	lane->frame = frame;
	if (ref)
		lane_push(lane, now, ref, kind);
	else if (kind)
		the.page->lanes[lane->slot].skipped++;
	result = run_default(tstate, frame, throws);
	if (__builtin_expect(the.greenlets, 0) && window == the.window && lane->frame != frame) {
		say_anew(lane, ticks_now());
		return result;
	}
	if (__builtin_expect(!ref && window == the.window, 0)) {
		lane->frame = before;
		lane->above--;
		return result;
	}
	kind = EVENT_PY_LEAVE;
	if (!result)
		flags = EVENT_FLAG_EXCEPTION;
	else if (generator && ref && generator_suspended(frame))
		kind = EVENT_PY_YIELD;
	if (__builtin_expect(window != the.window, 0)) {
		seed_leaves(frame, kind, flags);
		return result;
	}
	now = ticks_now();
	if (!may_record_leave(now, window))
		return result;
	lane->frame = before;
	lane->above--;
	lane_pop(lane, now, ref, kind, flags);
	return result;
}

static PyObject *evaluate_38(PyObject *frame, int throws)
{
	return evaluate(NULL, (char *)frame, throws);
}

static PyObject *evaluate_39(void *tstate, void *frame, int throws)
{
	return evaluate(tstate, frame, throws);
}

static void *evaluator_ours(void)
{
	return the.python.minor == 8 ? (void *)evaluate_38 : (void *)evaluate_39;
}

static int install(char *text, size_t size)
{
	void *now = evaluator_now();

	if (now == the.python.eval_default || now == evaluator_ours())
		return 0;
	text_set(text, size, "another frame evaluator is installed (torch.compile, a debugger)");
	return REASON_HOOK_TAKEN;
}

static bool hook_open(void)
{
	if (evaluator_now() != the.python.eval_default && evaluator_now() != evaluator_ours())
		return false;
	evaluator_set(evaluator_ours());
	return true;
}

static void hook_close(void)
{
	if (evaluator_now() == evaluator_ours())
		evaluator_set(the.python.eval_default);
}

const struct hooks hooks_evaluator = {
	.kind = BACKEND_EVALUATOR,
	.install = install,
	.open = hook_open,
	.close = hook_close,
	.remove = hook_close,
	.forked = hook_close,
	.cost_factor = {[8] = 400, [9] = 400, [10] = 400, [11] = 600},
	.counts = {[8] = true, [9] = true, [10] = true}, /* 3.11: what it costs is that calls are no longer inlined, counted or not */
};
