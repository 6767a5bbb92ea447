/* Python stacks from outside into SAMPLE, STACK and CODE events; each stack and each function is named once. */
#include "session/stacks.h"

#include <stdlib.h>
#include <string.h>

enum { STACKS_MAX = 1 << 20, CODES_MAX = 1 << 20 };

/* An open hash of (a, b) → id; ids count up. */
struct numbers {
	struct number { uint64_t a; uint32_t b, id; } *slots;
	uint32_t count, capacity; /* capacity is a power of two */
};

struct stacks {
	struct pyreader *reader;
	const struct observe *observe;
	struct numbers codes, nodes;
	uint64_t samples;
	/* of the look in progress */
	struct event_builder *builder;
	uint64_t ticks, weight_ns;
};

static uint64_t number_hash(uint64_t a, uint32_t b)
{
	uint64_t hash = (a ^ (uint64_t)b << 32 ^ b) * 0x9e3779b97f4a7c15ull;

	return hash ^ hash >> 29;
}

static struct number *number_slot(struct number *slots, uint32_t capacity, uint64_t a, uint32_t b)
{
	uint32_t at = (uint32_t)number_hash(a, b) & (capacity - 1);

	while (slots[at].id && (slots[at].a != a || slots[at].b != b))
		at = (at + 1) & (capacity - 1);
	return &slots[at];
}

static bool numbers_grow(struct numbers *numbers)
{
	uint32_t capacity = numbers->capacity ? numbers->capacity * 2 : 1024;
	struct number *slots = calloc(capacity, sizeof *slots);

	if (!slots)
		return false;
	for (uint32_t i = 0; i < numbers->capacity; i++)
		if (numbers->slots[i].id)
			*number_slot(slots, capacity, numbers->slots[i].a, numbers->slots[i].b) = numbers->slots[i];
	free(numbers->slots);
	numbers->slots = slots;
	numbers->capacity = capacity;
	return true;
}

/* The id of (A, B), 0 when there can be no more. *FRESH: it is new. */
static uint32_t numbers_id(struct numbers *numbers, uint64_t a, uint32_t b, uint32_t most, bool *fresh)
{
	struct number *slot;

	*fresh = false;
	if (numbers->count * 2 >= numbers->capacity && !numbers_grow(numbers))
		return 0;
	slot = number_slot(numbers->slots, numbers->capacity, a, b);
	if (slot->id)
		return slot->id;
	if (numbers->count >= most)
		return 0;
	*slot = (struct number){ a, b, SAMPLER_FIRST_ID + numbers->count++ };
	*fresh = true;
	return slot->id;
}

int stacks_open(struct pyreader *reader, const struct observe *observe, struct stacks **out, struct error *err)
{
	struct stacks *stacks = calloc(1, sizeof *stacks);

	if (!stacks)
		return fail(err, ERR_MEMORY, "sampling");
	stacks->reader = reader;
	stacks->observe = observe;
	*out = stacks;
	return 0;
}

void stacks_close(struct stacks *stacks)
{
	if (!stacks)
		return;
	free(stacks->codes.slots);
	free(stacks->nodes.slots);
	free(stacks);
}

uint64_t stacks_count(const struct stacks *stacks)
{
	return stacks->samples;
}

/* The id of the function at this address; the stamp changes when another one has taken the address. */
static uint32_t code_id(struct stacks *stacks, uint64_t address, uint32_t stamp)
{
	struct pycode code;
	bool fresh;
	uint32_t id = numbers_id(&stacks->codes, address, stamp, CODES_MAX, &fresh);

	if (!fresh)
		return id;
	if (pyreader_code(stacks->reader, address, &code) < 0)
		memset(&code, 0, sizeof code);
	event_add(stacks->builder, stacks->ticks, EVENT_CODE, id, 0, address, code.line, (uint32_t)0, code.name[0] ? code.name : "?",
	          code.qualname[0] ? code.qualname : code.name[0] ? code.name : "?", code.file);
	return id;
}

static uint32_t stack_id(struct stacks *stacks, const struct pystack *stack)
{
	uint32_t parent = 0;

	for (uint32_t i = stack->count; i-- > 0;) {
		uint32_t code = code_id(stacks, stack->code[i], stack->stamp[i]);
		bool fresh;
		uint32_t id = numbers_id(&stacks->nodes, parent, code, STACKS_MAX, &fresh);

		if (!id)
			break;
		if (fresh)
			event_add(stacks->builder, stacks->ticks, EVENT_STACK, id, 0, parent, code, (uint32_t)0);
		parent = id;
	}
	return parent;
}

/* How a thread that does not run spends its time, by what it is blocked in. */
static enum thread_state state_of_wait(const char *wait)
{
	static const struct { const char *name; enum thread_state state; } rows[] = {
		{ "gil", THREAD_GIL_WAIT }, { "futex", THREAD_LOCK_WAIT }, { "futex_wait", THREAD_LOCK_WAIT }, { "futex_waitv", THREAD_LOCK_WAIT },
		{ "nanosleep", THREAD_SLEEP }, { "clock_nanosleep", THREAD_SLEEP }, { "pause", THREAD_SLEEP }, { "rt_sigtimedwait", THREAD_IDLE },
		{ "epoll_wait", THREAD_IDLE }, { "epoll_pwait", THREAD_IDLE }, { "epoll_pwait2", THREAD_IDLE }, { "accept", THREAD_IDLE }, { "accept4", THREAD_IDLE },
		{ "select", THREAD_SLEEP }, { "pselect6", THREAD_SLEEP }, { "restart_syscall", THREAD_SLEEP }, /* time.sleep() up to 3.10; the timeline knows a selector by its frames */
		{ "poll", THREAD_IDLE }, { "ppoll", THREAD_IDLE }, { "wait4", THREAD_IDLE }, { "waitid", THREAD_IDLE },
		{ "", THREAD_UNKNOWN },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strcmp(rows[i].name, wait) == 0)
			return rows[i].state;
	return THREAD_IO_WAIT;
}

static enum thread_state state_guess(const struct observe *observe, pid_t tid, bool holds_gil)
{
	char wait[32], state = observe_state(observe, tid);

	if (state == 'R')
		return holds_gil ? THREAD_PYTHON : THREAD_NATIVE;
	if (state == 'D')
		return THREAD_IO_WAIT;
	observe_wait(observe, tid, wait, sizeof wait);
	return state_of_wait(wait);
}

static void stack_take(void *context, const struct pystack *stack)
{
	struct stacks *stacks = context;
	const struct observe_thread *thread = observe_by_inner(stacks->observe, stack->tid);
	uint32_t id;

	if (!thread || !stack->count)
		return;
	id = stack_id(stacks, stack);
	event_add(stacks->builder, stacks->ticks, EVENT_SAMPLE, id, 0, (uint32_t)thread->tid, (uint32_t)state_guess(stacks->observe, thread->tid, stack->holds_gil), stacks->weight_ns);
	stacks->samples++;
}

int stacks_sample(struct stacks *stacks, uint64_t ticks, uint64_t weight_ns, struct event_builder *builder)
{
	stacks->builder = builder;
	stacks->ticks = ticks;
	stacks->weight_ns = weight_ns;
	return pyreader_stacks(stacks->reader, stack_take, stacks);
}
