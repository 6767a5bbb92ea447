/* POSIX extended regular expressions that a stranger wrote: nothing that takes more than linear room or polynomial time. */
#ifndef INFERSCOPE_ANALYZE_PATTERN_H
#define INFERSCOPE_ANALYZE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

enum { PATTERN_BYTES_MAX = 256 };

struct pattern;
/* NULL with *why (static, or in ROOM) when it is no pattern, or one that is refused: too long, back-references, large repetitions. With *why NULL: out of memory. */
struct pattern *pattern_new(const char *text, const char **why, char *room, size_t room_size);
void pattern_free(struct pattern *pattern);
/* Somewhere in TEXT, of which the first kilobyte counts. */
bool pattern_matches(const struct pattern *pattern, const char *text);
/* Chains of patterns, for owners of many. */
void pattern_link(struct pattern *pattern, const struct pattern *next);
const struct pattern *pattern_next(const struct pattern *pattern);

#endif
