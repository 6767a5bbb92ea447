/* An object of the target in a few words, as Python would write it. For the files of unwind/ alone. */
#ifndef INFERSCOPE_UNWIND_PYVALUE_H
#define INFERSCOPE_UNWIND_PYVALUE_H

#include "unwind/pyreader.h"

/* Fills OUT (SIZE >= 128): a number, a cut and escaped str or bytes, the length of a container, else the name of the type. UTF-8. Of a cell it is
 * the content; false for an empty one, a variable without a value. */
bool reader_value(const struct pyreader *reader, uint64_t object, char *out, size_t size);

#endif
