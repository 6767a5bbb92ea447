/* Rows of call-frame tables that are right, damaged, and hostile; walks of this very process, compared with libunwind's own and the compiler's. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "unwind/call_site.h"
#include "unwind/cfi.h"
#include "unwind/walk.h"

/* ---- rows ---- */

enum { START = 0x1000, SIZE = 0x100 };

struct table {
	uint8_t cie[256], fde[256];
	size_t cie_size, fde_size;
	struct cfi_expressions expressions;
};

static void put_entry(uint8_t *bytes, size_t *size, const void *head, size_t head_size, const char *program, size_t program_size)
{
	uint32_t length = (uint32_t)(head_size + program_size);

	memcpy(bytes, &length, 4);
	memcpy(bytes + 4, head, head_size);
	memcpy(bytes + 4 + head_size, program, program_size);
	*size = 4 + length;
}

/* A CIE "zR", absolute addresses, and an FDE over START; both with programs. */
#define TABLE(cie_program, fde_program) make_table(cie_program, sizeof cie_program - 1, fde_program, sizeof fde_program - 1)
static struct table *make_table(const char *cie_program, size_t cie_size, const char *fde_program, size_t fde_size)
{
	static const uint8_t cie_head[] = { 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0 };
	struct {
		uint32_t pointer;
		uint64_t start, size;
		uint8_t augmentation;
	} __attribute__((packed)) fde_head = { 4, START, SIZE, 0 };
	struct table *table = calloc(1, sizeof *table);

	cr_assert_not_null(table);
	put_entry(table->cie, &table->cie_size, cie_head, sizeof cie_head, cie_program, cie_size);
	put_entry(table->fde, &table->fde_size, &fde_head, sizeof fde_head, fde_program, fde_size);
	return table;
}

static int row_at(struct table *table, uint64_t pc, struct cfi_row *row)
{
	struct cfi_entry cie_entry = { table->cie, table->cie_size, 0x5000, false }, fde_entry = { table->fde, table->fde_size, 0x6000, false };
	struct cfi_cie cie;
	struct cfi_fde fde;

	if (cfi_read_cie(&cie_entry, &cie) < 0 || cfi_read_fde(&fde_entry, &cie, &fde) < 0)
		return -1;
	cr_assert_eq(fde.start, START);
	cr_assert_eq(fde.end, START + SIZE);
	return cfi_row(&cie, &fde, pc, &table->expressions, row);
}

#define DEFINED "\x0c\x07\x08\x90\x01" /* CFA = rsp + 8, return address at CFA - 8 */

Test(cfi, follows_a_prologue_and_an_epilogue)
{
	struct table *table = TABLE(DEFINED, "\x41\x0e\x10\x86\x02" "\x43\x0d\x06" "\x0a" "\x50\x0c\x07\x08\xc6" "\x41\x0b");
	const struct {
		uint64_t pc;
		uint8_t cfa_register, rbp_rule;
		int64_t cfa_value;
	} expected[] = { { 0, 7, CFI_SAME, 8 }, { 1, 7, CFI_AT, 16 }, { 3, 7, CFI_AT, 16 }, { 4, 6, CFI_AT, 16 }, { 19, 6, CFI_AT, 16 }, { 20, 7, CFI_SAME, 8 }, { 21, 6, CFI_AT, 16 }, { 255, 6, CFI_AT, 16 } };
	struct cfi_row row;

	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		cr_assert_eq(row_at(table, START + expected[i].pc, &row), 0);
		cr_assert_eq(row.cfa_register, expected[i].cfa_register, "at %lu", (unsigned long)expected[i].pc);
		cr_assert_eq(row.cfa_value, expected[i].cfa_value, "at %lu", (unsigned long)expected[i].pc);
		cr_assert_eq(row.rules[6], expected[i].rbp_rule, "at %lu", (unsigned long)expected[i].pc);
		cr_assert_eq(row.rules[16], CFI_AT);
		cr_assert_eq(row.values[16], -8);
		cr_assert_eq(row.at_start, expected[i].pc == 0);
	}
	free(table);
}

