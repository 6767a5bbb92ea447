/* Names in one ELF file, from all that can be had: its own tables, its debug file, and call-frame tables where there is no name. */
#ifndef INFERSCOPE_UNWIND_SYMFILE_H
#define INFERSCOPE_UNWIND_SYMFILE_H

#include "base/arena.h"
#include "unwind/debugfile.h"
#include "unwind/symbols.h"

struct symfile;

/* What a file is called in names of functions that have none: "libz.so.1"; an extension module without its tag: "_ssl.so" for _ssl.cpython-311-x86_64-linux-gnu.so. */
void symfile_label(const char *path, char *out, size_t size);
/* Reads the file of FD, which was mapped from PATH. FD stays the caller's and is not needed afterwards. A file without any names is a result, too;
 * NULL: out of memory. NAMES must outlive it. */
struct symfile *symfile_load(int fd, const char *path, const struct debug_places *places, struct strings *names);
void symfile_free(struct symfile *file);
/* As symbols_find(), for a virtual address of the file. */
size_t symfile_find(struct symfile *file, uint64_t addr, struct symbol out[SYMBOL_INLINES_MAX]);
/* Where its names come from, in words. Valid until the next call for this file. */
const char *symfile_source(struct symfile *file);
/* Memory that it takes, about. */
uint64_t symfile_bytes(const struct symfile *file);

#endif
