/*
 * The loop keeps the address of the instruction it is at in a register, or where the compiler had none to spare on its stack. What a register held while the loop calls
 * another function is known from the walk. Stack words may be left over from another function: where they are of several, it is not told.
 */
#include "unwind/pymoment.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/pybytecode.h"
#include "unwind/pyreader.h"

enum {
	WORD = 8,
	SAVED_BYTES = 7 * WORD, /* below the CFA: the return address, and at most six registers of the caller's */
	OWN_CALL_MINOR = 10,    /* up to here each frame has a call of its own */
	CALLERS_MAX = 1 << 16,
};
#define NO_CALLER UINT32_MAX
#define MANY_CALLERS (UINT32_MAX - 1)

/* Who called whom in one call of the loop: a tree, whose roots are such calls. */
struct caller {
	uint64_t code;
	uint32_t stamp, outer; /* outer: its caller's place, NO_CALLER: none within the call */
};

struct pymoment {
	struct bytecodes bytecodes;
	LIST(struct caller) callers;
	struct map inner;  /* caller, function → place in callers */
	struct map latest; /* call of the loop, function → where it was seen last */
	struct map always; /* function → where it was seen in any call of the loop; MANY_CALLERS: with different callers */
	uint64_t entry_below; /* from an entry to the CFA of the loop's frame: the same in all calls; 0 = not known yet */
};

/* One call of the loop. */
struct loop_call {
	uint64_t sp, cfa;
	const struct bytecode *at; /* NULL: not told */
};

int pymoment_open(struct pyreader *reader, struct pymoment **out, struct error *err)
{
	struct pymoment *moment = calloc(1, sizeof *moment);

	if (!moment)
		return fail(err, ERR_MEMORY, "joining stacks");
	bytecodes_init(&moment->bytecodes, reader);
	*out = moment;
	return 0;
}

static void forget_callers(struct pymoment *moment)
{
	list_done(&moment->callers);
	map_done(&moment->inner);
	map_done(&moment->latest);
	map_done(&moment->always);
}

void pymoment_close(struct pymoment *moment)
{
	if (!moment)
		return;
	forget_callers(moment);
	bytecodes_done(&moment->bytecodes);
	free(moment);
}

/* ---- who called whom ---- */

static bool has_own_call(const struct pymoment *moment)
{
	return moment->bytecodes.reader->walk.minor <= OWN_CALL_MINOR;
}

static uint64_t call_key(pid_t tid, uint64_t entry, uint64_t code, uint32_t stamp)
{
	return mix64(mix64(mix64(entry ^ (uint64_t)tid << 48) ^ code) ^ stamp);
}

static uint32_t caller_add(struct pymoment *moment, uint32_t outer, uint64_t root, uint64_t code, uint32_t stamp)
{
	uint64_t key = mix64(mix64(outer == NO_CALLER ? root : outer) ^ code) ^ stamp;
	uint32_t place = map_get(&moment->inner, key);
	struct caller *caller;

	if (place != MAP_ABSENT)
		return place;
	caller = list_add(&moment->callers, CALLERS_MAX);
	if (!caller)
		return NO_CALLER;
	*caller = (struct caller){ code, stamp, outer };
	place = (uint32_t)moment->callers.count - 1;
	return map_put(&moment->inner, key, place) ? place : NO_CALLER;
}

/* Function number I of STACK, called by OUTER in the call of the loop with ENTRY (0: in any). Its place, NO_CALLER: no room. */
static uint32_t learn_caller(struct pymoment *moment, const struct pystack *stack, uint32_t i, uint64_t entry, uint32_t outer)
{
	struct map *seen = entry ? &moment->latest : &moment->always;
	uint64_t key = call_key(entry ? stack->tid : 0, entry, stack->code[i], stack->stamp[i]);
	uint32_t place = caller_add(moment, outer, call_key(entry ? stack->tid : 0, entry, 0, 0), stack->code[i], stack->stamp[i]), before = map_get(seen, key);

	if (place == NO_CALLER)
		return NO_CALLER;
	return map_put(seen, key, !entry && before != MAP_ABSENT && before != place ? MANY_CALLERS : place) ? place : NO_CALLER;
}

