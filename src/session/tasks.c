/* A number for each name and coroutine; looks at all tasks, as rarely as they are dear. */
#include "session/tasks.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/map.h"

#define OFTEN_NS 100000000ull
#define WEIGHT_MAX_NS 10000000000ull /* a look stands for no longer time: what happened before nobody knows */
enum { PLACES_MAX = 1 << 18, COST_PART = 100, MET_MAX = 8 };

struct tasks {
	struct pyreader *reader;
	struct stacks *stacks;
	struct event_builder *builder;
	struct strings *names;
	struct map ids;                /* name << 32 | code to the task's number */
	uint32_t count;                /* of numbers that were given */
	struct map places;             /* address of a task, its coroutine or its frame to the task's number */
	uint64_t lowest, highest;      /* of these addresses */
	uint64_t looked_ns, due_ns;    /* looked: 0 = never */
	uint64_t weight_ns, ticks;     /* of the look in progress */
};

int tasks_open(struct pyreader *reader, struct stacks *stacks, struct event_builder *builder, struct tasks **out, struct error *err)
{
	struct tasks *tasks = calloc(1, sizeof *tasks);

	if (!tasks)
		return fail(err, ERR_MEMORY, "sampling");
	*tasks = (struct tasks){ .reader = reader, .stacks = stacks, .builder = builder, .names = strings_new() };
	if (!tasks->names) {
		tasks_close(tasks);
		return fail(err, ERR_MEMORY, "sampling");
	}
	*out = tasks;
	return 0;
}

void tasks_close(struct tasks *tasks)
{
	if (!tasks)
		return;
	if (tasks->names)
		strings_free(tasks->names);
	map_done(&tasks->ids);
	map_done(&tasks->places);
	free(tasks);
}

static void forget_places(struct tasks *tasks)
{
	map_done(&tasks->places);
	tasks->lowest = tasks->highest = 0;
}

/* Names of tasks do not come again in a service that makes one for each request ("Task-7"). */
static bool begin_anew(struct tasks *tasks)
{
	struct strings *names = strings_new();

	if (!names)
		return false;
	strings_free(tasks->names);
	tasks->names = names;
	map_done(&tasks->ids);
	forget_places(tasks);
	return true;
}

uint32_t tasks_id(struct tasks *tasks, const char *name, uint32_t code, uint64_t ticks)
{
	uint32_t string, id;
	uint64_t key;

	if (strings_count(tasks->names) >= TASKS_KEPT && !begin_anew(tasks))
		return 0;
	string = strings_add(tasks->names, name, strlen(name));
	key = (uint64_t)string << 32 | code;
	id = map_get(&tasks->ids, key);
	if (id != MAP_ABSENT)
		return id;
	id = tasks->count + 1;
	if (string == UINT32_MAX || !map_put(&tasks->ids, key, id))
		return 0;
	tasks->count = id;
	event_add(tasks->builder, ticks, EVENT_TASK, id, 0, code, name);
	return id;
}

/* ---- where they lie ---- */

static void learn_place(struct tasks *tasks, uint64_t address, uint32_t id)
{
	if (!map_put(&tasks->places, address, id))
		return;
	tasks->lowest = !tasks->lowest || address < tasks->lowest ? address : tasks->lowest;
	tasks->highest = address > tasks->highest ? address : tasks->highest;
}

void tasks_learn(struct tasks *tasks, uint32_t id, uint64_t task, uint64_t coroutine, uint64_t frame)
{
	if (tasks->places.count > PLACES_MAX)
		forget_places(tasks);
	learn_place(tasks, task, id);
	learn_place(tasks, coroutine, id);
	learn_place(tasks, frame, id);
}

struct met { uint32_t count, id[MET_MAX], times[MET_MAX]; };

static void meet(const struct tasks *tasks, uint64_t word, struct met *met)
{
	uint32_t id = word >= tasks->lowest && word <= tasks->highest ? map_get(&tasks->places, word) : MAP_ABSENT, at = 0;

	if (id == MAP_ABSENT)
		return;
	while (at < met->count && met->id[at] != id)
		at++;
	if (at == MET_MAX)
		return;
	if (at == met->count) {
		met->id[at] = id;
		met->times[at] = 0;
		met->count++;
	}
	met->times[at]++;
}

/* What is left over from a task that ran before, or belongs to one that is being made, is there less often. */
static uint32_t most_often(const struct met *met)
{
	uint32_t most = 0;

	for (uint32_t i = 1; i < met->count; i++)
		if (met->times[i] > met->times[most])
			most = i;
	return met->count ? met->id[most] : 0;
}

uint32_t tasks_in(const struct tasks *tasks, const struct thread_copy *copy)
{
	struct met met = { 0 };
	uint64_t word;

	if (!tasks->places.count)
		return 0;
	for (uint32_t at = copy->stack_size / sizeof word; at-- > 0;) { /* the outermost one first */
		memcpy(&word, copy->stack + at * sizeof word, sizeof word);
		meet(tasks, word, &met);
	}
	for (int reg = 0; reg < DWARF_PC; reg++)
		if (copy->known >> reg & 1)
			meet(tasks, copy->regs[reg], &met);
	return most_often(&met);
}

/* ---- what they await ---- */

static void tell_task(void *context, const struct pytask *task)
{
	struct tasks *tasks = context;
	const struct pystack *stack = &task->stack;
	uint32_t id, outermost = stack->count - 1;

	if (!stack->count)
		return;
	id = tasks_id(tasks, task->name, stacks_code(tasks->stacks, stack->code[outermost], stack->stamp[outermost]), tasks->ticks);
	if (!id)
		return;
	tasks_learn(tasks, id, task->address, task->coroutine, stack->frame[outermost]);
	if (task->waits)
		event_add(tasks->builder, tasks->ticks, EVENT_TASK_WAIT, id, 0, stacks_python(tasks->stacks, stack), tasks->weight_ns, task->waits_for);
}

void tasks_look(struct tasks *tasks, uint64_t now_ns, uint64_t ticks)
{
	uint64_t begin_ns, cost_ns;

	if (now_ns < tasks->due_ns)
		return;
	begin_ns = clock_thread_ns();
	/* The first look stands for nothing, but says from when on time is known. */
	tasks->weight_ns = tasks->looked_ns ? now_ns - tasks->looked_ns : 0;
	if (tasks->weight_ns > WEIGHT_MAX_NS)
		tasks->weight_ns = WEIGHT_MAX_NS;
	tasks->ticks = ticks;
	if (pyreader_knows_tasks(tasks->reader))
		pyreader_tasks(tasks->reader, tell_task, tasks);
	tasks->looked_ns = now_ns;
	cost_ns = (clock_thread_ns() - begin_ns) * COST_PART;
	tasks->due_ns = now_ns + (cost_ns > OFTEN_NS ? cost_ns : OFTEN_NS);
}
