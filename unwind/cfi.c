/* CIEs, FDEs and their programs. Expressions are copied here and evaluated in cfi_expression.c. */
#include "unwind/cfi.h"

#include <dwarf.h>
#include <string.h>

enum {
	REMEMBERED_MAX = 16,  /* gcc and clang nest them once or twice */
	POINTER_RELATIVE = 0x10, POINTER_FORMAT = 0x0f, POINTER_OMITTED = 0xff,
	CFA_ADVANCE = 0x40, CFA_OFFSET = 0x80, CFA_RESTORE = 0xc0, CFA_LOW_BITS = 0x3f,
	GNU_ARGS_SIZE = 0x2e, GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
	ALIKE_LOOKED_AT = 8, /* all entries of a PLT share one expression */
};

uint64_t cfi_entry_size(const uint8_t *head)
{
	struct cfi_bytes bytes = { head, head + 12, false };
	uint64_t length = cfi_number(&bytes, 4);

	if (length == 0xffffffff) {
		length = cfi_number(&bytes, 8);
		return length < 1ull << 32 ? length + 12 : 0;
	}
	return length && length < 0xfffffff0 ? length + 4 : 0;
}

/* Past the length field. */
static struct cfi_bytes body_of(const struct cfi_entry *entry, size_t *pointer_size)
{
	struct cfi_bytes bytes = { entry->bytes, entry->bytes + entry->size, false };

	*pointer_size = 4;
	if (cfi_number(&bytes, 4) == 0xffffffff) {
		*pointer_size = 8;
		cfi_number(&bytes, 8);
	}
	return bytes;
}

bool cfi_cie_pointer(const struct cfi_entry *fde, uint64_t *out, size_t *field)
{
	size_t pointer_size;
	struct cfi_bytes bytes = body_of(fde, &pointer_size);
	uint64_t pointer;

	*field = (size_t)(bytes.at - fde->bytes);
	pointer = cfi_number(&bytes, pointer_size);
	*out = pointer;
	if (fde->debug_frame)
		return !bytes.failed && pointer != (pointer_size == 4 ? 0xffffffff : UINT64_MAX);
	return !bytes.failed && pointer != 0;
}

bool cfi_pointer(struct cfi_bytes *bytes, uint8_t encoding, uint64_t at, uint64_t *out)
{
	switch (encoding & POINTER_FORMAT) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		*out = cfi_number(bytes, 8);
		break;
	case DW_EH_PE_udata4:
		*out = cfi_number(bytes, 4);
		break;
	case DW_EH_PE_sdata4:
		*out = (uint64_t)cfi_signed(bytes, 4);
		break;
	case DW_EH_PE_udata2:
		*out = cfi_number(bytes, 2);
		break;
	case DW_EH_PE_sdata2:
		*out = (uint64_t)cfi_signed(bytes, 2);
		break;
	case DW_EH_PE_uleb128:
		*out = cfi_uleb(bytes);
		break;
	case DW_EH_PE_sleb128:
		*out = (uint64_t)cfi_sleb(bytes);
		break;
	default:
		return false;
	}
	if ((encoding & ~POINTER_FORMAT) == POINTER_RELATIVE)
		*out += at;
	else if (encoding & ~POINTER_FORMAT)
		return false;
	return !bytes->failed;
}

static uint64_t addr_of(const struct cfi_entry *entry, const struct cfi_bytes *bytes)
{
	return entry->addr + (uint64_t)(bytes->at - entry->bytes);
}

