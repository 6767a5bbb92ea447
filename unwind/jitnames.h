/*
 * Names of generated code: perf maps ("/tmp/perf-PID.map": start, size, name in hex and text) and JIT dumps (perf's jitdump format, which has lines,
 * too). Both grow while the process runs: what was added is read when an address is not found. A later entry replaces those that it overlaps.
 */
#ifndef INFERSCOPE_UNWIND_JITNAMES_H
#define INFERSCOPE_UNWIND_JITNAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"

enum { JIT_ENTRIES_MAX = 4 << 20, JIT_LINES_MAX = 8 << 20, JIT_NAME_MAX = 1024, JIT_NAMES_BYTES_MAX = 256 << 20 };

struct jit_entry {
	uint64_t start;
	uint32_t size, name;   /* name: in strings */
	uint32_t order;        /* later ones win */
};

struct jit_line {
	uint64_t addr;
	uint32_t file, line, order;
};

/* All-zero but NAMES is empty. */
struct jitnames {
	struct strings *names;
	LIST(struct jit_entry) entries;
	LIST(struct jit_line) lines;
	struct map moving;     /* start of code from a dump: its name */
	size_t name_bytes;
	uint32_t order;
	bool sorted;
	uint64_t rejected;     /* rows and records that could not be understood, or had no room */
};

void jitnames_done(struct jitnames *names);
/* Take whole rows or records from BYTES and return how many bytes they were; what is incomplete is left for when there is more. */
size_t jitnames_add_map(struct jitnames *names, const char *bytes, size_t size);
/* BYTES begin at a record; jitdump_header() tells where the first one lies. A record that is larger than BYTES and 1 MiB is passed over: the result
 * may be more than SIZE. */
uint64_t jitnames_add_dump(struct jitnames *names, const unsigned char *bytes, size_t size);
/* The length of the header at BYTES, 0 when it is none of this machine. */
size_t jitdump_header(const unsigned char *bytes, size_t size);
/* Name, file and line ("" and 0 when unknown) of the code at ADDR; false when nothing is known. */
bool jitnames_find(struct jitnames *names, uint64_t addr, const char **name, const char **file, uint32_t *line);

#endif
