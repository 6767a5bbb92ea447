/* From a copy of a thread to the number of its stack. */
#include "session/natives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/map.h"
#include "unwind/pyglance.h"

#define AGAIN_NS 10000000000ull  /* a thread without Python that stays blocked is looked at again after so long */
#define MODULES_NS 1000000000ull /* the map of a large process takes milliseconds to read */
#define UNKNOWN_NS 100000000ull  /* but a stack that could not be walked to its end may have met a new library */
enum {
	RUNS_MAX = 1 << 22, RUN_EVALUATOR = 1u << 31, RUN_HIDDEN = 1u << 30, RUN_COUNT = 0xff, RUN_EMPTY = 0,
	BLOCKED_BYTES = 16384, PAGE = 4096,
};
_Static_assert((int)THREAD_COPY_STACK_MAX == (int)HOLD_STACK_MAX, "a copy is taken over whole");

struct natives {
	struct natives_settings settings;
	struct remote_memory memory;
	struct modules *modules;
	struct walker *walker;
	struct symbols *symbols;
	struct pyglance *glance;
	struct holder *holder;
	struct map run_of;      /* address and module to the place of its run */
	LIST(uint32_t) runs;    /* each: flags and count, then so many ids of functions, innermost first; the one at RUN_EMPTY has none */
	struct natives_totals totals;
	uint64_t modules_ns; /* when the map is read again */
	bool held; /* there was a holder */

	struct thread_copy copy; /* of the look at hand */
	struct native_stack native;
	struct pystack python;
	struct joined_stack joined;
	unsigned char glimpse[PYGLANCE_BYTES_MAX];
};

static int memory_read(void *context, uint64_t addr, void *buffer, size_t size)
{
	return target_read(context, addr, buffer, size);
}

static uint64_t own_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool run_add(struct natives *natives, uint32_t word)
{
	uint32_t *slot = list_add(&natives->runs, RUNS_MAX);

	if (slot)
		*slot = word;
	return slot != NULL;
}

int natives_open(const struct natives_settings *settings, struct natives **out, bool *holds, char *why, size_t size, struct error *err)
{
	const struct symbols_options names = { .debuginfod = settings->debuginfod };
	struct natives *natives = calloc(1, sizeof *natives);
	struct error refused = { 0 };

	if (!natives)
		return fail(err, ERR_MEMORY, "sampling native stacks");
	natives->settings = *settings;
	natives->memory = (struct remote_memory){ memory_read, (void *)(uintptr_t)settings->target };
	if (!run_add(natives, 0)) {
		natives_close(natives);
		return fail(err, ERR_MEMORY, "sampling native stacks");
	}
	if (modules_open(settings->procfs, settings->pid, &natives->modules, err) < 0 || walker_open(natives->modules, &natives->memory, &natives->walker, err) < 0
	    || symbols_open(settings->procfs, settings->pid, natives->modules, &names, &natives->symbols, err) < 0 || pyglance_open(settings->reader, &natives->glance, err) < 0) {
		natives_close(natives);
		return -1;
	}
	*holds = holder_open(settings->target, pyglance_look, natives->glance, &natives->holder, &refused) == 0;
	natives->held = *holds;
	snprintf(why, size, "%.*s", (int)size - 1, *holds ? "" : refused.text);
	*out = natives;
	return 0;
}

void natives_close(struct natives *natives)
{
	if (!natives)
		return;
	holder_close(natives->holder);
	pyglance_close(natives->glance);
	symbols_close(natives->symbols);
	walker_close(natives->walker);
	modules_close(natives->modules);
	map_done(&natives->run_of);
	list_done(&natives->runs);
	free(natives);
}

static pid_t outer_tid(void *context, pid_t tid)
{
	const struct census *census = context;
	const struct seen_thread *thread = census_by_inner(census, tid);

	return thread ? thread->tid : 0;
}

void natives_refresh(struct natives *natives, const struct census *census)
{
	uint64_t now_ns = clock_monotonic_ns();

	pyglance_threads(natives->glance, natives->settings.reader, census->namespaced ? outer_tid : NULL, (void *)(uintptr_t)census);
	if (now_ns < natives->modules_ns)
		return;
	natives->modules_ns = now_ns + MODULES_NS;
	if (modules_refresh(natives->modules) > 0)
		walker_forget(natives->walker);
}

bool natives_knows(const struct natives *natives, pid_t tid)
{
	return pyglance_knows(natives->glance, tid);
}

/* ---- names ---- */

static bool is_collector(const struct module *module)
{
	return module && strstr(module->path, "inferscope-collector");
}