static int read_augmentation(const struct cfi_entry *entry, const char *text, struct cfi_bytes *bytes, struct cfi_cie *out)
{
	uint64_t size, ignored;
	const uint8_t *end;

	out->augmented = text[0] == 'z';
	if (!out->augmented)
		return text[0] ? -1 : 0;
	size = cfi_uleb(bytes);
	if (bytes->failed || size > (uint64_t)(bytes->end - bytes->at))
		return -1;
	end = bytes->at + size;
	for (text++; *text; text++) {
		if (*text == 'R')
			out->pointer_encoding = (uint8_t)cfi_number(bytes, 1);
		else if (*text == 'S')
			out->signal = true;
		else if (*text == 'L')
			cfi_number(bytes, 1);
		else if (*text != 'P' || !cfi_pointer(bytes, (uint8_t)cfi_number(bytes, 1) & 0x7f, addr_of(entry, bytes), &ignored))
			break; /* the size tells where it ends, but what was not understood may matter */
	}
	if (*text || bytes->failed || bytes->at > end)
		return -1;
	bytes->at = end;
	return 0;
}

int cfi_read_cie(const struct cfi_entry *entry, struct cfi_cie *out)
{
	struct cfi_cie cie = { .pointer_encoding = DW_EH_PE_absptr };
	size_t pointer_size;
	struct cfi_bytes bytes = body_of(entry, &pointer_size);
	uint64_t id = cfi_number(&bytes, pointer_size), version = cfi_number(&bytes, 1), column;
	const char *text = (const char *)bytes.at;

	if (id != (entry->debug_frame ? (pointer_size == 4 ? 0xffffffff : UINT64_MAX) : 0) || (version != 1 && version != 3 && version != 4))
		return -1;
	while (cfi_number(&bytes, 1))
		;
	/* NOLINTNEXTLINE(misc-redundant-expression): each call reads on */
	if (version == 4 && (cfi_number(&bytes, 1) != 8 || cfi_number(&bytes, 1) != 0))
		return -1;
	cie.code_factor = cfi_uleb(&bytes);
	cie.data_factor = cfi_sleb(&bytes);
	column = version == 1 ? cfi_number(&bytes, 1) : cfi_uleb(&bytes);
	if (bytes.failed || column != CFI_RETURN || read_augmentation(entry, text, &bytes, &cie) < 0)
		return -1;
	cie.program = bytes;
	*out = cie;
	return 0;
}

int cfi_read_fde(const struct cfi_entry *entry, const struct cfi_cie *cie, struct cfi_fde *out)
{
	size_t pointer_size;
	struct cfi_bytes bytes = body_of(entry, &pointer_size);
	uint64_t start, size;

	cfi_number(&bytes, pointer_size);
	if (!cfi_pointer(&bytes, cie->pointer_encoding, addr_of(entry, &bytes), &start) || !cfi_pointer(&bytes, cie->pointer_encoding & POINTER_FORMAT, 0, &size))
		return -1;
	if (cie->augmented) {
		uint64_t length = cfi_uleb(&bytes);

		if (bytes.failed || length > (uint64_t)(bytes.end - bytes.at))
			return -1;
		bytes.at += length;
	}
	if (start + size < start)
		return -1;
	*out = (struct cfi_fde){ start, start + size, bytes };
	return 0;
}

/* A program while it runs. */
struct run {
	struct cfi_bytes bytes;
	const struct cfi_cie *cie;
	struct cfi_expressions *expressions;
	const struct cfi_row *initial; /* what "restore" goes back to */
	uint64_t location;
	struct cfi_row row;
	bool has_cfa, full;
	uint32_t remembered_count;
	struct {
		struct cfi_row row;
		bool has_cfa;
	} remembered[REMEMBERED_MAX];
};

static void set_rule(struct run *run, uint64_t reg, enum cfi_rule rule, int64_t value)
{
	if (reg >= CFI_REGISTERS) /* vector registers: nobody asks for them */
		return;
	run->row.rules[reg] = (uint8_t)rule;
	run->row.values[reg] = value;
}

static bool set_cfa(struct run *run, uint64_t reg, int64_t offset)
{
	if (reg >= CFI_REGISTERS || reg == DWARF_PC)
		return false;
	run->row.cfa_by_expression = false;
	run->row.cfa_register = (uint8_t)reg;
	run->row.cfa_value = offset;
	run->has_cfa = true;
	return true;
}

