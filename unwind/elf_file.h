/*
 * What unwinding needs of an ELF file: its program headers, unwind tables and build id. Read through a callback, from a file or from
 * memory; every number in it may lie, so that all of them are bounded here and nobody else looks at raw headers.
 */
#ifndef INFERSCOPE_UNWIND_ELF_FILE_H
#define INFERSCOPE_UNWIND_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ELF_SEGMENTS_MAX = 64, ELF_BUILD_ID_MAX = 64 };

struct elf_segment {
	uint64_t offset, file_size;  /* in the file */
	uint64_t vaddr, memory_size; /* never wraps around; memory_size >= file_size */
	bool executable, writable;
};

struct elf_section {
	uint64_t vaddr, offset, size;
};

struct elf_file {
	uint32_t segment_count; /* at least 1 */
	struct elf_segment segments[ELF_SEGMENTS_MAX];
	struct elf_section eh_frame_hdr; /* size 0 = none */
	char build_id[ELF_BUILD_ID_MAX * 2 + 1]; /* hex; "" = none */
};

/* Reads exactly SIZE bytes at OFFSET of the file: 0 or -1. */
struct elf_source {
	int (*read)(void *context, uint64_t offset, void *buffer, size_t size);
	void *context;
};

/* NULL, or why it is no file that could be mapped here: a constant string. */
const char *elf_file_read(const struct elf_source *source, struct elf_file *out);
/* A section by its name, for what program headers do not tell. False: none, it is compressed, or should be loaded and is not. */
bool elf_file_section(const struct elf_source *source, const struct elf_file *file, const char *name, struct elf_section *out);
/* The lowest address of a segment, and the first above all of them, whole pages. */
void elf_file_extent(const struct elf_file *file, uint64_t *low, uint64_t *high);
/* The bias of the file when its bytes from OFFSET on are mapped at START. False: no (executable) segment begins or lies there. */
bool elf_file_bias(const struct elf_file *file, uint64_t start, uint64_t offset, uint64_t *out);

/* A source over a descriptor; FD must live as long. */
struct elf_source elf_source_fd(const int *fd);

#endif
