/* One look at all threads: who they are, what they wait for, and where they are. Native frames are snapshot_native.c's. */
#include "session/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "session/block.h"
#include "session/naming.h"
#include "session/reader.h"
#include "session/snapshot_native.h"

enum { THREADS_MAX = 1 << 22 /* pids end there */, INLINES_SPARE = 4, STACKS_KEPT_MAX = 1 << 16, TASKS_KEPT_MAX = 4096 };

struct seen_task {
	struct pytask *task;
	pid_t tid; /* of the thread whose stack has its coroutine, 0 = none has */
};

struct snapshot {
	struct target *target;
	const struct snapshot_options *options;
	const struct procfs *procfs;
	struct block_runtime runtime;
	struct pyreader *reader;
	struct snapshot_native *native;  /* NULL: none wanted, or none to be had */
	struct pystack **stacks;     /* of all threads with Python frames, read before anything else */
	size_t stack_count, stack_capacity;
	struct map stack_at;         /* thread, by its own number, to its place in stacks: where it has one in several interpreters, that with the GIL */
	LIST(struct seen_task) tasks;
	struct map task_of;          /* frame of a task's outermost coroutine to its place in tasks */
	struct naming *naming;       /* NULL: no memory */
	struct arena arena;          /* of the thread or task at hand */
	struct snapshot_totals *totals;
	bool failed;                 /* out of memory */
	int lacking;                 /* why a thread that is there could not be looked at */
};

const char *snapshot_state_name(enum snapshot_state state)
{
	static const char *const names[SNAPSHOT_STATES] = { "running", "gil_wait", "lock_wait", "io_wait", "idle", "sleep", "stopped" };

	return (unsigned)state < SNAPSHOT_STATES ? names[state] : "unknown";
}

const char *snapshot_task_state_name(enum snapshot_task_state state)
{
	static const char *const names[SNAPSHOT_TASK_STATES] = { "ready", "running", "waiting" };

	return (unsigned)state < SNAPSHOT_TASK_STATES ? names[state] : "unknown";
}

/* ---- Python stacks ---- */

static void stack_keep(void *context, const struct pystack *stack)
{
	struct snapshot *snapshot = context;
	struct pystack *copy;

	if (snapshot->stack_count == snapshot->stack_capacity) {
		size_t capacity = snapshot->stack_capacity ? snapshot->stack_capacity * 2 : 64;
		struct pystack **stacks = capacity <= STACKS_KEPT_MAX ? realloc(snapshot->stacks, capacity * sizeof *stacks) : NULL;

		snapshot->failed = snapshot->failed || !stacks;
		if (!stacks)
			return;
		snapshot->stacks = stacks;
		snapshot->stack_capacity = capacity;
	}
	copy = malloc(sizeof *copy);
	snapshot->failed = snapshot->failed || !copy;
	if (!copy)
		return;
	*copy = *stack;
	snapshot->stacks[snapshot->stack_count++] = copy;
	if ((stack->holds_gil || map_get(&snapshot->stack_at, (uint64_t)stack->tid) == MAP_ABSENT) && !map_put(&snapshot->stack_at, (uint64_t)stack->tid, (uint32_t)snapshot->stack_count - 1))
		snapshot->failed = true;
}

static const struct pystack *stack_of(const struct snapshot *snapshot, pid_t inner_tid)
{
	uint32_t place = map_get(&snapshot->stack_at, (uint64_t)inner_tid);

	return place == MAP_ABSENT ? NULL : snapshot->stacks[place];
}

static void task_keep(void *context, const struct pytask *task)
{
	struct snapshot *snapshot = context;
	struct pytask *copy = snapshot->tasks.count < TASKS_KEPT_MAX ? malloc(sizeof *copy) : NULL;
	struct seen_task *seen = copy ? list_add(&snapshot->tasks, TASKS_KEPT_MAX) : NULL;

	if (!seen) {
		free(copy);
		return;
	}
	*copy = *task;
	seen->task = copy;
	if (task->stack.count)
		map_put(&snapshot->task_of, task->stack.frame[task->stack.count - 1], (uint32_t)snapshot->tasks.count - 1);
}

static void tasks_read(struct snapshot *snapshot)
{
	int told = pyreader_tasks(snapshot->reader, task_keep, snapshot);

	snapshot->totals->tasks_left_out = (uint32_t)told - (uint32_t)snapshot->tasks.count;
}