struct damage {
	char what[64], cie[16], fde[40];
	uint8_t cie_size, fde_size;
	bool good;
};

#define DAMAGE(what, cie, fde, good) { what, cie, fde, sizeof cie - 1, sizeof fde - 1, good }
ParameterizedTestParameters(cfi, programs)
{
	static struct damage damages[] = {
		DAMAGE("no rule for the CFA", "", "", false),
		DAMAGE("an offset before a register", "", "\x0e\x10", false),
		DAMAGE("a CFA on register 200", "\x0c\xc8\x01\x08", "", false),
		DAMAGE("restoring what was not remembered", DEFINED, "\x0b", false),
		DAMAGE("remembering without end", DEFINED, "\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a", false),
		DAMAGE("a number without end", DEFINED, "\x0e\xff\xff\xff", false),
		DAMAGE("an expression longer than the program", DEFINED, "\x0f\x10\x70", false),
		DAMAGE("an expression of 1000 bytes", DEFINED, "\x0f\xe8\x07\x70", false),
		DAMAGE("an unknown instruction", DEFINED, "\x3a", false),
		DAMAGE("a jump to an address", DEFINED, "\x01\x00\x00\x00\x00\x00\x00\x00\x00", false),
		DAMAGE("a rule for a vector register", DEFINED, "\x05\x20\x01", true),
		DAMAGE("a register saved in register 1000", DEFINED, "\x09\x03\xe8\x07", true),
		DAMAGE("nothing more", DEFINED, "", true),
	};

	return cr_make_param_array(struct damage, damages, sizeof damages / sizeof *damages);
}

ParameterizedTest(struct damage *damage, cfi, programs)
{
	struct table *table = make_table(damage->cie, damage->cie_size, damage->fde, damage->fde_size);
	struct cfi_row row = { 0 };

	cr_assert_eq(row_at(table, START + 5, &row), damage->good ? 0 : -1, "%s", damage->what);
	cr_assert_eq(row.foreign, damage->fde[0] == 9);
	free(table);
}

Test(cfi, survives_any_byte_changed_and_any_end)
{
	for (int which = 0; which < 2; which++) {
		for (size_t at = 0; at < 60; at++) {
			for (int value = 0; value < 256; value++) {
				struct table *table = TABLE(DEFINED "\x0a\x0b", "\x41\x0e\x10\x86\x02\x16\x03\x02\x77\x08\x43\x0d\x06\x0a\x50\x0b");
				struct cfi_entry cie_entry = { table->cie, table->cie_size, 0, false }, fde_entry = { table->fde, table->fde_size, 0, false };
				struct cfi_cie cie;
				struct cfi_fde fde;
				struct cfi_row row;

				(which ? table->cie : table->fde)[at] = (uint8_t)value;
				if (value % 8 == 0)
					*(which ? &cie_entry.size : &fde_entry.size) = at;
				if (cfi_read_cie(&cie_entry, &cie) == 0 && cfi_read_fde(&fde_entry, &cie, &fde) == 0)
					cfi_row(&cie, &fde, START + 5, &table->expressions, &row);
				free(table);
			}
		}
	}
}

/* ---- expressions ---- */

static int read_nothing(void *context, uint64_t addr, uint64_t *out)
{
	*out = addr + 1;
	return addr < 0x10000 ? 0 : -1;
}

static enum cfi_outcome calculate(const char *bytes, size_t size, uint64_t *out)
{
	uint64_t regs[CFI_REGISTERS] = { [6] = 0x100, [7] = 0x2000, [16] = 0x400f };
	struct cfi_state state = { regs, 1u << 6 | 1u << 7 | 1u << 16, read_nothing, NULL };
	struct cfi_expressions *expressions = calloc(1, sizeof *expressions);
	enum cfi_outcome outcome;
	uint64_t initial = 0x50;

