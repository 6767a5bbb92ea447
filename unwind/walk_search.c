/*
 * Kernels of BLAS and the like: hand-written code that calls nothing, and whose author gave it no table. Its return address is on the stack, above what it
 * pushed. Where it keeps much more there, old words among that, it keeps the old stack pointer in a register. The word is taken from which tables lead on: to the
 * thread's first frame, or to where the copy ends.
 */
#include "unwind/call_site.h"
#include "unwind/code.h"
#include "unwind/walk_state.h"

enum {
	ROOM_MAX = 48 << 10, /* OpenBLAS's kernels keep up to 32 KiB */
	SEARCH_WORDS = 48,
	PUSHES_MAX = 8,      /* words below the return address among which the caller's rbp may be */
	FRAMES_ENOUGH = 4,
};

/* What has a table was called directly by something else: a word that was left on the stack. */
static bool may_have_called(struct walk *walk, uint64_t target)
{
	const struct module *module = modules_find(walk->walker->modules, target);
	unsigned char code[16] = { 0 };

	if (!module)
		return false;
	return !tables_row(walk->walker->tables, module, target) || (walk_read_bytes(walk->walker, target, code, sizeof code) == 0 && code_is_linkage_stub(code));
}

/* Right behind a call, in a function that has a table. */
static bool is_return_address(struct walk *walk, uint64_t ip)
{
	const struct module *module = modules_find(walk->walker->modules, ip - 1);
	unsigned char code[CALL_BYTES_MAX];
	struct call_site site;

	if (!module || module->kind != MODULE_FILE || ip - module->start < CALL_BYTES_MAX || !tables_row(walk->walker->tables, module, ip - 1))
		return false;
	if (tables_read(walk->walker->tables, module, ip - CALL_BYTES_MAX, code, CALL_BYTES_MAX) < 0)
		return false;
	site = call_site_before(code, ip);
	return site.indirect || (site.direct && may_have_called(walk, site.target));
}

/* The word at OFFSET of the stack; 0 where it cannot be read. */
static uint64_t word_at(struct walker *walker, uint64_t offset)
{
	uint64_t word = 0;

	return walk_read_bytes(walker, walker->copy->regs[DWARF_SP] + offset, &word, WORD) == 0 ? word : 0;
}

/* The caller's rbp, where it is a frame's address: as it is, or pushed near the return address at OFFSET. */
static void learn_frame_pointer(struct walk *walk, const struct thread_copy *copy, uint64_t offset)
{
	uint64_t sp = copy->regs[DWARF_SP], value = copy->known >> DWARF_FP & 1 ? copy->regs[DWARF_FP] : 0;
	uint64_t least = offset > PUSHES_MAX * WORD ? offset - PUSHES_MAX * WORD : 0;

	for (uint64_t at = offset; value - sp - offset >= ROOM_MAX && at >= least + WORD; at -= WORD)
		value = word_at(walk->walker, at - WORD);
	if (value - sp - offset < ROOM_MAX)
		walk_learn(walk, DWARF_FP, value);
}

/* Is the return address among the words from OFFSET on? Then walks on from it. */
static bool search_from(struct walker *walker, uint64_t offset, struct native_stack *out)
{
	uint64_t sp = walker->copy->regs[DWARF_SP];

	offset += -(sp + offset) & (WORD - 1);
	for (uint64_t end = offset + SEARCH_WORDS * WORD; offset < end; offset += WORD) {
		struct walk walk = { .walker = walker };
		uint64_t ip = word_at(walker, offset);

		if (!is_return_address(&walk, ip))
			continue;
		walk_learn(&walk, DWARF_PC, ip);
		walk_learn(&walk, DWARF_SP, sp + offset + WORD);
		learn_frame_pointer(&walk, walker->copy, offset);
		out->frames[0].cfa = sp + offset + WORD;
		out->count = 1;
		walk_on(&walk, out);
		/* Words that were left over lead on for a while, too, and end in a zero or in the middle of nowhere. */
		if (walk.first || out->end == WALK_CUT_DEPTH || (out->end == WALK_CUT_STACK && out->count > FRAMES_ENOUGH))
			return true;
	}
	return false;
}

void walk_search(struct walker *walker, struct native_stack *out)
{
	const struct thread_copy *copy = walker->copy;
	uint64_t sp = copy->regs[DWARF_SP];

	out->searched = search_from(walker, 0, out);
	for (uint32_t reg = 0; reg < DWARF_PC && !out->searched; reg++)
		if (reg != DWARF_SP && copy->known >> reg & 1 && copy->regs[reg] > sp && copy->regs[reg] - sp < ROOM_MAX)
			out->searched = search_from(walker, copy->regs[reg] - sp, out);
	if (out->searched)
		return;
	out->frames[0].cfa = sp;
	out->count = 1;
	out->end = WALK_CUT_TABLES;
}
