/*
 *   segment 0 │ segment 1 │ … │ segment 7     every chunk, each a valid trace; the oldest goes at the bound
 *   keep ─────────────────────────────────    META and SESSION chunks again, up to the bound, with a mark where each segment ended
 *
 * Finished: keep up to the mark of the last dropped segment, then the segments that are left.
 */
#include "session/spool_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 20 };

static int temporary_open(const char *folder, struct error *err)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[4096];

	if (fd >= 0)
		return fd;
	/* Not every file system has O_TMPFILE (overlayfs before Linux 6.x, NFS). */
	if (snprintf(path, sizeof path, "%s/.inferscope-XXXXXX", folder) >= (int)sizeof path)
		return fail(err, ERR_OUTPUT, "%s: the path is too long", folder);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return fail(err, file_error_of(errno, ERR_OUTPUT), "%s: no temporary file: %s", folder, strerror(errno));
	unlink(path);
	return fd;
}

int spool_piece_open(const struct spool *spool, struct piece *out, struct error *err)
{
	struct piece piece = { .fd = temporary_open(spool->folder, err) };

	if (piece.fd < 0)
		return -1;
	if (sink_open_fd(piece.fd, &piece.sink, err) < 0) {
		close(piece.fd);
		return -1;
	}
	if (trace_writer_open(piece.sink, CODEC_DELTA_ZSTD, spool->created_unix_ns, &piece.writer, err) < 0) {
		sink_discard(piece.sink);
		close(piece.fd);
		return -1;
	}
	*out = piece;
	return 0;
}

void spool_piece_close(struct piece *piece)
{
	if (!piece->sink)
		return;
	trace_writer_close(piece->writer);
	sink_discard(piece->sink);
	close(piece->fd);
	list_done(&piece->marks);
	memset(piece, 0, sizeof *piece);
}

static void spool_fail(struct spool *spool, const struct error *err)
{
	if (!spool->failed)
		spool->failure = *err;
	spool->failed = true;
}

int spool_open(const char *folder, uint64_t bound_bytes, uint64_t created_unix_ns, struct spool **out, struct error *err)
{
	struct spool *spool = calloc(1, sizeof *spool);

	if (!spool || !(spool->folder = strdup(folder))) {
		spool_close(spool);
		return fail(err, ERR_MEMORY, "recording");
	}
	spool->bound_bytes = bound_bytes;
	spool->created_unix_ns = created_unix_ns;
	if (spool_piece_open(spool, &spool->segments[0], err) < 0 || (bound_bytes && spool_piece_open(spool, &spool->keep, err) < 0)) {
		spool->count = spool->segments[0].sink != NULL;
		spool_close(spool);
		return -1;
	}
	spool->count = 1;
	*out = spool;
	return 0;
}

void spool_turn(struct spool *spool)
{
	struct piece next;
	struct error err = { 0 };

	if (spool_piece_open(spool, &next, &err) < 0) {
		spool_fail(spool, &err);
		return;
	}
	spool->segments[spool->count - 1].keep_mark = trace_writer_bytes(spool->keep.writer);
	if (spool->count == SEGMENTS) {
		spool->dropped_events += spool->window_ns ? 0 : spool->segments[0].events; /* of a window nobody misses what is older */
		spool->dropped_mark = spool->segments[0].keep_mark;
		spool_piece_close(&spool->segments[0]);
		memmove(spool->segments, spool->segments + 1, (SEGMENTS - 1) * sizeof *spool->segments);
		spool->count--;
	}
	spool->segments[spool->count++] = next;
	if (spool->window_ns && spool_keep_rewrite(spool, &err) < 0)
		spool_fail(spool, &err);
}

