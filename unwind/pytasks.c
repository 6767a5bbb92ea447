/*
 * Tasks of asyncio: who they are, and the coroutines that each is suspended in.
 *
 *   task → coroutine → what that awaits: coroutine → … → future
 *
 * Up to 3.11 a WeakSet knows all tasks, in 3.12 and 3.13 one and a set of eager ones, later circles through the tasks themselves, one per thread. What a coroutine
 * awaits is the topmost value on the stack of its frame, while it is suspended; of one that runs the thread's own stack tells more.
 */
#include <stdio.h>
#include <string.h>

#include "abi/cpython.h"
#include "unwind/pydict.h"
#include "unwind/pyglance.h"
#include "unwind/pyvalue.h"

enum { TASK_BYTES = 176, FRAME_BYTES = 128, TASKS_MAX = 1 << 16, DEPTH_MAX = 1 << 16, STEPS_MAX = PYSTACK_FRAMES_MAX, LOOPS_MAX = 256 };

struct telling {
	struct pyreader *reader;
	void (*each)(void *context, const struct pytask *task);
	void *context;
	struct pytask task;
	int told;
};

static bool is_one_of(const char *type, const char *const *names)
{
	while (*names && strcmp(*names, type) != 0)
		names++;
	return *names;
}

/* Has it a frame, as generators do? */
static bool is_coroutine(const struct pyreader *reader, uint64_t object)
{
	static const char *const names[] = { "coroutine", "generator", "async_generator", NULL };
	char type[PYTYPE_NAME_MAX];

	return reader_type_name(reader, object, type) == 0 && is_one_of(type, names);
}

/* ---- coroutines ---- */

/* The topmost value on the stack of the suspended FRAME, whose bytes these are; 0: none. */
static uint64_t top_of_stack(const struct pyreader *reader, uint64_t frame, const unsigned char *bytes)
{
	const struct cpython_layout *layout = reader->walk.layout;
	uint64_t end, top = 0;

	if (layout->frame_stackpointer >= 0) {
		end = word_at(bytes, layout->frame_stackpointer);
	} else if (layout->frame_depth >= 0) {
		uint32_t depth = half_at(bytes, layout->frame_depth);

		if (depth == 0 || depth > DEPTH_MAX)
			return 0;
		end = (reader->walk.minor == 10 ? word_at(bytes, layout->frame_valuestack) : frame + (uint64_t)layout->frame_locals) + depth * 8ull;
	} else {
		end = word_at(bytes, layout->frame_stacktop);
	}
	if (!address_plausible(end) || reader_word(reader, end - 8, &top) < 0)
		return 0;
	if (reader->walk.minor < 14)
		return top;
	/* Tagged references. 3.15 keeps an index, or nothing, above what is awaited. */
	if (!address_plausible(top & ~3ull) && reader_word(reader, end - 16, &top) < 0)
		return 0;
	return top & ~3ull;
}

/* Awaitables that only pass on to a coroutine or generator, which they hold first of all. */
static uint64_t unwrap(const struct pyreader *reader, uint64_t object)
{
	static const char *const names[] = { "coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable", NULL };
	char type[PYTYPE_NAME_MAX];
	uint64_t inner;

	if (!object || reader_type_name(reader, object, type) < 0 || !is_one_of(type, names))
		return object;
	return reader_word(reader, object + (uint64_t)reader->walk.layout->object_type + 8, &inner) < 0 ? 0 : inner;
}

/* Where COROUTINE has its frame, which may be gone. */
static uint64_t frame_of(const struct pyreader *reader, uint64_t coroutine)
{
	uint64_t frame = coroutine + (uint64_t)reader->walk.layout->generator_frame;

	if (reader->walk.minor < 11 && (!address_plausible(coroutine) || reader_word(reader, frame, &frame) < 0))
		return 0;
	return frame;
}

/* Puts the frame of COROUTINE on top of STACK, which has its innermost frame last until all are there. Returns what it awaits; 0: nothing that is known. */
static uint64_t push_coroutine(struct pyreader *reader, uint64_t coroutine, struct pystack *stack)
{
	const struct cpython_layout *layout = reader->walk.layout;
	size_t size = reader->walk.minor >= 11 ? 80 : 112;
	uint64_t frame = frame_of(reader, coroutine), code;
	const struct known_code *known;
	unsigned char bytes[FRAME_BYTES];

	if (!address_plausible(frame) || reader_read(reader, frame, bytes, size) < 0)
		return 0;
	code = word_at(bytes, layout->frame_code);
	if (reader->walk.minor >= 14)
		code &= ~3ull;
	known = reader_code(reader, code);
	if (!known)
		return 0;
	stack->code[stack->count] = code;
	stack->stamp[stack->count] = known->stamp;
	stack->entry[stack->count] = 0;
	stack->instr[stack->count] = reader->walk.minor >= 11 ? word_at(bytes, layout->frame_instr) : half_at(bytes, layout->frame_instr);
	stack->frame[stack->count++] = frame;
	return unwrap(reader, top_of_stack(reader, frame, bytes));
}

