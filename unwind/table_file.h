/* One file's call-frame tables: its bytes by pages, and from an address to its FDE. For tables.c alone. */
#ifndef INFERSCOPE_UNWIND_TABLE_FILE_H
#define INFERSCOPE_UNWIND_TABLE_FILE_H

#include "unwind/cfi.h"
#include "unwind/elf_file.h"
#include "unwind/modules.h"
#include "unwind/pystack.h"

/* Where an FDE is, for files that have no table to search in. */
struct table_index_entry {
	uint64_t start; /* address in the file */
	uint64_t at;    /* offset in the file */
};

struct table_index {
	struct table_index_entry *entries; /* by start */
	size_t count;
	struct elf_section section;
	bool debug_frame;
};

struct table_file {
	uint32_t module; /* id */
	uint64_t bias;
	struct elf_file elf;
	bool from_memory; /* it cannot be opened */
	uint64_t search_addr, search_count; /* the binary search table of .eh_frame_hdr: address in the file; count 0 = none */
	struct table_index eh_frame, debug_frame;
	bool looked_for_eh_frame, looked_for_debug_frame;
};

/* An FDE and its CIE, as bytes and as read. */
struct table_found {
	struct cfi_entry cie_entry, fde_entry;
	struct cfi_cie cie;
	struct cfi_fde fde;
};

struct table_pages;

struct table_pages *table_pages_new(const struct modules *modules, const struct remote_memory *memory);
void table_pages_free(struct table_pages *pages);
/* Reads from the file at OFFSET: 0 or -1. */
int table_pages_read(struct table_pages *pages, struct table_file *file, uint64_t offset, void *buffer, size_t size);

/* Reads the CIE or FDE at OFFSET into one of two buffers of PAGES; fills bytes and size of OUT. */
bool table_pages_entry(struct table_pages *pages, struct table_file *file, uint64_t offset, bool is_cie, struct cfi_entry *out);

/* NULL when memory is short. PAGES must outlive it. */
struct table_file *table_file_new(struct table_pages *pages, const struct module *module);
void table_file_free(struct table_file *file);
/* The FDE that covers ADDR (in the file) and its CIE. They point into PAGES and hold until the next call. */
bool table_file_find(struct table_file *file, struct table_pages *pages, uint64_t addr, struct table_found *out);
/* Reads what is mapped at ADDR (in the file) and not writable: 0 or -1. */
int table_file_read(struct table_file *file, struct table_pages *pages, uint64_t addr, void *buffer, size_t size);

#endif