/* Takes the expression that follows: which one it is now. */
static bool take_expression(struct run *run, int64_t *out)
{
	struct cfi_expressions *all = run->expressions;
	uint64_t size = cfi_uleb(&run->bytes);
	const uint8_t *bytes;

	if (run->bytes.failed || size > CFI_EXPRESSION_MAX || size > (uint64_t)(run->bytes.end - run->bytes.at))
		return false;
	bytes = run->bytes.at;
	run->bytes.at += size;
	for (uint32_t i = all->count; i > 0 && i + ALIKE_LOOKED_AT > all->count; i--) {
		*out = i - 1;
		if (all->list[i - 1].size == size && memcmp(all->list[i - 1].bytes, bytes, size) == 0)
			return true;
	}
	if (all->count == CFI_EXPRESSIONS) {
		run->full = true;
		return false;
	}
	memcpy(all->list[all->count].bytes, bytes, size);
	all->list[all->count].size = (uint8_t)size;
	*out = all->count++;
	return true;
}

static int64_t scaled(const struct run *run, uint64_t value)
{
	return (int64_t)(value * (uint64_t)run->cie->data_factor);
}

static bool step_cfa(struct run *run, unsigned op)
{
	uint64_t reg;
	int64_t value;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = cfi_uleb(&run->bytes);
		return set_cfa(run, reg, (int64_t)cfi_uleb(&run->bytes));
	case DW_CFA_def_cfa_sf:
		reg = cfi_uleb(&run->bytes);
		return set_cfa(run, reg, scaled(run, (uint64_t)cfi_sleb(&run->bytes)));
	case DW_CFA_def_cfa_register:
		return run->has_cfa && !run->row.cfa_by_expression && set_cfa(run, cfi_uleb(&run->bytes), run->row.cfa_value);
	case DW_CFA_def_cfa_offset:
		return run->has_cfa && !run->row.cfa_by_expression && set_cfa(run, run->row.cfa_register, (int64_t)cfi_uleb(&run->bytes));
	case DW_CFA_def_cfa_offset_sf:
		return run->has_cfa && !run->row.cfa_by_expression && set_cfa(run, run->row.cfa_register, scaled(run, (uint64_t)cfi_sleb(&run->bytes)));
	case DW_CFA_def_cfa_expression:
		if (!take_expression(run, &value))
			return false;
		run->row.cfa_by_expression = run->has_cfa = true;
		run->row.cfa_value = value;
		return true;
	default:
		return false;
	}
}

static bool step_register(struct run *run, unsigned op)
{
	uint64_t reg = cfi_uleb(&run->bytes);
	int64_t value = 0;

	switch (op) {
	case DW_CFA_offset_extended:
	case DW_CFA_val_offset:
		set_rule(run, reg, op == DW_CFA_val_offset ? CFI_IS : CFI_AT, scaled(run, cfi_uleb(&run->bytes)));
		return true;
	case DW_CFA_offset_extended_sf:
	case DW_CFA_val_offset_sf:
		set_rule(run, reg, op == DW_CFA_val_offset_sf ? CFI_IS : CFI_AT, scaled(run, (uint64_t)cfi_sleb(&run->bytes)));
		return true;
	case GNU_NEGATIVE_OFFSET_EXTENDED:
		set_rule(run, reg, CFI_AT, scaled(run, 0 - cfi_uleb(&run->bytes)));
		return true;
	case DW_CFA_restore_extended:
		if (reg < CFI_REGISTERS)
			set_rule(run, reg, run->initial ? run->initial->rules[reg] : CFI_SAME, run->initial ? run->initial->values[reg] : 0);
		return true;
	case DW_CFA_undefined:
	case DW_CFA_same_value:
		set_rule(run, reg, op == DW_CFA_undefined ? CFI_UNDEFINED : CFI_SAME, 0);
		return true;
	case DW_CFA_register:
		value = (int64_t)cfi_uleb(&run->bytes);
		if (value < 0 || value >= CFI_REGISTERS) {
			run->row.foreign = true;
			set_rule(run, reg, CFI_UNDEFINED, 0);
			return true;
		}
		set_rule(run, reg, CFI_REGISTER, value);
		return true;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		if (!take_expression(run, &value))
			return false;
		set_rule(run, reg, op == DW_CFA_expression ? CFI_AT_EXPRESSION : CFI_IS_EXPRESSION, value);
		return true;
	default:
		return false;
	}
}

