/* Tasks of asyncio: rows by name and coroutine, waits by row, stack and future. */
#include "timeline/tasks.h"

#include "timeline/private.h"

enum { REFS_LIMIT = 1 << 20, OTHER_ROW = 0 };

struct task_row { uint32_t name /* string */, function /* name, NONE = of (other) */; struct task_summary out; };
struct wait_row { uint32_t task, stack, future /* string */; uint64_t time_ns, samples; };

struct tasks_build {
	struct task_facts out;
	struct map of_ref;  /* process << 32 | ref to row */
	struct map of_key;  /* name << 32 | function to row */
	struct map of_wait; /* hash of a wait to the index of it */
	LIST(struct task_row) rows;
	LIST(struct wait_row) waits;
};

static const struct task_facts nothing;

static struct tasks_build *tasks_of(struct timeline_private *p)
{
	static const char other[] = "(other)";
	struct task_row *row;

	if (p->tasks)
		return p->tasks;
	p->tasks = calloc(1, sizeof *p->tasks);
	row = p->tasks ? list_add_or_fail(&p->tasks->rows, TASK_ROWS_LIMIT, &p->failed) : NULL;
	if (!row) {
		p->failed = true;
		free(p->tasks);
		return p->tasks = NULL;
	}
	row->name = names_string(p, other, sizeof other - 1);
	row->function = NONE;
	return p->tasks;
}

/* ---- names ---- */

/* Is the name up to END one that asyncio gave? */
static bool is_unnamed(const char *name, const char *end)
{
	static const char prefix[] = "Task-";
	const char *at = name + sizeof prefix - 1;

	if (strncmp(name, prefix, sizeof prefix - 1) != 0 || at >= end)
		return false;
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at == end;
}

/* The string that NAME is told as: tasks that nobody named have one in common. */
static uint32_t told_name(struct timeline_private *p, uint32_t name)
{
	const char *text = strings_get(p->strings, name);

	return is_unnamed(text, text + strlen(text)) ? names_string(p, "Task-*", 6) : name;
}

/* The same of a future: task "Task-7". */
static uint32_t told_future(struct timeline_private *p, uint32_t future)
{
	static const char before[] = "task \"", instead[] = "task \"Task-*\"";
	const char *text = strings_get(p->strings, future), *end = text + strlen(text);

	if (strncmp(text, before, sizeof before - 1) != 0 || !is_unnamed(text + sizeof before - 1, end - 1))
		return future;
	return names_string(p, instead, sizeof instead - 1);
}

/* ---- events ---- */

static uint32_t row_of(struct timeline_private *p, uint32_t name, uint32_t function)
{
	struct tasks_build *all = p->tasks;
	uint64_t key = (uint64_t)name << 32 | function;
	uint32_t index = map_get(&all->of_key, key);
	struct task_row *row;

	if (index != MAP_ABSENT)
		return index;
	row = list_add_or_fail(&all->rows, TASK_ROWS_LIMIT, &p->failed);
	if (!row)
		return OTHER_ROW;
	row->name = name;
	row->function = function;
	index = (uint32_t)all->rows.count - 1;
	p->failed |= !map_put(&all->of_key, key, index);
	return index;
}

void tasks_name(struct timeline_private *p, uint32_t process, const struct event_cursor *c)
{
	struct tasks_build *all = tasks_of(p);
	uint64_t ref = (uint64_t)process << 32 | c->event.ref;
	uint32_t index;

	if (!all || all->of_ref.count >= REFS_LIMIT || map_get(&all->of_ref, ref) != MAP_ABSENT)
		return;
	index = row_of(p, told_name(p, facts_string(p, c, 1)), names_find(p, process, event_u32(c, 0)));
	all->rows.items[index].out.count++;
	p->failed |= !map_put(&all->of_ref, ref, index);
}

void tasks_run(struct timeline_private *p, uint32_t process, const struct event_cursor *c, uint64_t at_ns)
{
	struct thread_build *thread = lanes_thread(p, process, c->event.ref);
	struct tasks_build *all = tasks_of(p);
	uint32_t index = all ? map_get(&all->of_ref, (uint64_t)process << 32 | event_u32(c, 0)) : MAP_ABSENT;

	if (!thread || index == MAP_ABSENT)
		return;
	thread->task = index;
	thread->task_told_ns = at_ns;
}

void tasks_sample(struct timeline_private *p, const struct thread_build *thread, uint64_t at_ns, enum thread_state state, uint64_t weight_ns)
{
	struct task_summary *row;

	if (!p->tasks || !thread->task_told_ns || thread->task_told_ns != at_ns)
		return;
	row = &p->tasks->rows.items[thread->task].out;
	row->samples++;
	row->wall_ns += weight_ns;
	if (state == THREAD_PYTHON || state == THREAD_NATIVE)
		row->cpu_ns += weight_ns;
}

static struct wait_row *wait_of(struct timeline_private *p, uint32_t task, uint32_t stack, uint32_t future)
{
	struct tasks_build *all = p->tasks;
	uint64_t key = mix64(mix64((uint64_t)task << 32 | stack) ^ future);
	uint32_t index = map_get(&all->of_wait, key);
	struct wait_row *wait;

