/*
 * Calls as they end, in the order in which Chrome's readers nest: of two that began in the same ns the caller comes first, although it ends last. So what began with its caller
 * waits for it; everything else goes out at once, and what waits is bounded by the depth of the stack.
 */
#ifndef INFERSCOPE_REPORT_NESTING_H
#define INFERSCOPE_REPORT_NESTING_H

#include <stdbool.h>

#include "timeline/timeline.h"

struct nested_call { uint64_t start_ns, end_ns; uint32_t function, thread, lane, depth, order /* nesting's own */; uint8_t kind; bool open_start, open_end, exception; };

struct nesting;
/* PUT gets each call once. NULL when out of memory. */
struct nesting *nesting_new(void (*put)(void *context, const struct nested_call *call), void *context);
void nesting_free(struct nesting *nesting);
/* A call of its lane begins, ends, as timeline_walk() tells it. False when out of memory. */
bool nesting_begin(struct nesting *nesting, const struct interval *call);
bool nesting_end(struct nesting *nesting, const struct interval *call);

#endif
