/* What unwinding knows of the machine. Nothing else in this folder tells machines apart, but for what reads instructions (code_*.c). */
#ifndef INFERSCOPE_UNWIND_MACHINE_H
#define INFERSCOPE_UNWIND_MACHINE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#if defined __x86_64__

/* DWARF numbers of registers. */
enum { DWARF_RAX = 0, DWARF_RDX = 1, DWARF_RCX = 2, DWARF_RBX = 3, DWARF_RSI = 4, DWARF_RDI = 5, DWARF_RBP = 6, DWARF_RSP = 7, DWARF_R8 = 8, DWARF_R15 = 15, DWARF_RIP = 16,
	DWARF_FP = DWARF_RBP, DWARF_SP = DWARF_RSP, DWARF_PC = DWARF_RIP, DWARF_RETURN = DWARF_RIP, DWARF_COUNT = 17 };

enum { PRESERVED_COUNT = 6, MACHINE_FILE = EM_X86_64, ADDRESS_BITS = 47, LINK_REGISTER = 0 };
#define PRESERVED_REGISTERS { DWARF_RBX, DWARF_RBP, 12, 13, 14, DWARF_R15 }
/* Registers that a called function leaves as they were (System V ABI); the others are lost where no rule restores them. */
#define PRESERVED_MASK (1ull << DWARF_RBX | 1ull << DWARF_RBP | 1ull << DWARF_RSP | 0xfull << 12)
#define CODE_ADDRESS(word) (word)
#define CODE_STEP 1
#define MACHINE_FILE_NAME "64-bit x86"

/* Registers that a sample of perf_event brings, as bits (ax bx cx dx si di bp sp ip, r8 to r15), and in the order in which they come. */
#define PERF_REGISTERS 0xff01ffull
#define PERF_ORDER { DWARF_RAX, DWARF_RBX, DWARF_RCX, DWARF_RDX, DWARF_RSI, DWARF_RDI, DWARF_RBP, DWARF_RSP, DWARF_RIP, 8, 9, 10, 11, 12, 13, 14, 15 }

#elif defined __aarch64__

/* x0 to x30 and sp; the address of the instruction has no number of DWARF's, this is libunwind's. */
enum { DWARF_FP = 29, DWARF_RETURN = 30, DWARF_SP = 31, DWARF_PC = 32, DWARF_COUNT = 33 };

enum { PRESERVED_COUNT = 11, MACHINE_FILE = EM_AARCH64, ADDRESS_BITS = 48, LINK_REGISTER = 1 };
#define PRESERVED_REGISTERS { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, DWARF_FP }
#define PRESERVED_MASK (0x7ffull << 19 | 1ull << DWARF_SP)
/* Return addresses may be signed in the bits above (pointer authentication). */
#define CODE_ADDRESS(word) ((word) & 0xffffffffffffull)
#define CODE_STEP 4
#define MACHINE_FILE_NAME "64-bit ARM"

#define PERF_REGISTERS 0x1ffffffffull
#define PERF_ORDER { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, DWARF_SP, DWARF_PC }

#endif

#endif
