/* Copies of threads, walked and named. */
#include "session/snapshot_native.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "inject/hold.h"
#include "unwind/pyglance.h"
#include "unwind/symbols.h"
#include "unwind/walk.h"

enum { LOOKS = 4, CALL_LINE = 256, PAGE = 4096 };

struct snapshot_native {
	struct target *target;
	const struct procfs *procfs;
	struct pyreader *reader;
	struct modules *modules;
	struct walker *walker;
	struct symbols *symbols;
	struct pyglance *glance;
	struct holder *holder; /* from the first thread on that needs one */
	bool no_holder;        /* there can be none */
	struct error why;
	struct thread_copy copy;
	struct pystack python;
	struct snapshot_sight sight;
};

/* ---- what the join asks ---- */

static bool is_evaluator(void *context, const struct native_stack *stack, uint32_t which)
{
	static const char name[] = "_PyEval_EvalFrameDefault";
	struct snapshot_native *native = context;
	struct symbol found[SYMBOL_INLINES_MAX];
	size_t count = symbols_find(native->symbols, stack->frames[which].ip, which > 0, found);

	return strncmp(found[count - 1].name, name, sizeof name - 1) == 0;
}

static bool is_collector(void *context, const struct native_stack *stack, uint32_t which)
{
	struct snapshot_native *native = context;
	const struct module *module = modules_find(native->modules, stack->frames[which].ip);

	return module && strstr(module->path, "inferscope-collector");
}

/* ---- beginning and end ---- */

static int memory_read(void *context, uint64_t addr, void *buffer, size_t size)
{
	return target_read(context, addr, buffer, size);
}

struct snapshot_native *snapshot_native_open(struct target *target, const struct procfs *procfs, struct pyreader *reader, char *why, size_t size)
{
	const struct remote_memory memory = { memory_read, target };
	pid_t pid = target_facts(target)->pid;
	struct snapshot_native *native = calloc(1, sizeof *native);
	struct error err = { 0 };

	if (!native) {
		snprintf(why, size, "out of memory");
		return NULL;
	}
	native->target = target;
	native->procfs = procfs;
	native->reader = reader;
	native->sight.rules = (struct join_rules){ target_facts(target)->python_minor, is_evaluator, is_collector, native };
	if (modules_open(procfs, pid, &native->modules, &err) < 0 || walker_open(native->modules, &memory, &native->walker, &err) < 0
	    || symbols_open(procfs, pid, native->modules, NULL, &native->symbols, &err) < 0 || pyglance_open(reader, &native->glance, &err) < 0) {
		snprintf(why, size, "%.200s", err.text);
		snapshot_native_close(native);
		return NULL;
	}
	return native;
}

void snapshot_native_close(struct snapshot_native *native)
{
	if (!native)
		return;
	if (native->holder)
		holder_close(native->holder);
	pyglance_close(native->glance);
	if (native->symbols)
		symbols_close(native->symbols);
	if (native->walker)
		walker_close(native->walker);
	if (native->modules)
		modules_close(native->modules);
	free(native);
}

static pid_t outer_tid(void *context, pid_t tid)
{
	struct snapshot_native *native = context;
	const struct target_facts *facts = target_facts(native->target);

	return facts->pid == facts->inner_pid ? tid : target_outer_tid(native->target, tid);
}

/* ---- a thread that is held ---- */

static bool holder_ready(struct snapshot_native *native)
{
	if (!native->holder && !native->no_holder)
		native->no_holder = holder_open(native->target, pyglance_look, native->glance, &native->holder, &native->why) < 0;
	return native->holder;
}

static void sight_of_copy(struct snapshot_native *native, const struct hold_copy *held)
{
	struct snapshot_sight *sight = &native->sight;

	memcpy(native->copy.regs, held->regs, sizeof native->copy.regs);
	native->copy.known = (1u << DWARF_COUNT) - 1;
	native->copy.at_ns = held->at_ns;
	native->copy.stack_size = held->stack_size < THREAD_COPY_STACK_MAX ? held->stack_size : THREAD_COPY_STACK_MAX;
	memcpy(native->copy.stack, held->stack, native->copy.stack_size);
	sight->hold_ns = held->hold_ns;
	sight->python = pyglance_stack(native->reader, held->extra, held->extra_size, &native->python) == 0 ? &native->python : NULL;
	walker_walk(native->walker, &native->copy, &sight->native);
}

/* Holds the thread for a moment. False: it is as it was, and blocked. */
static bool look_held(struct snapshot_native *native, pid_t tid, bool force)
{
	struct snapshot_sight *sight = &native->sight;
	const struct hold_copy *held = NULL;
	enum hold_result result;

	if (!holder_ready(native)) {
		snprintf(sight->note, sizeof sight->note, "not held: %.150s", native->why.text);
		return true;
	}
	result = holder_copy(native->holder, tid, force, &held);
	switch (result) {
	case HOLD_COPIED:
		sight_of_copy(native, held);
		sight->held = !force;
		sight->note[0] = '\0';
		return true;
	case HOLD_BLOCKED:
	case HOLD_PRONE:
		return false;
	case HOLD_GONE:
		snprintf(sight->note, sizeof sight->note, "it ended");
		return true;
	case HOLD_REFUSED:
		snprintf(sight->note, sizeof sight->note, "not held: %s", held ? strerror(held->error) : "refused");
		return true;
	default:
		snprintf(sight->note, sizeof sight->note, "not held: it did not stop in time");
		return true;
	}
}

