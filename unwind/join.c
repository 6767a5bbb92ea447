/*
 * The join. Both stacks are gone through from the innermost frame outwards:
 *
 *   native frame   sp ├────────────┤ cfa     no entry in it: it stays
 *   native frame   sp ├──────e─────┤ cfa     the entry of the next Python frames: these stand in its place
 *
 * An entry is an address on the C stack inside of the evaluator call that runs the frames; frames of one call share it.
 */
#include "unwind/join.h"

#include <string.h>

enum { OWN_CALL_MINOR = 10 /* up to here each frame has an evaluator call of its own */ };
enum { NO_ENTRY_DEPTH = 2 /* an evaluator call that begins or ends has at most so many calls in it (of _Py_CheckFunctionResult, say) */ };

struct join {
	const struct pystack *python;
	const struct native_stack *native;
	const struct join_rules *rules;
	struct joined_stack *out;
	uint32_t next; /* Python frame that has no place yet */
	uint32_t innermost; /* native frame: the first one that Python frames stand for */
};

static void put(struct joined_stack *out, bool python, uint32_t index)
{
	if (out->count < JOINED_FRAMES_MAX)
		out->frames[out->count++] = (struct joined_frame){ python, index };
}

static void put_python(struct join *join, uint32_t end)
{
	while (join->next < end)
		put(join->out, true, join->next++);
}

static bool is_hidden(const struct join *join, uint32_t which)
{
	return join->rules->hidden && join->rules->hidden(join->rules->context, join->native, which);
}

static bool is_evaluator(const struct join *join, uint32_t which)
{
	return join->rules->evaluator && join->rules->evaluator(join->rules->context, join->native, which);
}

static void put_native(struct join *join, uint32_t which)
{
	if (!is_hidden(join, which))
		put(join->out, false, which);
}

/* The first frame from FROM on whose entry is known; count when there is none. */
static uint32_t known_entry(const struct pystack *python, uint32_t from)
{
	while (from < python->count && !python->entry[from])
		from++;
	return from;
}

static uint32_t run_end(const struct pystack *python, uint32_t from)
{
	uint32_t end = from;

	while (end < python->count && python->entry[end] == python->entry[from])
		end++;
	return end;
}

/* Takes what runs in native frame WHICH. False: nothing, the frame is a native one. */
static bool take_entries(struct join *join, uint32_t which)
{
	const struct native_frame *frame = &join->native->frames[which];
	const struct pystack *python = join->python;
	bool taken = false;

	for (;;) {
		uint32_t known = known_entry(python, join->next);

		if (known == python->count || python->entry[known] < frame->sp || python->entry[known] >= frame->cfa)
			break;
		put_python(join, run_end(python, known));
		taken = true;
	}
	if (taken && join->rules->runs)
		join->rules->runs(join->rules->context, join->native, which);
	return taken;
}

static void met_loop(struct join *join, uint32_t which)
{
	if (which < join->innermost)
		join->innermost = which;
}

static void join_by_entry(struct join *join)
{
	const struct pystack *python = join->python;
	const struct native_stack *native = join->native;

	for (uint32_t i = 0; i < native->count; i++) {
		if (take_entries(join, i)) {
			met_loop(join, i);
			continue;
		}
		/* Frames whose evaluator call is just ending (3.10), or whose end was too far away to be looked for. */
		if (join->next < python->count && !python->entry[join->next] && is_evaluator(join, i)) {
			put_python(join, join->rules->python_minor <= OWN_CALL_MINOR ? join->next + 1 : run_end(python, join->next));
			met_loop(join, i);
		} else {
			put_native(join, i);
		}
	}
}

/* ---- entries not known, but one frame for each evaluator call ---- */

static uint32_t count_calls(const struct join *join, uint32_t *first)
{
	uint32_t calls = 0;

	*first = join->native->count;
	for (uint32_t i = 0; i < join->native->count; i++) {
		if (!is_evaluator(join, i))
			continue;
		if (!calls++)
			*first = i;
	}
	return calls;
}

