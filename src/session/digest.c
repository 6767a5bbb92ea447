/* Walks, joins and names what was seen; the numbers of stacks are stacks.c's. */
#include "session/digest.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/map.h"
#include "session/blocked_calls.h"
#include "session/reader.h"
#include "session/stacks.h"
#include "session/tasks.h"

#define RUN_GENERATED (1u << 31) /* with its count: code of no file, which may get its name later, or make room for other code */
enum { RUNS_MAX = 1 << 22, RUN_EMPTY = 0, THREADS_MAX = 1 << 20, OWED_SAMPLES = 10 /* a longer time nobody knows */ };

struct told_stack {
	uint32_t stack; /* 0: nothing */
	uint32_t task;  /* of asyncio, that it runs there; 0: none */
	bool python;
};

/* What was told of a thread last. */
struct told {
	struct told_stack ran, blocked; /* perf_event samples what runs between two looks at what is blocked */
	pid_t inner;      /* as the target calls the thread, once Python frames of it were seen; else 0 */
	uint64_t owed_ns; /* time of looks that came to nothing */
	uint64_t owed[SAMPLED_COUNTERS]; /* what their counters gained */
};

struct digest {
	struct digest_settings settings;
	struct pyreader *reader;
	struct stacks *stacks;
	struct tasks *tasks;
	struct blocked_calls *calls; /* NULL: not wanted */
	struct pymoment *moment;
	struct map told_of;      /* thread to the place in told */
	LIST(struct told) told;
	struct map run_of;       /* address and module to the place of its run */
	LIST(uint32_t) runs;     /* each: a count, then so many ids of functions, innermost first; the one at RUN_EMPTY has none */
	struct digest_totals totals;
	struct thread_copy copy; /* of the sight at hand */
	struct native_stack native;
	struct pystack python, recalled, nothing; /* nothing: a stack without frames */
	struct joined_stack joined;
};

static bool run_add(struct digest *digest, uint32_t word)
{
	uint32_t *slot = list_add(&digest->runs, RUNS_MAX);

	if (slot)
		*slot = word;
	return slot != NULL;
}

int digest_open(const struct digest_settings *settings, struct digest **out, struct error *err)
{
	const struct remote_memory memory = reader_memory(settings->target);
	struct digest *digest = calloc(1, sizeof *digest);

	if (!digest)
		return fail(err, ERR_MEMORY, "sampling");
	digest->settings = *settings;
	if (reader_open(settings->target, &memory, settings->runtime, &digest->reader, err) < 0
	    || stacks_open(digest->reader, settings->builder, &digest->stacks, err) < 0
	    || tasks_open(digest->reader, digest->stacks, settings->builder, &digest->tasks, err) < 0 || pymoment_open(digest->reader, &digest->moment, err) < 0)
		goto out;
	if (settings->syscalls)
		digest->calls = blocked_calls_open(settings->procfs, target_facts(settings->target)->pid);
	if (!run_add(digest, 0) || (settings->syscalls && !digest->calls)) {
		fail(err, ERR_MEMORY, "sampling");
		goto out;
	}
	*out = digest;
	return 0;
out:
	digest_close(digest);
	return -1;
}

void digest_close(struct digest *digest)
{
	if (!digest)
		return;
	blocked_calls_close(digest->calls);
	tasks_close(digest->tasks);
	stacks_close(digest->stacks);
	pymoment_close(digest->moment);
	pyreader_close(digest->reader);
	map_done(&digest->told_of);
	list_done(&digest->told);
	map_done(&digest->run_of);
	list_done(&digest->runs);
	free(digest);
}

static struct told *told_of(struct digest *digest, pid_t tid)
{
	uint32_t place = map_get(&digest->told_of, (uint64_t)tid);
	struct told *told;

	if (place != MAP_ABSENT)
		return &digest->told.items[place];
	told = list_add(&digest->told, THREADS_MAX);
	if (told && !map_put(&digest->told_of, (uint64_t)tid, (uint32_t)digest->told.count - 1))
		told = NULL;
	return told;
}

