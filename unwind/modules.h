/*
 * Which file is mapped where in another process, and how to open that very file: deleted ones, replaced ones, and those of another
 * mount namespace included. Reads /proc and ELF headers only; nothing is stopped.
 */
#ifndef INFERSCOPE_UNWIND_MODULES_H
#define INFERSCOPE_UNWIND_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/procfs.h"

enum { MODULE_BUILD_ID_MAX = 64, MODULE_PATH_MAX = 512 };

enum module_kind {
	MODULE_FILE,    /* an ELF file */
	MODULE_VDSO,
	MODULE_JIT,     /* memory of no file, executable: no unwind tables, names only by perf map or JIT dump */
	MODULE_OTHER,   /* executable, but no ELF file that could be read: `why` */
};

struct elf_file; /* unwind/elf_file.h */

/* One mapped ELF file (all its segments together), or one executable range of another kind. */
struct module {
	uint32_t id;              /* counts up from 1; the same file at the same place keeps it for as long as modules live */
	enum module_kind kind;
	uint64_t start, end;      /* addresses in the process */
	uint64_t bias;            /* address in the process - virtual address in the file */
	const struct elf_file *elf;   /* its headers; NULL for JIT and OTHER */
	char path[MODULE_PATH_MAX];   /* as the process sees it, without " (deleted)"; "[vdso]"; "" or a name in brackets for JIT */
	char build_id[MODULE_BUILD_ID_MAX * 2 + 1]; /* hex; "" when it has none */
	bool deleted;             /* the path names no file, or another one, by now */
	char why[128];            /* why it could not be read; "" when it could */
};

struct modules;

/* PROCFS and its root must outlive the result. ERR_EXITED, ERR_PERMISSION, ERR_MEMORY, ERR_DESCRIPTORS. */
int modules_open(const struct procfs *procfs, pid_t pid, struct modules **out, struct error *err);
void modules_close(struct modules *modules);
/* Reads the map anew; modules that went are kept (an address in an older sample may be theirs) until their place is taken.
 * 0: all as it was; 1: something came or went (walker_forget()); -1: the process is gone, or memory is short: all as it was. */
int modules_refresh(struct modules *modules);
/* The module that ADDR lies in, NULL when none. Valid until the next refresh. */
const struct module *modules_find(const struct modules *modules, uint64_t addr);
size_t modules_count(const struct modules *modules);
const struct module *modules_at(const struct modules *modules, size_t index); /* by address */
/* Opens the file itself for reading: by /proc/PID/map_files, by the process's root, or by our own view when the inode is the same.
 * A descriptor that the caller closes, or -1 with errno; the vdso comes as a memfd copy. */
int modules_file(const struct modules *modules, const struct module *module);

#endif
