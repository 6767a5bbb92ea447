/*
 * Lanes: how events leave the target. One shared mapping (a memfd made in the target, sized, filled, pre-faulted and sealed by
 * the attacher) holds the page of page.h, then sub-buffers of 64 KiB:
 *
 *   | struct page (PAGE_BYTES) | sub-buffer 0 | sub-buffer 1 | …                                  |
 *                               <---- pool: starts small, grown by the drain up to the limit ---->
 *
 * A thread takes a free sub-buffer at its first event, fills it, marks it FULL and takes the next. If none is free it takes
 * the oldest FULL one away from the drain and counts what was in it as lost; if there is none of these either, the event is
 * lost and counted. Writers hold the GIL while they write, so that META has one writer at a time; the drain never takes a lock.
 *
 * A sub-buffer's life: FREE → FILLING (writer) → FULL (writer) → DRAINING (drain, or a writer that steals: FILLING) → FREE.
 * The drain may also read a FILLING one up to `used` (acquire), and checks `sequence` and `state` again after its copy.
 * The drain trusts nothing that stands here: a target may lie.
 */
#ifndef INFERSCOPE_ABI_LANE_H
#define INFERSCOPE_ABI_LANE_H

#include <stdint.h>

enum {
	SUBBUF_BYTES = 65536,
	LANES_MAX = 2048,
	LANE_DEPTH_REFS = 32,
	LANE_NONE = 0xffffffffu >> 1, /* "no sub-buffer", as an index */
};

enum lane_kind { LANE_FREE = 0, LANE_META = 1, LANE_THREAD = 2, LANE_SESSION = 3, LANE_GPU = 4, LANE_MEMORY = 5 /* of all threads: what native libraries allocate */ };
enum subbuf_state { SUBBUF_FREE = 0, SUBBUF_FILLING = 1, SUBBUF_FULL = 2, SUBBUF_DRAINING = 3 };
enum clock_kind { CLOCK_TSC = 1, CLOCK_MONOTONIC_NS = 2 };

/* Head of a sub-buffer; events follow it, up to `used`. Atomics are __atomic builtins on plain fields, both sides. */
struct subbuf {
	uint32_t state; /* enum subbuf_state */
	uint32_t used;  /* bytes of the whole sub-buffer in use, head included; stored with release after the event is whole */
	uint32_t next_free; /* index + 1 of the next free one, while FREE */
	uint32_t lane;  /* slot in page.lanes */
	uint32_t tid;   /* as the target sees it (innermost pid namespace) */
	uint32_t kind;  /* enum lane_kind */
	uint64_t sequence; /* of this lane, from 1: a gap is a loss */
	uint64_t order;    /* of all lanes, from 1: the smallest FULL one is the oldest */
	uint64_t lost_before; /* events of this lane lost before this sub-buffer, in total since arm */
	uint64_t event_count; /* in this sub-buffer */
	uint32_t depth;    /* of the thread's stack as it knows it, before the first event here */
	uint32_t ref_count; /* how many of refs are valid */
	uint32_t refs[LANE_DEPTH_REFS]; /* innermost last */
	uint64_t generation; /* counts the takings of this sub-buffer, ever */
};
_Static_assert(sizeof(struct subbuf) <= 256, "events begin at SUBBUF_HEAD");
enum { SUBBUF_HEAD = 256 };

/* One lane. A thread that ends hands its sub-buffer over as FULL and sets `gone`; the drain frees the slot after the last one. */
struct lane_slot {
	uint32_t kind; /* enum lane_kind; LANE_FREE = nobody's. Taken by compare-and-swap */
	uint32_t tid;
	uint32_t current; /* index of the sub-buffer being filled, or LANE_NONE */
	uint32_t gone;    /* 1: its thread ended */
	uint64_t sequence; /* of the sub-buffer being filled */
	uint64_t lost;    /* events lost in total since arm */
	uint64_t events;  /* events written in total since arm */
	uint64_t skipped; /* calls not recorded because of --skip, since arm */
	uint64_t cost_ticks; /* what our hooks cost this thread since arm (calibrated estimate) */
};

#endif