/* ---- names ---- */

static uint32_t run_make(struct digest *digest, uint32_t which)
{
	struct symbol symbols[SYMBOL_INLINES_MAX];
	const struct module *module;
	size_t count = joiner_names(digest->settings.joiner, &digest->native, which, symbols, &module);
	uint32_t place = (uint32_t)digest->runs.count;

	if (!run_add(digest, 0))
		return RUN_EMPTY;
	for (size_t i = 0; i < count && run_add(digest, stacks_native(digest->stacks, &symbols[i], module, digest->native.frames[which].ip)); i++)
		digest->runs.items[place]++;
	if (!module || module->kind == MODULE_JIT)
		digest->runs.items[place] |= RUN_GENERATED;
	if (count && module && module->path[0] && !symbols[count - 1].named)
		stacks_unnamed(digest->stacks, module, joiner_source(digest->settings.joiner, module));
	return place;
}

static bool same_run(const struct digest *digest, uint32_t one, uint32_t other)
{
	const uint32_t *runs = digest->runs.items;

	return memcmp(&runs[one], &runs[other], (1 + (size_t)(runs[one] & ~RUN_GENERATED)) * sizeof *runs) == 0;
}

/* The functions at a native frame's address: their place in runs. Of generated code the names are asked for each time, and the place is another one when they changed. */
static uint32_t run_find(struct digest *digest, uint32_t which)
{
	const struct native_frame *frame = &digest->native.frames[which];
	uint64_t key = frame->ip << 1 | (which > 0) | (uint64_t)(frame->module & 0x7fff) << 49, begin_ns;
	uint32_t known = map_get(&digest->run_of, key), place;

	if (known != MAP_ABSENT && !(digest->runs.items[known] & RUN_GENERATED))
		return known;
	begin_ns = clock_thread_ns();
	place = run_make(digest, which);
	if (known != MAP_ABSENT && place != RUN_EMPTY && same_run(digest, place, known)) {
		digest->runs.count = place;
		place = known;
	} else if (place != RUN_EMPTY || known == MAP_ABSENT) {
		map_put(&digest->run_of, key, place);
	}
	digest->totals.naming_ns += clock_thread_ns() - begin_ns;
	return place;
}

static uint32_t push_native(struct digest *digest, uint32_t stack, uint32_t which)
{
	uint32_t place = run_find(digest, which), count = digest->runs.items[place] & ~RUN_GENERATED;

	while (count > 0)
		stack = stacks_push_native(digest->stacks, stack, digest->runs.items[place + count--]);
	return stack;
}

/* ---- time ---- */

/* The TSC's clock runs a little beside that of its calibration: what was seen just now must not seem to lie elsewhere. */
static void set_clock(struct digest *digest)
{
	struct clock_map *clock = &digest->settings.clock;

	if (!digest->settings.tsc)
		return;
	clock->base_ns = clock_monotonic_ns();
	clock->base_ticks = clock_tsc();
}

static uint64_t to_ticks(const struct digest *digest, uint64_t ns)
{
	return digest->settings.tsc ? clock_to_ticks(&digest->settings.clock, ns) : ns;
}

/* ---- stacks ---- */

static void copy_take(struct digest *digest, const struct sight *sight)
{
	digest->copy.tid = sight->tid;
	digest->copy.at_ns = sight->at_ns;
	memcpy(digest->copy.regs, sight->regs, sizeof sight->regs);
	digest->copy.known = sight->known;
	digest->copy.stack_size = sight->stack_size;
	memcpy(digest->copy.stack, sight->bytes + sight->glimpse_size, sight->stack_size);
}

