/*
 * Native frames for a snapshot: of a running thread by a hold of some 30 us, of a blocked or stopped one by what /proc tells of it; of a blocked one whose
 * stack cannot be followed that way by a hold too, if it is in a call that goes on as if nothing had been.
 */
#ifndef INFERSCOPE_SESSION_SNAPSHOT_NATIVE_H
#define INFERSCOPE_SESSION_SNAPSHOT_NATIVE_H

#include "session/snapshot.h"

struct snapshot_native;

/* Both stacks of one thread at one moment. */
struct snapshot_sight {
	const struct pystack *python; /* NULL: it runs no Python, or that could not be read */
	struct native_stack native;   /* count 0: could not be read */
	bool held;                    /* it was running, as far as it was held */
	uint64_t hold_ns;
	char note[192];               /* what is missing and why */
};

/* TARGET, PROCFS and READER must outlive it. NULL, with the reason in WHY, when native frames cannot be had. */
struct snapshot_native *snapshot_native_open(struct target *target, const struct procfs *procfs, struct pyreader *reader, char *why, size_t size);
void snapshot_native_close(struct snapshot_native *native); /* accepts NULL */
/* Looks at TID, which STOPPED says is stopped by job control or a tracer. OTHERWISE is its Python stack where no common moment of both was found.
 * The result is valid until the next call. */
const struct snapshot_sight *snapshot_native_at(struct snapshot_native *native, pid_t tid, bool stopped, const struct pystack *otherwise);
void snapshot_native_join(struct snapshot_native *native, const struct snapshot_sight *sight, struct joined_stack *out);
/* Frame INDEX of STACK and the functions inlined there, outermost first, at most ROOM. Strings live as long as NATIVE. */
size_t snapshot_native_frames(struct snapshot_native *native, const struct native_stack *stack, uint32_t index, struct snapshot_frame *out, size_t room);

#endif
