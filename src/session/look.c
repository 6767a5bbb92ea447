/* Copies of threads. */
#include "session/look.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "session/reader.h"

enum { PAGE = 4096, BLOCKED_BYTES = 16384, WORD = 8 };
_Static_assert((int)THREAD_COPY_STACK_MAX == (int)HOLD_STACK_MAX, "a copy is taken over whole");

struct looker {
	const struct target *target;
	const struct procfs *procfs;
	struct pyreader *reader;
	struct pyglance *glance;
	struct holder *holder;
	struct hold_totals before; /* of a holder that failed */
	uint64_t torn;
	unsigned char now[THREAD_COPY_STACK_MAX]; /* of looker_still() */
};

static size_t memory_read_many(void *context, const struct iovec *here, const struct iovec *there, size_t count)
{
	return target_read_many(context, here, there, count);
}

int looker_open(const struct target *target, const struct procfs *procfs, remote_addr runtime, struct looker **out, struct error *err)
{
	struct remote_memory memory = reader_memory(target);
	struct looker *looker = calloc(1, sizeof *looker);

	if (!looker)
		return fail(err, ERR_MEMORY, "looking at threads");
	looker->target = target;
	looker->procfs = procfs;
	memory.read_many = memory_read_many;
	if (reader_open(target, &memory, runtime, &looker->reader, err) < 0 || pyglance_open(looker->reader, &looker->glance, err) < 0) {
		looker_close(looker);
		return -1;
	}
	*out = looker;
	return 0;
}

void looker_close(struct looker *looker)
{
	if (!looker)
		return;
	holder_close(looker->holder);
	pyglance_close(looker->glance);
	pyreader_close(looker->reader);
	free(looker);
}

bool looker_threads(struct looker *looker, pid_t (*outer)(void *context, pid_t tid), void *context)
{
	pyreader_knows_tasks(looker->reader);
	return pyglance_threads(looker->glance, looker->reader, outer, context) >= 0;
}

bool looker_knows(const struct looker *looker, pid_t tid)
{
	return pyglance_knows(looker->glance, tid);
}

int looker_hold(struct looker *looker, struct error *err)
{
	return looker->holder ? 0 : holder_open(looker->target, pyglance_look, looker->glance, &looker->holder, err);
}

bool looker_holds(const struct looker *looker)
{
	return looker->holder;
}

struct hold_totals looker_hold_totals(const struct looker *looker)
{
	return looker->holder ? holder_totals(looker->holder) : looker->before;
}

uint64_t looker_torn(const struct looker *looker)
{
	return looker->torn;
}

static void clear(struct look *out, pid_t tid)
{
	out->copy.tid = tid;
	out->copy.at_ns = clock_monotonic_ns();
	out->copy.known = 0;
	out->copy.stack_size = 0;
	out->glimpse_size = 0;
	out->hold_ns = out->stood_ns = out->task.code = 0;
}

void looker_python(struct looker *looker, pid_t tid, bool running, struct look *out)
{
	clear(out, tid);
	if (!looker_knows(looker, tid))
		return;
	out->glimpse_size = running ? pyglance_look_running(looker->glance, tid, out->glimpse, sizeof out->glimpse, &looker->torn) : pyglance_look(looker->glance, tid, out->glimpse, sizeof out->glimpse);
}

void looker_task(const struct looker *looker, struct look *look)
{
	pyglance_task(looker->reader, look->glimpse, look->glimpse_size, &look->task);
}

/* The stack from SP upwards, as much as is there: whole pages may be missing beyond its end. */
static uint32_t stack_read(const struct looker *looker, uint64_t sp, unsigned char *out)
{
	uint32_t size = 0;

	if (target_read(looker->target, sp, out, BLOCKED_BYTES) == 0)
		return BLOCKED_BYTES;
	while (size < BLOCKED_BYTES) {
		uint32_t part = (uint32_t)(PAGE - (sp + size) % PAGE);

		part = part < BLOCKED_BYTES - size ? part : BLOCKED_BYTES - size;
		if (target_read(looker->target, sp + size, out + size, part) < 0)
			break;
		size += part;
	}
	return size;
}

void looker_blocked(struct looker *looker, pid_t tid, const struct block *block, struct look *out)
{
	looker_python(looker, tid, false, out);
	if (block->number < 0)
		return;
	out->copy.known = 1ull << DWARF_SP | 1ull << DWARF_PC;
	out->copy.regs[DWARF_SP] = block->sp;
	out->copy.regs[DWARF_PC] = block->pc;
	out->copy.stack_size = stack_read(looker, block->sp, out->copy.stack);
}

static void take_copy(const struct hold_copy *held, struct look *out)
{
	out->copy.at_ns = held->at_ns;
	out->copy.known = (1ull << DWARF_COUNT) - 1;
	memcpy(out->copy.regs, held->regs, sizeof out->copy.regs);
	out->copy.stack_size = held->stack_size;
	memcpy(out->copy.stack, held->stack, held->stack_size);
	out->glimpse_size = held->extra_size < sizeof out->glimpse ? held->extra_size : 0;
	memcpy(out->glimpse, held->extra, out->glimpse_size);
	out->hold_ns = held->hold_ns;
	out->stood_ns = held->stood_ns;
}

enum hold_result looker_held(struct looker *looker, pid_t tid, bool force, struct look *out, int *error)
{
	const struct hold_copy *held;
	enum hold_result result;

	if (!looker->holder)
		return HOLD_FAILED;
	result = holder_copy(looker->holder, tid, force, &held);
	*error = held->error;
	if (result == HOLD_COPIED) {
		clear(out, tid);
		take_copy(held, out);
	} else if (result == HOLD_FAILED) {
		looker->before = holder_totals(looker->holder);
		holder_close(looker->holder);
		looker->holder = NULL;
	}
	return result;
}

void looker_touch(struct looker *looker, const struct thread_copy *copy)
{
	int result = target_read(looker->target, copy->regs[DWARF_SP] + copy->stack_size, looker->now, copy->stack_asked - copy->stack_size);

	(void)result; /* or the stack ends there */
}

uint64_t looker_still(struct looker *looker, const struct thread_copy *copy)
{
	uint64_t sp = copy->regs[DWARF_SP];
	uint32_t size = copy->stack_size;

	if (target_read(looker->target, sp, looker->now, size) < 0)
		return sp + size;
	while (size >= WORD && memcmp(looker->now + size - WORD, copy->stack + size - WORD, WORD) == 0)
		size -= WORD;
	return size < WORD ? sp : sp + size;
}
