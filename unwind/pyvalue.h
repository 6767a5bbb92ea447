/* An object of the target in a few words, as Python would write it. For the files of unwind/ alone. */
#ifndef INFERSCOPE_UNWIND_PYVALUE_H
#define INFERSCOPE_UNWIND_PYVALUE_H

#include "unwind/pyreader.h"

/* Fills OUT (SIZE >= 128): a number, a cut and escaped str or bytes, the length of a container, else the name of the type. UTF-8. Of a cell it is
 * the content; false for an empty one, a variable without a value. */
bool reader_value(const struct pyreader *reader, uint64_t object, char *out, size_t size);

enum { PYTYPE_NAME_MAX = 64 };
/* The name of the type of the object at ADDR, without its module. -1: there is no object. */
int reader_type_name(const struct pyreader *reader, uint64_t addr, char out[PYTYPE_NAME_MAX]);
/* The value of an int that is not negative and has at most 64 bits; else false. */
bool reader_number(const struct pyreader *reader, uint64_t addr, uint64_t *out);

#endif
