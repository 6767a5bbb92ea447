/*
 * Local variables of a frame. Up to 3.10 the values are locals, then cells of inner functions' variables, then cells of outer ones', each with a tuple of
 * names in the code object; from 3.11 one tuple names all. Cells are told from other values by their type.
 */
#include <string.h>

#include "abi/cpython.h"
#include "unwind/pyreader.h"
#include "unwind/pyvalue.h"

enum {
	CODE_HEAD_MAX = 256,
	LOOKS_MAX = 1024, /* a torn or made-up tuple says that there are tens of thousands: each is three reads, in each frame of each thread */
};

struct listing {
	struct pyreader *reader;
	uint64_t values; /* address of the first */
	int told, looks;
	void (*each)(void *context, const char *name, const char *value);
	void *context;
};

static uint32_t tuple_size(const struct pyreader *reader, uint64_t tuple)
{
	uint64_t size;

	return address_plausible(tuple) && reader_word(reader, tuple + (uint64_t)reader->walk.layout->object_size, &size) == 0 && size < UINT16_MAX ? (uint32_t)size : 0;
}

/* Variable INDEX of the frame, which is number WHICH of the tuple NAMES. False: enough were told or looked at, or what follows cannot be there either. */
static bool tell_variable(struct listing *list, uint64_t names, uint32_t which, uint32_t index)
{
	const struct cpython_layout *layout = list->reader->walk.layout;
	char name[PYLOCAL_NAME_MAX], value[PYLOCAL_VALUE_MAX];
	uint64_t at, object;

	if (list->told == PYLOCALS_MAX || list->looks++ == LOOKS_MAX || reader_word(list->reader, list->values + index * 8ull, &object) < 0)
		return false;
	if (list->reader->walk.minor >= 14)
		object &= ~3ull; /* a tagged reference */
	if (!object || reader_word(list->reader, names + (uint64_t)layout->tuple_items + which * 8ull, &at) < 0 || reader_str(list->reader, at, name, sizeof name, NULL) < 0)
		return true;
	if (!reader_value(list->reader, object, value, sizeof value))
		return true;
	list->told++;
	list->each(list->context, name, value);
	return true;
}

static void tell_3_11(struct listing *list, const unsigned char *code)
{
	const struct cpython_layout *layout = list->reader->walk.layout;
	uint64_t names = word_at(code, layout->code_localnames);
	uint32_t count = tuple_size(list->reader, names);

	for (uint32_t i = 0; i < count; i++)
		if (!tell_variable(list, names, i, i))
			return;
}

static void tell_3_8(struct listing *list, const unsigned char *code)
{
	const struct cpython_layout *layout = list->reader->walk.layout;
	const uint64_t names[] = { word_at(code, layout->code_localnames), word_at(code, layout->code_cellvars), word_at(code, layout->code_freevars) };
	uint32_t index = 0;

	for (size_t part = 0; part < sizeof names / sizeof names[0]; part++) {
		uint32_t count = tuple_size(list->reader, names[part]);

		for (uint32_t i = 0; i < count; i++)
			if (!tell_variable(list, names[part], i, index++))
				return;
	}
}

int pyreader_locals(struct pyreader *reader, const struct pystack *stack, uint32_t index, void (*each)(void *context, const char *name, const char *value), void *context)
{
	const struct cpython_layout *layout = reader->walk.layout;
	struct listing list = { .reader = reader, .each = each, .context = context };
	unsigned char code[CODE_HEAD_MAX];
	uint64_t now;

	if (index >= stack->count || (size_t)layout->code_size > sizeof code || !reader_code(reader, stack->code[index])
	    || reader_read(reader, stack->code[index], code, (size_t)layout->code_size) < 0)
		return -1;
	/* Is it still that function's frame? */
	if (reader_word(reader, stack->frame[index] + (uint64_t)layout->frame_code, &now) < 0
	    || (reader->walk.minor >= 14 ? now & ~3ull : now) != stack->code[index])
		return -1;
	list.values = stack->frame[index] + (uint64_t)layout->frame_locals;
	if (reader->walk.minor >= 11)
		tell_3_11(&list, code);
	else
		tell_3_8(&list, code);
	return list.told;
}