	expressions->count = 1;
	expressions->list[0].size = (uint8_t)size;
	memcpy(expressions->list[0].bytes, bytes, size);
	outcome = cfi_evaluate(expressions, 0, &state, &initial, out);
	free(expressions);
	return outcome;
}

struct calculation {
	char bytes[24];
	uint8_t size;
	enum cfi_outcome outcome;
	uint64_t value;
};

#define CALCULATION(bytes, outcome, value) { bytes, sizeof bytes - 1, outcome, value }
ParameterizedTestParameters(cfi, expressions)
{
	static struct calculation calculations[] = {
		CALCULATION("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", CFI_DONE, 0x2008 + 8), /* a PLT's: rsp + 8 + ((rip & 15) >= 11) * 8 */
		CALCULATION("\x76\x78\x06", CFI_DONE, 0x100 - 8 + 1),
		CALCULATION("\x11\x7f\x0a\x34\x12\x1e", CFI_DONE, (uint64_t)-0x1234),
		CALCULATION("\x12\x16\x14\x17\x1c\x1c", CFI_DONE, 0x50),
		CALCULATION("", CFI_DONE, 0x50),
		CALCULATION("\x77\x00\x08\x09\x24\x06", CFI_NEEDS_MEMORY, 0),
		CALCULATION("\x73\x00", CFI_NEEDS_REGISTER, 0),
		CALCULATION("\x22", CFI_BAD, 0),
		CALCULATION("\x13\x13", CFI_BAD, 0),
		CALCULATION("\x15\x09", CFI_BAD, 0),
		CALCULATION("\x2f\xfd\xff", CFI_BAD, 0), /* jumps to itself */
		CALCULATION("\x2f\x00\x40", CFI_BAD, 0),
		CALCULATION("\x12\x2f\xfc\xff", CFI_BAD, 0), /* fills its stack */
		CALCULATION("\x96\x0a", CFI_BAD, 0),
		CALCULATION("\x92\xff\x7f\x00", CFI_BAD, 0),
		CALCULATION("\x9f", CFI_BAD, 0),
	};

	return cr_make_param_array(struct calculation, calculations, sizeof calculations / sizeof *calculations);
}

ParameterizedTest(struct calculation *given, cfi, expressions)
{
	uint64_t value = 0;

	cr_assert_eq(calculate(given->bytes, given->size, &value), given->outcome);
	if (given->outcome == CFI_DONE)
		cr_assert_eq(value, given->value, "%lx", (unsigned long)value);
}

Test(cfi, evaluates_any_two_bytes)
{
	for (int bytes = 0; bytes < 65536; bytes++) {
		char text[6] = { (char)bytes, (char)(bytes >> 8), 0x12, (char)bytes, 0x13, 0x06 };
		uint64_t value;

		calculate(text, sizeof text, &value);
	}
}

/* ---- walks ---- */

static int read_self(void *context, uint64_t addr, void *buffer, size_t size)
{
	struct iovec ours = { buffer, size }, theirs = { (void *)(uintptr_t)addr, size };

	return process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == (ssize_t)size ? 0 : -1;
}

static int read_none(void *context, uint64_t addr, void *buffer, size_t size)
{
	return -1;
}

/* Taken by take_copy(): the copy and what the compiler knows. */
struct taken {
	struct thread_copy copy;
	uintptr_t callers[4];
};

#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noinline, noclone))
#endif