/* The task whose coroutine STACK runs. */
static struct seen_task *task_on(struct snapshot *snapshot, const struct pystack *stack)
{
	for (uint32_t at = 0; at < stack->count; at++) {
		uint32_t place = map_get(&snapshot->task_of, stack->frame[at]);

		if (place != MAP_ABSENT)
			return &snapshot->tasks.items[place];
	}
	return NULL;
}

/* ---- what a thread does ---- */

static const enum snapshot_state snapshot_states[] = {
	[THREAD_UNKNOWN] = SNAPSHOT_SLEEP /* it waits, and the kernel does not say for what */, [THREAD_GIL_WAIT] = SNAPSHOT_GIL_WAIT, [THREAD_LOCK_WAIT] = SNAPSHOT_LOCK_WAIT, [THREAD_IO_WAIT] = SNAPSHOT_IO_WAIT,
	[THREAD_SLEEP] = SNAPSHOT_SLEEP, [THREAD_IDLE] = SNAPSHOT_IDLE,
};

/* What is read from or written to is worth its name. */
static void object_tell(const struct snapshot *snapshot, const struct block *block, struct snapshot_thread *thread)
{
	char file[64], path[64];
	ssize_t length;

	if (block->number < 0 || (thread->state != SNAPSHOT_IO_WAIT && strncmp(thread->wait, "accept", 6) != 0))
		return;
	snprintf(file, sizeof file, "%s/%d/fd/%llu", snapshot->procfs->root, (int)target_facts(snapshot->target)->pid, (unsigned long long)block->argument);
	length = block->argument < 1u << 20 ? readlink(file, path, sizeof path - 1) : -1;
	if (length <= 0)
		return;
	path[length] = '\0';
	snprintf(thread->object, sizeof thread->object, "fd %llu (%s)", (unsigned long long)block->argument, path);
}

static void thread_state_read(const struct snapshot *snapshot, char letter, struct snapshot_thread *thread)
{
	bool stopped = letter == 'T' || letter == 't';
	struct block block;

	thread->state = stopped ? SNAPSHOT_STOPPED : SNAPSHOT_RUNNING;
	if (letter == 'R' || block_read(snapshot->procfs, target_facts(snapshot->target)->pid, thread->tid, &block) != BLOCK_BLOCKED)
		return;
	block_name(&block, &snapshot->runtime, thread->wait, sizeof thread->wait);
	if (stopped)
		return;
	thread->state = letter == 'D' ? SNAPSHOT_IO_WAIT : snapshot_states[block_state(&block, &snapshot->runtime)];
	object_tell(snapshot, &block, thread);
}

/* ---- frames ---- */

static const char *keep(struct snapshot *snapshot, const char *text)
{
	const char *copy = arena_strndup(&snapshot->arena, text, strlen(text));

	snapshot->failed = snapshot->failed || !copy;
	return copy ? copy : "";
}

struct locals {
	struct snapshot *snapshot;
	struct snapshot_local *list;
	size_t count;
};

static void local_keep(void *context, const char *name, const char *value)
{
	struct locals *locals = context;

	if (locals->count < PYLOCALS_MAX)
		locals->list[locals->count++] = (struct snapshot_local){ keep(locals->snapshot, name), keep(locals->snapshot, value) };
}

static void python_frame(struct snapshot *snapshot, const struct pystack *stack, uint32_t index, struct snapshot_frame *out)
{
	struct locals locals = { .snapshot = snapshot };
	struct pycode code;

	*out = (struct snapshot_frame){ .python = true, .function = "?", .file = "", .module = "" };
	if (pyreader_code(snapshot->reader, stack->code[index], &code) == 0) {
		out->function = keep(snapshot, code.qualname);
		out->file = keep(snapshot, code.file);
		out->line = pyreader_line(snapshot->reader, stack->code[index], stack->instr[index]);
	}
	if (!snapshot->options->locals || !(locals.list = arena_alloc(&snapshot->arena, PYLOCALS_MAX * sizeof *locals.list)))
		return;
	pyreader_locals(snapshot->reader, stack, index, local_keep, &locals);
	out->locals = locals.list;
	out->local_count = locals.count;
}

