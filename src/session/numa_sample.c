/* move_pages() without nodes to move to only looks pages up: some microseconds for each batch, in which the process can still map memory, but for the instant (Linux 2.6.18 and later). */
#include "session/numa.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mappings.h"

enum { BATCHES = 32, BATCH = 64, PAGE = 4096 };

/* Where data are, and nobody else's: what is only reserved cannot be read, and files and memory that is shared lie where others put them. */
static bool counts(const struct mapping *mapping)
{
	return mapping->readable && mapping->writable && !mapping->shared && !mapping->inode;
}

static uint64_t data_bytes(const struct maps *maps)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < maps->count; i++)
		bytes += counts(&maps->list[i]) ? maps->list[i].end - maps->list[i].start : 0;
	return bytes;
}

static uint64_t data_at(const struct maps *maps, uint64_t at)
{
	for (size_t i = 0; i < maps->count; i++) {
		uint64_t bytes = counts(&maps->list[i]) ? maps->list[i].end - maps->list[i].start : 0;

		if (at < bytes)
			return (maps->list[i].start + at) & ~(uint64_t)(PAGE - 1);
		at -= bytes;
	}
	return 0;
}

bool numa_pages_sample(const struct procfs *procfs, pid_t pid, struct numa_pages *out)
{
	uint64_t random = (uint64_t)pid, bytes, seen = 0;
	struct maps maps;

	memset(out, 0, sizeof *out);
	if (maps_read(procfs, pid, &maps) < 0)
		return false;
	bytes = data_bytes(&maps);
	for (int i = 0; i < BATCHES && bytes; i++) {
		int nodes[BATCH];
		void *pages[BATCH];

		for (int j = 0; j < BATCH; j++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			pages[j] = (void *)(uintptr_t)data_at(&maps, (random >> 11) % bytes);
		}
		if (syscall(SYS_move_pages, pid, (unsigned long)BATCH, pages, NULL, nodes, 0) < 0)
			break;
		for (int j = 0; j < BATCH; j++)
			if (nodes[j] >= 0 && nodes[j] < NUMA_NODES) { /* negative: no page is there */
				out->of[nodes[j]]++;
				seen++;
			}
	}
	maps_done(&maps);
	return seen > 0;
}
