/* One ELF object as it lies mapped in another process: its exported symbols and the unused end of its code pages. Reads memory
 * only, never a file, so that namespaces, chroots and replaced files make no difference. Everything read is bounds-checked. */
#ifndef INFERSCOPE_INJECT_REMOTE_ELF_H
#define INFERSCOPE_INJECT_REMOTE_ELF_H

#include "inject/inject.h"

struct remote_elf {
	pid_t pid;
	remote_addr base;      /* of the ELF header */
	remote_addr bias;      /* what the loader added to its addresses */
	remote_addr code_start, code_end; /* the executable segment: first and one past the last byte that the file defines */
	remote_addr symbols, strings, gnu_hash, old_hash;
	uint64_t strings_size;
};

/* Reads the headers at BASE. 0, or -1 when there is no 64-bit x86 ELF object. */
int remote_elf_open(pid_t pid, remote_addr base, struct remote_elf *out);
/* The address of a symbol that it defines, 0 = none. */
remote_addr remote_elf_symbol(const struct remote_elf *elf, const char *name);

/* One read of another process's memory: all of it or -1. */
int remote_read(pid_t pid, remote_addr addr, void *buffer, size_t size);

#endif
