/* How near two words are, for "did you mean". */
#ifndef INFERSCOPE_BASE_WORDS_H
#define INFERSCOPE_BASE_WORDS_H

#include <stddef.h>

/* Edits (insert, delete, replace, swap) between two words, at most 99. */
unsigned words_distance(const char *a, size_t a_length, const char *b, size_t b_length);

#endif
