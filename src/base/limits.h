/* What this process may use: setrlimit(2). */
#ifndef INFERSCOPE_BASE_LIMITS_H
#define INFERSCOPE_BASE_LIMITS_H

#include <sys/resource.h>

#include "base/error.h"

enum { DESCRIPTORS_CHECK_MAX = 64 };

/* The soft limit becomes the hard one, as far as that is permitted. */
void limit_raise(__rlimit_resource_t which);
/* Can LEAST (at most DESCRIPTORS_CHECK_MAX) more files be opened? Raises the limit; as many are opened, and closed again. ERR_DESCRIPTORS, ERR_MEMORY. */
int descriptors_check(int least, struct error *err);

#endif