/* Frames BEGIN to END of STACK are those of one call. */
static void learn_call(struct pymoment *moment, const struct pystack *stack, uint32_t begin, uint32_t end)
{
	uint32_t here = NO_CALLER, anywhere = NO_CALLER;

	while (end-- > begin) {
		here = learn_caller(moment, stack, end, stack->entry[begin], here);
		anywhere = learn_caller(moment, stack, end, 0, anywhere);
		if (here == NO_CALLER || anywhere == NO_CALLER) {
			forget_callers(moment); /* full: begins anew */
			return;
		}
	}
}

static uint32_t call_end(const struct pystack *stack, uint32_t begin)
{
	uint32_t end = begin;

	while (end < stack->count && stack->entry[end] == stack->entry[begin])
		end++;
	return end;
}

void pymoment_learn(struct pymoment *moment, const struct pystack *stack)
{
	for (uint32_t i = 0; i < stack->count; i++)
		bytecodes_learn(&moment->bytecodes, stack->code[i], stack->stamp[i]);
	if (has_own_call(moment))
		return;
	for (uint32_t i = 0, end; i < stack->count; i = end) {
		end = call_end(stack, i);
		if (stack->entry[i] && !(stack->cut && end == stack->count))
			learn_call(moment, stack, i, end);
	}
}

/* ---- what the copy says ---- */

/* FOUND: the one function that was met so far, or NULL. False: there are several. */
static bool meet(const struct pymoment *moment, uint64_t word, const struct bytecode **found)
{
	const struct bytecode *met = bytecodes_find(&moment->bytecodes, word);

	if (!met || met == *found)
		return true;
	if (*found || met->shared)
		return false;
	*found = met;
	return true;
}

/* As meet(), of the registers of native frame WHICH. */
static bool meet_registers(const struct pymoment *moment, const struct thread_copy *copy, const struct native_stack *native, uint32_t which, const struct bytecode **found)
{
	bool one = true;

	for (int i = 0; which && i < PRESERVED_COUNT; i++)
		one &= meet(moment, native->frames[which].preserved[i], found);
	for (int reg = 0; !which && reg < DWARF_PC; reg++)
		one &= !(copy->known >> reg & 1) || meet(moment, copy->regs[reg], found);
	return one;
}

/* As meet(), of the words of FRAME that are its own. */
static bool meet_words(const struct pymoment *moment, const struct thread_copy *copy, const struct native_frame *frame, const struct bytecode **found)
{
	uint64_t at = (frame->sp + WORD - 1) / WORD * WORD - copy->regs[DWARF_SP], end = frame->cfa - SAVED_BYTES - copy->regs[DWARF_SP], word;

	if (end > copy->stack_size || at > end)
		return false; /* what is not in the copy might say something else */
	for (; at + WORD <= end; at += WORD) {
		memcpy(&word, copy->stack + at, sizeof word);
		if (!meet(moment, word, found))
			return false;
	}
	return true;
}

static const struct bytecode *function_at(const struct pymoment *moment, const struct thread_copy *copy, const struct native_stack *native, uint32_t which)
{
	const struct bytecode *found = NULL;

	if (!meet_registers(moment, copy, native, which, &found))
		return NULL;
	return found || meet_words(moment, copy, &native->frames[which], &found) ? found : NULL;
}

static uint32_t find_calls(const struct pymoment *moment, const struct thread_copy *copy, const struct native_stack *native, const struct join_rules *rules, struct loop_call calls[WALK_FRAMES_MAX])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < native->count; i++)
		if (rules->evaluator(rules->context, native, i))
			calls[count++] = (struct loop_call){ native->frames[i].sp, native->frames[i].cfa, function_at(moment, copy, native, i) };
	return count;
}

/* ---- the stack of that moment ---- */

