/* Small text files of the kernel, as /sys has them, below a folder that plays it in a test. */
#ifndef INFERSCOPE_BASE_SMALLFILE_H
#define INFERSCOPE_BASE_SMALLFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The beginning of the file at PATH, at most SIZE-1 bytes, NUL-terminated. False: not there, not permitted, or empty. */
bool smallfile_read(const char *path, char *out, size_t size);
/* The number that the file begins with; FALLBACK when it begins with none ("max"), or cannot be read. */
int64_t smallfile_number(const char *path, int64_t fallback);
/* The number after "KEY " at the beginning of a line of TEXT; FALLBACK when there is none. */
int64_t smallfile_field(const char *text, const char *key, int64_t fallback);

#endif
