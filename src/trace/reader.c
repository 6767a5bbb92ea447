/* Chunk after chunk, over damage: after a bad chunk the next magic with a good check sum goes on. */
#include "trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/codec.h"
#include "trace/format.h"
#include "trace/source.h"
#include "trace/writer.h"

struct trace {
	struct source source;
	struct codec *codec;
	char *name;
	struct trace_info info;
	/* The damaged run of bytes we are in, if any. */
	bool in_damage, cut;
	bool whole; /* read to its end once, without damage, or just written by ourselves: check sums are not looked at again */
	uint64_t run_bytes, run_bytes_before_cut, run_chunks;
	/* Work spent on check sums that failed, against what was read: a crafted file must not cost hours. */
	uint64_t wasted_bytes, read_bytes;
};

enum outcome { GOT, END, DAMAGED, CUT };

static int read_failure(const struct trace *trace, struct error *err)
{
	errno = trace->source.failed;
	return fail(err, file_error_of(errno, ERR_TRACE_OPEN), "cannot read %s: %s", trace->name, strerror(errno));
}

static int read_file_head(struct trace *trace, struct error *err)
{
	size_t length = source_need(&trace->source, FILE_HEAD_BYTES);
	struct file_head head;

	if (trace->source.failed)
		return read_failure(trace, err);
	if (length == 0)
		return fail(err, ERR_TRACE_FOREIGN, "%s is empty", trace->name);
	if (length < 8 || memcmp(source_at(&trace->source), FILE_MAGIC, 8) != 0)
		return fail(err, ERR_TRACE_FOREIGN, "%s is not an InferScope trace", trace->name);
	if (length < FILE_HEAD_BYTES)
		return fail(err, ERR_TRACE_DAMAGED, "%s ends after %zu bytes, before its first chunk", trace->name, length);
	trace->info = (struct trace_info){ .version = TRACE_VERSION };
	if (!file_head_read(source_at(&trace->source), &head)) {
		trace->info.damaged_bytes = FILE_HEAD_BYTES; /* the chunks may still be whole */
	} else if (head.version > TRACE_VERSION || (head.must_know & ~FEATURES_KNOWN)) {
		return fail(err, ERR_TRACE_VERSION, "%s has version %u and features 0x%llx; this is version %d", trace->name, head.version,
			    (unsigned long long)head.must_know, TRACE_VERSION);
	} else {
		trace->info.version = head.version;
		trace->info.created_unix_ns = head.created_unix_ns;
	}
	source_skip(&trace->source, FILE_HEAD_BYTES);
	return 0;
}

static int finish_open(struct trace *trace, const char *name, struct trace **out, struct error *err)
{
	int result = -1;

	trace->name = strdup(name);
	trace->codec = codec_new();
	if (!trace->name || !trace->codec)
		fail(err, ERR_MEMORY, "opening %s", name);
	else
		result = read_file_head(trace, err);
	if (result < 0)
		trace_close(trace);
	else
		*out = trace;
	return result;
}

int trace_open_as(const char *path, const char *name, struct trace **out, struct error *err)
{
	bool standard_in = strcmp(path, "-") == 0;
	struct trace *trace = calloc(1, sizeof *trace);
	int fd;

	if (!trace)
		return fail(err, ERR_MEMORY, "opening %s", name);
	fd = standard_in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		free(trace);
		return fail(err, file_error_of(errno, ERR_TRACE_OPEN), "cannot read %s: %s", name, strerror(errno));
	}
	source_open_fd(&trace->source, fd, !standard_in);
	return finish_open(trace, name, out, err);
}

int trace_open(const char *path, struct trace **out, struct error *err)
{
	return trace_open_as(path, strcmp(path, "-") == 0 ? "stdin" : path, out, err);
}

int trace_open_memory(const void *bytes, size_t size, struct trace **out, struct error *err)
{
	struct trace *trace = calloc(1, sizeof *trace);

	if (!trace)
		return fail(err, ERR_MEMORY, "opening a trace");
	source_open_memory(&trace->source, bytes, size);
	return finish_open(trace, "the trace", out, err);
}

int trace_open_mapping(void *bytes, size_t size, struct trace **out, struct error *err)
{
	struct trace *trace = calloc(1, sizeof *trace);

	if (!trace) {
		munmap(bytes, size);
		return fail(err, ERR_MEMORY, "opening a trace");
	}
	source_open_mapping(&trace->source, bytes, size);
	trace->whole = true;
	return finish_open(trace, "the trace", out, err);
}

/* The events of a chunk whose bytes lie in the window, or NULL. */
static const void *unpack(struct trace *trace, const struct chunk_store *store, const unsigned char *payload)
{
	uint32_t count;

	if (!trace->whole && !crc_is(payload, store->stored_bytes, store->payload_crc))
		return NULL;
	if (store->codec == CODEC_DELTA_ZSTD)
		return codec_unpack(trace->codec, payload, store->stored_bytes, store->raw_bytes, store->event_count);
	if (store->codec != CODEC_RAW || store->raw_bytes != store->stored_bytes)
		return NULL;
	return trace->whole || (events_count(payload, store->raw_bytes, &count) && count == store->event_count) ? payload : NULL;
}

