/* What unwinding and naming read out of instructions: code_MACHINE.c. */
#ifndef INFERSCOPE_UNWIND_CODE_H
#define INFERSCOPE_UNWIND_CODE_H

#include "unwind/cfi.h"

/* The rules in a function that has only just been called. */
extern const struct cfi_row code_called_row;
/* Where a signal's frame has the registers, counted from the stack pointer, and in what order. */
extern const uint64_t code_signal_offset;
extern const uint8_t code_signal_order[DWARF_COUNT];

/* CODE are 16 bytes. A stub of the procedure linkage table, which was reached by a call and has touched nothing; the return from a signal handler. */
bool code_is_linkage_stub(const unsigned char *code);
bool code_is_signal_return(const unsigned char *code);

/* Does the instruction at CODE[AT] make an address relative to its own? CODE lies at ADDR. */
bool code_takes_address(const unsigned char *code, size_t size, size_t at, uint64_t addr, uint64_t *out);

/* Relocations that fill slots of stubs; the slot that a stub of SIZE bytes at ADDR jumps through, or the number that it pushes. */
bool code_fills_slot(uint32_t type);
bool code_stub_slot(const unsigned char *stub, size_t size, uint64_t addr, uint64_t *out);
bool code_stub_number(const unsigned char *stub, size_t size, uint64_t *out);

#endif
