/*
 * Where output bytes go: a file (written without a name, or as a temporary file in the same folder where that cannot be had; mode 0600; put in place at the end), a descriptor, or
 * memory. Buffered. The first failure is kept and everything after it does nothing, so that writers need not check each call.
 */
#ifndef INFERSCOPE_BASE_SINK_H
#define INFERSCOPE_BASE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct text;
struct sink;

/* PATH "-" is stdout. An existing file is replaced only when FORCE, or when it begins with one of InferScope's own marks (see
 * sink_is_ours). Nothing appears at PATH before sink_commit(). */
int sink_open_path(const char *path, bool force, struct sink **out, struct error *err);
/* Whether sink_open_path() would succeed. A named pipe is not opened: its reader would take that for the end, or there is none yet. */
int sink_test_path(const char *path, bool force, struct error *err);
/* FD stays the caller's; -1 is not allowed. */
int sink_open_fd(int fd, struct sink **out, struct error *err);
int sink_open_text(struct text *text, struct sink **out, struct error *err);
/* True when the file at PATH begins as a file that InferScope writes, or is empty. */
bool sink_is_ours(const char *path);

void sink_write(struct sink *sink, const void *bytes, size_t length);
void sink_puts(struct sink *sink, const char *string);
void sink_printf(struct sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t sink_bytes(const struct sink *sink); /* written so far */
bool sink_failed(const struct sink *sink);
/* Pushes the buffer out (for files that grow while they are read). */
int sink_flush(struct sink *sink, struct error *err);

/* Makes it final (flush, fsync of files, rename) and frees SINK in any case. EPIPE is no error. */
int sink_commit(struct sink *sink, struct error *err);
/* Gives it up: the temporary file is removed. Accepts NULL. */
void sink_discard(struct sink *sink);

#endif
