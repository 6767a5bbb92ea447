/* What services that collect profiles want to be sent: one row of a table each. */
#ifndef INFERSCOPE_CLI_SHIP_BODY_H
#define INFERSCOPE_CLI_SHIP_BODY_H

#include <stdint.h>

#include "base/text.h"

enum { SHIP_HEADERS = 4 };

struct ship_profile {
	const char *name, *host; /* the program's; that of the machine. Letters, digits and . _ - / */
	uint64_t from_unix_ns, until_unix_ns;
	int pid;
};

struct ship_request { struct text url, body; const char *headers[SHIP_HEADERS]; /* constants; NULL at the end */ };

struct ship_kind {
	const char *name;              /* "pyroscope" */
	const char *format, *extension; /* of the report that it takes */
	const char *headers[SHIP_HEADERS];
	void (*make)(const char *base, const struct ship_profile *profile, const struct text *file, struct ship_request *out);
};

const struct ship_kind *ship_kind_find(const char *name, size_t length); /* or NULL */
/* FILE: a report of the kind's format. False when out of memory. *OUT is ship_request_done()'s to free in any case. */
bool ship_request_make(const struct ship_kind *kind, const char *base, const struct ship_profile *profile, const struct text *file, struct ship_request *out);
void ship_request_done(struct ship_request *request);

#endif