/* All *COUNT frames of JOINED, outermost first, inlined native ones as frames of their own. */
static const struct snapshot_frame *frames_make(struct snapshot *snapshot, const struct pystack *python, const struct native_stack *native, const struct joined_stack *joined, size_t *count)
{
	size_t capacity = joined->count + INLINES_SPARE * (native ? native->count : 0);
	struct snapshot_frame *frames = arena_alloc(&snapshot->arena, (capacity ? capacity : 1) * sizeof *frames);

	snapshot->failed = snapshot->failed || !frames;
	*count = 0;
	if (!frames)
		return NULL;
	for (uint32_t i = joined->count; i-- > 0;) {
		const struct joined_frame *frame = &joined->frames[i];

		if (frame->python)
			python_frame(snapshot, python, frame->index, &frames[(*count)++]);
		else
			*count += snapshot_native_frames(snapshot->native, native, frame->index, frames + *count, capacity - *count - i);
	}
	return frames;
}

/* ---- threads ---- */

static void thread_name(const struct snapshot *snapshot, const struct proc_status *status, struct snapshot_thread *thread)
{
	const char *name = snapshot->naming ? naming_find(snapshot->naming, thread->inner_tid) : NULL;

	snprintf(thread->name, sizeof thread->name, "%s", name ? name : status->name);
}

/* Its Python frames, and whose coroutines they are. */
static void python_facts(struct snapshot *snapshot, const struct pystack *python, struct snapshot_thread *thread)
{
	struct seen_task *seen = python ? task_on(snapshot, python) : NULL;

	thread->holds_gil = python && python->holds_gil;
	thread->cut = python && python->cut;
	if (!seen)
		return;
	seen->tid = thread->tid;
	thread->task = seen->task->name;
}

static void thread_tell(struct snapshot *snapshot, pid_t tid, const struct snapshot_teller *tell)
{
	static const struct join_rules no_rules = { 0 };
	struct snapshot_thread thread = { .tid = tid, .join = JOIN_PYTHON, .native_end = WALK_COMPLETE, .note = "", .task = "" };
	const struct snapshot_sight *sight = NULL;
	const struct pystack *python;
	struct joined_stack joined;
	struct proc_status status;

	if (procfs_status(snapshot->procfs, target_facts(snapshot->target)->pid, tid, &status) < 0) {
		if (errno != ENOENT && errno != ESRCH)
			snapshot->lacking = errno;
		return;
	}
	if (status.state == 'Z' || status.state == 'X')
		return; /* it has ended */
	thread.inner_tid = status.inner_pid ? status.inner_pid : tid;
	thread_name(snapshot, &status, &thread);
	python = stack_of(snapshot, thread.inner_tid);
	if (snapshot->native)
		sight = snapshot_native_at(snapshot->native, tid, status.state == 'T' || status.state == 't', python);
	if (sight) {
		python = sight->python;
		thread.hold_ns = sight->hold_ns;
		thread.note = sight->note;
		thread.native_end = sight->native.end;
	}
	thread_state_read(snapshot, sight && sight->held ? 'R' : status.state, &thread);
	python_facts(snapshot, python, &thread);
	if (sight)
		snapshot_native_join(snapshot->native, sight, &joined);
	else
		join_stacks(python, NULL, &no_rules, &joined);
	thread.join = joined.result;
	arena_init(&snapshot->arena);
	thread.frames = frames_make(snapshot, python, sight ? &sight->native : NULL, &joined, &thread.count);
	snapshot->totals->threads++;
	snapshot->totals->joins[joined.result]++;
	if (thread.hold_ns > snapshot->totals->longest_hold_ns)
		snapshot->totals->longest_hold_ns = thread.hold_ns;
	tell->thread(tell->context, &thread);
	arena_done(&snapshot->arena);
}

static void task_tell(struct snapshot *snapshot, const struct seen_task *seen, const struct snapshot_teller *tell)
{
	static const struct join_rules no_rules = { 0 };
	const struct pytask *task = seen->task;
	struct snapshot_task told = { .name = task->name, .tid = seen->tid, .waits_for = task->waits && !seen->tid ? task->waits_for : "", .cut = task->stack.cut };
	struct joined_stack joined;

	told.state = seen->tid ? SNAPSHOT_TASK_RUNNING : task->waits ? SNAPSHOT_TASK_WAITING : SNAPSHOT_TASK_READY;
	join_stacks(&task->stack, NULL, &no_rules, &joined);
	arena_init(&snapshot->arena);
	if (!seen->tid)
		told.frames = frames_make(snapshot, &task->stack, NULL, &joined, &told.count);
	snapshot->totals->tasks++;
	tell->task(tell->context, &told);
	arena_done(&snapshot->arena);
}

