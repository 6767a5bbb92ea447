/*
 * The trace while it is being recorded: unlinked temporary files, one after another, so that nothing is left behind whatever
 * ends us, and so that the oldest can go when a bound is reached. Names, readings and settings (META and SESSION lanes) are kept
 * apart as well and survive their file. spool_finish() puts the pieces together, in order.
 */
#ifndef INFERSCOPE_SESSION_SPOOL_H
#define INFERSCOPE_SESSION_SPOOL_H

#include "base/sink.h"
#include "trace/writer.h"

struct spool;

/* FOLDER gets the temporary files. BOUND_BYTES 0 = none. */
int spool_open(const char *folder, uint64_t bound_bytes, uint64_t created_unix_ns, struct spool **out, struct error *err);
/* The first failure is kept and returned by spool_finish(); recording goes on without. */
void spool_add(struct spool *spool, const struct chunk *chunk, uint64_t event_count);
uint64_t spool_bytes(const struct spool *spool);
uint64_t spool_dropped_events(const struct spool *spool);
bool spool_failed(const struct spool *spool);
/* Writes the whole trace to SINK, which stays the caller's. */
int spool_finish(struct spool *spool, struct sink *sink, struct error *err);

/*
 * A flight recorder keeps the last while: of a spool that was opened with a bound, from now on what came in the last NS or some more (less where the bound is
 * reached first), and of what is older only names and settings.
 */
void spool_keep_window(struct spool *spool, uint64_t ns);
/* A window may begin here. AT_NS: CLOCK_MONOTONIC; to be called again and again, every second or so. */
void spool_mark(struct spool *spool, uint64_t at_ns);
/* What there is since the last mark at or before SINCE_NS, as it is now: stays readable whatever becomes of the spool. For another thread, too. */
struct spool_window;
int spool_window_take(struct spool *spool, uint64_t since_ns, struct spool_window **out, struct error *err);
uint64_t spool_window_begin(const struct spool_window *window); /* CLOCK_MONOTONIC */
/* A whole trace. SINK stays the caller's. */
int spool_window_write(const struct spool_window *window, struct sink *sink, struct error *err);
void spool_window_free(struct spool_window *window); /* accepts NULL */

/* A temporary file beside it, for the caller to close. -1 on failure. */
int spool_temporary(const struct spool *spool, struct error *err);
void spool_close(struct spool *spool);

#endif