/* Reads the chunk that begins where the source stands. Of a damaged one nothing is skipped yet. */
static enum outcome read_chunk(struct trace *trace, struct chunk *out, size_t *trusted_length)
{
	struct source *source = &trace->source;
	struct chunk_store store;
	size_t length = source_need(source, CHUNK_HEAD_MIN), head_bytes;
	struct chunk chunk;
	const void *events;

	*trusted_length = 0;
	if (length == 0)
		return END;
	if (memcmp(source_at(source), CHUNK_MAGIC, length < 4 ? length : 4) != 0)
		return DAMAGED;
	if (length < CHUNK_HEAD_MIN)
		return CUT;
	head_bytes = chunk_head_length(source_at(source));
	if (head_bytes == 0)
		return DAMAGED;
	if (source_need(source, head_bytes) < head_bytes)
		return CUT;
	if (!chunk_head_read(source_at(source), &chunk, &store))
		return DAMAGED;
	*trusted_length = head_bytes + store.stored_bytes;
	if (source_need(source, *trusted_length) < *trusted_length)
		return CUT;
	events = unpack(trace, &store, source_at(source) + head_bytes);
	if (!events) {
		if (codec_failed(trace->codec))
			source->failed = ENOMEM;
		trace->wasted_bytes += *trusted_length + store.raw_bytes;
		return DAMAGED;
	}
	chunk.events = events;
	chunk.size = store.raw_bytes;
	*out = chunk;
	return GOT;
}

static void skip(struct trace *trace, size_t length)
{
	source_skip(&trace->source, length);
	trace->read_bytes += length;
}

/* To the next place where a chunk may begin, at least one byte on. */
static void skip_damage(struct trace *trace, size_t trusted_length)
{
	struct source *source = &trace->source;
	const unsigned char *at, *hit;
	size_t length, skipped = 1;

	/* Bytes may be missing within the chunk, so that the next one begins early: look for it. But not for ever. */
	if (trusted_length && trace->wasted_bytes > 4 * trace->read_bytes + (256u << 20))
		skipped = trusted_length;
	for (;;) {
		length = source_need(source, skipped);
		if (skipped > length)
			skipped = length;
		skip(trace, skipped);
		trace->run_bytes += skipped;
		length = source_need(source, 4);
		at = source_at(source);
		if (length < 4 || memcmp(at, CHUNK_MAGIC, 4) == 0)
			break;
		hit = memchr(at + 1, CHUNK_MAGIC[0] & 0xff, length - 1);
		skipped = hit ? (size_t)(hit - at) : length;
	}
	/* Fewer than four bytes: the beginning of a magic is a cut chunk, anything else is damage. */
	while (length && length < 4 && memcmp(source_at(source), CHUNK_MAGIC, length) != 0) {
		skip(trace, 1);
		trace->run_bytes++;
		length--;
	}
}

static void enter_damage(struct trace *trace, enum outcome outcome, bool head_was_good)
{
	if (!trace->in_damage) {
		trace->in_damage = true;
		trace->cut = false;
		trace->run_bytes = trace->run_chunks = 0;
	}
	if (outcome == CUT && !trace->cut) {
		trace->cut = true;
		trace->run_bytes_before_cut = trace->run_bytes;
	} else if (outcome == DAMAGED && head_was_good) {
		trace->run_chunks++;
	}
}

static void leave_damage(struct trace *trace, bool at_end)
{
	uint64_t bytes = trace->run_bytes;

	if (!trace->in_damage)
		return;
	trace->in_damage = false;
	if (at_end && trace->cut) {
		trace->info.truncated = true;
		bytes = trace->run_bytes_before_cut;
	}
	if (bytes)
		trace->info.damaged_chunks += trace->run_chunks ? trace->run_chunks : 1;
	trace->info.damaged_bytes += bytes;
}

int trace_next(struct trace *trace, struct chunk *out, struct error *err)
{
	enum outcome outcome;
	size_t length;

	for (;;) {
		outcome = read_chunk(trace, out, &length);
		if (trace->source.failed)
			return read_failure(trace, err);
		if (outcome == GOT || outcome == END)
			break;
		enter_damage(trace, outcome, length != 0);
		skip_damage(trace, outcome == DAMAGED ? length : 0);
	}
	leave_damage(trace, outcome == END);
	if (outcome == END) {
		trace->whole |= !trace->info.damaged_bytes && !trace->info.truncated;
		return 0;
	}
	skip(trace, length);
	trace->info.chunks++;
	return 1;
}

int trace_rewind(struct trace *trace, struct error *err)
{
	if (source_rewind(&trace->source) < 0)
		return fail(err, ERR_TRACE_OPEN, "cannot read %s twice: it is a pipe", trace->name);
	trace->in_damage = trace->cut = false;
	trace->wasted_bytes = trace->read_bytes = 0;
	return read_file_head(trace, err);
}

struct trace_info trace_info(const struct trace *trace)
{
	return trace->info;
}

void trace_close(struct trace *trace)
{
	if (!trace)
		return;
	source_close(&trace->source);
	codec_free(trace->codec);
	free(trace->name);
	free(trace);
}
