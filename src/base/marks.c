/* How a file that InferScope writes begins: only such a file may be replaced without being asked. A new format brings a row. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sink.h"

static const struct mark {
	const char *bytes;
	size_t length, offset;
} marks[] = {
#define MARK(offset, bytes) { bytes, sizeof(bytes) - 1, offset }
	MARK(0, "INFSCOPE"),                                /* .iscope */
	MARK(0, "# InferScope report"),                     /* md */
	MARK(0, "<!DOCTYPE html><!-- InferScope"),          /* html */
	MARK(0, "<!DOCTYPE html>\n<!-- InferScope"),
	MARK(0, "{\"schema\":\"inferscope."),               /* json, events */
	MARK(0, "{\"schema\": \"inferscope."),
	MARK(0, "{\n\t\"schema\":\t\"inferscope."),         /* as cJSON prints */
	MARK(0, "{\n  \"schema\": \"inferscope."),
	MARK(0, "InferScope"),                              /* text */
	MARK(0, "# inferscope trace dump"),                 /* dump-trace */
	MARK(0, "\x0a\x16\x50\x01\x68\x01\x62\x10\x12\x0e\x08\x01\x12\x0aInferScope"), /* perfetto */
	MARK(0, "{\"exporter\":\"inferscope@"),             /* speedscope */
	MARK(0, "\x1f\x8b\x08\x10\0\0\0\0\0\x03InferScope"), /* pprof, otlp: the gzip comment */
	MARK(0, "Time (%),Total Time (ns),Self Time (ns),CPU Time (ns),"), /* csv */
	MARK(0, "Samples,Calls,Self Time (ns),CPU Time (ns),Instructions,"), /* stacks */
#undef MARK
};

bool sink_is_ours(const char *path)
{
	char head[256];
	struct stat status;
	size_t length = 0, i;
	bool readable = false;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		readable = true;
		while (length < sizeof head && (got = read(fd, head + length, sizeof head - length)) != 0) {
			if (got < 0 && errno == EINTR)
				continue;
			if (got < 0) {
				readable = false;
				break;
			}
			length += (size_t)got;
		}
	}
	close(fd);
	if (!readable)
		return false;
	if (length == 0)
		return true;
	for (i = 0; i < sizeof marks / sizeof *marks; i++)
		if (length >= marks[i].offset + marks[i].length && memcmp(head + marks[i].offset, marks[i].bytes, marks[i].length) == 0)
			return true;
	return false;
}