static void join_by_count(struct join *join)
{
	const struct pystack *python = join->python;
	const struct native_stack *native = join->native;
	uint32_t first, calls = count_calls(join, &first), skip = 0;

	/* Calls that began before the Python frames were read, and have ended since: the outer ones are those that are known. */
	if (join->rules->still_above && native->end == WALK_COMPLETE && !python->cut && calls > python->count)
		skip = calls - python->count;
	/* The innermost call has no frame yet, or none any longer. (Calls without frames further out are of other greenlets.) */
	else if (calls == python->count + 1 && native->end == WALK_COMPLETE && !python->cut && first <= NO_ENTRY_DEPTH)
		skip = 1;
	for (uint32_t i = 0; i < native->count; i++) {
		bool call = join->next < python->count && is_evaluator(join, i);

		if (call && !skip) {
			put_python(join, join->next + 1);
			met_loop(join, i);
		} else {
			put_native(join, i);
			skip -= call && skip;
		}
	}
}

/* ---- Python frames that were read later ---- */

static bool was_there(const struct join *join, uint64_t entry)
{
	const struct native_stack *native = join->native;

	if (entry >= native->frames[native->count - 1].cfa)
		return true; /* outside of what was walked */
	for (uint32_t i = 0; i < native->count; i++)
		if (entry >= native->frames[i].sp && entry < native->frames[i].cfa)
			return native->frames[i].sp >= join->rules->still_above || is_evaluator(join, i);
	return false;
}

/* Leaves out the innermost frames whose evaluator calls have begun since. */
static void leave_out_new(struct join *join)
{
	const struct pystack *python = join->python;
	uint32_t first, calls;

	if (join->rules->python_minor < OWN_CALL_MINOR) {
		calls = count_calls(join, &first);
		if (join->native->end == WALK_COMPLETE && !python->cut && python->count > calls)
			join->next = python->count - calls;
		return;
	}
	while (join->next < python->count && python->entry[join->next] && !was_there(join, python->entry[join->next]))
		join->next = run_end(python, join->next);
}

/* Did the evaluator call of the innermost Python frames still stand where it stood? */
static bool stood_still(const struct join *join)
{
	const struct native_stack *native = join->native;

	return !join->rules->still_above || (join->innermost < native->count && native->frames[join->innermost].sp >= join->rules->still_above + sizeof(uint64_t));
}

/* ---- what came of it ---- */

/* Could the frames that found no place lie outside of what was walked? */
static bool rest_is_elsewhere(const struct join *join)
{
	const struct native_frame *first = &join->native->frames[0], *last = &join->native->frames[join->native->count - 1];
	uint32_t known = known_entry(join->python, join->next);

	if (known == join->python->count)
		return join->native->end != WALK_COMPLETE || join->python->cut;
	return join->python->entry[known] >= last->cfa || join->python->entry[known] < first->sp;
}

static void keep_halves(struct join *join)
{
	join->out->result = JOIN_FAILED;
	join->out->count = join->next = 0;
	for (uint32_t i = 0; i < join->native->count; i++)
		put_native(join, i);
	put_python(join, join->python->count);
}

void join_stacks(const struct pystack *python, const struct native_stack *native, const struct join_rules *rules, struct joined_stack *out)
{
	struct join join = { python, native, rules, out, 0, UINT32_MAX };

	out->count = 0;
	out->later = false;
	if (!python || !python->count) {
		out->result = JOIN_NATIVE;
		for (uint32_t i = 0; native && i < native->count; i++)
			put_native(&join, i);
		return;
	}
	if (!native || !native->count) {
		out->result = JOIN_PYTHON;
		put_python(&join, python->count);
		return;
	}
	if (rules->still_above)
		leave_out_new(&join);
	if (rules->python_minor <= OWN_CALL_MINOR && known_entry(python, 0) == python->count)
		join_by_count(&join);
	else
		join_by_entry(&join);
	out->later = !stood_still(&join);
	out->result = out->later && join.innermost > 0 ? JOIN_LATER : JOIN_WHOLE;
	if (join.next == python->count)
		return;
	if (!rest_is_elsewhere(&join)) {
		keep_halves(&join);
		return;
	}
	out->result = JOIN_PARTIAL;
	put_python(&join, python->count);
}

const char *join_result_name(enum join_result result)
{
	static const char *const names[] = { "whole", "partial", "failed", "native only", "python only", "later", "recalled" };

	return (size_t)result < sizeof names / sizeof *names ? names[result] : "unknown";
}
