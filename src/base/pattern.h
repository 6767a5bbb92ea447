/* Regular expressions that a stranger wrote, over text that another one wrote: nothing grows beyond bounds, and steps are counted. */
#ifndef INFERSCOPE_BASE_PATTERN_H
#define INFERSCOPE_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PATTERN_BYTES_MAX = 256 };

struct pattern;
/*
 * PCRE2's regular expressions, over bytes; "." takes newlines too, and "$" stands for the very end. NULL with *why (static, or in ROOM) when it is no
 * pattern, or too long. With *why NULL: out of memory. What it allocates is pattern_free()'s.
 */
struct pattern *pattern_new(const char *text, const char **why, char *room, size_t room_size);
void pattern_free(struct pattern *pattern);
/*
 * Somewhere in TEXT of LENGTH bytes. A step is one part of a pattern tried at one place, in time linear in LENGTH at worst; *STEPS, those that are left,
 * goes down. At 0 (which it becomes, too, when memory does not suffice) nothing fits. One thread at a time.
 */
bool pattern_matches(const struct pattern *pattern, const char *text, size_t length, uint64_t *steps);
/* Chains of patterns, for owners of many. */
void pattern_link(struct pattern *pattern, const struct pattern *next);
const struct pattern *pattern_next(const struct pattern *pattern);

#endif
