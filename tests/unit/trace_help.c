#include "tests/unit/trace_help.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct bytes trace_of_text(const char *text, enum trace_codec codec)
{
	struct error err = { ERR_NONE };
	struct trace_writer *writer;
	struct sink *sink;
	struct text out;

	text_init(&out);
	cr_assert_eq(sink_open_text(&out, &sink, &err), 0);
	cr_assert_eq(trace_writer_open(sink, codec, 1700000000123456789u, &writer, &err), 0);
	cr_assert_eq(trace_assemble(text, writer, &err), 0, "%s", err.text);
	cr_assert_eq(sink_bytes(sink), trace_writer_bytes(writer));
	trace_writer_close(writer);
	cr_assert_eq(sink_commit(sink, &err), 0);
	return (struct bytes){ (unsigned char *)out.data, out.length };
}

static void drop_comments(char *text)
{
	char *from = text, *to = text, *end;

	for (; *from; from = end) {
		end = from + strcspn(from, "\n");
		end += *end == '\n';
		if (*from != '#') {
			memmove(to, from, (size_t)(end - from));
			to += end - from;
		}
	}
	*to = '\0';
}

char *text_of_trace(const void *data, size_t size, struct trace_info *info)
{
	struct error err = { ERR_NONE };
	struct trace *trace;
	struct sink *sink;
	struct text out;

	text_init(&out);
	cr_assert_eq(trace_open_memory(data, size, &trace, &err), 0, "%s", err.text);
	cr_assert_eq(sink_open_text(&out, &sink, &err), 0);
	cr_assert_eq(trace_dump(trace, sink, &err), 0, "%s", err.text);
	cr_assert_eq(sink_commit(sink, &err), 0);
	if (info)
		*info = trace_info(trace);
	trace_close(trace);
	drop_comments(out.data);
	return out.data;
}

uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}
