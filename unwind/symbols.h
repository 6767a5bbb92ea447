/*
 * Names of addresses in mapped files: by libdw (inlined functions, file and line), .symtab, .dynsym, .gnu_debugdata, separate debug
 * files by build id or .gnu_debuglink, debuginfod on request; perf maps and JIT dumps for generated code. C++ and Rust demangled.
 * What has no name is "lib.so+0x1234", and the module tells why.
 */
#ifndef INFERSCOPE_UNWIND_SYMBOLS_H
#define INFERSCOPE_UNWIND_SYMBOLS_H

#include "unwind/modules.h"

enum { SYMBOL_INLINES_MAX = 16 };

struct symbol {
	const char *name;   /* demangled; never empty */
	const char *file;   /* "" when unknown */
	uint32_t line;      /* 0 = unknown */
	bool inlined;       /* into the next one */
	bool named;         /* false: NAME is only lib+0xoff */
};

struct symbols_options {
	bool debuginfod;            /* ask the servers of DEBUGINFOD_URLS */
	const char *debug_folder;   /* NULL = /usr/lib/debug */
	uint32_t debuginfod_timeout_s; /* 0 = 10 */
};

struct symbols;

/* PROCFS and MODULES stay the caller's and must outlive it. OPTIONS (NULL = all defaults) is copied but for debug_folder. ERR_MEMORY. Without
 * `debuginfod` no network is touched. For one thread at a time. */
int symbols_open(const struct procfs *procfs, pid_t pid, const struct modules *modules, const struct symbols_options *options, struct symbols **out, struct error *err);
void symbols_close(struct symbols *symbols);
/* Names of the functions at ADDR, innermost first: inlined ones, then the one they are in. Returns how many, at least 1. CALL: ADDR is a return
 * address, the name is that of the call before it. Strings live as long as SYMBOLS, and equal ones are the same pointer. What has no name is
 * called "libz.so.1+0x2a40" after the begin of its function, "[jit]" or "[unknown]". Results are remembered by file and offset, a file by its build id. */
size_t symbols_find(struct symbols *symbols, uint64_t addr, bool call, struct symbol out[SYMBOL_INLINES_MAX]);
/* What names of this module come from, for the report: "debug information", "symbol table", "dynamic symbols only: …", "none: stripped …". Valid
 * until the next call. */
const char *symbols_source(struct symbols *symbols, const struct module *module);
/* Why debuginfod is not asked although it was to be; "" = it is, or need not be. */
const char *symbols_debuginfod_problem(const struct symbols *symbols);

#endif
