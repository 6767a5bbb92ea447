/*
 * Any bytes as the memory of a Python: its stacks read and joined with native ones, its code, threads, tasks and local variables named. The first byte chooses the version; the second makes reads fail, or says that pieces
 * of memory follow, each with its address and its size, the runtime first: so are the corpus's real_*, which hold just what these readers read of a process with threads and tasks (tids changed to small ones).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cpython.h"
#include "unwind/pyglance.h"
#include "unwind/pymoment.h"
#include "unwind/pystack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_BASE = 0x10000, SAYS_MAX = 1024, HEAD = 2, ROUNDS = 3, IN_PIECES = 1, PIECE_HEAD = 10, TID_OFFSET = 720 /* of a real one */ };

struct memory {
	const uint8_t *bytes;
	size_t size;
	bool in_pieces;
	uint64_t runtime;
	uint32_t reads, failing; /* every so many reads one fails; 0 = none */
	unsigned char says[SAYS_MAX]; /* where the process tells its layout: always right, or nothing would be read */
	size_t says_size;
};

static int memory_read_whole(const struct memory *memory, uint64_t addr, void *buffer, size_t size)
{
	uint64_t offset = addr - MEMORY_BASE;

	if (addr < MEMORY_BASE || offset >= memory->size)
		return -1;
	memcpy(buffer, memory->bytes + offset, size < memory->size - offset ? size : memory->size - (size_t)offset);
	return 0;
}

/* Whatever lies in the range; -1: nothing does. */
static int memory_read_pieces(const struct memory *memory, uint64_t addr, unsigned char *buffer, size_t size)
{
	uint64_t start, from, to;
	uint16_t length;
	int result = -1;

	for (size_t at = 0; memory->size - at > PIECE_HEAD; at += length) {
		memcpy(&start, memory->bytes + at, sizeof start);
		memcpy(&length, memory->bytes + at + sizeof start, sizeof length);
		at += PIECE_HEAD;
		if (length > memory->size - at)
			length = (uint16_t)(memory->size - at);
		from = start > addr ? start : addr;
		to = start + length < addr + size ? start + length : addr + size;
		if (from >= to || start + length < start)
			continue;
		memcpy(buffer + (from - addr), memory->bytes + at + (from - start), to - from);
		result = 0;
	}
	return result;
}

static int memory_read(void *context, uint64_t addr, void *buffer, size_t size)
{
	struct memory *memory = context;

	if ((memory->failing && ++memory->reads % memory->failing == 0) || size > 65536 || addr + size < addr)
		return -1;
	memset(buffer, 0, size);
	if ((memory->in_pieces ? memory_read_pieces(memory, addr, buffer, size) : memory_read_whole(memory, addr, buffer, size)) < 0)
		return -1;
	if (addr == memory->runtime && size == memory->says_size)
		memcpy(buffer, memory->says, size);
	return 0;
}

static void say(struct memory *memory, int where, uint64_t value)
{
	if (where >= 0)
		memcpy(memory->says + where, &value, sizeof value);
}

static void say_layout(struct memory *memory, const struct cpython_layout *layout, uint32_t hex)
{
	memory->says_size = layout->debug_size > 0 ? (size_t)layout->debug_size : 0;
	memcpy(memory->says, "xdebugpy", 8);
	say(memory, 8, hex);
	say(memory, layout->debug_interp_head, (uint64_t)layout->runtime_interp_head);
#define SAY(field) say(memory, layout->debug_##field, (uint64_t)layout->field)
	SAY(interp_next); SAY(interp_threads); SAY(interp_modules); SAY(interp_gil); SAY(tstate_size); SAY(tstate_next); SAY(tstate_frame);
	SAY(tstate_base_frame); SAY(tstate_thread_id); SAY(tstate_native_id); SAY(frame_previous); SAY(frame_code);
	SAY(frame_owner); SAY(code_name); SAY(code_qualname); SAY(code_filename);
#undef SAY
}

static void check_local(void *context, const char *name, const char *value)
{
	uint32_t *told = context;

	if (strlen(name) >= PYLOCAL_NAME_MAX || strlen(value) >= PYLOCAL_VALUE_MAX || ++*told > PYLOCALS_MAX)
		abort();
}

static void check(void *context, const struct pystack *stack)
{
	struct pyreader **reader = context;
	struct pycode code;

	if (stack->count == 0 || stack->count > PYSTACK_FRAMES_MAX || (stack->cut && stack->count < PYSTACK_FRAMES_MAX / 4))
		abort();
	for (uint32_t i = 0; i < stack->count; i++) {
		uint32_t told = 0;

		pyreader_line(*reader, stack->code[i], stack->instr[i]);
		pyreader_locals(*reader, stack, i, check_local, &told);
		if (pyreader_code(*reader, stack->code[i], &code) == 0
		    && (strlen(code.name) >= sizeof code.name || strlen(code.file) >= sizeof code.file || strlen(code.qualname) >= sizeof code.qualname))
			abort();
	}
}

static void check_name(void *context, pid_t tid, const char *name)
{
	uint32_t *told = context;

	if (tid <= 0 || strlen(name) >= PYTHREAD_NAME_MAX || ++*told > PYTHREADS_MAX)
		abort();
}

static void check_task(void *context, const struct pytask *task)
{
	if (strlen(task->name) >= sizeof task->name || strlen(task->waits_for) >= sizeof task->waits_for)
		abort();
	if (task->stack.count)
		check(context, &task->stack);
}