/* The walked copy and PYTHON (may be NULL) as one stack. */
static uint32_t stack_make(struct digest *digest, const struct pystack *python)
{
	uint32_t stack = 0;

	for (uint32_t i = digest->joined.count; i-- > 0;) {
		const struct joined_frame *frame = &digest->joined.frames[i];

		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): frames of Python come from that stack */
		stack = frame->python ? stacks_push_python(digest->stacks, stack, python->code[frame->index], python->stamp[frame->index]) : push_native(digest, stack, frame->index);
	}
	return stack;
}

/* The Python stack of the copy's own moment, joined: LATER was read after it. False: the copy does not tell. */
static bool recall(struct digest *digest, const struct pystack *later, uint64_t still_above)
{
	struct joiner *joiner = digest->settings.joiner;

	if (!joiner_recall(joiner, digest->moment, &digest->copy, &digest->native, still_above, later, &digest->recalled))
		return false;
	joiner_join_recalled(joiner, &digest->recalled, &digest->native, &digest->joined);
	if (digest->joined.result == JOIN_WHOLE)
		digest->joined.result = JOIN_RECALLED;
	return digest->joined.result != JOIN_FAILED;
}

/* Joins the walked copy with PYTHON (NULL: none, or they could not be read). Returns the Python frames that stand in the join. */
static const struct pystack *join(struct digest *digest, const struct told *told, const struct pystack *python, uint64_t still_above)
{
	digest->nothing.tid = told->inner;
	if (python && still_above)
		joiner_meet(digest->settings.joiner, &digest->copy, python, &digest->native);
	if (still_above && (python || told->inner) && recall(digest, python ? python : &digest->nothing, still_above))
		return &digest->recalled;
	joiner_join(digest->settings.joiner, python, &digest->native, still_above, &digest->joined);
	return python;
}

/* The task that the sight's Python frames run, as they were read; 0: none. */
static uint32_t task_read(struct digest *digest, const struct sight *sight)
{
	const struct pystack *stack = &digest->python;
	const struct pytask_now *task = &sight->task;
	uint32_t at = 0, id;

	while (at < stack->count && stack->code[at] != task->code)
		at++;
	if (!task->code || at == stack->count)
		return 0;
	id = tasks_id(digest->tasks, task->name, stacks_code(digest->stacks, stack->code[at], stack->stamp[at]), to_ticks(digest, sight->at_ns));
	if (id)
		tasks_learn(digest->tasks, id, task->address, task->coroutine, task->frame);
	return id;
}

/* The task that ran when the sight's copy was taken. Frames that were read when the thread had gone on say which one did then. */
static uint32_t task_of(struct digest *digest, const struct sight *sight, const struct pystack *python)
{
	uint32_t read = python ? task_read(digest, sight) : 0;

	return sight->still_above > sight->regs[DWARF_SP] ? tasks_in(digest->tasks, &digest->copy) : read;
}

/* False when nothing could be made of it. */
static bool see(struct digest *digest, const struct sight *sight, struct told *told, struct told_stack *out)
{
	static const struct join_rules no_rules = { 0 };
	bool native = sight->known && digest->settings.joiner;
	const struct pystack *python = NULL, *seen;

	if (sight->glimpse_size && pyglance_stack(digest->reader, sight->bytes, sight->glimpse_size, &digest->python) == 0)
		python = &digest->python;
	digest->native.count = 0;
	digest->native.end = WALK_COMPLETE;
	if (sight->glimpse_size && !python)
		return false; /* torn, and counted */
	if (python && digest->settings.joiner)
		pymoment_learn(digest->moment, python);
	if (python)
		told->inner = python->tid;
	seen = python;
	if (native) {
		copy_take(digest, sight);
		joiner_walk(digest->settings.joiner, &digest->copy, &digest->native);
		digest->totals.ends[digest->native.end]++;
		digest->totals.searched += digest->native.searched;
		python = join(digest, told, python, sight->still_above);
	} else {
		join_stacks(python, NULL, &no_rules, &digest->joined);
	}
	digest->totals.joins[digest->joined.result] += native;
	*out = (struct told_stack){ .stack = stack_make(digest, python), .task = task_of(digest, sight, seen), .python = python != NULL };
	return out->stack != 0;
}

