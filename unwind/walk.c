/*
 * libunwind walks (unwinder.c). Where it does not come to the end, what is here walks again: by the same tables, and where there are none by
 * code that is known; it goes on with what registers it has, and says why a walk is cut. Each step takes the row of rules at the frame's
 * address (tables.c) and restores the registers that the caller had; what is not known stays unknown, until a rule needs it.
 */
#include "unwind/walk.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/code.h"
#include "unwind/unwinder.h"
#include "unwind/walk_state.h"

enum { SWITCHES_MAX = 8 /* stacks that a walk may pass: alternate signal stacks, coroutines */ };

int walk_read_bytes(void *context, uint64_t addr, void *buffer, size_t size)
{
	struct walker *walker = context;
	const struct thread_copy *copy = walker->copy;
	uint64_t offset = addr - copy->regs[DWARF_SP]; /* below it: a huge number */
	uint64_t held = copy->stack_size < THREAD_COPY_STACK_MAX ? copy->stack_size : THREAD_COPY_STACK_MAX;
	const struct module *module;

	if (offset < THREAD_COPY_STACK_MAX && offset + size > walker->stack_used)
		walker->stack_used = offset + size;
	if (offset <= held && size <= held - offset) {
		memcpy(buffer, copy->stack + offset, size);
		return 0;
	}
	module = modules_find(walker->modules, addr);
	if (module && tables_read(walker->tables, module, addr, buffer, size) == 0)
		return 0;
	return walker->has_memory ? pages_read(&walker->pages, addr, buffer, size) : -1;
}

void walker_close(struct walker *walker)
{
	if (!walker)
		return;
	unwinder_free(walker->unwinder);
	tables_free(walker->tables);
	free(walker);
}

int walker_open(const struct modules *modules, const struct remote_memory *memory, struct walker **out, struct error *err)
{
	struct walker *walker = calloc(1, sizeof *walker);

	if (walker)
		walker->tables = tables_new(modules, memory);
	if (walker && walker->tables)
		walker->unwinder = unwinder_new(modules, walker->tables, walk_read_bytes, walker);
	if (!walker || !walker->unwinder) {
		walker_close(walker);
		return fail(err, ERR_MEMORY, "walking native stacks");
	}
	walker->modules = modules;
	walker->has_memory = memory->read != NULL;
	pages_init(&walker->pages, memory);
	*out = walker;
	return 0;
}

void walker_forget(struct walker *walker)
{
	unwinder_forget(walker->unwinder);
	tables_forget(walker->tables);
}

static int read_word(void *context, uint64_t addr, uint64_t *out)
{
	return walk_read_bytes(((struct walk *)context)->walker, addr, out, WORD);
}

static void forget(struct walk *walk, uint32_t reg)
{
	walk->known &= ~(1ull << reg);
}

void walk_learn(struct walk *walk, uint32_t reg, uint64_t value)
{
	walk->regs[reg] = value;
	walk->known |= 1ull << reg;
}

static bool evaluate(struct walk *walk, const struct cfi_state *state, int64_t expression, const uint64_t *initial, uint64_t *out)
{
	switch (cfi_evaluate(tables_expressions(walk->walker->tables), (uint64_t)expression, state, initial, out)) {
	case CFI_DONE:
		return true;
	case CFI_NEEDS_REGISTER:
		walk->end = WALK_CUT_REGISTER;
		return false;
	case CFI_NEEDS_MEMORY:
		walk->end = WALK_CUT_STACK;
		return false;
	default:
		walk->end = WALK_CUT_TABLES;
		return false;
	}
}

static bool find_cfa(struct walk *walk, const struct cfi_row *row, const struct cfi_state *state, uint64_t *out)
{
	if (row->cfa_by_expression)
		return evaluate(walk, state, row->cfa_value, NULL, out);
	if (!(walk->known >> row->cfa_register & 1)) {
		walk->end = WALK_CUT_REGISTER;
		return false;
	}
	*out = walk->regs[row->cfa_register] + (uint64_t)row->cfa_value;
	return true;
}

