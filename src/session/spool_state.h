/* The inside of a spool, shared by its parts: spool.c keeps everything up to a bound, spool_window.c the last while, spool_keep.c rewrites what must outlive it. */
#ifndef INFERSCOPE_SESSION_SPOOL_STATE_H
#define INFERSCOPE_SESSION_SPOOL_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "session/spool.h"

enum { SEGMENTS = 8, HEADER_BYTES = 64 };

/* A place where a window may begin. */
struct spool_mark {
	uint64_t at_ns;          /* CLOCK_MONOTONIC; what is behind it came later */
	uint64_t bytes;          /* of its segment before it */
	uint64_t keep_bytes;     /* of the keep file before it */
	bool hooks_on;
};

struct piece {
	int fd;
	struct sink *sink;
	struct trace_writer *writer;
	uint64_t events;    /* of lanes that may be dropped */
	uint64_t keep_mark; /* bytes of the keep file when this segment ended */
	LIST(struct spool_mark) marks; /* of a window's segments: the first one where it begins */
	uint32_t first_mark; /* its number */
};

struct spool {
	char *folder;
	uint64_t bound_bytes, created_unix_ns;
	struct piece keep;
	struct piece segments[SEGMENTS]; /* oldest first */
	uint32_t count;
	uint64_t dropped_events, dropped_mark;
	bool failed;
	struct error failure;
	/* Of a window: */
	uint64_t window_ns;           /* 0 = everything is kept, up to the bound */
	bool hooks_on;                /* as the latest event says */
	struct clock_map clock;       /* of the latest chunk */
	struct event_builder lasting; /* room to sort out what must be kept */
	uint32_t mark_count;          /* so far */
	uint64_t kept_bytes;          /* of the keep file when it was rewritten last, less what came after the oldest mark */
	struct map seen, seen_before; /* threads, and the number of marks when they were seen last; before: of those seen up to the last time the keep file was rewritten */
};

int spool_piece_open(const struct spool *spool, struct piece *out, struct error *err);
void spool_piece_close(struct piece *piece);

/* Ends the newest segment and begins another; the oldest makes room. */
void spool_turn(struct spool *spool);
/* Bytes FROM to TO of FD, through BUFFER of COPY bytes. */
int spool_copy(int fd, uint64_t from, uint64_t to, struct sink *sink, char *buffer, size_t copy, struct error *err);
/* spool_window.c: adds to the keep file what a window needs of CHUNK, however old it is. */
int spool_keep_lasting(struct spool *spool, const struct chunk *chunk, struct error *err);
/* spool_keep.c: drops from the keep file what was said again, and threads that had ended, before the oldest mark; when it has grown enough for that. */
int spool_keep_rewrite(struct spool *spool, struct error *err);

#endif
