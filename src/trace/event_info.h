/* The rows of event.def as a table, and their payload fields one by one. */
#ifndef INFERSCOPE_TRACE_EVENT_INFO_H
#define INFERSCOPE_TRACE_EVENT_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/event.h"

struct event_info {
	const char *name;   /* "enter" */
	const char *ref;    /* what ref means: "code" */
	const char *fields; /* "u64 address, str name" */
	const char *about;
};
/* NULL for an unknown kind. */
const struct event_info *event_info(unsigned kind);
/* The kind of NAME (LENGTH bytes), or -1. */
int event_kind_of(const char *name, size_t length);

enum field_type { FIELD_U32, FIELD_U64, FIELD_I64, FIELD_STR };
struct event_field {
	enum field_type type;
	const char *name; /* not NUL-terminated */
	size_t name_length;
};
/* `for (const char *rest = info->fields; event_field_next(&rest, &field); )` */
bool event_field_next(const char **rest, struct event_field *out);

/* The same of a kind, read beforehand: the payload is walked for each event. */
enum { EVENT_FIELDS_MAX = 16 };
struct event_layout {
	uint8_t count;  /* of fields */
	uint8_t placed; /* so many have fixed offsets: those up to the first string */
	uint8_t types[EVENT_FIELDS_MAX]; /* enum field_type */
	uint8_t offsets[EVENT_FIELDS_MAX];
};
const struct event_layout *event_layout(enum event_kind kind);

#endif
