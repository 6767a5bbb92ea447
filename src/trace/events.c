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

struct event_cursor event_cursor(const void *events, size_t size)
{
	return (struct event_cursor){ .at = events, .end = (const unsigned char *)events + size };
}

bool event_next(struct event_cursor *cursor)
{
	size_t left = (size_t)(cursor->end - cursor->at);

	if (left == 0 || cursor->damaged)
		return false;
	if (left < sizeof cursor->event) {
		cursor->damaged = true;
		return false;
	}
	memcpy(&cursor->event, cursor->at, sizeof cursor->event);
	if (cursor->event.size < sizeof cursor->event || cursor->event.size % 8 || cursor->event.size > left) {
		cursor->damaged = true;
		return false;
	}
	cursor->payload = cursor->at + sizeof cursor->event;
	cursor->at += cursor->event.size;
	return true;
}

/* Where field number FIELD begins, its *type, and the bytes *left from there on; NULL when the payload ends before it. */
static const unsigned char *find_field(const struct event_cursor *cursor, unsigned field, enum field_type *type, size_t *left)
{
	static const unsigned char widths[] = { [FIELD_U32] = 4, [FIELD_U64] = 8, [FIELD_I64] = 8, [FIELD_STR] = 2 };
	const struct event_info *info = event_info(cursor->event.kind);
	const unsigned char *at = cursor->payload, *end = at + cursor->event.size - sizeof(struct event);
	const char *rest = info ? info->fields : "";
	struct event_field row;
	uint16_t length;
	size_t width;

	while (event_field_next(&rest, &row)) {
		width = widths[row.type];
		if ((size_t)(end - at) < width)
			return NULL;
		if (row.type == FIELD_STR) {
			memcpy(&length, at, 2);
			width += length;
			if ((size_t)(end - at) < width)
				return NULL;
		}
		if (field-- == 0) {
			*type = row.type;
			*left = (size_t)(end - at);
			return at;
		}
		at += width;
	}
	return NULL;
}

uint64_t event_u64(const struct event_cursor *cursor, unsigned field)
{
	enum field_type type;
	size_t left;
	const unsigned char *at = find_field(cursor, field, &type, &left);
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
	size_t left;
	const unsigned char *at = find_field(cursor, field, &type, &left);
	uint16_t bytes;

	*length = 0;
	if (!at || type != FIELD_STR)
		return "";
	memcpy(&bytes, at, 2);
	*length = bytes;
	return (const char *)at + 2;
}
