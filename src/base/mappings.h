/* The mappings of one process at one moment, as /proc/PID/maps lists them. Sorted by address, never changes after it was read. */
#ifndef INFERSCOPE_BASE_MAPPINGS_H
#define INFERSCOPE_BASE_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/procfs.h"

struct mapping {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	uint64_t inode;
	uint32_t device_major, device_minor;
	bool readable, writable, executable, shared;
	const char *path; /* "" for anonymous memory; as the reader of maps sees it, perhaps with " (deleted)" */
};

struct maps {
	struct mapping *list;
	size_t count;
	char *text; /* the paths lie here */
};

/* 0, or -1 with errno (ENOMEM, ESRCH when it has no memory any more, EACCES…). */
int maps_read(const struct procfs *procfs, pid_t pid, struct maps *out);
/* From text like that of /proc/PID/maps; lines that cannot be understood are skipped. 0, or -1 with ENOMEM. */
int maps_parse(const char *text, size_t length, struct maps *out);
void maps_done(struct maps *maps);

/* Of one and the same file. */
bool mapping_same_file(const struct mapping *a, const struct mapping *b);
const struct mapping *maps_find(const struct maps *maps, uint64_t addr);
/* A gap of SIZE bytes with room on both sides, chosen by SEED, away from the heap and the stack; 0 = none. */
uint64_t maps_gap(const struct maps *maps, uint64_t size, uint64_t seed);
/* Nothing is mapped in [start, start + size). */
bool maps_free(const struct maps *maps, uint64_t start, uint64_t size);

#endif
