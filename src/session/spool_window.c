/*
 *   segment │ segment │ … │ segment      all of the last while; each with marks, one a second
 *   keep ────────────────────────────    names and settings again
 *
 * A window: keep up to the mark, whether hooks were on there, the mark's segment from there on, the segments behind it. Taking one copies
 * nothing: files only grow, and those that go are still open.
 */
#include "session/spool_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

enum { COPY_BYTES = 1 << 18, MARKS_MOST = 4096 };

/* The oldest segment is dropped when all of it is older than the window. */
#define SEGMENT_SHARE (SEGMENTS - 2)

struct span { int fd; uint64_t from, to; };

struct spool_window {
	struct span spans[SEGMENTS + 1]; /* the keep file first */
	uint32_t count;
	uint64_t begin_ns, created_unix_ns;
	struct clock_map clock;
	bool hooks_on;
};

/* Events that later ones stand on. Coverage, counts and readings tell of a moment that is over. */
static bool lasts(const struct event *event)
{
	switch (event->kind) {
	case EVENT_CODE: case EVENT_C_FUNCTION: case EVENT_PROCESS: case EVENT_THREAD: case EVENT_MODULE: case EVENT_NATIVE: case EVENT_STACK: case EVENT_CAPTURE: case EVENT_TASK:
	case EVENT_UNHOOKED: case EVENT_GPU_NAME: case EVENT_GPU_DEVICE: case EVENT_GPU_CONTEXT:
		return true;
	case EVENT_THROTTLE:
		return event->ref != 0; /* of a function: how it is seen from then on */
	default:
		return false;
	}
}

int spool_keep_lasting(struct spool *spool, const struct chunk *chunk, struct error *err)
{
	struct chunk kept = *chunk;

	event_builder_clear(&spool->lasting);
	for (struct event_cursor c = event_cursor(chunk->events, chunk->size); event_next(&c);) {
		if (c.event.kind == EVENT_WINDOW_ON || c.event.kind == EVENT_WINDOW_OFF)
			spool->hooks_on = c.event.kind == EVENT_WINDOW_ON;
		if ((c.event.kind == EVENT_THREAD || c.event.kind == EVENT_THREAD_TIME) && !map_put(&spool->seen, c.event.ref, spool->mark_count))
			return fail(err, ERR_MEMORY, "recording");
		if (lasts(&c.event))
			event_builder_append(&spool->lasting, c.payload - sizeof c.event, c.event.size);
	}
	if (spool->lasting.failed)
		return fail(err, ERR_MEMORY, "recording");
	kept.events = spool->lasting.bytes;
	kept.size = spool->lasting.size;
	return kept.size ? trace_writer_add(spool->keep.writer, &kept, err) : 0;
}

void spool_keep_window(struct spool *spool, uint64_t ns)
{
	spool->window_ns = ns;
}

void spool_mark(struct spool *spool, uint64_t at_ns)
{
	struct piece *piece = &spool->segments[spool->count - 1];
	struct spool_mark *mark;

	if (spool->failed)
		return;
	if (piece->marks.count && (at_ns - piece->marks.items[0].at_ns >= spool->window_ns / SEGMENT_SHARE || trace_writer_bytes(piece->writer) > spool->bound_bytes / SEGMENTS))
		spool_turn(spool);
	piece = &spool->segments[spool->count - 1];
	if (!piece->marks.count)
		piece->first_mark = spool->mark_count;
	spool->mark_count++;
	mark = list_add(&piece->marks, MARKS_MOST);
	if (mark) /* without it a window begins at an earlier one */
		*mark = (struct spool_mark){ at_ns, trace_writer_bytes(piece->writer), trace_writer_bytes(spool->keep.writer), spool->hooks_on };
}

/* The last mark at or before SINCE_NS, or the first one there is. */
static const struct spool_mark *mark_find(const struct spool *spool, uint64_t since_ns, uint32_t *segment)
{
	const struct spool_mark *found = NULL;

	for (uint32_t i = 0; i < spool->count; i++) {
		for (size_t j = 0; j < spool->segments[i].marks.count; j++) {
			const struct spool_mark *mark = &spool->segments[i].marks.items[j];

			if (found && mark->at_ns > since_ns)
				return found;
			found = mark;
			*segment = i;
		}
	}
	return found;
}

