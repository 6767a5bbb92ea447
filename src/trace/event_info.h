/* The rows of event.def as a table, and their payload fields one by one. */
#ifndef INFERSCOPE_TRACE_EVENT_INFO_H
#define INFERSCOPE_TRACE_EVENT_INFO_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