/* The same by looks at single threads; and what a look left, damaged. */
static void glance(struct pyreader *reader, const uint8_t *data, size_t size)
{
	_Alignas(8) static unsigned char bytes[PYGLANCE_BYTES_MAX];
	struct pyglance *looks;
	struct pytask_now task;
	struct pystack stack;
	uint64_t torn = 0;
	struct error err;

	if (pyglance_open(reader, &looks, &err) < 0)
		return;
	pyglance_threads(looks, reader, NULL, NULL);
	for (pid_t tid = 0; tid < 256; tid++) {
		uint32_t used = pyglance_look_running(looks, tid, bytes, sizeof bytes, &torn);

		if (used > sizeof bytes)
			abort();
		if (pyglance_task(reader, bytes, used, &task) && strlen(task.name) >= sizeof task.name)
			abort();
		if (pyglance_stack(reader, bytes, used, &stack) == 0 && stack.count)
			check(&reader, &stack);
	}
	size = size < sizeof bytes ? size : sizeof bytes;
	memcpy(bytes, data, size);
	pyglance_holds_gil(bytes, (uint32_t)size);
	pyglance_task(reader, bytes, (uint32_t)size, &task);
	pyglance_stack(reader, bytes, (uint32_t)size, &stack);
	pyglance_close(looks);
}

static bool is_evaluator(void *context, const struct native_stack *native, uint32_t which)
{
	return which % 3 != 2;
}

/* A native frame for each Python one, which has its instruction in a register or on its stack; then the halves are joined. */
static void recall(struct pymoment *moment, const struct pystack *stack, int minor)
{
	enum { STACK = 0x10000000, FRAME = 128, FRAMES = 12 };
	static struct joined_stack joined;
	static struct native_stack native;
	static struct thread_copy copy;
	static struct pystack later, then;
	struct join_rules rules = { .python_minor = minor, .evaluator = is_evaluator, .still_above = stack->tid & 1 ? STACK + 3 * FRAME : 0 };

	later = *stack;
	memset(&native, 0, sizeof native);
	memset(&copy, 0, sizeof copy);
	copy.regs[DWARF_SP] = STACK;
	copy.stack_size = FRAMES * FRAME;
	native.end = later.cut ? WALK_CUT_STACK : WALK_COMPLETE;
	for (uint32_t i = 0; i < later.count; i++)
		later.entry[i] = STACK + (i < FRAMES ? i : FRAMES) * FRAME + FRAME / 2;
	for (; native.count < FRAMES && native.count <= later.count; native.count++) {
		struct native_frame *frame = &native.frames[native.count];
		uint64_t instr = native.count < later.count ? later.instr[native.count] : 0;

		*frame = (struct native_frame){ .ip = 1 + native.count, .sp = STACK + native.count * FRAME, .cfa = STACK + (native.count + 1) * FRAME, .preserved = { later.tid & 2 ? instr : 0 } };
		memcpy(copy.stack + native.count * FRAME + 8, &instr, sizeof instr);
	}
	pymoment_learn(moment, stack);
	if (pymoment_stack(moment, &copy, &native, &rules, &later, &then) && then.count > PYSTACK_FRAMES_MAX)
		abort();
	join_stacks(&later, &native, &rules, &joined);
	if (joined.count > JOINED_FRAMES_MAX)
		abort();
	for (uint32_t i = 0; i < joined.count; i++)
		if (joined.frames[i].index >= (joined.frames[i].python ? later.count : native.count))
			abort();
}

struct recalling { struct pymoment *moment; int minor; };

static void recall_each(void *context, const struct pystack *stack)
{
	const struct recalling *recalling = context;

	recall(recalling->moment, stack, recalling->minor);
}

static void recall_all(struct pyreader *reader, int minor)
{
	struct recalling recalling = { .minor = minor };
	struct error err;

	if (pymoment_open(reader, &recalling.moment, &err) < 0)
		return;
	pyreader_stacks(reader, recall_each, &recalling);
	pymoment_close(recalling.moment);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory memory = { 0 };
	struct remote_memory remote = { memory_read, &memory };
	struct pyreader *reader;
	struct error err;
	uint32_t hex, told = 0;
	int minor;

	if (size < HEAD)
		return 0;
	minor = CPYTHON_MINOR_MIN + data[0] % (CPYTHON_MINOR_MAX - CPYTHON_MINOR_MIN + 1);
	hex = 0x030000f0u | (uint32_t)minor << 16;
	memory.bytes = data + HEAD;
	memory.size = size - HEAD;
	memory.failing = data[1] > 127 ? data[1] : 0;
	memory.in_pieces = data[1] == IN_PIECES && memory.size > PIECE_HEAD;
	memory.runtime = MEMORY_BASE;
	if (memory.in_pieces)
		memcpy(&memory.runtime, memory.bytes, sizeof memory.runtime);
	if (cpython_layout(minor)->debug_size > 0)
		say_layout(&memory, cpython_layout(minor), hex);
	if (pyreader_open(&remote, memory.runtime, hex, memory.in_pieces ? TID_OFFSET : 0, &reader, &err) < 0)
		return 0;
	for (int i = 0; i < ROUNDS; i++)
		pyreader_stacks(reader, check, &reader);
	pyreader_names(reader, check_name, &told);
	pyreader_tasks(reader, check_task, &reader);
	pyreader_knows_tasks(reader);
	pyreader_is_true(reader, "threading", "main");
	recall_all(reader, minor);
	glance(reader, memory.bytes, memory.size);
	pyreader_close(reader);
	return 0;
}