static int span_add(struct spool_window *window, struct piece *piece, uint64_t from, uint64_t to, struct error *err)
{
	int fd;

	if (sink_flush(piece->sink, err) < 0)
		return -1;
	fd = fcntl(piece->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return fail(err, ERR_OUTPUT, "looking back at the recording: %s", strerror(errno));
	window->spans[window->count++] = (struct span){ fd, from, to };
	return 0;
}

int spool_window_take(struct spool *spool, uint64_t since_ns, struct spool_window **out, struct error *err)
{
	uint32_t first = 0;
	const struct spool_mark *mark = mark_find(spool, since_ns, &first);
	struct spool_window *window;

	if (spool->failed || !mark) {
		if (err && spool->failed)
			*err = spool->failure;
		return spool->failed ? -1 : fail(err, ERR_OUTPUT, "nothing is recorded yet");
	}
	window = calloc(1, sizeof *window);
	if (!window)
		return fail(err, ERR_MEMORY, "looking back at the recording");
	window->begin_ns = mark->at_ns;
	window->created_unix_ns = spool->created_unix_ns;
	window->clock = spool->clock;
	window->hooks_on = mark->hooks_on;
	if (span_add(window, &spool->keep, 0, mark->keep_bytes, err) < 0)
		goto failed;
	for (uint32_t i = first; i < spool->count; i++)
		if (span_add(window, &spool->segments[i], i == first ? mark->bytes : HEADER_BYTES, trace_writer_bytes(spool->segments[i].writer), err) < 0)
			goto failed;
	*out = window;
	return 0;
failed:
	spool_window_free(window);
	return -1;
}

uint64_t spool_window_begin(const struct spool_window *window)
{
	return window->begin_ns;
}

/* Hooks that were on all the time said so before the window began. */
static int hooks_write(const struct spool_window *window, struct sink *sink, struct error *err)
{
	struct event_builder events;
	struct chunk chunk = { .lane_kind = LANE_SESSION, .clock = window->clock };
	struct trace_writer *writer = NULL;
	struct sink *memory = NULL;
	struct text text;
	int result = -1;

	text_init(&text);
	event_builder_init(&events);
	event_add(&events, clock_to_ticks(&window->clock, window->begin_ns), EVENT_WINDOW_ON, 0, 0, (uint32_t)WINDOW_ARM);
	chunk.events = events.bytes;
	chunk.size = events.size;
	if (!events.failed && sink_open_text(&text, &memory, err) == 0 && trace_writer_open(memory, CODEC_DELTA_ZSTD, window->created_unix_ns, &writer, err) == 0 &&
	    trace_writer_add(writer, &chunk, err) == 0)
		result = sink_flush(memory, err);
	if (result == 0)
		sink_write(sink, text.data + HEADER_BYTES, text.length - HEADER_BYTES);
	else if (events.failed)
		fail(err, ERR_MEMORY, "writing the trace");
	trace_writer_close(writer);
	sink_discard(memory);
	event_builder_done(&events);
	text_done(&text);
	return result;
}

int spool_window_write(const struct spool_window *window, struct sink *sink, struct error *err)
{
	char *buffer = malloc(COPY_BYTES);
	int result = -1;

	if (!buffer)
		return fail(err, ERR_MEMORY, "writing the trace");
	for (uint32_t i = 0; i < window->count; i++) {
		const struct span *span = &window->spans[i];

		if (spool_copy(span->fd, span->from, span->to, sink, buffer, COPY_BYTES, err) < 0 || (i == 0 && window->hooks_on && hooks_write(window, sink, err) < 0))
			goto out;
	}
	result = 0;
out:
	free(buffer);
	return result;
}

void spool_window_free(struct spool_window *window)
{
	if (!window)
		return;
	for (uint32_t i = 0; i < window->count; i++)
		close(window->spans[i].fd);
	free(window);
}