static void swap(uint64_t *list, uint32_t a, uint32_t b)
{
	uint64_t held = list[a];

	list[a] = list[b];
	list[b] = held;
}

/* Innermost first, as other stacks are. */
static void turn_round(struct pystack *stack)
{
	for (uint32_t a = 0, b = stack->count; a + 1 < b; a++) {
		uint32_t stamp = stack->stamp[a];

		b--;
		stack->stamp[a] = stack->stamp[b];
		stack->stamp[b] = stamp;
		swap(stack->code, a, b);
		swap(stack->entry, a, b);
		swap(stack->instr, a, b);
		swap(stack->frame, a, b);
	}
}

/* DEEPER: what the outermost one awaits counts; one that has not begun awaits nothing, but has arguments. */
static void read_chain(struct pyreader *reader, uint64_t coroutine, bool deeper, struct pystack *stack)
{
	memset(stack, 0, offsetof(struct pystack, code));
	while (is_coroutine(reader, coroutine)) {
		if (stack->count == STEPS_MAX) {
			stack->cut = true;
			break;
		}
		coroutine = push_coroutine(reader, coroutine, stack);
		if (!deeper)
			break;
	}
	turn_round(stack);
}

/* ---- tasks ---- */

/* The name of the task whose FIELDS lie there, which is NAME as long as the task is: what was another object's meanwhile is none. */
static int read_name(const struct pyreader *reader, uint64_t fields, uint64_t name, char *out, size_t size)
{
	char type[PYTYPE_NAME_MAX];
	uint64_t number, again;

	if (reader_type_name(reader, name, type) < 0)
		return -1;
	if (strcmp(type, "str") == 0 && reader_str(reader, name, out, size, NULL) < 0)
		return -1;
	if (strcmp(type, "str") != 0) {
		if (!reader_number(reader, name, &number))
			return -1;
		snprintf(out, size, "Task-%llu", (unsigned long long)number);
	}
	return reader_word(reader, fields + (uint64_t)reader->walk.layout->task_name, &again) == 0 && again == name ? 0 : -1;
}

/* From where on the fields of the task at ADDR lie as cpython.def says. Early 3.10s had one field less before all of them (3.10.4; no longer 3.10.12): the type's size tells. */
static uint64_t task_fields(const struct pyreader *reader, uint64_t addr)
{
	const struct cpython_layout *layout = reader->walk.layout;
	uint64_t type, size;

	if (reader->walk.minor != 10 || !address_plausible(addr) || reader_word(reader, addr + (uint64_t)layout->object_type, &type) < 0 || !address_plausible(type)
	    || reader_word(reader, type + (uint64_t)layout->type_basicsize, &size) < 0)
		return addr;
	return size == (uint64_t)layout->task_name + 16 ? addr - sizeof(uint64_t) : addr;
}

/* Reads a C task's fields. False: there is none. */
static bool read_task(const struct pyreader *reader, uint64_t fields, unsigned char bytes[TASK_BYTES])
{
	return address_plausible(fields) && reader_read(reader, fields, bytes, TASK_BYTES) == 0 && is_coroutine(reader, word_at(bytes, reader->walk.layout->task_coro));
}

/* The future at ADDR in words: another task by its name. */
static void describe_future(const struct pyreader *reader, uint64_t addr, char *out, size_t size)
{
	unsigned char bytes[TASK_BYTES];
	char type[PYTYPE_NAME_MAX], name[PYTASK_NAME_MAX];
	uint64_t fields;

	*out = '\0';
	if (reader_type_name(reader, addr, type) < 0)
		return;
	fields = task_fields(reader, addr);
	if (strstr(type, "Task") && read_task(reader, fields, bytes) && read_name(reader, fields, word_at(bytes, reader->walk.layout->task_name), name, sizeof name) == 0)
		snprintf(out, size, "task \"%s\"", name);
	else
		snprintf(out, size, "%s", type);
}

/* One that is pending. */
static bool tell_task(void *context, uint64_t addr)
{
	struct telling *telling = context;
	const struct cpython_layout *layout = telling->reader->walk.layout;
	struct pytask *task = &telling->task;
	unsigned char bytes[TASK_BYTES];
	uint64_t fields, waiter;

	if (telling->told == TASKS_MAX)
		return false;
	fields = task_fields(telling->reader, addr);
	if (!read_task(telling->reader, fields, bytes) || half_at(bytes, layout->task_state) != 0
	    || read_name(telling->reader, fields, word_at(bytes, layout->task_name), task->name, sizeof task->name) < 0)
		return true;
	task->address = addr;
	task->coroutine = word_at(bytes, layout->task_coro);
	waiter = word_at(bytes, layout->task_waiter);
	task->waits = waiter != 0;
	describe_future(telling->reader, waiter, task->waits_for, sizeof task->waits_for);
	read_chain(telling->reader, task->coroutine, task->waits, &task->stack);
	telling->told++;
	telling->each(telling->context, task);
	return true;
}

static bool tell_weakly(void *context, uint64_t reference)
{
	const struct telling *telling = context;
	uint64_t task;

	if (!address_plausible(reference) || reader_word(telling->reader, reference + (uint64_t)telling->reader->walk.layout->weakref_object, &task) < 0)
		return true;
	return tell_task(context, task);
}

