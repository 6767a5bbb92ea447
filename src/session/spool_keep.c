/*
 * The keep file of a window, rewritten, so that a flight recorder may run for weeks. Functions, stacks and modules are told once, by numbers that may be meant
 * again at any time, and stay (their tables have an end: code.h, stacks.c). What is told again and again, threads that ended, and tasks would grow for ever.
 */
#include "session/spool_state.h"
#include "session/tasks.h"

#include <sys/mman.h>

enum { COPY_BYTES = 1 << 18, SLACK_BYTES = 1 << 16, SEEN_SLACK = 3 /* marks: a thread's last calls may be read a while after it was seen last */ };

struct rewriting {
	struct spool *spool;
	struct trace *trace;     /* the part before the oldest mark */
	struct map last;         /* of a subject: which event tells of it last */
	uint32_t oldest_mark, last_task;
};

static bool told_again(enum event_kind kind)
{
	return kind == EVENT_THREAD || kind == EVENT_UNHOOKED || kind == EVENT_THROTTLE || kind == EVENT_CAPTURE || kind == EVENT_PROCESS;
}

/* What the event tells of: later ones of the same subject stand for it. */
static uint64_t subject_of(const struct event_cursor *c)
{
	uint64_t subject = mix64((uint64_t)c->event.kind << 32 | c->event.ref);
	size_t length = 0;
	const char *key = c->event.kind == EVENT_CAPTURE ? event_str(c, 0, &length) : NULL;

	for (size_t i = 0; i < length; i++)
		subject = mix64(subject ^ (unsigned char)key[i]);
	return subject;
}

static int subjects_read(struct rewriting *rewriting, struct error *err)
{
	struct chunk chunk;
	uint32_t number = 0;
	int more;

	while ((more = trace_next(rewriting->trace, &chunk, err)) > 0)
		for (struct event_cursor c = event_cursor(chunk.events, chunk.size); event_next(&c); number++) {
			if (c.event.kind == EVENT_TASK && c.event.ref > rewriting->last_task)
				rewriting->last_task = c.event.ref;
			if (told_again((enum event_kind)c.event.kind) && !map_put(&rewriting->last, subject_of(&c), number))
				return fail(err, ERR_MEMORY, "recording");
		}
	return more < 0 ? -1 : trace_rewind(rewriting->trace, err);
}

static bool thread_ended(const struct rewriting *rewriting, uint32_t tid)
{
	uint32_t seen = map_get(&rewriting->spool->seen, tid), before = map_get(&rewriting->spool->seen_before, tid);

	seen = seen == MAP_ABSENT ? before : seen;
	return seen == MAP_ABSENT || seen + SEEN_SLACK < rewriting->oldest_mark;
}

static bool is_needed(const struct rewriting *rewriting, const struct event_cursor *c, uint32_t number)
{
	if (c->event.kind == EVENT_TASK)
		return rewriting->last_task - c->event.ref <= 2 * TASKS_KEPT;
	if (!told_again((enum event_kind)c->event.kind))
		return true;
	if ((c->event.kind == EVENT_THREAD || c->event.kind == EVENT_UNHOOKED) && thread_ended(rewriting, c->event.ref))
		return false;
	return map_get(&rewriting->last, subject_of(c)) == number;
}

static int needed_write(struct rewriting *rewriting, struct piece *out, struct error *err)
{
	struct event_builder *needed = &rewriting->spool->lasting;
	struct chunk chunk;
	uint32_t number = 0;
	int more;

	while ((more = trace_next(rewriting->trace, &chunk, err)) > 0) {
		event_builder_clear(needed);
		for (struct event_cursor c = event_cursor(chunk.events, chunk.size); event_next(&c); number++)
			if (is_needed(rewriting, &c, number))
				event_builder_append(needed, c.payload - sizeof c.event, c.event.size);
		if (needed->failed)
			return fail(err, ERR_MEMORY, "recording");
		chunk.events = needed->bytes;
		chunk.size = needed->size;
		if (chunk.size && trace_writer_add(out->writer, &chunk, err) < 0)
			return -1;
	}
	return more;
}

/* Everything from the oldest mark on, byte by byte, so that marks only move. */
static int rest_copy(struct spool *spool, uint64_t from, struct piece *out, struct error *err)
{
	uint64_t to = trace_writer_bytes(spool->keep.writer);
	char *buffer = malloc(COPY_BYTES);
	int result;

	if (!buffer)
		return fail(err, ERR_MEMORY, "recording");
	result = spool_copy(spool->keep.fd, from, to, out->sink, buffer, COPY_BYTES, err);
	free(buffer);
	if (result == 0)
		trace_writer_count(out->writer, to - from);
	return result < 0 ? -1 : sink_flush(out->sink, err);
}

static void marks_move(struct spool *spool, uint64_t nearer)
{
	for (uint32_t i = 0; i < spool->count; i++) {
		struct piece *segment = &spool->segments[i];

		segment->keep_mark = segment->keep_mark > nearer ? segment->keep_mark - nearer : 0;
		for (size_t j = 0; j < segment->marks.count; j++)
			segment->marks.items[j].keep_bytes -= nearer;
	}
	spool->dropped_mark = spool->dropped_mark > nearer ? spool->dropped_mark - nearer : 0;
}

static int rewrite(struct rewriting *rewriting, uint64_t old_bytes, struct error *err)
{
	struct spool *spool = rewriting->spool;
	struct piece next;

	if (subjects_read(rewriting, err) < 0 || spool_piece_open(spool, &next, err) < 0)
		return -1;
	if (needed_write(rewriting, &next, err) < 0) {
		spool_piece_close(&next);
		return -1;
	}
	spool->kept_bytes = trace_writer_bytes(next.writer);
	if (rest_copy(spool, old_bytes, &next, err) < 0) {
		spool_piece_close(&next);
		return -1;
	}
	marks_move(spool, old_bytes - spool->kept_bytes);
	spool_piece_close(&spool->keep); /* windows that were taken have it open */
	spool->keep = next;
	map_done(&spool->seen_before);
	spool->seen_before = spool->seen;
	spool->seen = (struct map){ 0 };
	return 0;
}

int spool_keep_rewrite(struct spool *spool, struct error *err)
{
	const struct piece *oldest = &spool->segments[0];
	struct rewriting rewriting = { .spool = spool, .oldest_mark = oldest->first_mark };
	uint64_t old_bytes = oldest->marks.count ? oldest->marks.items[0].keep_bytes : 0;
	void *bytes;
	int result;

	if (old_bytes < 2 * spool->kept_bytes + SLACK_BYTES)
		return 0;
	if (sink_flush(spool->keep.sink, err) < 0)
		return -1;
	bytes = mmap(NULL, old_bytes, PROT_READ, MAP_PRIVATE, spool->keep.fd, 0);
	if (bytes == MAP_FAILED)
		return fail(err, ERR_MEMORY, "recording");
	result = trace_open_mapping(bytes, old_bytes, &rewriting.trace, err) < 0 ? -1 : rewrite(&rewriting, old_bytes, err);
	trace_close(rewriting.trace);
	map_done(&rewriting.last);
	return result;
}
