/* Where functions begin and end, named or not: from a file's call-frame table (.eh_frame_hdr and .eh_frame), which even stripped files have. */
#ifndef INFERSCOPE_UNWIND_FUNCTIONS_H
#define INFERSCOPE_UNWIND_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

struct function_extent {
	uint64_t start; /* virtual address in the file */
	uint32_t size;
};

/* Sorted by start. Plain data. */
struct functions {
	struct function_extent *extents;
	size_t count;
};

/* An absent or damaged table gives no functions, or those before the damage; -1 is out of memory alone. FD is the file that ELF was opened on. */
int functions_load(Elf *elf, int fd, struct functions *out);
void functions_done(struct functions *functions);
/* The function that ADDR lies in, NULL when none is known. */
const struct function_extent *functions_find(const struct functions *functions, uint64_t addr);
/* The stretch [*START, *END) between two functions that ADDR lies in: code that its author wrote in assembler and gave no table. False where there is none before or behind it. */
bool functions_between(const struct functions *functions, uint64_t addr, uint64_t *start, uint64_t *end);

#endif
