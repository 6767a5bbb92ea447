/*
 * What DWARF tells of an address: the function, those inlined there, file and line. Read on demand, one compilation unit after the other. Bounds on
 * sizes and on steps keep a damaged or huge file from costing more than it is worth; then symbol tables name what is left.
 */
#ifndef INFERSCOPE_UNWIND_DEBUGINFO_H
#define INFERSCOPE_UNWIND_DEBUGINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

enum {
	DEBUGINFO_READ_MAX = 512 << 20,      /* bytes of debug sections as they lie in the file, in one file */
	DEBUGINFO_UNPACKED_MAX = 256 << 20,  /* those that must be unpacked */
	DEBUGINFO_FRAMES_MAX = 16,
};

struct debuginfo_frame {
	const char *name;   /* maybe mangled; NULL when it has none */
	bool linkage;       /* NAME is the linker's */
	const char *file;   /* NULL when unknown */
	const char *folder; /* of a relative FILE; NULL when unknown */
	uint32_t line;
	bool inlined;
};

struct debuginfo;

enum debuginfo_state { DEBUGINFO_NONE, DEBUGINFO_GOOD, DEBUGINFO_TOO_LARGE, DEBUGINFO_DAMAGED };

/* Has ELF debug information of its own, within the bounds? Nothing is read but headers. */
enum debuginfo_state debuginfo_look(Elf *elf, uint64_t *bytes);
/* Takes ELF over, whose file may be closed afterwards. NULL: out of memory or damaged, and ELF is ended. */
struct debuginfo *debuginfo_open(Elf *elf);
/* The file with the parts that several debug files share (dwz), taken over. */
void debuginfo_set_shared(struct debuginfo *debuginfo, Elf *elf);
void debuginfo_close(struct debuginfo *debuginfo);
/* Name and build id of such a shared file; false when none is needed. ID belongs to DEBUGINFO. */
bool debuginfo_needs_shared(struct debuginfo *debuginfo, const char **name, const void **id, size_t *id_size);
/* Innermost first; the last one is the function that the code belongs to. 0 when nothing is known. Strings live as long as DEBUGINFO.
 * *START is where that function begins, 0 when only the line is known. */
size_t debuginfo_find(struct debuginfo *debuginfo, uint64_t addr, struct debuginfo_frame out[DEBUGINFO_FRAMES_MAX], uint64_t *start);
/* Some of it was left aside, because a bound was reached. */
bool debuginfo_limited(const struct debuginfo *debuginfo);

#endif
