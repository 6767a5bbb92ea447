/* Numbers for stacks and functions, and their events. */
#include "session/stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "session/capture.h"

enum { STACKS_MAX = 1 << 20, CODES_MAX = 1 << 20, NATIVES_MAX = 1 << 20, MODULES_MAX = 1 << 16, UNNAMED_MAX = 50 };

/* An open hash of (a, b) → id; ids count up. */
struct numbers {
	struct number { uint64_t a; uint32_t b, id; } *slots;
	uint32_t count, capacity; /* capacity is a power of two */
};

struct stacks {
	struct pyreader *reader;
	struct event_builder *builder;
	struct numbers codes, nodes, natives, modules, unnamed;
	uint64_t ticks, left_out;
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

int stacks_open(struct pyreader *reader, struct event_builder *builder, struct stacks **out, struct error *err)
{
	struct stacks *stacks = calloc(1, sizeof *stacks);

	if (!stacks)
		return fail(err, ERR_MEMORY, "sampling");
	stacks->reader = reader;
	stacks->builder = builder;
	*out = stacks;
	return 0;
}

void stacks_close(struct stacks *stacks)
{
	if (!stacks)
		return;
	free(stacks->codes.slots);
	free(stacks->nodes.slots);
	free(stacks->natives.slots);
	free(stacks->modules.slots);
	free(stacks->unnamed.slots);
	free(stacks);
}

void stacks_time(struct stacks *stacks, uint64_t ticks)
{
	stacks->ticks = ticks;
}

uint32_t stacks_code(struct stacks *stacks, uint64_t address, uint32_t stamp)
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

enum { KIND_CODE = 0, KIND_NATIVE = 1 };

/* The stack of FRAME on top of PARENT. When there can be no more: PARENT, so that the inner frames are missing. */
static uint32_t push(struct stacks *stacks, uint32_t parent, uint32_t frame, uint32_t kind)
{
	bool fresh;
	uint32_t id = frame ? numbers_id(&stacks->nodes, parent | (uint64_t)kind << 32, frame, STACKS_MAX, &fresh) : 0;

	if (!id) {
		stacks->left_out++;
		return parent;
	}
	if (fresh)
		event_add(stacks->builder, stacks->ticks, EVENT_STACK, id, 0, parent, frame, kind);
	return id;
}

uint64_t stacks_left_out(const struct stacks *stacks)
{
	return stacks->left_out;
}

uint32_t stacks_push_python(struct stacks *stacks, uint32_t parent, uint64_t code, uint32_t stamp)
{
	return push(stacks, parent, stacks_code(stacks, code, stamp), KIND_CODE);
}

uint32_t stacks_python(struct stacks *stacks, const struct pystack *stack)
{
	uint32_t id = 0;

	for (uint32_t i = stack->count; i-- > 0;)
		id = stacks_push_python(stacks, id, stack->code[i], stack->stamp[i]);
	return id;
}

uint32_t stacks_push_native(struct stacks *stacks, uint32_t parent, uint32_t native)
{
	return push(stacks, parent, native, KIND_NATIVE);
}

static void module_tell(struct stacks *stacks, const struct module *module)
{
	bool fresh;

	numbers_id(&stacks->modules, module->id, 0, MODULES_MAX, &fresh);
	if (fresh)
		event_add(stacks->builder, stacks->ticks, EVENT_MODULE, module->id, 0, module->start, module->end, module->bias, module->path, module->build_id);
}

uint32_t stacks_native(struct stacks *stacks, const struct symbol *symbol, const struct module *module, uint64_t address)
{
	uint64_t name = mix64((uint64_t)(uintptr_t)symbol->name) ^ (uint64_t)(uintptr_t)symbol->file;
	bool fresh;
	uint32_t id = numbers_id(&stacks->natives, name, module ? module->id : 0, NATIVES_MAX, &fresh);

	if (!fresh)
		return id;
	if (module)
		module_tell(stacks, module);
	event_add(stacks->builder, stacks->ticks, EVENT_NATIVE, id, 0, address, module ? module->id : (uint32_t)0, symbol->line, symbol->name, symbol->file);
	return id;
}

void stacks_unnamed(struct stacks *stacks, const struct module *module, const char *source)
{
	char key[sizeof module->path + 8];
	bool fresh;

	numbers_id(&stacks->unnamed, module->id, 0, UNNAMED_MAX, &fresh);
	if (!fresh)
		return;
	snprintf(key, sizeof key, "names.%s", module->path);
	capture_add(stacks->builder, stacks->ticks, key, "%s", source);
}