static bool is_evaluator(const char *name)
{
	return strncmp(name, "_PyEval_EvalFrameDefault", 24) == 0;
}

/* The functions at an address: its place in runs. */
static uint32_t run_find(struct natives *natives, const struct native_frame *frame, bool call)
{
	uint64_t key = frame->ip << 1 | call | (uint64_t)(frame->module & 0x7fff) << 49, begin_ns;
	uint32_t place = map_get(&natives->run_of, key);
	const struct module *module;
	struct symbol symbols[SYMBOL_INLINES_MAX];
	size_t count;

	if (place != MAP_ABSENT)
		return place;
	begin_ns = own_cpu_ns();
	module = modules_find(natives->modules, call ? frame->ip - 1 : frame->ip);
	count = symbols_find(natives->symbols, frame->ip, call, symbols);
	place = (uint32_t)natives->runs.count;
	if (!run_add(natives, is_collector(module) ? RUN_HIDDEN : 0))
		return RUN_EMPTY;
	for (size_t i = 0; i < count && run_add(natives, stacks_native(natives->settings.stacks, &symbols[i], module, frame->ip)); i++)
		natives->runs.items[place] = (natives->runs.items[place] | (is_evaluator(symbols[i].name) ? RUN_EVALUATOR : 0)) + 1;
	map_put(&natives->run_of, key, place);
	natives->totals.naming_ns += own_cpu_ns() - begin_ns;
	return place;
}

static uint32_t run_flags(struct natives *natives, const struct native_stack *native, uint32_t which)
{
	uint32_t place = run_find(natives, &native->frames[which], which > 0);

	return natives->runs.items[place];
}

static bool rule_evaluator(void *context, const struct native_stack *native, uint32_t which)
{
	return run_flags(context, native, which) & RUN_EVALUATOR;
}

static bool rule_hidden(void *context, const struct native_stack *native, uint32_t which)
{
	return run_flags(context, native, which) & RUN_HIDDEN;
}

static uint32_t push_native(struct natives *natives, uint32_t stack, uint32_t which)
{
	uint32_t place = run_find(natives, &natives->native.frames[which], which > 0), count = natives->runs.items[place] & RUN_COUNT;

	if (natives->runs.items[place] & RUN_HIDDEN)
		return stack;
	while (count > 0)
		stack = stacks_push_native(natives->settings.stacks, stack, natives->runs.items[place + count--]);
	return stack;
}

/* ---- stacks ---- */

/* What the walked COPY and PYTHON (may be NULL) together are. */
static void stack_make(struct natives *natives, const struct pystack *python, struct seen_thread *thread)
{
	const struct join_rules rules = { natives->settings.python_minor, rule_evaluator, rule_hidden, natives };
	struct stacks *stacks = natives->settings.stacks;
	uint32_t stack = 0;

	join_stacks(python, &natives->native, &rules, &natives->joined);
	natives->totals.joins[natives->joined.result]++;
	natives->totals.ends[natives->native.end]++;
	if (natives->native.end == WALK_CUT_TABLES && natives->modules_ns > natives->copy.at_ns + UNKNOWN_NS)
		natives->modules_ns = natives->copy.at_ns + UNKNOWN_NS;
	for (uint32_t i = natives->joined.count; i-- > 0;) {
		const struct joined_frame *frame = &natives->joined.frames[i];

		stack = frame->python ? stacks_push_python(stacks, stack, python->code[frame->index], python->stamp[frame->index]) : push_native(natives, stack, frame->index);
	}
	thread->stack = stack;
	thread->python = python ? stacks_python(stacks, python) : 0;
	thread->holds_gil = python && python->holds_gil;
}

static bool python_make(struct natives *natives, const void *bytes, uint32_t size)
{
	return size && pyglance_stack(natives->settings.reader, bytes, size, &natives->python) == 0;
}

static void copy_take(struct natives *natives, pid_t tid, const struct hold_copy *copy)
{
	natives->copy.tid = tid;
	natives->copy.at_ns = copy->at_ns;
	memcpy(natives->copy.regs, copy->regs, sizeof natives->copy.regs);
	natives->copy.known = (1u << DWARF_COUNT) - 1;
	natives->copy.stack_size = copy->stack_size;
	memcpy(natives->copy.stack, copy->stack, copy->stack_size);
}

static enum hold_result hold(struct natives *natives, pid_t tid, bool force, const struct hold_copy **copy)
{
	enum hold_result result = holder_copy(natives->holder, tid, force, copy);

