/* Walking events and their payloads, by event.def. All bounds are checked here: the bytes may come from a hostile target or file. */
#include <string.h>

#include "trace/event_info.h"
#include "trace/reader.h"

static const struct event_info infos[256] = {
#define EVENT(number, id, name, ref, fields, about) [number] = { name, ref, fields, about },
#include "abi/event.def"
#undef EVENT
};

const struct event_info *event_info(unsigned kind)
{
	return kind < 256 && infos[kind].name ? &infos[kind] : NULL;
}

int event_kind_of(const char *name, size_t length)
{
	int kind;

	for (kind = 0; kind < 256; kind++)
		if (infos[kind].name && strlen(infos[kind].name) == length && memcmp(infos[kind].name, name, length) == 0)
			return kind;
	return -1;
}

bool event_field_next(const char **rest, struct event_field *out)
{
	const char *at = *rest, *end;

	if (!*at)
		return false;
	switch (at[0]) {
	case 's':
		out->type = FIELD_STR;
		break;
	case 'i':
		out->type = FIELD_I64;
		break;
	default:
		out->type = at[1] == '3' ? FIELD_U32 : FIELD_U64;
	}
	out->name = at + 4; /* "u32 ", "u64 ", "i64 ", "str " */
	end = strchr(out->name, ',');
	out->name_length = end ? (size_t)(end - out->name) : strlen(out->name);
	*rest = end ? end + 2 : out->name + out->name_length;
	return true;
}

/* The rows' texts, read once: before main() begins; constant from then on. */
static struct event_layout layouts[256];

__attribute__((constructor)) static void read_rows(void)
{
	for (unsigned kind = 0; kind < 256; kind++) {
		struct event_layout *layout = &layouts[kind];
		const char *rest = infos[kind].name ? infos[kind].fields : "";
		unsigned offset = 0;
		bool placed = true;

		for (struct event_field field; layout->count < EVENT_FIELDS_MAX && event_field_next(&rest, &field); layout->count++) {
			layout->types[layout->count] = (uint8_t)field.type;
			layout->offsets[layout->count] = (uint8_t)offset;
			layout->placed += placed;
			offset += field.type == FIELD_U32 ? 4 : 8;
			placed &= field.type != FIELD_STR;
		}
	}
}

const struct event_layout *event_layout(enum event_kind kind)
{
	return &layouts[kind & 255];
}

struct event_cursor event_cursor(const void *events, size_t size)
{
	return (struct event_cursor){ .at = events, .end = (const unsigned char *)events + size };
}

/* Bytes of a field of TYPE at AT, 0 when it does not end before END. */
static size_t field_width(enum field_type type, const unsigned char *at, const unsigned char *end)
{
	static const unsigned char widths[] = { [FIELD_U32] = 4, [FIELD_U64] = 8, [FIELD_I64] = 8, [FIELD_STR] = 2 };
	size_t width = widths[type], left = (size_t)(end - at);
	uint16_t length;

	if (type == FIELD_STR && left >= width) {
		memcpy(&length, at, 2);
		width += length;
	}
	return left >= width ? width : 0;
}

/* Where field number FIELD begins, and its *type; NULL when the payload ends before it does. */
static const unsigned char *find_field(const struct event_cursor *cursor, unsigned field, enum field_type *type)
{
	const struct event_layout *layout = &layouts[cursor->event.kind];
	const unsigned char *at = cursor->payload, *end = at + cursor->event.size - sizeof(struct event);
	unsigned from = field < layout->placed ? field : layout->placed - 1u;
	size_t width;

	if (field >= layout->count || layout->offsets[from] > end - at)
		return NULL;
	at += layout->offsets[from];
	for (; from < field; from++, at += width) {
		width = field_width((enum field_type)layout->types[from], at, end);
		if (!width)
			return NULL;
	}
	*type = (enum field_type)layout->types[field];
	return field_width(*type, at, end) ? at : NULL;
}

uint64_t event_u64(const struct event_cursor *cursor, unsigned field)
{
	enum field_type type;
	const unsigned char *at = find_field(cursor, field, &type);
	uint64_t value = 0;

	if (at && type != FIELD_STR)
		memcpy(&value, at, type == FIELD_U32 ? 4 : 8);
	return value;
}

uint32_t event_u32(const struct event_cursor *cursor, unsigned field)
{
	return (uint32_t)event_u64(cursor, field);
}

int64_t event_i64(const struct event_cursor *cursor, unsigned field)
{
	return (int64_t)event_u64(cursor, field);
}

const char *event_str(const struct event_cursor *cursor, unsigned field, size_t *length)
{
	enum field_type type;
	const unsigned char *at = find_field(cursor, field, &type);
	uint16_t bytes;

	*length = 0;
	if (!at || type != FIELD_STR)
		return "";
	memcpy(&bytes, at, 2);
	*length = bytes;
	return (const char *)at + 2;
}
