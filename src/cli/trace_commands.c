/* dump-trace and assemble: a trace as text, and back. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sink.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/outputs.h"
#include "trace/dump.h"

int dump_command(struct invocation *invocation, struct error *err)
{
	const char *output = options_text(&invocation->options, OPT_OUTPUT);
	struct trace *trace;
	struct sink *sink;
	struct trace_info info;

	if (output_apart(output, invocation->arguments, 1, err) < 0 || trace_open(invocation->arguments[0], &trace, err) < 0)
		return -1;
	if (sink_open_path(*output ? output : "-", options_flag(&invocation->options, OPT_FORCE), &sink, err) < 0) {
		trace_close(trace);
		return -1;
	}
	if (trace_dump(trace, sink, err) < 0) {
		sink_discard(sink);
		trace_close(trace);
		return -1;
	}
	info = trace_info(trace);
	trace_close(trace);
	if (sink_commit(sink, err) < 0)
		return -1;
	/* A trace that ends in the middle is a shorter whole one: the dump says so, and that is all. */
	if (info.damaged_chunks)
		return fail(err, ERR_TRACE_DAMAGED, "%s: %llu of %llu chunks are damaged%s", invocation->arguments[0], (unsigned long long)info.damaged_chunks,
		            (unsigned long long)(info.chunks + info.damaged_chunks), info.truncated ? ", and it ends in the middle" : "");
	return 0;
}

static int text_read(const char *path, struct text *out, struct error *err)
{
	int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	char buffer[65536];
	ssize_t got = -1;

	if (fd >= 0)
		while ((got = read(fd, buffer, sizeof buffer)) > 0)
			text_add(out, buffer, (size_t)got);
	if (fd > STDIN_FILENO)
		close(fd);
	if (fd < 0 || got < 0)
		return fail(err, file_error_of(errno, ERR_ASSEMBLE), "%s: %s", path, strerror(errno));
	if (out->failed)
		return fail(err, ERR_MEMORY, "reading %s", path);
	if (out->length && memchr(out->data, '\0', out->length))
		return fail(err, ERR_ASSEMBLE, "%s: it is no text", path);
	return 0;
}

int assemble_command(struct invocation *invocation, struct error *err)
{
	const char *output = options_text(&invocation->options, OPT_OUTPUT);
	struct text text;
	struct sink *sink = NULL;
	struct trace_writer *writer = NULL;
	int result = -1;

	text_init(&text);
	if (!*output) {
		fail(err, ERR_USAGE, "assemble needs --output FILE");
		goto out;
	}
	if (output_apart(output, invocation->arguments, 1, err) < 0 || text_read(invocation->arguments[0], &text, err) < 0 || sink_open_path(output, options_flag(&invocation->options, OPT_FORCE), &sink, err) < 0)
		goto out;
	/* A fixed time: the same text gives the same file. */
	if (trace_writer_open(sink, CODEC_DELTA_ZSTD, 0, &writer, err) < 0 || trace_assemble(text_string(&text), writer, err) < 0)
		goto out;
	trace_writer_close(writer);
	writer = NULL;
	result = sink_commit(sink, err);
	sink = NULL;
out:
	trace_writer_close(writer);
	sink_discard(sink);
	text_done(&text);
	return result;
}
