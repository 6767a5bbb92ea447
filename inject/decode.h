/* The few facts that only the target's own machine code tells: versions and constants behind exported functions. */
#ifndef INFERSCOPE_INJECT_DECODE_H
#define INFERSCOPE_INJECT_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "inject/memory.h"

#include "inject/machine.h"

#define TLS_ARGUMENT_UNKNOWN (-1)
#define TLS_ARGUMENT_NONE 2 /* the function takes one argument */

/*
 * What pthread_create passes as second argument of _dl_allocate_tls_init(): 0, 1, TLS_ARGUMENT_NONE or TLS_ARGUMENT_UNKNOWN.
 * CODE are the bytes of the exported _dl_allocate_tls(), which lie at ADDR; INIT is the address of _dl_allocate_tls_init().
 * Its meaning changed within glibc 2.40 and is backported by distributions; a wrong value kills targets that load libraries.
 */
int decode_tls_argument(const unsigned char *code, size_t size, uint64_t addr, uint64_t init);
/*
 * The same of CODE of pthread_create(), at ADDR, which calls it through SLOT of its library's global offset table: for loaders whose _dl_allocate_tls() has it
 * compiled in and calls it nowhere (Ubuntu's glibc 2.35 to 2.43, built with -O3).
 */
int decode_tls_argument_of_caller(const struct memory *memory, const unsigned char *code, size_t size, uint64_t addr, uint64_t slot);

/* The address of an object whose address the instruction at CODE[AT] takes (x86-64: lea rip-relative, mov imm32; aarch64: adrp and add), 0 = no such instruction. */
uint64_t decode_address(const unsigned char *code, size_t size, size_t at, uint64_t addr);

/* Is this the last instruction of a function? */
bool decode_is_end(const unsigned char *code, size_t size, size_t at);

/* A string like "3.11.2+" that the function at ADDR refers to. Empty and false when there is none. */
bool decode_version(const struct memory *memory, uint64_t addr, char *out, size_t out_size);

/* Py_IsInitialized(): 1 yes, 0 no, -1 its code is not understood. */
int decode_initialized(const struct memory *memory, uint64_t addr);

/* "3.11.2", "3.14.0rc1+" → numbers and PY_VERSION_HEX. */
bool decode_python_version(const char *text, int *major, int *minor, int *micro, uint32_t *hex);

#endif
