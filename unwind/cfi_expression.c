/* The stack machine of DWARF expressions (DWARF 5 §2.5), as far as call-frame tables use it. Ends, whatever it is given. */
#include <dwarf.h>

#include "unwind/cfi.h"

enum { STACK_MAX = 32, STEPS_MAX = 256 };

struct machine {
	struct cfi_bytes bytes;
	const uint8_t *begin;
	const struct cfi_state *state;
	uint64_t stack[STACK_MAX];
	size_t depth;
	enum cfi_outcome outcome;
};

static void stop(struct machine *machine, enum cfi_outcome why)
{
	if (machine->outcome == CFI_DONE)
		machine->outcome = why;
}

static void push(struct machine *machine, uint64_t value)
{
	if (machine->depth == STACK_MAX)
		stop(machine, CFI_BAD);
	else
		machine->stack[machine->depth++] = value;
}

static uint64_t pop(struct machine *machine)
{
	if (machine->depth == 0) {
		stop(machine, CFI_BAD);
		return 0;
	}
	return machine->stack[--machine->depth];
}

static uint64_t peek(struct machine *machine, uint64_t below)
{
	if (below >= machine->depth) {
		stop(machine, CFI_BAD);
		return 0;
	}
	return machine->stack[machine->depth - 1 - below];
}

static void push_register(struct machine *machine, uint64_t reg, int64_t offset)
{
	if (reg >= CFI_REGISTERS)
		stop(machine, CFI_BAD);
	else if (!(machine->state->known >> reg & 1))
		stop(machine, CFI_NEEDS_REGISTER);
	else
		push(machine, machine->state->regs[reg] + (uint64_t)offset);
}

static void dereference(struct machine *machine, uint64_t size)
{
	uint64_t addr = pop(machine), value = 0;

	if (size == 0 || size > 8)
		stop(machine, CFI_BAD);
	else if (machine->outcome == CFI_DONE && machine->state->read(machine->state->context, addr, &value) < 0)
		stop(machine, CFI_NEEDS_MEMORY);
	push(machine, size < 8 ? value & ((1ull << (8 * size)) - 1) : value);
}

static void jump(struct machine *machine, bool really)
{
	int64_t offset = cfi_signed(&machine->bytes, 2);

	if (!really)
		return;
	if (offset < machine->begin - machine->bytes.at || offset > machine->bytes.end - machine->bytes.at)
		stop(machine, CFI_BAD);
	else
		machine->bytes.at += offset;
}

/* Of two numbers, the upper one is B. */
static void calculate(struct machine *machine, unsigned op)
{
	uint64_t b = pop(machine), a = pop(machine), result = 0;
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (op) {
	case DW_OP_and: result = a & b; break;
	case DW_OP_or: result = a | b; break;
	case DW_OP_xor: result = a ^ b; break;
	case DW_OP_plus: result = a + b; break;
	case DW_OP_minus: result = a - b; break;
	case DW_OP_mul: result = a * b; break;
	case DW_OP_shl: result = b < 64 ? a << b : 0; break;
	case DW_OP_shr: result = b < 64 ? a >> b : 0; break;
	case DW_OP_shra: result = (uint64_t)(x >> (b < 64 ? b : 63)); break;
	case DW_OP_eq: result = a == b; break;
	case DW_OP_ne: result = a != b; break;
	case DW_OP_lt: result = x < y; break;
	case DW_OP_le: result = x <= y; break;
	case DW_OP_gt: result = x > y; break;
	case DW_OP_ge: result = x >= y; break;
	default: stop(machine, CFI_BAD); break;
	}
	push(machine, result);
}

static void push_constant(struct machine *machine, unsigned op)
{
	struct cfi_bytes *bytes = &machine->bytes;

	switch (op) {
	case DW_OP_const1u: push(machine, cfi_number(bytes, 1)); break;
	case DW_OP_const2u: push(machine, cfi_number(bytes, 2)); break;
	case DW_OP_const4u: push(machine, cfi_number(bytes, 4)); break;
	case DW_OP_const8u:
	case DW_OP_const8s: push(machine, cfi_number(bytes, 8)); break;
	case DW_OP_const1s: push(machine, (uint64_t)cfi_signed(bytes, 1)); break;
	case DW_OP_const2s: push(machine, (uint64_t)cfi_signed(bytes, 2)); break;
	case DW_OP_const4s: push(machine, (uint64_t)cfi_signed(bytes, 4)); break;
	case DW_OP_constu: push(machine, cfi_uleb(bytes)); break;
	default: push(machine, (uint64_t)cfi_sleb(bytes)); break;
	}
}

/* The upper two or three change places. */
static void shuffle(struct machine *machine, unsigned op)
{
	uint64_t a = pop(machine), b = pop(machine), c;

	if (op == DW_OP_swap) {
		push(machine, a);
		push(machine, b);
		return;
	}
	c = pop(machine);
	push(machine, a);
	push(machine, c);
	push(machine, b);
}

static void step(struct machine *machine)
{
	unsigned op = (unsigned)cfi_number(&machine->bytes, 1);
	uint64_t reg;

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
		push(machine, op - DW_OP_lit0);
		return;
	}
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
		push_register(machine, op - DW_OP_breg0, cfi_sleb(&machine->bytes));
		return;
	}
	if (op >= DW_OP_const1u && op <= DW_OP_consts) {
		push_constant(machine, op);
		return;
	}
	switch (op) {
	case DW_OP_nop: break;
	case DW_OP_bregx:
		reg = cfi_uleb(&machine->bytes);
		push_register(machine, reg, cfi_sleb(&machine->bytes));
		break;
	case DW_OP_dup: push(machine, peek(machine, 0)); break;
	case DW_OP_over: push(machine, peek(machine, 1)); break;
	case DW_OP_pick: push(machine, peek(machine, cfi_number(&machine->bytes, 1))); break;
	case DW_OP_drop: pop(machine); break;
	case DW_OP_swap:
	case DW_OP_rot: shuffle(machine, op); break;
	case DW_OP_deref: dereference(machine, 8); break;
	case DW_OP_deref_size: dereference(machine, cfi_number(&machine->bytes, 1)); break;
	case DW_OP_neg: push(machine, 0 - pop(machine)); break;
	case DW_OP_not: push(machine, ~pop(machine)); break;
	case DW_OP_plus_uconst: push(machine, pop(machine) + cfi_uleb(&machine->bytes)); break;
	case DW_OP_skip: jump(machine, true); break;
	case DW_OP_bra: jump(machine, pop(machine) != 0); break;
	default: calculate(machine, op); break;
	}
}

enum cfi_outcome cfi_evaluate(const struct cfi_expressions *expressions, uint64_t index, const struct cfi_state *state, const uint64_t *initial, uint64_t *out)
{
	struct machine machine = { .state = state, .outcome = CFI_DONE };

	if (index >= expressions->count)
		return CFI_BAD;
	machine.begin = machine.bytes.at = expressions->list[index].bytes;
	machine.bytes.end = machine.begin + expressions->list[index].size;
	if (initial)
		push(&machine, *initial);
	for (int steps = 0; machine.outcome == CFI_DONE && machine.bytes.at < machine.bytes.end; steps++) {
		if (steps == STEPS_MAX || machine.bytes.failed)
			return CFI_BAD;
		step(&machine);
	}
	if (machine.bytes.failed)
		return CFI_BAD;
	if (machine.outcome == CFI_DONE)
		*out = pop(&machine);
	return machine.outcome;
}