	if (index != MAP_ABSENT)
		return &all->waits.items[index];
	wait = list_add_or_fail(&all->waits, TASK_WAITS_LIMIT, &p->failed);
	if (!wait)
		return NULL;
	*wait = (struct wait_row){ task, stack, future, 0, 0 };
	p->failed |= !map_put(&all->of_wait, key, (uint32_t)all->waits.count - 1);
	return wait;
}

void tasks_wait(struct timeline_private *p, uint32_t process, const struct event_cursor *c)
{
	struct tasks_build *all = tasks_of(p);
	uint32_t index = all ? map_get(&all->of_ref, (uint64_t)process << 32 | c->event.ref) : MAP_ABSENT;
	uint32_t stack = map_get(&p->stack_index, (uint64_t)process << 32 | event_u32(c, 0));
	struct wait_row *wait;

	if (index == MAP_ABSENT)
		return;
	all->rows.items[index].out.waited_ns += event_u64(c, 1);
	wait = stack != MAP_ABSENT ? wait_of(p, index, stack, told_future(p, facts_string(p, c, 2))) : NULL;
	if (!wait)
		return;
	wait->time_ns += event_u64(c, 1);
	wait->samples++;
}

/* ---- what is told ---- */

static struct task_frame frame_of(const struct timeline_private *p, uint32_t function)
{
	const struct name *name;

	if (function == NONE)
		return (struct task_frame){ "", "", 0 };
	name = &p->names.list.items[function];
	return (struct task_frame){ strings_get(p->strings, name->name), strings_get(p->strings, name->file), name->line };
}

static const struct task_frame *frames_of(struct timeline_private *p, uint32_t stack, size_t *count)
{
	struct task_frame *frames;
	size_t depth = 0;

	for (uint32_t at = stack; at != NONE && depth < TASK_FRAMES_MAX; at = p->stacks.items[at].parent)
		depth++;
	frames = timeline_keep(p, depth, sizeof *frames);
	*count = frames ? depth : 0;
	for (size_t i = *count; i-- > 0; stack = p->stacks.items[stack].parent)
		frames[i] = frame_of(p, names_find(p, p->stacks.items[stack].process, p->stacks.items[stack].ref));
	return frames;
}

static int compare_wait_rows(const void *left, const void *right)
{
	const struct wait_row *a = left, *b = right;

	if (a->task != b->task)
		return a->task < b->task ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	return a->future < b->future ? -1 : a->future > b->future;
}

static int compare_tasks(const void *left, const void *right)
{
	const struct task_summary *a = left, *b = right;
	int order;

	if (a->wall_ns != b->wall_ns)
		return a->wall_ns > b->wall_ns ? -1 : 1;
	if (a->waited_ns != b->waited_ns)
		return a->waited_ns > b->waited_ns ? -1 : 1;
	order = strcmp(a->name, b->name);
	order = order ? order : strcmp(a->coroutine.name, b->coroutine.name);
	order = order ? order : strcmp(a->coroutine.file, b->coroutine.file);
	return order ? order : (a->coroutine.line > b->coroutine.line) - (a->coroutine.line < b->coroutine.line);
}

static void keep_waits(struct timeline_private *p, struct task_wait *out)
{
	struct tasks_build *all = p->tasks;

	if (all->waits.count)
		qsort(all->waits.items, all->waits.count, sizeof *all->waits.items, compare_wait_rows);
	for (size_t i = 0; i < all->waits.count && !p->failed; i++) {
		const struct wait_row *row = &all->waits.items[i];
		struct task_summary *task = &all->rows.items[row->task].out;

		out[i] = (struct task_wait){ .future = strings_get(p->strings, row->future), .time_ns = row->time_ns, .samples = row->samples };
		out[i].frames = frames_of(p, row->stack, &out[i].frame_count);
		if (!task->wait_count++)
			task->waits = &out[i];
	}
}

void tasks_build(struct timeline_private *p)
{
	struct tasks_build *all = p->tasks;
	struct task_summary *tasks;
	struct task_wait *waits;
	size_t count = 0;

	if (!all)
		return;
	tasks = timeline_keep(p, all->rows.count, sizeof *tasks);
	waits = timeline_keep(p, all->waits.count, sizeof *waits);
	if (p->failed)
		return;
	keep_waits(p, waits);
	for (size_t i = 0; i < all->rows.count; i++) {
		const struct task_row *row = &all->rows.items[i];

		if (!row->out.samples && !row->out.waited_ns)
			continue;
		tasks[count] = row->out;
		tasks[count].name = strings_get(p->strings, row->name);
		tasks[count++].coroutine = frame_of(p, row->function);
	}
	qsort(tasks, count, sizeof *tasks, compare_tasks);
	all->out = (struct task_facts){ count, tasks };
}

void tasks_done_building(struct timeline_private *p)
{
	struct tasks_build *all = p->tasks;

	if (!all)
		return;
	map_done(&all->of_ref);
	map_done(&all->of_key);
	map_done(&all->of_wait);
	list_done(&all->rows);
	list_done(&all->waits);
}

void tasks_done(struct timeline_private *p)
{
	tasks_done_building(p);
	free(p->tasks);
}

const struct task_facts *timeline_tasks(const struct timeline *timeline)
{
	const struct tasks_build *all = timeline->private_ ? timeline->private_->tasks : NULL;

	return all ? &all->out : &nothing;
}
