/*
 * Writing lanes: abi/lane.h says what lies in the shared mapping. A struct lane is the writer's private half, one per slot of
 * page.lanes; a thread reaches its own through one initial-exec pointer. All under the GIL, except lane_leave (thread exit) and the device's lanes.
 */
#ifndef INFERSCOPE_COLLECTOR_LANE_H
#define INFERSCOPE_COLLECTOR_LANE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/event.h"
#include "abi/page.h"

enum { SEEDS_MAX = 256, DEPTH_KNOWN = 2048, LANE_META_SLOT = 0 };

/* A frame that was on the stack before its thread was watched; ref 0: a function that is left out. */
struct seed {
	char *frame;
	uint32_t ref;
};

struct lane {
	struct event *cursor; /* where the next event goes; beyond last: no room, or no sub-buffer at all */
	struct event *last;   /* an event without payload still fits here */
	struct subbuf *subbuf;
	uint64_t window;  /* the one in which its stack is known */
	uint32_t depth;   /* of the stack as it knows it */
	uint32_t above;   /* evaluator: frames above the seeds, left out ones included */
	char *frame;      /* the innermost one above the seeds */
	char *chunk, *first_chunk; /* monitoring: of the thread's memory for frames, where greenlets may be */
	uint32_t seed_count;
	uint32_t slot;
	uint32_t tid;
	bool in_use;
	const void *owner; /* &lane_mine of its thread, once that has come by itself */
	uintptr_t stack_floor; /* below it the C stack is too full to go on; 0 = not known */
	uint64_t written; /* events in this sub-buffer */
	struct seed seeds[SEEDS_MAX]; /* outermost first */
	uint32_t refs[DEPTH_KNOWN];   /* outermost first; what lies deeper is not kept */
};

struct lanes {
	struct lane *table;     /* LANES_MAX and one of nobody's, mapped once and never unmapped: a late thread may still point into it */
	uint64_t threads[LANES_MAX]; /* pthread_self() of each, 0 = nobody */
	uint32_t count;         /* slots that were ever used in this session */
	uint32_t touched;       /* the same, since the table was last all zero; also a parent's, in a forked child */
	uint32_t busy;          /* lanes that hold a sub-buffer, roughly */
	uint64_t dry_until;     /* ticks: the pool had nothing that could be given up, do not look again before. Atomic, as the next one */
	uint64_t full_until;    /* … no slot was free: a search takes hundreds of microseconds, with the GIL */
	uint32_t leaving;       /* threads inside lane_leave, atomic */
	bool key_made;
	pthread_key_t key;
};

extern __thread struct lane *lane_mine __attribute__((tls_model("initial-exec"), visibility("hidden")));

int lanes_open(void);   /* tables and the thread-exit key; 0 or errno */
void lanes_begin(void); /* a new mapping: takes the META lane */
/* Two lanes for the device: of names, which are never given up, and of its work. Written under a lock of their own, not the GIL. */
bool lanes_take_gpu(struct lane **names, struct lane **work);
/* One for what native libraries allocate, likewise. NULL: none is free. */
struct lane *lanes_take_memory(void);
/* The calling thread's, without a system call where the attacher said how. */
uint32_t thread_tid_own(void);
void lanes_end(void);   /* every sub-buffer becomes FULL; nobody writes after it */

/* lane_mine may still point to a lane of an earlier session, by now another thread's: its owner tells. */
static inline bool lane_is_mine(const struct lane *lane)
{
	return lane && lane->owner == &lane_mine;
}

/* The lane of the calling thread, taken or made; NULL when all slots are in use (counted). */
struct lane *lane_attach(void);
/* The lane of another thread that holds a thread state; MAKE = it may be made. */
struct lane *lane_of_thread(uint64_t pthread, uint32_t tid, bool make);
/* Takes the next sub-buffer. False: there is none now, and the event is lost (counted). */
bool lane_rotate(struct lane *lane, uint64_t now);
/* Room for SIZE bytes (a multiple of 8) in one piece, or NULL (counted as lost). lane_commit makes it visible. */
struct event *lane_reserve(struct lane *lane, size_t size, uint64_t now);
void lane_commit(struct lane *lane, size_t size);
struct lane *lane_meta(void);
/* What something beside the events cost LANE's thread: to its account, and to all of ours. */
void lane_charge(struct lane *lane, uint64_t ns);
/* An event and its payload of SIZE bytes, a multiple of 8. False: it is lost (counted). */
bool lane_put_with(struct lane *lane, uint64_t now, uint32_t ref, uint8_t kind, const void *payload, size_t size);
/* An event whose payload is one u32. */
void lane_put_u32(struct lane *lane, uint64_t now, uint32_t ref, uint8_t kind, uint32_t value);

static inline void lane_put(struct lane *lane, uint64_t now, uint32_t ref, uint8_t kind, uint8_t flags)
{
	struct event *event = lane->cursor;

	if (__builtin_expect(event > lane->last, 0)) {
		if (!lane_rotate(lane, now))
			return;
		event = lane->cursor;
	}
	event->ticks = now;
	event->ref = ref;
	event->size = sizeof *event;
	event->kind = kind;
	event->flags = flags;
	lane->cursor = event + 1;
	lane->written++;
	__atomic_store_n(&lane->subbuf->used, (uint32_t)((char *)(event + 1) - (char *)lane->subbuf), __ATOMIC_RELEASE);
}

void lane_unmatched(void);

/* A frame begins or goes on. */
static inline void lane_push(struct lane *lane, uint64_t now, uint32_t ref, uint8_t kind)
{
	lane_put(lane, now, ref, kind, 0);
	if (lane->depth < DEPTH_KNOWN)
		lane->refs[lane->depth] = ref;
	lane->depth++;
}

/* A frame ends or suspends. */
static inline void lane_pop(struct lane *lane, uint64_t now, uint32_t ref, uint8_t kind, uint8_t flags)
{
	if (__builtin_expect(!lane->depth, 0))
		lane_unmatched();
	else if (--lane->depth < DEPTH_KNOWN && __builtin_expect(lane->refs[lane->depth] != ref, 0) && lane->refs[lane->depth])
		lane_unmatched();
	lane_put(lane, now, ref, kind, flags);
}

#endif
