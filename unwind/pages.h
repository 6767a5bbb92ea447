/* Pages of another process, read whole and kept for a moment: Python frames lie side by side, so that one read serves many. */
#ifndef INFERSCOPE_UNWIND_PAGES_H
#define INFERSCOPE_UNWIND_PAGES_H

#include "unwind/pystack.h"

enum { PAGE_COUNT = 64, PAGE_SIZE_BYTES = 4096 };

struct pages {
	struct remote_memory memory;
	uint64_t round; /* pages of earlier rounds are forgotten */
	struct {
		uint64_t number, round;
		unsigned char bytes[PAGE_SIZE_BYTES];
	} slots[PAGE_COUNT];
};

void pages_init(struct pages *pages, const struct remote_memory *memory);
/* What is read from here on is read anew. */
void pages_forget(struct pages *pages);
/* 0 or -1; BUFFER is undefined then. SIZE is at most a page. */
int pages_read(struct pages *pages, uint64_t addr, void *buffer, size_t size);

#endif