static KEPT void take_copy(struct taken *taken)
{
	const int order[DWARF_COUNT] = { 13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16 }; /* gregs in DWARF's order */
	ucontext_t context;
	uint64_t sp;

	getcontext(&context);
	for (int i = 0; i < DWARF_COUNT; i++)
		taken->copy.regs[i] = (uint64_t)context.uc_mcontext.gregs[order[i]];
	taken->copy.known = (1u << DWARF_COUNT) - 1;
	sp = taken->copy.regs[DWARF_RSP];
	for (uint32_t size = 0; size < THREAD_COPY_STACK_MAX && read_self(NULL, sp + size, taken->copy.stack + size, 8) == 0; size += 8)
		taken->copy.stack_size = size + 8;
	taken->callers[0] = (uintptr_t)__builtin_return_address(0);
}

static KEPT void call_down(struct taken *taken, int depth)
{
	volatile char room[2];

	room[0] = (char)depth;
	if (depth)
		call_down(taken, depth - 1);
	else
		take_copy(taken);
	room[1] = room[0];
}

static KEPT void outermost(struct taken *taken, int depth)
{
	call_down(taken, depth);
	taken->callers[1] = (uintptr_t)__builtin_return_address(0);
}

struct world {
	struct modules *modules;
	struct walker *walker;
	struct taken *taken;
	struct native_stack stack;
};

static struct world *world_new(int depth, int (*read)(void *context, uint64_t addr, void *buffer, size_t size))
{
	struct remote_memory memory = { read, NULL };
	struct world *world = calloc(1, sizeof *world);
	struct error err;

	world->taken = calloc(1, sizeof *world->taken);
	outermost(world->taken, depth);
	cr_assert_eq(modules_open(&procfs_real, getpid(), &world->modules, &err), 0);
	cr_assert_eq(walker_open(world->modules, &memory, &world->walker, &err), 0);
	return world;
}

static void world_free(struct world *world)
{
	walker_close(world->walker);
	modules_close(world->modules);
	free(world->taken);
	free(world);
}

static void walk(struct world *world)
{
	walker_walk(world->walker, &world->taken->copy, &world->stack);
}

static void check_frames(const struct native_stack *stack)
{
	for (uint32_t i = 0; i + 1 < stack->count; i++)
		cr_assert_eq(stack->frames[i].cfa, stack->frames[i + 1].sp);
}

Test(walk, comes_to_the_first_frame)
{
	enum { DEPTH = 20 };
	struct world *world = world_new(DEPTH, read_self);
	const struct native_frame *frames = world->stack.frames;

	for (int round = 0; round < 3; round++) {
		walk(world);
		cr_assert_eq(world->stack.end, WALK_COMPLETE, "%s after %u frames", walk_end_name(world->stack.end), world->stack.count);
		cr_assert_gt(world->stack.count, DEPTH + 3);
		cr_assert_eq(frames[0].ip, world->taken->copy.regs[DWARF_RIP]);
		cr_assert_eq(frames[1].ip, world->taken->callers[0]);
		for (int i = 2; i < DEPTH; i++)
			cr_assert_eq(frames[i].ip, frames[2].ip);
		cr_assert_eq(frames[DEPTH + 3].ip, world->taken->callers[1]);
		check_frames(&world->stack);
		cr_assert_eq(frames[1].module, modules_find(world->modules, (uintptr_t)call_down)->id);
	}
	walker_forget(world->walker);
	walk(world);
	cr_assert_eq(world->stack.end, WALK_COMPLETE);
	world_free(world);
}

Test(walk, needs_no_memory_but_the_copy)
{
	struct world *world = world_new(5, read_none);

	walk(world);
	cr_assert_eq(world->stack.end, WALK_COMPLETE, "%s after %u frames", walk_end_name(world->stack.end), world->stack.count);
	world_free(world);
}

Test(walk, ends_where_the_copy_does)
{
	struct world *world = world_new(20, read_none);
	uint32_t whole;

	walk(world);
	whole = world->stack.count;
	for (uint32_t size = 0; size < 1500; size += 100) {
		world->taken->copy.stack_size = size;
		walk(world);
		cr_assert_eq(world->stack.end, WALK_CUT_STACK);
		cr_assert(world->stack.count >= 1 && world->stack.count < whole);
		check_frames(&world->stack);
	}
	world_free(world);
}