/* The caller's register REG into *OUT; false when it cannot be known, and why in walk->end. STATE is the frame's own. */
static bool restore(struct walk *walk, const struct cfi_row *row, const struct cfi_state *state, uint64_t cfa, uint32_t reg, uint64_t *out)
{
	int64_t value = row->values[reg];
	uint64_t at = cfa + (uint64_t)value;

	walk->end = WALK_CUT_REGISTER;
	switch ((enum cfi_rule)row->rules[reg]) {
	case CFI_SAME:
	case CFI_REGISTER:
		if (row->rules[reg] == CFI_SAME)
			value = reg;
		*out = state->regs[value];
		return state->known >> value & 1;
	case CFI_IS:
		*out = at;
		return true;
	case CFI_IS_EXPRESSION:
		return evaluate(walk, state, value, &cfa, out);
	case CFI_AT_EXPRESSION:
		if (!evaluate(walk, state, value, &cfa, &at))
			return false;
		break;
	case CFI_AT:
		break;
	default:
		return false;
	}
	if (read_word(walk, at, out) == 0)
		return true;
	walk->end = WALK_CUT_STACK;
	return false;
}

/* Goes to the caller: false when there is none, or no way to it; walk->end says which. */
static bool step(struct walk *walk, const struct cfi_row *row, uint64_t *cfa)
{
	uint64_t before[DWARF_COUNT], value;
	struct cfi_state state = { before, walk->known, read_word, walk };

	memcpy(before, walk->regs, sizeof before);
	if (!find_cfa(walk, row, &state, cfa))
		return false;
	if (row->rules[DWARF_RETURN] == CFI_UNDEFINED) {
		walk->first = true;
		walk->end = WALK_COMPLETE;
		return false;
	}
	/* Where a call leaves its return address in a register, it is still there in a function that has made none. */
	if (row->rules[DWARF_RETURN] == CFI_SAME && !(LINK_REGISTER && walk->exact)) {
		walk->end = WALK_CUT_TABLES;
		return false;
	}
	if (!restore(walk, row, &state, *cfa, DWARF_RETURN, &value))
		return false;
	walk_learn(walk, DWARF_PC, CODE_ADDRESS(value));
	for (uint32_t reg = 0; reg < DWARF_PC; reg++) {
		if (row->rules[reg] == CFI_SAME && (PRESERVED_MASK >> reg & 1))
			continue;
		if (row->rules[reg] != CFI_SAME && restore(walk, row, &state, *cfa, reg, &value))
			walk_learn(walk, reg, value);
		else
			forget(walk, reg);
	}
	walk->exact = row->signal;
	return true;
}

/* ---- code that no table describes ---- */

static bool leave_signal(struct walk *walk, uint64_t *cfa)
{
	uint64_t saved[DWARF_COUNT], frame = walk->regs[DWARF_SP];

	if (walk_read_bytes(walk->walker, frame + code_signal_offset, saved, sizeof saved) < 0) {
		walk->end = WALK_CUT_STACK;
		return false;
	}
	for (size_t i = 0; i < DWARF_COUNT; i++)
		walk_learn(walk, code_signal_order[i], saved[i]);
	*cfa = walk->regs[DWARF_SP];
	walk->exact = true;
	return true;
}

/* No call stands before a function's first instruction: the return address was put there, as makecontext() does, to begin a stack. */
static bool returns_to_start(struct walker *walker, uint64_t ip)
{
	const struct module *module = modules_find(walker->modules, ip);
	const struct cfi_row *row = module ? tables_row(walker->tables, module, ip) : NULL;

	return row && row->at_start;
}

static bool step_without_row(struct walk *walk, const struct module *module, uint64_t *cfa)
{
	unsigned char code[16] = { 0 };
	uint64_t ip = walk->regs[DWARF_PC];

	if (module && strcmp(module->path, "[vsyscall]") == 0)
		return step(walk, &code_called_row, cfa);
	if (!walk->exact && returns_to_start(walk->walker, ip)) {
		walk->end = WALK_COMPLETE;
		return false;
	}
	if (module && walk_read_bytes(walk->walker, ip, code, sizeof code) == 0) {
		if (code_is_signal_return(code))
			return leave_signal(walk, cfa);
		if (walk->exact && code_is_linkage_stub(code))
			return step(walk, &code_called_row, cfa);
	}
	walk->end = module && module->kind == MODULE_JIT ? WALK_CUT_JIT : WALK_CUT_TABLES;
	return false;
}

/* Stacks grow down: a caller's frame lies above. Where control came from another stack it may not, but not again and again. */
static bool goes_up(struct walk *walk, uint64_t before, uint64_t cfa)
{
	if (walk->regs[DWARF_SP] > before && cfa > before)
		return true;
	if (walk->exact && ++walk->switches <= SWITCHES_MAX)
		return true;
	walk->end = WALK_CUT_TABLES;
	return false;
}

static void fill_preserved(const struct walk *walk, struct native_frame *frame)
{
	static const uint8_t registers[PRESERVED_COUNT] = PRESERVED_REGISTERS;

	for (int i = 0; i < PRESERVED_COUNT; i++)
		if (walk->known >> registers[i] & 1)
			frame->preserved[i] = walk->regs[registers[i]];
}