static int unlisted(pid_t pid, struct error *err)
{
	if (errno == ENOENT || errno == ESRCH)
		return fail(err, ERR_EXITED, "process %d has ended", (int)pid);
	return fail(err, error_of(errno, ERR_PERMISSION), "the threads of process %d cannot be listed (%s)", (int)pid, strerror(errno));
}

static int threads_tell(struct snapshot *snapshot, const struct snapshot_teller *tell, struct error *err)
{
	pid_t pid = target_facts(snapshot->target)->pid, *tids = NULL;
	ssize_t count = procfs_threads_all(snapshot->procfs, pid, THREADS_MAX, &tids);

	if (count < 0)
		return unlisted(pid, err);
	if (count == 0) {
		free(tids);
		return fail(err, ERR_EXITED, "process %d has ended", (int)pid);
	}
	for (ssize_t i = 0; i < count && !snapshot->failed && !snapshot->lacking; i++)
		thread_tell(snapshot, tids[i], tell);
	free(tids);
	for (size_t i = 0; i < snapshot->tasks.count && !snapshot->failed; i++)
		task_tell(snapshot, &snapshot->tasks.items[i], tell);
	if (snapshot->failed)
		return fail(err, ERR_MEMORY, "looking at process %d", (int)pid);
	if (!target_alive(snapshot->target))
		return fail(err, ERR_EXITED, "process %d has ended", (int)pid);
	if (snapshot->lacking)
		return fail(err, error_of(snapshot->lacking, ERR_PERMISSION), "a thread of process %d cannot be looked at (%s)", (int)pid, strerror(snapshot->lacking));
	return 0;
}

static int python_read(struct snapshot *snapshot, struct error *err)
{
	const struct target_facts *facts = target_facts(snapshot->target);
	const struct remote_memory memory = reader_memory(snapshot->target);
	uint64_t size = 0;
	remote_addr runtime = reader_runtime(snapshot->target, &size, err);

	if (!runtime)
		return -1;
	snapshot->runtime = block_runtime_at(runtime, size, facts->python_hex);
	if (reader_open(snapshot->target, &memory, runtime, &snapshot->reader, err) < 0)
		return -1;
	if (pyreader_stacks(snapshot->reader, stack_keep, snapshot) >= 0)
		return 0;
	if (target_unread(snapshot->target, err) < 0)
		return -1;
	if (target_alive(snapshot->target))
		return fail(err, ERR_TIMEOUT, "the interpreter of process %d could not be read", (int)facts->pid);
	return fail(err, ERR_EXITED, "process %d has ended", (int)facts->pid);
}

static void snapshot_done(struct snapshot *snapshot)
{
	snapshot_native_close(snapshot->native);
	for (size_t i = 0; i < snapshot->stack_count; i++)
		free(snapshot->stacks[i]);
	free(snapshot->stacks);
	map_done(&snapshot->stack_at);
	for (size_t i = 0; i < snapshot->tasks.count; i++)
		free(snapshot->tasks.items[i].task);
	list_done(&snapshot->tasks);
	map_done(&snapshot->task_of);
	naming_close(snapshot->naming);
	if (snapshot->reader)
		pyreader_close(snapshot->reader);
}

int snapshot_take(struct target *target, const struct snapshot_options *options, const struct snapshot_teller *tell, struct snapshot_totals *totals, struct error *err)
{
	struct snapshot snapshot = { .target = target, .options = options, .procfs = &procfs_real, .totals = totals };
	int result = -1;

	memset(totals, 0, sizeof *totals);
	if (python_read(&snapshot, err) < 0)
		goto out;
	snapshot.naming = naming_open(target, snapshot.runtime.start);
	if (snapshot.naming)
		naming_refresh(snapshot.naming, false);
	tasks_read(&snapshot);
	if (options->native)
		snapshot.native = snapshot_native_open(target, snapshot.procfs, snapshot.reader, totals->native_why, sizeof totals->native_why);
	result = threads_tell(&snapshot, tell, err);
	totals->torn = (uint32_t)pyreader_torn(snapshot.reader);
out:
	snapshot_done(&snapshot);
	return result;
}
