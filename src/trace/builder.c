/* Building events in memory, by event.def's fields. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "trace/event_info.h"
#include "trace/writer.h"

void event_builder_init(struct event_builder *builder)
{
	memset(builder, 0, sizeof *builder);
}

void event_builder_done(struct event_builder *builder)
{
	free(builder->bytes);
	event_builder_init(builder);
}

void event_builder_clear(struct event_builder *builder)
{
	builder->size = 0;
	builder->failed = false;
}

static bool grow(struct event_builder *builder, size_t wanted)
{
	size_t capacity = builder->capacity ? builder->capacity : 256;
	unsigned char *larger;

	while (capacity < wanted)
		capacity *= 2;
	larger = realloc(builder->bytes, capacity);
	if (!larger)
		return false;
	builder->bytes = larger;
	builder->capacity = capacity;
	return true;
}

static inline bool append(struct event_builder *builder, const void *bytes, size_t length)
{
	if (builder->failed || (builder->size + length > builder->capacity && !grow(builder, builder->size + length))) {
		builder->failed = true;
		return false;
	}
	if (length)
		memcpy(builder->bytes + builder->size, bytes, length);
	builder->size += length;
	return true;
}

void event_builder_append(struct event_builder *builder, const void *events, size_t size)
{
	append(builder, events, size);
}

void event_builder_move(struct event_builder *to, struct event_builder *from)
{
	if (to->size == 0 && !to->failed) {
		struct event_builder empty = *to;

		*to = *from;
		*from = empty;
		event_builder_clear(from);
		return;
	}
	append(to, from->bytes, from->size);
	to->failed |= from->failed;
	event_builder_clear(from);
}

/* At most EVENT_STRING_MAX bytes, and no half character at the end. */
static bool append_string(struct event_builder *builder, const char *string, bool *cut)
{
	size_t length = string ? strlen(string) : 0, back;
	uint16_t bytes;

	if (length > EVENT_STRING_MAX) {
		*cut = true;
		length = EVENT_STRING_MAX;
		for (back = 1; back < 4 && ((unsigned char)string[length] & 0xc0) == 0x80; back++)
			length--;
	}
	bytes = (uint16_t)length;
	return append(builder, &bytes, 2) && append(builder, string, length);
}

void event_add(struct event_builder *builder, uint64_t ticks, enum event_kind kind, uint32_t ref, unsigned flags, ...)
{
	static const unsigned char zeros[8];
	const struct event_layout *layout = event_layout(kind);
	struct event event = { .ticks = ticks, .ref = ref, .kind = (uint8_t)kind, .flags = (uint8_t)flags };
	size_t start = builder->size;
	bool cut = false;
	va_list values;
	uint64_t u64;
	uint32_t u32;

	append(builder, &event, sizeof event);
	va_start(values, flags);
	for (unsigned i = 0; i < layout->count; i++) {
		if (layout->types[i] == FIELD_U32) {
			u32 = va_arg(values, uint32_t);
			append(builder, &u32, 4);
		} else if (layout->types[i] == FIELD_STR) {
			append_string(builder, va_arg(values, const char *), &cut);
		} else {
			u64 = va_arg(values, uint64_t);
			append(builder, &u64, 8);
		}
	}
	va_end(values);
	append(builder, zeros, -(builder->size - start) & 7);
	if (builder->failed) {
		builder->size = start;
		return;
	}
	event.size = (uint16_t)(builder->size - start);
	if (cut)
		event.flags |= EVENT_FLAG_CUT;
	memcpy(builder->bytes + start, &event, sizeof event);
}
