/* How near two words are, for "did you mean". */
#ifndef INFERSCOPE_BASE_WORDS_H
#define INFERSCOPE_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Edits (insert, delete, replace, swap) between two words, at most 99. */
unsigned words_distance(const char *a, size_t a_length, const char *b, size_t b_length);

/* Whether CANDIDATE may be what NAME is meant to be, and is nearer than *CLOSEST (99: nothing yet), which is set then: it begins with NAME, or few
 * edits for its length make it NAME. */
bool words_nearer(const char *name, size_t length, const char *candidate, unsigned *closest);

#endif
