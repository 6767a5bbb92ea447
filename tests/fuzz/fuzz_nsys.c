/* Any bytes as a database of Nsight Systems: refused with a reason, or a trace of ours that is whole. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "import/nsys.h"
#include "trace/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* SQLite opens nothing but a name. */
static void write_database(const char *path, const uint8_t *data, size_t size)
{
	FILE *file = fopen(path, "wb");

	if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
		abort();
}

static void check(int fd)
{
	char path[64];
	struct trace *trace;
	struct chunk chunk;
	struct error err;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (trace_open(path, &trace, &err) < 0)
		abort();
	while (trace_next(trace, &chunk, &err) > 0)
		;
	if (trace_info(trace).damaged_bytes || trace_info(trace).truncated)
		abort();
	trace_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[] = "/dev/shm/inferscope-fuzz-XXXXXX";
	int made = mkstemp(path), fd = memfd_create("trace", MFD_CLOEXEC);
	struct error err;

	if (made < 0 || fd < 0)
		abort();
	write_database(path, data, size);
	if (nsys_convert(path, fd, &err) == 0)
		check(fd);
	else if (err.code != ERR_TRACE_FOREIGN && err.code != ERR_TRACE_OPEN)
		abort();
	close(fd);
	close(made);
	unlink(path);
	return 0;
}
