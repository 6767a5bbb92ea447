/* The place where a launched program waits: find its interpreter, stop its main thread at one address, leave it at a gate there.
 * For launch.c alone; PID is ptraced by the caller and stopped in every call here. */
#ifndef INFERSCOPE_INJECT_LAUNCH_GATE_H
#define INFERSCOPE_INJECT_LAUNCH_GATE_H

#include <stdbool.h>

#include "inject/inject.h"

/* Where a program's interpreter is, once ld.so has mapped it. */
struct gate_python {
	remote_addr run_main, save_thread, restore_thread;
};
/* 0, or -1 when no mapped object exports all of them. *OLD says that there is an interpreter, but one before 3.8; *TROUBLE, unless 0, why not all could be read. */
int gate_find_python(pid_t pid, struct gate_python *out, bool *old, int *trouble);

/* The address at which the executable's own code begins, from the auxiliary vector; 0 = unknown: errno says why, 0 = it has none. */
remote_addr gate_program_entry(pid_t pid);

/* Does it run 64-bit code of this machine? */
bool gate_is_native(pid_t pid);
/* launch_MACHINE.c: where the word that opens the gate will be, for a thread at a function's entry (0: errno says why not), and the way there. */
remote_addr gate_word(pid_t pid);
int gate_go_to(pid_t pid, remote_addr addr);

/* Makes the thread stop before it executes ADDR: a debug register, so that not a byte of the program changes and children that it
 * forks meanwhile have nothing to run into. 0 = off. -1 with errno. */
int gate_break_at(pid_t pid, remote_addr addr);
/* Is this SIGTRAP stop ours, at ADDR? 1 or 0; -1 with errno when nobody can tell. */
int gate_reached(pid_t pid, remote_addr addr);

/* The thread stands at run_main: sends it to the gate. *WORD is what to set to 1 to open it. Detaches. PARENT is the process
 * whose end closes the gate for ever; IGNORE_TRAP puts back an ignored SIGTRAP, which a break point takes away. */
int gate_install(pid_t pid, const struct gate_python *python, pid_t parent, bool ignore_trap, remote_addr *word, struct error *err);
int gate_open(pid_t pid, remote_addr word);

#endif