Test(walk, says_how_much_of_the_stack_it_needs)
{
	struct world *world = world_new(20, read_self);
	const struct native_frame *last;
	uint32_t used;

	walk(world);
	used = world->stack.stack_used;
	last = &world->stack.frames[world->stack.count - 1];
	cr_assert(used <= world->taken->copy.stack_size && used > last->sp - world->taken->copy.regs[DWARF_RSP] - 64, "%u bytes", used);
	world->taken->copy.stack_size = 400;
	walk(world);
	cr_assert_gt(world->stack.stack_used, 400);
	world_free(world);
}

Test(walk, tells_by_registers_how_far_frames_reach)
{
	static struct thread_copy copy = { .regs = { [DWARF_RSP] = 0x7000, [DWARF_RBX] = 0x7000 + 9000, [12] = 0x7000 + 20000, [13] = 0x6000, [14] = 0x7000 + THREAD_COPY_STACK_MAX }, .stack_size = 8192 };

	copy.known = 1u << DWARF_RSP | 1u << DWARF_RBX | 1u << 13 | 1u << 14;
	cr_assert_eq(thread_copy_reach(&copy), 9000, "what is not known does not count");
	copy.known |= 1u << 12;
	cr_assert_eq(thread_copy_reach(&copy), 20000);
	copy.stack_size = 24576;
	cr_assert_eq(thread_copy_reach(&copy), 0);
}

Test(walk, reads_on_where_the_copy_ends)
{
	struct world *world = world_new(5, read_self);
	struct taken *taken = world->taken;
	const struct native_frame *frames = world->stack.frames;

	/* The frames of world_new() are gone by now, those of the runner are not. */
	walk(world);
	for (uint32_t i = 0; i < world->stack.count; i++)
		if (frames[i].ip == taken->callers[1])
			taken->copy.stack_size = (uint32_t)(frames[i].cfa - taken->copy.regs[DWARF_RSP]);
	walk(world);
	cr_assert_eq(world->stack.end, WALK_COMPLETE);
	world_free(world);
}

Test(walk, keeps_512_frames_of_a_deep_stack)
{
	enum { DEPTH = 2000 };
	struct world *world = world_new(DEPTH, read_none);

	walk(world);
#ifdef __SANITIZE_ADDRESS__
	cr_assert_eq(world->stack.end, WALK_CUT_STACK); /* its frames are too large for the copy */
#else
	cr_assert_eq(world->stack.end, WALK_CUT_DEPTH);
	cr_assert_eq(world->stack.count, WALK_FRAMES_MAX);
#endif
	world_free(world);
}

Test(walk, says_which_knowledge_was_missing)
{
	struct world *world = world_new(5, read_self);

	world->taken->copy.known = 1u << DWARF_RIP;
	walk(world);
	cr_assert_eq(world->stack.end, WALK_CUT_REGISTER);
	cr_assert_eq(world->stack.count, 1);
	world_free(world);
}

