/*
 * What entering a process has to know of the machine: its registers, its system calls, its thread control block, its code. One header and a few
 * sources for each machine (machine_*.h, machine_*.c, resume_*.c, code_*.c, stub_*.S); nothing else tells machines apart.
 */
#ifndef INFERSCOPE_INJECT_MACHINE_H
#define INFERSCOPE_INJECT_MACHINE_H

#if defined __x86_64__
#include "inject/machine_x86_64.h"
#elif defined __aarch64__
#include "inject/machine_aarch64.h"
#else
#error "not a machine whose processes are entered: see configure.ac"
#endif

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct resume;

/* All of them with raw system calls, so that they may be used while a thread is held. 0, or the kernel's -errno. */
long registers_read(pid_t tid, struct thread_registers *out);
uint64_t registers_pc(const struct thread_registers *registers);
uint64_t registers_sp(const struct thread_registers *registers);
uint64_t registers_thread_pointer(const struct thread_registers *registers);
/* The first argument of a system call. */
uint64_t registers_argument(const struct thread_registers *registers);
/* A thread that runs 64-bit code of this machine. */
bool registers_are_native(const struct thread_registers *registers);
/* Copied for unwinding, in the order of DWARF numbers, the address of its instruction last: MACHINE_REGISTERS of them. */
void registers_copy(const struct thread_registers *registers, uint64_t *out);

/* The one register write that sends a held thread into the stub at ENTRY. */
long registers_enter(pid_t tid, const struct thread_registers *registers, uint64_t entry);
/* What the stub puts back. False: it could not go on from there (another slot may do). */
bool stub_save(struct stub_saved *saved, uint64_t slot_saved, const struct thread_registers *registers, const struct resume *resume);

/* Does a thread's control block look like one of glibc's? BYTES lie at ADDR. */
bool block_is_own(const unsigned char *bytes, uint64_t addr);
/* One for a raw thread, as zeros first: BYTES will lie at ADDR, BELOW of them below the thread pointer; FROM is another thread's. */
void block_fill(unsigned char *bytes, uint64_t addr, uint64_t below, uint64_t dtv, const unsigned char *from);
/* What malloc of glibc looks at, besides a word of libc: false, it takes no locks. */
bool block_knows_threads(const unsigned char *bytes);

#endif
#endif
