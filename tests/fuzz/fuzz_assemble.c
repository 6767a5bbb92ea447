/* Any text as a dump: refused with line and column, or a trace that reads whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trace/dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct trace *trace;
	struct chunk chunk;
	struct error err;
	void *bytes;
	size_t length;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	if (trace_assemble_memory(text, &bytes, &length, &err) < 0) {
		if (err.code != ERR_ASSEMBLE || strncmp(err.text, "line ", 5) != 0)
			abort();
	} else {
		if (trace_open_memory(bytes, length, &trace, &err) < 0)
			abort();
		while (trace_next(trace, &chunk, &err) > 0)
			;
		if (trace_info(trace).damaged_bytes || trace_info(trace).truncated)
			abort();
		trace_close(trace);
		free(bytes);
	}
	free(text);
	return 0;
}
