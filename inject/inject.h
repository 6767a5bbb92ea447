/*
 * Enter a running process and leave it: preflight, one borrowed thread, a stub with one register write, a raw thread, a real
 * thread that loads a library and calls one entry. Knows nothing of events or Python hooks: the payload is bytes and a name.
 * DESIGN §3, reference stub.md and roots.md; docs/SAFETY.md has the contract and the step table.
 */
#ifndef INFERSCOPE_INJECT_H
#define INFERSCOPE_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/procfs.h"

/* An address in the other process. Never a pointer of ours. */
typedef uint64_t remote_addr;

/* One line of the preflight: what was looked at, what was found. `code` is ERR_NONE when it is fine. */
struct finding {
	const char *check;    /* "state", "yama", "libc", … */
	enum error_code code;
	bool warning;         /* not fine, but no refusal */
	char text[512];
	char hint[512];
};

struct iovec;
struct target; /* one process, looked at but not touched, until inject_enter() */

struct target_facts {
	pid_t pid, inner_pid;
	char command[256];      /* comm */
	char executable[512];   /* as /proc/PID/exe says */
	int python_major, python_minor, python_micro; /* -1: not found out */
	uint32_t python_hex;    /* PY_VERSION_HEX, 0 unknown */
	bool free_threaded;
	bool static_python;     /* interpreter in the executable itself */
	char python_file[512];  /* the mapped file that holds the interpreter */
	remote_addr python_base; /* its load bias */
	char libc[64];          /* "glibc 2.36" */
	char allocator[64];     /* "glibc", "jemalloc", … */
	uint32_t threads;
	int tls_init_argument;  /* decoded from ld.so: -1 undecodable, 0 or 1, 2 = takes one argument */
	uint32_t tid_offset;    /* of tid in struct pthread, verified */
	remote_addr dormant_entry; /* entry of a collector that an earlier attach left, 0 = none */
	char dormant_build_id[64];
	uint64_t start_ticks;   /* of the process, to notice a reused pid */
	uint64_t fds, mappings; /* counted at preflight */
	int64_t clock_ahead_ns; /* its CLOCK_MONOTONIC less ours: not 0 in another time namespace */
	int64_t own_clock_ahead_ns; /* our CLOCK_MONOTONIC less that of the machine: not 0 where we are in a time namespace */
};

/* Whose entry is called: that of the payload, loaded if need be; or, to end what an older or newer InferScope left, that of a library which is there. */
enum library_choice {
	LIBRARY_OWN,
	LIBRARY_ANY,   /* one that is there, of this build if possible; else as LIBRARY_OWN */
	LIBRARY_OTHER, /* one that is there and of another build; ERR_COLLECTOR when there is none */
};

struct inject_options {
	const struct procfs *procfs; /* NULL = procfs_real */
	bool unverified;             /* go on with a Python or libc that nobody tried */
	int memory_fd;               /* of its /proc/PID/mem, opened by the process itself: read by that, and no right to trace it is asked for; 0 = none */
	bool look_only;              /* nothing will be put into it: stopped or traced processes will do, and nothing needs room in it */
	enum library_choice library;
	bool fresh_library;          /* tests: do not reuse a dormant one */
	int thread_timeout_ms;       /* for one thread to stop; 0 = 50 */
	int total_timeout_ms;        /* from the first ptrace call to the entry; 0 = 10 000 */
	int raw_wait_ms;             /* so long the raw thread waits for us before it leaves; 0 = 1 000 */
	bool any_thread;             /* tests: a random thread that can be borrowed, running ones too, not the best */
	int tls_init_repeat;         /* tests: so many times as often, to make a rare race common; 0 = once */
	const volatile int *stop;    /* NULL, or: given up with ERR_INTERRUPTED once it is not 0 */
	/* Tests: called after each step of the step table, in the process that takes it (the small forked one inside the window). */
	void (*step)(void *context, int step);
	void *step_context;
};

/* Looks at PID without touching it: only /proc and ELF files are read. All findings go to the target; the first refusal is also
 * in err, and then -1 is returned with *out still set (so that doctor can print it). *out is NULL only when out of memory or pid gone. */
int target_open(pid_t pid, const struct inject_options *options, struct target **out, struct error *err);
void target_close(struct target *target);
const struct target_facts *target_facts(const struct target *target);
size_t target_finding_count(const struct target *target);
const struct finding *target_finding(const struct target *target, size_t index);
/* Still the same process (pid and start time), with the program that was looked at? Not while it is on its way out. */
bool target_alive(const struct target *target);
/* Fills ERR: it has ended, or replaced itself, or lives and could not be read. Returns -1. */
int target_gone(const struct target *target, struct error *err);
/* Memory that may well be there could not be read (ENOMEM, EPERM): -1, and ERR says so, instead of what was made of it. 0: all that is there was read. */
int target_unread(const struct target *target, struct error *err);
/* Its thread ids are of the outer namespace; translate what the target says of itself, by reading of all threads. 0 = no such thread, -1 = nobody can tell (errno). */
pid_t target_outer_tid(struct target *target, pid_t inner_tid);

/* Address of a dynamic symbol in the target's interpreter, libc or ld.so; 0 = not there. SIZE, as the symbol has it, may be NULL. */
remote_addr target_symbol(struct target *target, const char *name, uint64_t *size);
/* Reads and writes memory of the target by process_vm_*: no stop. 0 or -1 with errno. */
int target_read(const struct target *target, remote_addr addr, void *buffer, size_t size);
/* As memory_read_many(). */
size_t target_read_many(const struct target *target, const struct iovec *here, const struct iovec *there, size_t count);
int target_write(const struct target *target, remote_addr addr, const void *bytes, size_t size);

struct payload {
	const void *bytes; /* an ELF shared library that needs libc only */
	size_t size;
	const char *memfd_name; /* how it shows in the target's maps */
	const char *entry;      /* void entry(void *argument) */
};

/* What one entry cost and left. */
struct receipt {
	uint64_t hold_ns;       /* the borrowed thread: from the last moment at which it had not stopped yet to its release, longest of all tries */
	uint64_t hold_total_ns;
	uint32_t tries;         /* threads stopped */
	uint64_t ready_ns;      /* first ptrace call to entry called */
	pid_t tid;              /* the thread that was borrowed */
	char thread_state[32];  /* "running", "futex", "epoll_wait restarted", … */
	bool reused_library;
	char slot[64];          /* "libc.so.6+0x1c3f20" */
	uint32_t slots_left;
	uint64_t left_bytes;    /* of our mappings that stay in the target */
};

/* A thread of ours at work in the target. */
struct entry;

/* Starts the payload's entry with a copy of the SIZE bytes at ARGUMENT (<= 1024) in the target; returns once the entry is about to run.
 * On failure the target is as it was (except for what docs/SAFETY.md names) and err says why. */
int inject_enter(struct target *target, const struct payload *payload, const void *argument, size_t size,
                 const struct inject_options *options, struct entry **out, struct receipt *receipt, struct error *err);
/* Where the argument's copy lies in the target. */
remote_addr entry_argument(const struct entry *entry);
/* Waits until the entry has returned and its threads are gone. 0, -1 with ERR_TIMEOUT, or with ERR_EXITED. */
int entry_wait(struct entry *entry, int timeout_ms, struct error *err);
/* Frees our side (and what can be given back in the target). Never waits. */
void entry_close(struct entry *entry);

/* The step table, for docs and fault tests. */
struct inject_step {
	int number;
	const char *name;
	const char *undo; /* what takes it back, and who does when the attacher is dead */
};
const struct inject_step *inject_steps(size_t *count);

#endif