/* ---- a thread that is blocked ---- */

/* Where it is blocked: "0 0x3 … 0xsp 0xpc\n". False while it runs. */
static bool call_read(const struct snapshot_native *native, pid_t tid, char line[CALL_LINE], uint64_t *sp, uint64_t *pc)
{
	unsigned long long a, b;
	char name[48];
	const char *last, *before;

	snprintf(name, sizeof name, "task/%d/syscall", (int)tid);
	if (procfs_read(native->procfs, target_facts(native->target)->pid, name, line, CALL_LINE) <= 0)
		return false;
	line[strcspn(line, "\n")] = '\0';
	last = strrchr(line, ' ');
	for (before = last; before && before > line && before[-1] != ' '; before--)
		;
	if (!last || sscanf(before, "%llx %llx", &a, &b) != 2)
		return false;
	*sp = a;
	*pc = b;
	return true;
}

/* What is there of the stack, page by page: nobody knows beforehand where it ends. */
static void stack_read(struct snapshot_native *native, uint64_t sp)
{
	struct thread_copy *copy = &native->copy;

	copy->stack_size = 0;
	while (copy->stack_size < THREAD_COPY_STACK_MAX) {
		uint64_t at = sp + copy->stack_size;
		size_t part = PAGE - at % PAGE;

		if (part > THREAD_COPY_STACK_MAX - copy->stack_size)
			part = THREAD_COPY_STACK_MAX - copy->stack_size;
		if (target_read(native->target, at, copy->stack + copy->stack_size, part) < 0)
			return;
		copy->stack_size += (uint32_t)part;
	}
}

/* False when it did not stay where it was. */
static bool look_blocked(struct snapshot_native *native, pid_t tid)
{
	struct snapshot_sight *sight = &native->sight;
	unsigned char frames[PYGLANCE_BYTES_MAX];
	char before[CALL_LINE], after[CALL_LINE];
	uint64_t sp, pc;

	if (!call_read(native, tid, before, &sp, &pc))
		return false;
	memset(native->copy.regs, 0, sizeof native->copy.regs);
	native->copy.regs[DWARF_RSP] = sp;
	native->copy.regs[DWARF_RIP] = pc;
	native->copy.known = 1u << DWARF_RSP | 1u << DWARF_RIP;
	native->copy.at_ns = clock_monotonic_ns();
	stack_read(native, sp);
	sight->python = pyglance_stack(native->reader, frames, pyglance_look(native->glance, tid, frames, sizeof frames), &native->python) == 0 ? &native->python : NULL;
	walker_walk(native->walker, &native->copy, &sight->native);
	return call_read(native, tid, after, &sp, &pc) && strcmp(before, after) == 0;
}

const struct snapshot_sight *snapshot_native_at(struct snapshot_native *native, pid_t tid, bool stopped, const struct pystack *otherwise)
{
	struct snapshot_sight *sight = &native->sight;

	if (!pyglance_knows(native->glance, tid))
		pyglance_threads(native->glance, native->reader, outer_tid, native);
	native->copy.tid = tid;
	for (int look = 0; look < LOOKS; look++) {
		sight->native.count = 0;
		sight->native.end = WALK_COMPLETE;
		sight->held = false;
		sight->hold_ns = 0;
		sight->note[0] = '\0';
		if (look_blocked(native, tid)) {
			/* An unwind that needs a register which only a stop can tell. */
			if (sight->native.end == WALK_CUT_REGISTER && !stopped)
				look_held(native, tid, true);
			return sight;
		}
		if (!stopped && look_held(native, tid, false))
			break;
	}
	if (!sight->held) {
		sight->native.count = 0;
		sight->python = otherwise;
		if (!sight->note[0])
			snprintf(sight->note, sizeof sight->note, "it moved all the time");
	}
	return sight;
}

/* ---- names ---- */

size_t snapshot_native_frames(struct snapshot_native *native, const struct native_stack *stack, uint32_t index, struct snapshot_frame *out, size_t room)
{
	uint64_t ip = stack->frames[index].ip;
	const struct module *module = modules_find(native->modules, ip);
	struct symbol found[SYMBOL_INLINES_MAX];
	size_t count = symbols_find(native->symbols, ip, index > 0, found), put = 0;

	while (count-- > 0 && put < room)
		out[put++] = (struct snapshot_frame){
			.function = found[count].name, .file = found[count].file, .line = found[count].line, .inlined = found[count].inlined,
			.module = module ? module->path : "", .offset = module ? ip - module->bias : ip,
		};
	return put;
}
