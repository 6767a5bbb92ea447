/*
 * The call-frame tables of mapped files: which row of rules holds at an address. Bytes are read when they are needed, from the file (never
 * mapped: a file may shrink under us) or, where it cannot be opened, from the process's memory; pages and rows are kept within fixed bounds.
 */
#ifndef INFERSCOPE_UNWIND_TABLES_H
#define INFERSCOPE_UNWIND_TABLES_H

#include "unwind/cfi.h"
#include "unwind/modules.h"
#include "unwind/pystack.h"

struct tables;

/* MODULES and MEMORY's context stay the caller's and must outlive it. NULL when memory is short. */
struct tables *tables_new(const struct modules *modules, const struct remote_memory *memory);
void tables_free(struct tables *tables);
/* MODULES have changed. */
void tables_forget(struct tables *tables);
/* The row at ADDR (of the process), which lies in MODULE; NULL when there is none. Valid until the next call. */
const struct cfi_row *tables_row(struct tables *tables, const struct module *module, uint64_t addr);
/* The FDE for ADDR and its CIE, as they stand in .eh_frame; addresses are those of the process. */
struct table_entries {
	struct cfi_entry fde, cie;
	uint64_t start, end; /* what the FDE covers */
};

/* For an unwinder that trusts tables: false when there is none, or its program up to ADDR does what must not be. Holds until the next call. */
bool tables_entries(struct tables *tables, const struct module *module, uint64_t addr, struct table_entries *out);
/* Reads what MODULE's file has at ADDR (of the process), where it is not writable: 0 or -1. */
int tables_read(struct tables *tables, const struct module *module, uint64_t addr, void *buffer, size_t size);
/* What the rows' expressions are. */
const struct cfi_expressions *tables_expressions(const struct tables *tables);

#endif
