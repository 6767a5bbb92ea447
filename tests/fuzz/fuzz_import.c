/* Any bytes as a foreign document, gzipped ones too: refused with a reason, or a trace of ours that is whole. */
#include <stdint.h>
#include <stdlib.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace *trace;
	struct chunk chunk;
	struct error err;

	if (import_open_memory(data, size, &trace, &err) < 0) {
		if (err.code != ERR_TRACE_FOREIGN)
			abort();
		return 0;
	}
	while (trace_next(trace, &chunk, &err) > 0)
		;
	if (trace_info(trace).damaged_bytes || trace_info(trace).truncated)
		abort();
	trace_close(trace);
	return 0;
}
