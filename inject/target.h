/* The inside of struct target, for the files of this folder only. */
#ifndef INFERSCOPE_INJECT_TARGET_H
#define INFERSCOPE_INJECT_TARGET_H

#include "base/mappings.h"
#include "inject/image.h"
#include "inject/inject.h"

#define MAX_FINDINGS 24
#define STOPPED_HINT "continue it first (kill -CONT %d, or fg)"

/* Addresses of functions in the target that our threads call there. */
struct remote_functions {
	uint64_t tls_init, pthread_create, pthread_detach, dlopen, dlsym, dlerror;
};

struct target {
	struct procfs procfs;
	pid_t pid;
	struct memory memory;
	int memory_trouble; /* why memory that may be there could not be read; 0 = all was read */
	int memory_fd; /* /proc/PID/mem of the program that was looked at: once that has ended or replaced itself, nothing is read or written by it; 0 = none */
	bool unverified, look_only;
	struct target_facts facts;
	struct finding findings[MAX_FINDINGS];
	size_t finding_count;
	struct proc_status status;
	struct maps maps;
	struct image python, libc, loader, executable; /* base 0: not found */
	struct remote_functions functions;
	uint32_t block_below; /* bytes of a thread's control block below its thread pointer */
	uint64_t single_thread_flag; /* __libc_single_threaded; 0: this libc has none */
	uint64_t tls_modules, tls_bytes; /* of all images: bounds of what _dl_allocate_tls_init() touches */
	const char *riddle; /* a library that cannot be understood: its thread storage is not among them; NULL: there is none */
	bool foreign_allocator;
	bool no_proc; /* nothing at /proc inside its root */
};

/* Adds a finding. Returns true, so that `return target_refuse(…)` stops a list of checks and `return target_note(…)` reads well. */
void target_note(struct target *target, const char *check, const char *format, ...) __attribute__((format(printf, 3, 4)));
void target_warn(struct target *target, const char *check, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Returns -1. HINT may be NULL: the general one of the code. */
int target_refuse(struct target *target, enum error_code code, const char *check, const char *hint, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* The parts of the preflight, in this order. Each returns 0, or -1 when nothing after it makes sense. */
int preflight_process(struct target *target);    /* preflight.c: state, tracer */
int preflight_permission(struct target *target); /* gate.c: uid, capabilities, dumpable, Yama */
int preflight_surroundings(struct target *target); /* surroundings.c: clock, memory limit, memfds */
int preflight_images(struct target *target);     /* images.c: architecture, libc, loader, interpreter */
int preflight_room(struct target *target);       /* preflight.c: seccomp, limits, slots, dormant library */

/* Opens memory_fd, unless it is. 0, or -1 and errno. */
int target_open_memory(struct target *target);
/*
 * The thread that counts itself INNER_TID, in a pid namespace of its own: 1, with its id here and what its status says; 0: there is none; -1 with errno:
 * nobody can tell. Each thread is looked at, however many there are.
 */
int target_find_thread(const struct target *target, pid_t inner_tid, pid_t *outer, struct proc_status *status);
/* Maps again, because things may have been loaded or unloaded since. */
int target_refresh_maps(struct target *target);
/* Entry of a library called NAME (of a memfd) with this build id (OTHER: with another one; NULL: whichever), 0 = none. *loaded counts libraries of that name. */
uint64_t target_dormant(const struct target *target, const char *name, const char *build_id, bool other, const char *entry, unsigned *loaded,
                        char *found_build_id, size_t size);

#endif
