/* Reads str objects by their layout, without the interpreter's help, and writes payload strings. */
#ifndef INFERSCOPE_COLLECTOR_TEXT_H
#define INFERSCOPE_COLLECTOR_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "collector/python.h"

/* Writes STR as UTF-8 of at most SIZE - 1 bytes and a NUL; whole characters only, U+FFFD for lone surrogates
 * and NUL. Returns the length; *cut is set when something was left out. What is not a compact str gives "?". */
size_t text_from_str(const struct python *python, const PyObject *str, char *out, size_t size, bool *cut);
/* What SIZE it wants for STR at most: MOST, or less for a short one. */
size_t text_room(const struct python *python, const PyObject *str, size_t most);
/* The same for a C string, which may be NULL. Bytes that are no UTF-8 come out as ?. */
size_t text_from_c(const char *string, char *out, size_t size, bool *cut);

#endif
