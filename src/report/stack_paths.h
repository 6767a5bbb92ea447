/* Distinct stacks of the call tree, whichever threads had them; of very deep ones the outer frames are cut off. */
#ifndef INFERSCOPE_REPORT_STACK_PATHS_H
#define INFERSCOPE_REPORT_STACK_PATHS_H

#include "report/export.h"
#include "timeline/memory.h"

enum { STACK_PATH_MAX = 128 };

struct stack_path {
	uint32_t cut;   /* 1: there are frames further out, of any kind */
	uint32_t count;
	uint32_t functions[STACK_PATH_MAX]; /* innermost first */
};

/* Why no stack has a number of instructions, of bytes that it allocated and that stayed; NULL: they have. */
const char *stacks_no_instructions(const struct timeline *timeline);
const char *stacks_no_memory(const struct timeline *timeline);

/* The number of NODE's stack in PATHS, from 1 on; UINT32_MAX: no memory. */
uint32_t stack_path_add(struct strings *paths, const struct timeline *timeline, const struct tree_node *node);
/* The same of all stacks of sampled allocations; one may come several times. False: no memory. */
typedef void stack_memory_each(void *context, uint32_t number, uint64_t live_bytes);
bool stack_paths_add_memory(struct strings *paths, const struct timeline *timeline, stack_memory_each *each, void *context);
void stack_path_get(const struct strings *paths, uint32_t number, struct stack_path *out);

#endif
