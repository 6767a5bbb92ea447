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
/* A temporary file beside it, for the caller to close. -1 on failure. */
int spool_temporary(const struct spool *spool, struct error *err);
void spool_close(struct spool *spool);

#endif
