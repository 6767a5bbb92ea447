/* Traces in memory for tests: from text, and back to it. */
#ifndef INFERSCOPE_TESTS_TRACE_HELP_H
#define INFERSCOPE_TESTS_TRACE_HELP_H

#include "base/text.h"
#include "trace/dump.h"

struct bytes {
	unsigned char *data;
	size_t size;
};

/* The file that TEXT makes; ends the test when it cannot be assembled. */
struct bytes trace_of_text(const char *text, enum trace_codec codec);
/* The dump of a file without its comment lines; free() it. */
char *text_of_trace(const void *data, size_t size, struct trace_info *info);
uint64_t next_random(uint64_t *state);

#endif
