/*
 * What the stub (stub_*.S) and the attacher agree on: the slot (code and data in the target's executable padding) and the scratch (the one
 * mapping of ours in the target). Read by the assembler too, so: numbers only up to the C part.
 */
#ifndef INFERSCOPE_INJECT_STUB_LAYOUT_H
#define INFERSCOPE_INJECT_STUB_LAYOUT_H

/* Changes with every change of the slot's layout: another version's slot is left alone. */
#define STUB_MAGIC "INFSTUB5"

/* The control page: first page of the scratch, the only one that stays after a good attach. */
#define CONTROL_ATTACH_ID 0x000
#define CONTROL_CLONE_RESULT 0x008
#define CONTROL_DONE 0x010 /* the borrowed thread has left us and will store nothing more */
#define CONTROL_CHILD 0x018 /* tid of the raw thread; the kernel clears it at its end */
#define CONTROL_STATE 0x020
#define CONTROL_MEMFD 0x028
#define CONTROL_GO 0x030
#define CONTROL_PENDING 0x038
#define CONTROL_ACTION 0x040 /* struct kernel_sigaction, 32 bytes */
#define CONTROL_SPARE 0x060  /* a store that must go nowhere goes here */
#define CONTROL_TLS_BLOCK 0x068
#define CONTROL_TLS_INIT 0x070
#define CONTROL_TLS_ARGUMENT 0x078
#define CONTROL_PTHREAD_CREATE 0x080
#define CONTROL_PTHREAD_DETACH 0x088
#define CONTROL_DLOPEN 0x090
#define CONTROL_DLSYM 0x098
#define CONTROL_DLERROR 0x0a0
#define CONTROL_ENTRY 0x0a8
#define CONTROL_PTHREAD 0x0b0
#define CONTROL_PHASE 0x0b8
#define CONTROL_ERROR 0x0c0
#define CONTROL_CANCEL 0x0c8
#define CONTROL_THREAD 0x0d0 /* tid of the real thread */
#define CONTROL_GIVE_BACK 0x0d8
#define CONTROL_GIVE_BACK_SIZE 0x0e0
#define CONTROL_ENDED 0x0e8
#define CONTROL_TLS_REPEAT 0x0f0 /* how often to initialise the TLS image: 1; tests amplify */
#define CONTROL_PATH 0x100
#define CONTROL_SYMBOL 0x180
#define CONTROL_MESSAGE 0x200
#define CONTROL_ARGUMENT 0x400
#define CONTROL_SIZE 0x1000
#define BIAS 0x80 /* what the stub calls scratch lies so far into the page */
#define CONTROL_MESSAGE_SIZE 512

/* CONTROL_STATE */
#define RAW_WAITS 1
#define RAW_GAVE_UP 2

/* CONTROL_PHASE, in the order they are passed; from PHASE_FAILED on nothing more will run. */
#define PHASE_NONE 0
#define PHASE_RAW 1
#define PHASE_THREAD 2
#define PHASE_LOADED 3
#define PHASE_CALLING 4
#define PHASE_RETURNED 5
#define PHASE_FAILED 16
#define PHASE_NO_THREAD 16  /* pthread_create: CONTROL_ERROR */
#define PHASE_NO_LIBRARY 17 /* dlopen: CONTROL_MESSAGE */
#define PHASE_NO_ENTRY 18   /* dlsym: CONTROL_MESSAGE */
#define PHASE_CANCELLED 19

#include "inject/machine.h"

#ifndef __ASSEMBLER__

#include <stdint.h>

/* The variable part of a slot: struct stub_saved is the machine's, and comes first. */
struct stub_data {
	struct stub_saved saved;
	uint64_t scratch; /* control page + BIAS */
	uint64_t map_addr, map_size, map_negative;
	uint64_t single_thread_flag;
	uint64_t stack, child_tid, tcb;
	uint64_t want_memfd;
	uint64_t wait_loops;
	uint64_t attach_id;
	uint64_t used_ns;      /* CLOCK_MONOTONIC of the attacher */
	uint64_t all_signals;
	uint64_t clone_flags;
	uint64_t constant; /* x86-64: the default of MXCSR */
	uint64_t nap[2]; /* struct timespec */
	char memfd_name[32];
};

/* The control page as the attacher sees it. */
struct control {
	uint64_t attach_id;
	int64_t clone_result;
	uint64_t done;
	uint64_t child;
	uint64_t state;
	int64_t memfd;
	uint64_t go;
	uint64_t pending;
	uint64_t action[4];
	uint64_t spare;
	uint64_t tls_block, tls_init, tls_argument;
	uint64_t pthread_create, pthread_detach, dlopen, dlsym, dlerror;
	uint64_t entry;
	uint64_t pthread;
	uint64_t phase;
	int64_t error;
	uint64_t cancel;
	uint64_t thread;
	uint64_t give_back, give_back_size;
	uint64_t ended;
	uint64_t tls_repeat;
	uint64_t released; /* attacher's: it will look at nothing here any more */
	char path[128];
	char symbol[128];
	char message[CONTROL_MESSAGE_SIZE];
};

_Static_assert(sizeof(struct control) == CONTROL_ARGUMENT, "the argument follows the control words");
_Static_assert(__builtin_offsetof(struct control, memfd) == CONTROL_MEMFD, "the stub and C agree");
_Static_assert(__builtin_offsetof(struct control, action) == CONTROL_ACTION, "the stub and C agree");
_Static_assert(__builtin_offsetof(struct control, spare) == CONTROL_SPARE, "the stub and C agree");
_Static_assert(__builtin_offsetof(struct control, pthread_create) == CONTROL_PTHREAD_CREATE, "the stub and C agree");
_Static_assert(__builtin_offsetof(struct control, phase) == CONTROL_PHASE, "the stub and C agree");
_Static_assert(__builtin_offsetof(struct control, ended) == CONTROL_ENDED, "the stub and C agree");
_Static_assert(__builtin_offsetof(struct control, tls_repeat) == CONTROL_TLS_REPEAT, "the stub and C agree");
_Static_assert(__builtin_offsetof(struct control, path) == CONTROL_PATH, "the stub and C agree");
_Static_assert(__builtin_offsetof(struct control, message) == CONTROL_MESSAGE, "the stub and C agree");

/* The slot's master copy, data in the attacher; never run here. */
extern const unsigned char stub_begin[], stub_entry[], stub_data[], stub_end[];
#define STUB_SIZE ((size_t)(stub_end - stub_begin))
#define STUB_DATA_OFFSET ((size_t)(stub_data - stub_begin))
#define STUB_ENTRY_OFFSET ((size_t)(stub_entry - stub_begin))

#endif
#endif