static bool step_state(struct run *run, unsigned op)
{
	if (op == DW_CFA_remember_state) {
		if (run->remembered_count == REMEMBERED_MAX)
			return false;
		run->remembered[run->remembered_count].row = run->row;
		run->remembered[run->remembered_count++].has_cfa = run->has_cfa;
		return true;
	}
	if (run->remembered_count == 0)
		return false;
	run->row = run->remembered[--run->remembered_count].row;
	run->has_cfa = run->remembered[run->remembered_count].has_cfa;
	return true;
}

static bool step_other(struct run *run, unsigned op)
{
	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_advance_loc1:
	case DW_CFA_advance_loc2:
	case DW_CFA_advance_loc4:
		run->location += cfi_number(&run->bytes, op == DW_CFA_advance_loc1 ? 1 : op == DW_CFA_advance_loc2 ? 2 : 4) * run->cie->code_factor;
		return true;
	case DW_CFA_remember_state:
	case DW_CFA_restore_state:
		return step_state(run, op);
	case GNU_ARGS_SIZE:
		cfi_uleb(&run->bytes);
		return true;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		return step_cfa(run, op);
	default:
		return step_register(run, op);
	}
}

static bool step(struct run *run)
{
	unsigned op = (unsigned)cfi_number(&run->bytes, 1), low = op & CFA_LOW_BITS;

	switch (op & ~(unsigned)CFA_LOW_BITS) {
	case CFA_ADVANCE:
		run->location += low * run->cie->code_factor;
		return true;
	case CFA_OFFSET:
		set_rule(run, low, CFI_AT, scaled(run, cfi_uleb(&run->bytes)));
		return true;
	case CFA_RESTORE:
		if (low < CFI_REGISTERS)
			set_rule(run, low, run->initial ? run->initial->rules[low] : CFI_SAME, run->initial ? run->initial->values[low] : 0);
		return true;
	default:
		return step_other(run, op);
	}
}

static bool run_cie(struct run *run)
{
	run->bytes = run->cie->program;
	while (run->bytes.at < run->bytes.end)
		if (!step(run) || run->bytes.failed)
			return false;
	return true;
}

/* A row holds until the location passes PC. */
static bool run_fde(struct run *run, const struct cfi_fde *fde, uint64_t pc, struct cfi_row *out)
{
	run->location = fde->start;
	run->bytes = fde->program;
	do {
		*out = run->row;
		if (run->bytes.at == run->bytes.end)
			break;
		if (!step(run) || run->bytes.failed)
			return false;
	} while (run->location <= pc);
	return run->has_cfa;
}

int cfi_row(const struct cfi_cie *cie, const struct cfi_fde *fde, uint64_t pc, struct cfi_expressions *expressions, struct cfi_row *out)
{
	struct run run = { .cie = cie, .expressions = expressions };
	uint32_t had = expressions->count;
	struct cfi_row initial, row;

	run.row.signal = cie->signal;
	run.row.rules[DWARF_SP] = CFI_IS;
	if (run_cie(&run)) {
		initial = run.row;
		run.initial = &initial;
		if (run_fde(&run, fde, pc, &row)) {
			row.at_start = pc == fde->start;
			*out = row;
			return 0;
		}
	}
	if (run.full)
		return -2;
	expressions->count = had;
	return -1;
}