/* ---- all of them ---- */

static int tell_circle(struct telling *telling, uint64_t head)
{
	const struct cpython_layout *layout = telling->reader->walk.layout;
	int before = telling->told;
	uint64_t node;

	if (reader_word(telling->reader, head, &node) < 0)
		return 0;
	for (int steps = 0; node != head && address_plausible(node) && steps < TASKS_MAX; steps++)
		if (!tell_task(telling, node - (uint64_t)layout->task_node) || reader_word(telling->reader, node, &node) < 0)
			break;
	return telling->told - before;
}

static int tell_thread(void *context, uint64_t tstate, uint64_t interp, uint64_t *next)
{
	struct telling *telling = context;
	const struct cpython_layout *layout = telling->reader->walk.layout;

	(void)interp;
	if (!address_plausible(tstate) || reader_word(telling->reader, tstate + (uint64_t)layout->tstate_next, next) < 0)
		return 0;
	return tell_circle(telling, tstate + (uint64_t)layout->tstate_tasks);
}

static void tell_circles(struct telling *telling)
{
	const struct cpython_layout *layout = telling->reader->walk.layout;
	uint64_t interp;

	reader_threads(telling->reader, tell_thread, telling);
	if (reader_word(telling->reader, telling->reader->walk.runtime + (uint64_t)layout->runtime_interp_main, &interp) == 0 && address_plausible(interp))
		tell_circle(telling, interp + (uint64_t)layout->interp_tasks);
}

int pyreader_tasks(struct pyreader *reader, void (*each)(void *context, const struct pytask *task), void *context)
{
	struct telling telling = { .reader = reader, .each = each, .context = context };
	uint64_t all = reader_global(reader, "asyncio.tasks", reader->walk.minor < 12 ? "_all_tasks" : "_scheduled_tasks");

	if (!all)
		return 0; /* no asyncio here */
	if (reader->walk.layout->task_node >= 0)
		tell_circles(&telling);
	reader_set(reader, reader_attribute(reader, all, "data"), tell_weakly, &telling);
	if (reader->walk.minor >= 12)
		reader_set(reader, reader_global(reader, "asyncio.tasks", "_eager_tasks"), tell_task, &telling);
	return telling.told;
}

/* ---- the one that runs ---- */

struct finding {
	const struct pyreader *reader;
	const struct pyframes *frames;
	struct pytask_now *out;
	int tries;
	bool found;
};

/* Is it the task at ADDR? What loops run changes all the time: the frames tell. */
static bool try_task(struct finding *finding, uint64_t addr)
{
	const struct cpython_layout *layout = finding->reader->walk.layout;
	unsigned char bytes[TASK_BYTES];
	uint64_t fields = task_fields(finding->reader, addr), frame;

	if (!address_plausible(fields) || reader_read(finding->reader, fields, bytes, TASK_BYTES) < 0)
		return false;
	finding->out->address = addr;
	finding->out->coroutine = word_at(bytes, layout->task_coro);
	finding->out->frame = frame = frame_of(finding->reader, finding->out->coroutine);
	for (uint32_t i = finding->frames->count; frame && i-- > 0;) {
		if (finding->frames->frames[i].address != frame)
			continue;
		finding->out->code = finding->frames->frames[i].code;
		return read_name(finding->reader, fields, word_at(bytes, layout->task_name), finding->out->name, sizeof finding->out->name) == 0;
	}
	return false;
}

static bool try_loop(void *context, uint64_t loop, uint64_t task)
{
	struct finding *finding = context;

	(void)loop;
	finding->found = try_task(finding, task);
	return !finding->found && ++finding->tries < LOOPS_MAX;
}

bool pyglance_task(const struct pyreader *reader, const void *bytes, uint32_t size, struct pytask_now *out)
{
	const struct pyframes *frames = bytes;
	struct finding finding = { .reader = reader, .frames = frames, .out = out };
	uint64_t used, task;

	if (reader->running && size >= offsetof(struct pyframes, frames) && frames->count <= PYFRAMES_MAX && size == offsetof(struct pyframes, frames) + frames->count * sizeof frames->frames[0]) {
		if (reader->walk.layout->tstate_task >= 0)
			finding.found = reader_word(reader, frames->tstate + (uint64_t)reader->walk.layout->tstate_task, &task) == 0 && task && try_task(&finding, task);
		else if (reader_word(reader, reader->running + (uint64_t)reader->walk.layout->dict_used, &used) == 0 && used)
			reader_dict(reader, reader->running, try_loop, &finding);
	}
	if (!finding.found)
		out->code = 0;
	return finding.found;
}

bool pyreader_knows_tasks(struct pyreader *reader)
{
	uint64_t modules = reader->running ? 0 : reader_modules(reader);

	if (modules == reader->modules || reader->running)
		return reader->running;
	reader->modules = modules;
	reader->running = reader->walk.layout->tstate_task >= 0 ? reader_global(reader, "asyncio.tasks", "_scheduled_tasks") : reader_global(reader, "_asyncio", "_current_tasks");
	return reader->running;
}
