/* Pages of another process, read whole and kept for a moment: Python frames lie side by side, so that one read serves many. */
#ifndef INFERSCOPE_UNWIND_PAGES_H
#define INFERSCOPE_UNWIND_PAGES_H

#include "unwind/pystack.h"

enum { PAGE_COUNT = 64, PAGE_SIZE_BYTES = 4096, PAGES_USED_MAX = 16 };

struct pages {
	struct remote_memory memory;
	uint64_t round; /* pages of earlier rounds are forgotten */
	uint32_t used_count;
	uint64_t used[PAGES_USED_MAX]; /* in this round: numbers of pages, in the order in which they were needed */
	struct {
		uint64_t number, round;
		bool used; /* in this round */
		unsigned char bytes[PAGE_SIZE_BYTES];
	} slots[PAGE_COUNT];
};

void pages_init(struct pages *pages, const struct remote_memory *memory);
/* What is read from here on is read anew. */
void pages_forget(struct pages *pages);
/* Reads pages that will be needed again, COUNT (<= PAGES_USED_MAX) NUMBERS, at one moment and in this order: what cannot be read so is read when it is needed. */
void pages_expect(struct pages *pages, const uint64_t *numbers, uint32_t count);
/* 0 or -1; BUFFER is undefined then. SIZE is at most a page. */
int pages_read(struct pages *pages, uint64_t addr, void *buffer, size_t size);

#endif
