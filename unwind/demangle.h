/* C++ and Rust names as people write them. The mangled name comes from a file that nobody vouches for: length and depth are bounded. */
#ifndef INFERSCOPE_UNWIND_DEMANGLE_H
#define INFERSCOPE_UNWIND_DEMANGLE_H

#include <stddef.h>

enum { DEMANGLED_MAX = 4096 };

/* NAME in words for OUT, cut with "..." when it is longer; a name that is not mangled comes as it is. Always NUL-terminated; returns the length. */
size_t demangle(const char *name, char out[DEMANGLED_MAX]);

#endif
