/* What unwind/ asks for, answered by a struct target. */
#include "session/reader.h"

static int memory_read(void *context, uint64_t addr, void *buffer, size_t size)
{
	return target_read(context, addr, buffer, size);
}

struct remote_memory reader_memory(const struct target *target)
{
	return (struct remote_memory){ memory_read, (void *)(uintptr_t)target };
}

remote_addr reader_runtime(struct target *target, uint64_t *size, struct error *err)
{
	remote_addr runtime = target_symbol(target, "_PyRuntime", size);

	if (!runtime && target_unread(target, err) == 0)
		fail(err, ERR_NOT_PYTHON, "the interpreter of process %d does not tell where its state lies", (int)target_facts(target)->pid);
	return runtime;
}

int reader_open(const struct target *target, const struct remote_memory *memory, remote_addr runtime, struct pyreader **out, struct error *err)
{
	const struct target_facts *facts = target_facts(target);

	if (pyreader_open(memory, runtime, facts->python_hex, facts->tid_offset, out, err) == 0)
		return 0;
	target_unread(target, err);
	return -1;
}