/* Fills FRAME, and goes to its caller: false at the last one. */
static bool walk_frame(struct walk *walk, struct native_frame *frame)
{
	uint64_t ip = walk->regs[DWARF_PC], sp = walk->regs[DWARF_SP], lookup = walk->exact ? ip : ip - 1;
	const struct module *module = modules_find(walk->walker->modules, lookup);
	const struct cfi_row *row = module ? tables_row(walk->walker->tables, module, lookup) : NULL;

	*frame = (struct native_frame){ .ip = ip, .sp = sp, .cfa = sp, .module = module ? module->id : 0 };
	fill_preserved(walk, frame);
	if (row ? !step(walk, row, &frame->cfa) : !step_without_row(walk, module, &frame->cfa))
		return false;
	if (!goes_up(walk, sp, frame->cfa))
		return false;
	if (!(walk->known >> DWARF_SP & 1)) {
		walk->end = WALK_CUT_REGISTER;
		return false;
	}
	if (walk->regs[DWARF_PC] == 0) {
		walk->end = WALK_COMPLETE;
		return false;
	}
	return true;
}

void walk_on(struct walk *walk, struct native_stack *out)
{
	out->end = WALK_CUT_DEPTH;
	while (out->count < WALK_FRAMES_MAX) {
		if (!walk_frame(walk, &out->frames[out->count++])) {
			out->end = walk->end;
			return;
		}
	}
}

static void walk_frames(struct walker *walker, struct native_stack *out)
{
	struct walk walk = { .walker = walker, .known = walker->copy->known, .exact = true };

	memcpy(walk.regs, walker->copy->regs, sizeof walk.regs);
	out->count = 0;
	walk_on(&walk, out);
}

static bool is_assembler(const struct walker *walker, const struct native_stack *stack)
{
	const struct module *module = stack->count == 1 && stack->end == WALK_CUT_TABLES ? modules_find(walker->modules, stack->frames[0].ip) : NULL;

	return module && module->kind == MODULE_FILE;
}

/* libunwind keeps rows by address, whether a frame was interrupted there or returns there. The two differ where a function begins after a call
 * that never returns: such a frame is kept away from it. */
static bool is_mixed_up(struct walker *walker, const struct thread_copy *copy)
{
	const struct module *module = modules_find(walker->modules, copy->regs[DWARF_PC]);
	const struct cfi_row *row = module ? tables_row(walker->tables, module, copy->regs[DWARF_PC]) : NULL;

	return !row || row->at_start;
}

void walker_walk(struct walker *walker, const struct thread_copy *copy, struct native_stack *out)
{
	uint64_t needed = 1ull << DWARF_SP | 1ull << DWARF_PC;

	walker->copy = copy;
	walker->stack_used = 0;
	out->searched = false;
	out->stack_used = 0;
	pages_forget(&walker->pages);
	if ((copy->known & needed) != needed) {
		out->count = 1;
		out->frames[0] = (struct native_frame){ .ip = copy->known >> DWARF_PC & 1 ? copy->regs[DWARF_PC] : 0 };
		out->end = WALK_CUT_REGISTER;
		return;
	}
	if (is_mixed_up(walker, copy) || !unwinder_walk(walker->unwinder, copy, out))
		walk_frames(walker, out);
	if (is_assembler(walker, out))
		walk_search(walker, out);
	out->stack_used = (uint32_t)walker->stack_used;
}

uint32_t thread_copy_reach(const struct thread_copy *copy)
{
	uint64_t reach = 0;

	for (uint32_t reg = 0; reg < DWARF_PC; reg++) {
		uint64_t distance = copy->regs[reg] - copy->regs[DWARF_SP];

		if (copy->known >> reg & 1 && distance > copy->stack_size && distance < THREAD_COPY_STACK_MAX && distance > reach)
			reach = distance;
	}
	return (uint32_t)reach;
}

const char *walk_end_name(enum walk_end end)
{
	static const char *const names[] = {
		[WALK_COMPLETE] = "complete",
		[WALK_CUT_DEPTH] = "cut: deeper than is kept",
		[WALK_CUT_STACK] = "cut: the rest of the stack could not be read",
		[WALK_CUT_JIT] = "cut: generated code without unwind tables",
		[WALK_CUT_REGISTER] = "cut: needs a register that is not known",
		[WALK_CUT_TABLES] = "cut: unwind tables are missing or damaged",
	};

	return names[end];
}
