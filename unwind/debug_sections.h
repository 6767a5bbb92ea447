/* Sections of debug information after libdw has read them: damaged ones get the ends of strings that libdw (0.188) relies on without looking. */
#ifndef INFERSCOPE_UNWIND_DEBUG_SECTIONS_H
#define INFERSCOPE_UNWIND_DEBUG_SECTIONS_H

#include <libelf.h>

/* The section by its name, or by that of its packed form; NULL when absent or empty. */
Elf_Data *debug_section(Elf *elf, const char *name, const char *packed_name);
/* Ends the last string of the sections that hold nothing else. */
void debug_end_strings(Elf *elf);
/* Puts a NUL behind .debug_line, for file names in it that have no end: its bytes are now the result, to be freed after elf_end(). NULL: out of memory. */
char *debug_end_lines(Elf_Data *lines);

#endif