	if (result == HOLD_COPIED) {
		natives->totals.stolen_ns += (*copy)->stood_ns;
	} else if (result == HOLD_FAILED) {
		holder_close(natives->holder);
		natives->holder = NULL;
	}
	return result;
}

enum natives_result natives_running(struct natives *natives, struct seen_thread *thread, uint64_t *at_ns)
{
	const struct hold_copy *copy;
	enum hold_result result;
	bool python;

	if (!natives->holder)
		return NATIVES_NOT_SEEN;
	result = hold(natives, thread->tid, false, &copy);
	switch (result) {
	case HOLD_COPIED:
		break;
	case HOLD_BLOCKED:
	case HOLD_PRONE:
		return NATIVES_BLOCKED;
	case HOLD_FAILED:
		return NATIVES_NOT_SEEN;
	default:
		*(result == HOLD_REFUSED ? &natives->totals.refused : &natives->totals.not_now) += result != HOLD_GONE;
		return NATIVES_NOT_SEEN;
	}
	python = python_make(natives, copy->extra, copy->extra_size);
	if (copy->extra_size && !python)
		return NATIVES_NOT_SEEN; /* torn, and counted */
	copy_take(natives, thread->tid, copy);
	*at_ns = copy->at_ns;
	walker_walk(natives->walker, &natives->copy, &natives->native);
	stack_make(natives, python ? &natives->python : NULL, thread);
	return NATIVES_SEEN;
}

/* The stack from SP upwards, as much as is there: whole pages may be missing beyond its end. */
static uint32_t stack_read(struct natives *natives, uint64_t sp)
{
	uint32_t first = (uint32_t)(PAGE - sp % PAGE);

	if (target_read(natives->settings.target, sp, natives->copy.stack, BLOCKED_BYTES) == 0)
		return BLOCKED_BYTES;
	return target_read(natives->settings.target, sp, natives->copy.stack, first) == 0 ? first : 0;
}

/* Registers that only a stop can tell: one hold in each block, where it does no harm. */
static void hold_blocked(struct natives *natives, const struct seen_thread *thread)
{
	const struct hold_copy *copy;
	enum hold_result result = natives->holder ? hold(natives, thread->tid, true, &copy) : HOLD_NOT_NOW;

	natives->totals.prone += result == HOLD_PRONE;
	if (result != HOLD_COPIED || copy->regs[DWARF_RSP] != thread->block.sp || copy->regs[DWARF_RIP] != thread->block.pc)
		return;
	copy_take(natives, thread->tid, copy);
	walker_walk(natives->walker, &natives->copy, &natives->native);
}

enum natives_result natives_blocked(struct natives *natives, const struct census *census, struct seen_thread *thread, bool same_block, uint64_t *at_ns)
{
	uint32_t size = natives_knows(natives, thread->tid) ? pyglance_look(natives->glance, thread->tid, natives->glimpse, sizeof natives->glimpse) : 0, before = thread->python;
	bool python = python_make(natives, natives->glimpse, size), held = natives->python.holds_gil && python;
	struct block now;

	if (same_block && thread->stack && before == (python ? stacks_python(natives->settings.stacks, &natives->python) : 0)) {
		thread->holds_gil = held;
		if (python || clock_monotonic_ns() - thread->walked_ns < AGAIN_NS)
			return NATIVES_SAME;
	}
	if (thread->block.number < 0)
		return NATIVES_NOT_SEEN;
	natives->copy.tid = thread->tid;
	natives->copy.at_ns = *at_ns = clock_monotonic_ns();
	natives->copy.known = 1u << DWARF_RSP | 1u << DWARF_RIP;
	natives->copy.regs[DWARF_RSP] = thread->block.sp;
	natives->copy.regs[DWARF_RIP] = thread->block.pc;
	natives->copy.stack_size = stack_read(natives, thread->block.sp);
	walker_walk(natives->walker, &natives->copy, &natives->native);
	if (natives->native.end == WALK_CUT_REGISTER)
		hold_blocked(natives, thread);
	/* Awake meanwhile: nothing of this belongs together. */
	if (census_block(census, thread->tid, &now) != BLOCK_BLOCKED || now.sp != thread->block.sp || now.pc != thread->block.pc) {
		natives->totals.moved++;
		return NATIVES_NOT_SEEN;
	}
	stack_make(natives, python ? &natives->python : NULL, thread);
	thread->walked_ns = *at_ns;
	return NATIVES_SEEN;
}

struct natives_totals natives_totals(const struct natives *natives)
{
	struct natives_totals totals = natives->totals;

	totals.holder_lost = natives->held && !natives->holder;
	if (natives->holder)
		totals.holds = holder_totals(natives->holder);
	return totals;
}
