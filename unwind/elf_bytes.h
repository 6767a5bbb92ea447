/* Bytes of an ELF file by descriptor, bounded by what the file really has. Read, never mapped: a file that is cut meanwhile would be a SIGBUS. */
#ifndef INFERSCOPE_UNWIND_ELF_BYTES_H
#define INFERSCOPE_UNWIND_ELF_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include <gelf.h>

/* Reads *SIZE bytes at OFFSET; *SIZE becomes what there was. The caller's to free(), with a NUL behind the last byte; NULL when nothing could be read. */
unsigned char *elf_bytes_read(int fd, uint64_t offset, size_t *size);
/* The 64-bit ELF file of FD, of this machine's kind, read by demand; NULL when it is none. elf_end() it before FD is closed, or elf_cntl(ELF_C_FDDONE). */
Elf *elf_bytes_open(int fd);
/* The section called NAME, with its header; NULL when absent. */
Elf_Scn *elf_bytes_section(Elf *elf, const char *name, GElf_Shdr *out);
/* Its build id in hex, "" when none. HEX has room for SIZE bytes. */
void elf_bytes_build_id(Elf *elf, char *hex, size_t size);

#endif