Test(walk, ends_in_generated_code_and_in_nothing)
{
	unsigned char *page = mmap((void *)0x200000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* in no hole of a library, which is that library's */
	struct world *world;

	cr_assert_neq(page, MAP_FAILED);
	memset(page, 0x90, 4096);
	world = world_new(5, read_self);
	world->taken->copy.regs[DWARF_RIP] = (uintptr_t)page + 100;
	walk(world);
	cr_assert_eq(world->stack.end, WALK_CUT_JIT);
	cr_assert_eq(world->stack.count, 1);
	world->taken->copy.regs[DWARF_RIP] = 0x10;
	walk(world);
	cr_assert_eq(world->stack.end, WALK_CUT_TABLES);
	world_free(world);
	munmap(page, 4096);
}

Test(walk, steps_out_of_a_linkage_stub_and_a_signal_return_that_no_table_describes)
{
	static const char stub[] = "\xf3\x0f\x1e\xfa\xf2\xff\x25\x10\x20\x30\x40\x0f\x1f\x44\x00\x00", signal_return[] = "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05";
	unsigned char *page = mmap((void *)0x200000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* in no hole of a library, which is that library's */
	struct world *world;
	struct thread_copy *copy;
	uint64_t *words;

	memcpy(page, stub, sizeof stub);
	memcpy(page + 100, signal_return, sizeof signal_return);
	world = world_new(5, read_self);
	copy = &world->taken->copy;
	words = (uint64_t *)(void *)copy->stack;
	words[0] = copy->regs[DWARF_RIP];
	copy->regs[DWARF_RIP] = (uintptr_t)page;
	walk(world);
	cr_assert_geq(world->stack.count, 2);
	cr_assert_eq(world->stack.frames[1].ip, words[0]);
	cr_assert_eq(world->stack.frames[0].cfa, copy->regs[DWARF_RSP] + 8);
	copy->regs[DWARF_RIP] = (uintptr_t)page + 100;
	words[5 + 15] = copy->regs[DWARF_RSP] + 400;
	words[5 + 16] = 0x1234;
	walk(world);
	cr_assert_eq(world->stack.count, 2);
	cr_assert_eq(world->stack.frames[1].ip, 0x1234);
	cr_assert_eq(world->stack.frames[1].sp, copy->regs[DWARF_RSP] + 400);
	world_free(world);
	munmap(page, 4096);
}

/* Nothing describes it. */
__asm__(".text\n.type assembler_kernel,@function\nassembler_kernel:\n.fill 64,1,0x90\nret\n.size assembler_kernel,.-assembler_kernel\n");
extern const char assembler_kernel[];

static KEPT void call_by_pointer(struct taken *taken)
{
	void (*volatile kernel)(struct taken *) = take_copy;

	kernel(taken);
	taken->callers[1] = (uintptr_t)__builtin_return_address(0);
}

/* As if the kernel had been called where take_copy() was: it has pushed rbp, uses it for something else, and keeps 1 000 words in which an old return address lies, and rbx below them. */
static void enter_kernel(struct thread_copy *copy, const struct native_stack *real, uint64_t left_over)
{
	enum { ROOM = 1000 };
	static unsigned char above[THREAD_COPY_STACK_MAX];
	uint64_t *words = (uint64_t *)(void *)copy->stack, skipped = real->frames[0].cfa - copy->regs[DWARF_RSP], kept = copy->stack_size - skipped;

	if (kept > sizeof above - (ROOM + 2) * 8)
		kept = sizeof above - (ROOM + 2) * 8;
	memcpy(above, copy->stack + skipped, kept);
	memset(copy->stack, 0, ROOM * 8);
	words[17] = left_over;
	words[ROOM] = real->frames[1].preserved[1];
	words[ROOM + 1] = real->frames[1].ip;
	memcpy(copy->stack + (ROOM + 2) * 8, above, kept);
	copy->stack_size = (uint32_t)((ROOM + 2) * 8 + kept);
	copy->regs[DWARF_RSP] = real->frames[0].cfa - (ROOM + 2) * 8;
	copy->regs[DWARF_RIP] = (uintptr_t)assembler_kernel + 30;
	copy->regs[DWARF_RBP] = 0x1234;
	copy->regs[DWARF_RBX] = copy->regs[DWARF_RSP] + (ROOM - 3) * 8;
}

Test(walk, searches_for_the_caller_of_assembler)
{
	struct world *world = world_new(5, read_self);
	struct native_stack *real = calloc(1, sizeof *real);
	uint64_t direct;

	walk(world);
	direct = world->stack.frames[2].ip; /* call_down() in call_down() */
	call_by_pointer(world->taken);
	walk(world);
	*real = world->stack;
	cr_assert_not(real->searched);
	enter_kernel(&world->taken->copy, real, direct);
	walk(world);
	cr_expect(world->stack.searched);
	cr_expect_eq(world->stack.end, real->end, "%s", walk_end_name(world->stack.end));
	cr_assert_eq(world->stack.count, real->count);
	for (uint32_t i = 1; i < real->count; i++)
		cr_expect_eq(world->stack.frames[i].ip, real->frames[i].ip);
	check_frames(&world->stack);
	/* With nothing but the old address it is cut, as before. */
	for (int reg = 0; reg < DWARF_RIP; reg++)
		if (reg != DWARF_RSP)
			world->taken->copy.regs[reg] = 0;
	walk(world);
	cr_expect_not(world->stack.searched);
	cr_expect_eq(world->stack.count, 1);
	cr_expect_eq(world->stack.end, WALK_CUT_TABLES);
	free(real);
	world_free(world);
}

Test(call_site, is_told_by_the_bytes_before)
{
	static const struct { unsigned char code[CALL_BYTES_MAX]; bool direct, indirect; const char *what; } rows[] = {
		{ { 0x90, 0x90, 0xe8, 0x10, 0, 0, 0 }, true, false, "call rel32" },
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0 }, false, true, "call *%rax" },
		{ { 0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd4 }, false, true, "call *%r12" },
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x13 }, false, true, "call *(%rbx)" },
		{ { 0x90, 0x90, 0x90, 0x90, 0xff, 0x50, 0x18 }, false, true, "call *0x18(%rax)" },
		{ { 0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 0x08 }, false, true, "call *8(%rsp)" },
		{ { 0x90, 0xff, 0x15, 1, 2, 3, 4 }, false, true, "call *…(%rip)" },
		{ { 0x90, 0xff, 0x90, 0x38, 1, 0, 0 }, false, true, "call *0x138(%rax)" },
		{ { 0xff, 0x94, 0x24, 0x80, 0, 0, 0 }, false, true, "call *0x80(%rsp)" },
		{ { 0x41, 0xff, 0x97, 0x80, 0, 0, 0 }, false, true, "call *0x80(%r15)" },
		{ { 0xff, 0x14, 0xc5, 0, 0x10, 0, 0 }, false, true, "call *0x1000(,%rax,8)" },
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0 }, false, false, "jmp *%rax" },
		{ { 0x90, 0x90, 0xe9, 0x10, 0, 0, 0 }, false, false, "jmp rel32" },
		{ { 0x48, 0x89, 0xd8, 0x5b, 0x5d, 0xc3, 0x90 }, false, false, "ret; nop" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct call_site site = call_site_before(rows[i].code, 0x1000);

		cr_expect_eq(site.direct, rows[i].direct, "%s", rows[i].what);
		cr_expect_eq(site.indirect, rows[i].indirect, "%s", rows[i].what);
		cr_expect_eq(site.target, rows[i].direct ? 0x1010 : 0, "%s", rows[i].what);
	}
}

Test(walk, ends_with_stacks_that_are_noise)
{
	struct world *world = world_new(5, read_none);
	struct thread_copy *copy = &world->taken->copy;
	uint32_t noise = 1;

	for (int round = 0; round < 3000; round++) {
		uint64_t *words = (uint64_t *)(void *)copy->stack;

		for (int i = 0; i < 4; i++) {
			noise = noise * 1664525 + 1013904223;
			words[noise % 200] = round % 2 ? copy->regs[DWARF_RIP] + (noise >> 20) : copy->regs[DWARF_RSP] + (noise >> 16) % 4096 - 1024;
		}
		walk(world);
		cr_assert_geq(world->stack.count, 1);
		cr_assert_leq(world->stack.count, WALK_FRAMES_MAX);
	}
	world_free(world);
}

Test(walk, names_every_end)
{
	for (int end = WALK_COMPLETE; end <= WALK_CUT_TABLES; end++)
		cr_assert_not_null(walk_end_name((enum walk_end)end));
}
