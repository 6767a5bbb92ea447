/* One file that a process has mapped, and the ways to its bytes. For modules.c and walk.c's tables alone. */
#ifndef INFERSCOPE_UNWIND_MODULE_FILE_H
#define INFERSCOPE_UNWIND_MODULE_FILE_H

#include "base/mappings.h"
#include "base/procfs.h"
#include "unwind/elf_file.h"
#include "unwind/modules.h"

/* The process whose files these are. */
struct module_owner {
	const struct procfs *procfs;
	pid_t pid;
	int memory;  /* its memory, or -1 */
	char *root;  /* its root folder as we see it, "" when it is ours */
};

/* Shared by all modules that are the same file. */
struct module_file {
	uint32_t users;
	uint32_t device_major, device_minor;
	uint64_t inode;            /* 0: the vdso */
	uint64_t map_start, map_end, map_offset; /* one of its mappings */
	char *shown;               /* its path as maps shows it to us, without " (deleted)" */
	bool is_elf, from_memory;  /* from_memory: the file could not be opened, its headers were read where they are mapped */
	bool deleted;
	struct elf_file elf;
	char why[128];
};

/* ENOMEM etc. with errno: -1. */
int module_owner_open(const struct procfs *procfs, pid_t pid, struct module_owner *out);
void module_owner_close(struct module_owner *owner);
/* 0 or -1. */
int module_owner_read(const struct module_owner *owner, uint64_t addr, void *buffer, size_t size);
/* Where SHOWN is for the process itself. */
const char *module_owner_path(const struct module_owner *owner, const char *shown);

/* Reads the headers of the file that MAPPING shows; HEAD is where its first byte is mapped, or NULL. NULL when memory is short. */
struct module_file *module_file_new(const struct module_owner *owner, const struct mapping *mapping, const struct mapping *head);
/* MAPPING shows it now; an earlier one may be gone. */
void module_file_moved(struct module_file *file, const struct mapping *mapping);
void module_file_release(struct module_file *file);
/* A descriptor, or -1 with errno. */
int module_file_open(const struct module_owner *owner, const struct module_file *file);
/* Does its path still lead to it? */
bool module_file_in_place(const struct module_owner *owner, const struct module_file *file);
bool module_file_is(const struct module_file *file, const struct mapping *mapping);

#endif
