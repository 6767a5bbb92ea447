/* Any bytes as the memory of a Python: its stacks read, its code, threads and tasks named. The first byte chooses the version; the second makes reads fail. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cpython.h"
#include "unwind/pyglance.h"
#include "unwind/pystack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_BASE = 0x10000, SAYS_MAX = 1024, HEAD = 2, ROUNDS = 3 };

struct memory {
	const uint8_t *bytes;
	size_t size;
	uint32_t reads, failing; /* every so many reads one fails; 0 = none */
	unsigned char says[SAYS_MAX]; /* where the process tells its layout: always right, or nothing would be read */
	size_t says_size;
};

static int memory_read(void *context, uint64_t addr, void *buffer, size_t size)
{
	struct memory *memory = context;
	uint64_t offset = addr - MEMORY_BASE;
	size_t have;

	if (memory->failing && ++memory->reads % memory->failing == 0)
		return -1;
	if (addr < MEMORY_BASE || offset >= memory->size || size > 65536)
		return -1;
	have = size < memory->size - offset ? size : memory->size - (size_t)offset;
	memset(buffer, 0, size);
	memcpy(buffer, memory->bytes + offset, have);
	if (offset == 0 && size == memory->says_size)
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
	if (cpython_layout(minor)->debug_size > 0)
		say_layout(&memory, cpython_layout(minor), hex);
	if (pyreader_open(&remote, MEMORY_BASE, hex, 0, &reader, &err) < 0)
		return 0;
	for (int i = 0; i < ROUNDS; i++)
		pyreader_stacks(reader, check, &reader);
	pyreader_names(reader, check_name, &told);
	pyreader_tasks(reader, check_task, &reader);
	pyreader_knows_tasks(reader);
	glance(reader, memory.bytes, memory.size);
	pyreader_close(reader);
	return 0;
}