/* ---- events ---- */

/* What a thread's counters gained until this sample: most gain nothing. */
static void add_gained(struct digest *digest, const struct sight *sight, struct told *told, uint32_t stack, uint64_t ticks)
{
	for (int i = 0; i < SAMPLED_COUNTERS; i++) {
		uint64_t gained = sight->gained[i] + told->owed[i];

		if (gained)
			event_add(digest->settings.builder, ticks, EVENT_SAMPLE_COUNTER, stack, 0, (uint32_t)sight->tid, gained, thread_counter_row((enum thread_counter)(COUNTERS_SAMPLED + i))->name);
		told->owed[i] = 0;
	}
}

static void add_events(struct digest *digest, const struct sight *sight, struct told *told, const struct told_stack *now)
{
	uint64_t ticks = to_ticks(digest, sight->at_ns);
	bool later = !sight->again && now->python && digest->joined.later;
	enum thread_state state = sight->state;

	if (sight->running)
		state = pyglance_holds_gil(sight->bytes, sight->glimpse_size) ? THREAD_PYTHON : THREAD_NATIVE;
	/* The timeline may find out by its functions that a thread waits for the GIL. */
	if (sight->holder && sight->holder != sight->tid && now->python && (sight->running || state == THREAD_GIL_WAIT || state == THREAD_LOCK_WAIT))
		event_add(digest->settings.builder, ticks, EVENT_GIL, (uint32_t)sight->tid, 0, (uint32_t)sight->holder);
	if (now->task)
		event_add(digest->settings.builder, ticks, EVENT_TASK_RUN, (uint32_t)sight->tid, 0, now->task);
	event_add(digest->settings.builder, ticks, EVENT_SAMPLE, now->stack, later ? EVENT_FLAG_LATER : 0, (uint32_t)sight->tid, (uint32_t)state, sight->weight_ns + told->owed_ns);
	told->owed_ns = 0;
	add_gained(digest, sight, told, now->stack, ticks);
	digest->totals.samples++;
}

static void owe(struct told *told, const struct sight *sight)
{
	if (told->owed_ns < OWED_SAMPLES * sight->weight_ns)
		told->owed_ns += sight->weight_ns;
	for (int i = 0; i < SAMPLED_COUNTERS; i++)
		told->owed[i] += sight->gained[i];
}

void digest_tell(struct digest *digest, const struct sight *sight)
{
	struct told *told = told_of(digest, sight->tid);
	struct told_stack *now;

	if (!told)
		return;
	set_clock(digest);
	stacks_time(digest->stacks, to_ticks(digest, sight->at_ns));
	tasks_look(digest->tasks, sight->at_ns, to_ticks(digest, sight->at_ns));
	if (digest->calls)
		blocked_calls_see(digest->calls, sight, to_ticks(digest, sight->at_ns), digest->settings.builder);
	now = sight->running ? &told->ran : &told->blocked;
	if (sight->again ? now->stack != 0 : see(digest, sight, told, now))
		add_events(digest, sight, told, now);
	else
		owe(told, sight);
}

void digest_end(struct digest *digest)
{
	if (digest->calls)
		blocked_calls_end(digest->calls, digest->settings.builder);
}

bool digest_wants(const struct digest *digest, const struct sight *sight, struct sight_wish *out)
{
	*out = (struct sight_wish){ .tid = sight->tid };
	if (sight->again || !digest->native.count)
		return false;
	if (!sight->running)
		return digest->native.end == WALK_CUT_REGISTER;
	out->stack_bytes = digest->native.stack_used;
	return sight->known && out->stack_bytes > sight->stack_size;
}

struct digest_totals digest_totals(const struct digest *digest)
{
	struct digest_totals totals = digest->totals;

	totals.torn = pyreader_torn(digest->reader);
	totals.frames_left_out = stacks_left_out(digest->stacks);
	return totals;
}
