/* What memory.c and allocators.c do for each other; under the GIL. */
#ifndef INFERSCOPE_COLLECTOR_MEMORY_H
#define INFERSCOPE_COLLECTOR_MEMORY_H

#include "collector/collector.h"

/* Domains as PyMemAllocatorDomain has them: 0 raw, which is left alone, 1 mem, 2 object. */
enum { MEMORY_DOMAIN_FIRST = 1 };

/* memory.c. A point fell into this allocation; what may have been sampled is about to be given back. errno is kept. */
void memory_sampled(const void *block, size_t size, uint32_t domain);
void memory_ended(const void *block);

/* allocators.c. Puts our functions around a domain's allocator, unless they are called already; false: there are no more layers. */
bool allocator_put_on(int domain);
/* True when the allocator is what it was before us. */
bool allocator_take_off(int domain);
/* Are our functions called, wherever they stand? From here on each allocation is due, until the caller says how many bytes are left. */
bool allocator_is_called(int domain);
/* What passing on a pair of calls costs here, in picoseconds. */
uint64_t allocator_calibrate(void);

#endif