void spool_add(struct spool *spool, const struct chunk *chunk, uint64_t event_count)
{
	struct piece *piece = &spool->segments[spool->count - 1];
	/* A program that tells names without end (they are its own to write) has no more room than others: what is told beyond it goes with its segment. */
	bool kept = (chunk->lane_kind == LANE_META || chunk->lane_kind == LANE_SESSION) && !(spool->bound_bytes && trace_writer_bytes(spool->keep.writer) > spool->bound_bytes);
	struct error err = { 0 };

	if (spool->failed)
		return;
	spool->clock = chunk->clock;
	if (trace_writer_add(piece->writer, chunk, &err) < 0 || sink_failed(piece->sink))
		goto failed;
	piece->events += kept ? 0 : event_count;
	if (!spool->bound_bytes)
		return;
	if (kept && ((spool->window_ns ? spool_keep_lasting(spool, chunk, &err) : trace_writer_add(spool->keep.writer, chunk, &err)) < 0 || sink_failed(spool->keep.sink)))
		goto failed;
	if (!spool->window_ns && trace_writer_bytes(piece->writer) > spool->bound_bytes / SEGMENTS)
		spool_turn(spool); /* a window's segments end at marks */
	return;
failed:
	if (!err.code)
		sink_flush(piece->sink, &err);
	if (!err.code)
		fail(&err, ERR_OUTPUT, "%s: the trace could not be written", spool->folder);
	spool_fail(spool, &err);
}

uint64_t spool_bytes(const struct spool *spool)
{
	uint64_t bytes = spool->dropped_mark;

	for (uint32_t i = 0; i < spool->count; i++)
		bytes += trace_writer_bytes(spool->segments[i].writer);
	return bytes;
}

uint64_t spool_dropped_events(const struct spool *spool)
{
	return spool->dropped_events;
}

bool spool_failed(const struct spool *spool)
{
	return spool->failed;
}

int spool_copy(int fd, uint64_t from, uint64_t to, struct sink *sink, char *buffer, size_t copy, struct error *err)
{
	while (from < to) {
		size_t want = to - from < copy ? (size_t)(to - from) : copy;
		ssize_t got = pread(fd, buffer, want, (off_t)from);

		if (got <= 0)
			return fail(err, ERR_OUTPUT, "reading the recording back: %s", got < 0 ? strerror(errno) : "it is shorter than what was written");
		sink_write(sink, buffer, (size_t)got);
		from += (uint64_t)got;
	}
	return 0;
}

static int piece_copy(struct piece *piece, uint64_t from, uint64_t to, struct sink *sink, char *buffer, struct error *err)
{
	return sink_flush(piece->sink, err) < 0 ? -1 : spool_copy(piece->fd, from, to, sink, buffer, COPY_BYTES, err);
}

int spool_finish(struct spool *spool, struct sink *sink, struct error *err)
{
	char *buffer;
	int result = -1;
	uint64_t from = 0;

	if (spool->failed) {
		if (err)
			*err = spool->failure;
		return -1;
	}
	buffer = malloc(COPY_BYTES);
	if (!buffer)
		return fail(err, ERR_MEMORY, "writing the trace");
	if (spool->dropped_mark) {
		if (piece_copy(&spool->keep, 0, spool->dropped_mark, sink, buffer, err) < 0)
			goto out;
		from = HEADER_BYTES;
	}
	for (uint32_t i = 0; i < spool->count; i++, from = HEADER_BYTES)
		if (piece_copy(&spool->segments[i], from, trace_writer_bytes(spool->segments[i].writer), sink, buffer, err) < 0)
			goto out;
	result = 0;
out:
	free(buffer);
	return result;
}

int spool_temporary(const struct spool *spool, struct error *err)
{
	return temporary_open(spool->folder, err);
}

void spool_close(struct spool *spool)
{
	if (!spool)
		return;
	for (uint32_t i = 0; i < spool->count; i++)
		spool_piece_close(&spool->segments[i]);
	spool_piece_close(&spool->keep);
	event_builder_done(&spool->lasting);
	map_done(&spool->seen);
	map_done(&spool->seen_before);
	free(spool->folder);
	free(spool);
}
