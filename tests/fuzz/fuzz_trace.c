/* Any bytes as a trace file: read twice, every field touched, dumped, and what was dumped assembled again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "trace/dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each payload field by each way of reading it: none may reach outside the event. */
static unsigned touch(const struct event_cursor *cursor)
{
	unsigned sum = 0;
	const char *string;
	unsigned field;
	size_t length, i;

	for (field = 0; field < 17; field++) {
		sum += (unsigned)event_u64(cursor, field);
		string = event_str(cursor, field, &length);
		for (i = 0; i < length; i++)
			sum += (unsigned char)string[i];
	}
	return sum;
}

static void read_all(struct trace *trace)
{
	volatile unsigned sum = 0; /* else the compiler leaves the reading out */
	struct event_cursor cursor;
	struct error err;
	struct chunk chunk;

	while (trace_next(trace, &chunk, &err) > 0) {
		cursor = event_cursor(chunk.events, chunk.size);
		while (event_next(&cursor))
			sum = sum + touch(&cursor);
		if (cursor.damaged)
			abort(); /* the reader promised well-formed events */
	}
}

static char *dump_of(struct trace *trace)
{
	struct error err;
	struct sink *sink;
	struct text text;

	text_init(&text);
	if (sink_open_text(&text, &sink, &err) < 0)
		abort();
	trace_dump(trace, sink, &err);
	sink_commit(sink, &err);
	return text.data;
}

static char *without_comments(char *text)
{
	char *line = strstr(text, "\nchunk");

	return line ? line : text + strlen(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *first, *second, *end;
	struct trace *trace;
	struct error err;
	size_t again_size;
	void *again;

	if (trace_open_memory(data, size, &trace, &err) < 0)
		return 0;
	read_all(trace);
	if (trace_rewind(trace, &err) < 0)
		abort();
	first = dump_of(trace);
	trace_close(trace);
	if (trace_assemble_memory(first, &again, &again_size, &err) < 0)
		abort(); /* what we print we can read */
	if (trace_open_memory(again, again_size, &trace, &err) < 0)
		abort();
	second = dump_of(trace);
	/* Damage is told in comments at the end of the first one only. */
	end = strstr(first, "\n# damaged");
	if (end)
		end[1] = '\0';
	end = strstr(first, "\n# truncated");
	if (end)
		end[1] = '\0';
	if (strcmp(without_comments(first), without_comments(second)) != 0)
		abort();
	trace_close(trace);
	free(again);
	free(first);
	free(second);
	return 0;
}
