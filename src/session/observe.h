/* What /proc says of a process and its threads, as events. Touches nothing and needs no library in the target. */
#ifndef INFERSCOPE_SESSION_OBSERVE_H
#define INFERSCOPE_SESSION_OBSERVE_H

#include <stdbool.h>

#include "abi/event.h"
#include "base/procfs.h"
#include "base/tidmap.h"
#include "session/block.h"
#include "session/naming.h"
#include "trace/writer.h"

struct observe_thread {
	pid_t tid, inner_tid;
	char name[128];   /* as threading has it, else the kernel's */
	char state;       /* letter, of the last reading */
	char wait[32];    /* system call, "gil", or empty */
	uint64_t cpu_ns, switches;
	bool seen;        /* in the present reading */
	bool traced;      /* kernel_calls.c has been told of it */
	bool counted;     /* counting.c has */
	bool ours;        /* a thread of the collector: nothing of the program's */
};

struct observe {
	const struct procfs *procfs;
	pid_t pid;
	bool namespaced;               /* the target counts its threads otherwise than we do */
	pid_t own_inner_tid;           /* of the collector's thread, 0 = it has none */
	struct block_runtime runtime;
	struct naming *naming;         /* NULL: names are the kernel's; stays the caller's */
	bool fresh;                    /* a thread was new in the last reading */
	struct observe_thread *threads; /* by tid */
	size_t count, capacity;
	struct tidmap inner;           /* where namespaced: of the last reading */
	struct tidmap late;            /* of threads that are newer */
	uint64_t late_due_ns;          /* before that nobody looks for one again */
	uint64_t switches;             /* of all its threads since each was first seen: those of threads that live between two readings are told by nobody, and no tracepoint of ours slows them either */
};

void observe_init(struct observe *observe, const struct procfs *procfs, pid_t pid, bool namespaced);
void observe_done(struct observe *observe);
/* One reading at TICKS: THREAD, THREAD_TIME and PROCESS_TIME events go to BUILDER. False when the process is gone. */
bool observe_read(struct observe *observe, uint64_t ticks, struct event_builder *builder);
const struct observe_thread *observe_by_tid(const struct observe *observe, pid_t tid);
const struct observe_thread *observe_by_inner(const struct observe *observe, pid_t inner_tid);
/*
 * Our number of a thread, which may be newer than the last reading; 0: there is none, -1: nobody can tell now. Looking for one that is in no reading takes a twentieth of a
 * CPU at most: who asks for more is told nothing.
 */
pid_t observe_outer(struct observe *observe, pid_t inner_tid);
/* The number by which its events are told: of a thread that nobody knows any more the inner one, or, where another thread has that, one that no thread can have. */
uint32_t observe_told(struct observe *observe, pid_t inner_tid);

#endif
