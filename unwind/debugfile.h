/*
 * Separate debug files: by build id, by .gnu_debuglink, in the process's own root and in ours, and from debuginfod servers when that was asked for.
 * A file is taken only when its build id (or check sum) is that of the mapped one. Without debuginfod no network is ever touched.
 */
#ifndef INFERSCOPE_UNWIND_DEBUGFILE_H
#define INFERSCOPE_UNWIND_DEBUGFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <gelf.h>

enum { DEBUGFILE_PATH_MAX = 1024, BUILD_ID_HEX_MAX = 129 };

struct debuginfod;

/* Where to look. Descriptors are folders that play "/"; -1 = none. */
struct debug_places {
	int process_root, own_root;
	const char *folder;              /* "/usr/lib/debug" */
	struct debuginfod *debuginfod;   /* NULL: not asked for */
};

/* Opens PATH inside ROOT as a process with that root would see it, whatever links say; plain files only. A descriptor or -1. */
int debugfile_open_in(int root, const char *path);
/* The debug file of MAIN (opened on MAIN_FD, mapped from PATH). A descriptor, with where it was in FOUND; -1: none, or none that fits. */
int debugfile_find(const struct debug_places *places, Elf *main, int main_fd, const char *path, char found[DEBUGFILE_PATH_MAX]);
/* The file that several debug files share (dwz), by its build id, else by the NAME that the debug file at FOUND gives. */
int debugfile_find_shared(const struct debug_places *places, const char *found, const char *name, const char *id_hex);
/* The symbols packed into MAIN itself (.gnu_debugdata): an ELF file of *SIZE bytes, the caller's to free; NULL when there is none. */
unsigned char *debugfile_unpack(Elf *main, size_t *size);

/* One connection to the servers of DEBUGINFOD_URLS; NULL when it is not set or libdebuginfod is not installed (WHY tells). No answer within TIMEOUT_S
 * ends its use. */
struct debuginfod *debuginfod_open(uint32_t timeout_s, char *why, size_t why_size);
void debuginfod_close(struct debuginfod *debuginfod);
/* A descriptor of the debug file with that build id, or -1. */
int debuginfod_fetch(struct debuginfod *debuginfod, const char *id_hex);

#endif