static bool put(struct pystack *out, uint64_t code, uint32_t stamp, uint64_t entry)
{
	if (out->count == PYSTACK_FRAMES_MAX) {
		out->cut = true;
		return false;
	}
	out->code[out->count] = code;
	out->stamp[out->count] = stamp;
	out->entry[out->count] = entry;
	out->instr[out->count] = out->frame[out->count] = 0;
	out->count++;
	return true;
}

static void put_later(struct pystack *out, const struct pystack *later, uint32_t begin, uint32_t end, uint64_t entry)
{
	while (begin < end && put(out, later->code[begin], later->stamp[begin], entry))
		begin++;
}

/* Frames of LATER that CALL ran: [*BEGIN, *END), none when both are the same. */
static void find_later(const struct pystack *later, const struct loop_call *call, uint32_t *begin, uint32_t *end)
{
	*begin = 0;
	while (*begin < later->count && (later->entry[*begin] < call->sp || later->entry[*begin] >= call->cfa))
		(*begin)++;
	*end = *begin < later->count ? call_end(later, *begin) : *begin;
}

static bool put_remembered(const struct pymoment *moment, const struct loop_call *call, struct pystack *out)
{
	uint32_t at = moment->entry_below ? map_get(&moment->latest, call_key(out->tid, call->cfa - moment->entry_below, call->at->code, call->at->stamp)) : MAP_ABSENT;

	if (at == MAP_ABSENT)
		at = map_get(&moment->always, call_key(0, 0, call->at->code, call->at->stamp));
	if (at == MAP_ABSENT || at == MANY_CALLERS)
		return false;
	for (; at != NO_CALLER; at = moment->callers.items[at].outer)
		if (!put(out, moment->callers.items[at].code, moment->callers.items[at].stamp, call->sp))
			break;
	return true;
}

/* Python frames of one call of the loop. */
static bool put_call(struct pymoment *moment, const struct loop_call *call, const struct pystack *later, uint64_t still_above, struct pystack *out)
{
	uint32_t begin, end, at;

	find_later(later, call, &begin, &end);
	if (begin < end)
		moment->entry_below = call->cfa - later->entry[begin];
	if (!call->at) {
		if (begin == end || call->sp < still_above + WORD)
			return false;
		put_later(out, later, begin, end, call->sp);
		return true;
	}
	if (has_own_call(moment)) {
		put(out, call->at->code, call->at->stamp, call->sp);
		return true;
	}
	for (at = begin; at < end && (later->code[at] != call->at->code || later->stamp[at] != call->at->stamp); at++)
		;
	if (at == end)
		return put_remembered(moment, call, out);
	put_later(out, later, at, end, call->sp);
	return true;
}

/* What lies further out than was walked stood still, as far as anybody knows. */
static bool put_outer(const struct native_stack *native, const struct pystack *later, struct pystack *out)
{
	uint64_t end = native->frames[native->count - 1].cfa;

	if (!later->count && native->end != WALK_COMPLETE)
		return false;
	for (uint32_t i = 0; i < later->count; i++) {
		if (!later->entry[i] && native->end != WALK_COMPLETE)
			return false;
		if (later->entry[i] >= end)
			put_later(out, later, i, i + 1, later->entry[i]);
	}
	return true;
}

bool pymoment_stack(struct pymoment *moment, const struct thread_copy *copy, const struct native_stack *native, const struct join_rules *rules, const struct pystack *later, struct pystack *out)
{
	struct loop_call calls[WALK_FRAMES_MAX];
	uint32_t count;

	if (!native->count || !rules->evaluator)
		return false;
	count = find_calls(moment, copy, native, rules, calls);
	out->tid = later->tid;
	out->holds_gil = later->holds_gil;
	out->cut = later->cut;
	out->count = 0;
	for (uint32_t i = 0; i < count; i++)
		if (!put_call(moment, &calls[i], later, rules->still_above, out))
			return false;
	return count > 0 && put_outer(native, later, out);
}
