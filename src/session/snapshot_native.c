/* Copies of threads, walked and named. */
#include "session/snapshot_native.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tidmap.h"
#include "session/joiner.h"
#include "session/look.h"

enum { LOOKS = 4, THREADS_MAX = 1 << 22 /* pids end there */ };

struct snapshot_native {
	struct target *target;
	const struct procfs *procfs;
	struct pyreader *reader;
	struct joiner *joiner;
	struct looker *looker;
	struct tidmap inner; /* where the target has numbers of its own */
	bool threads_read;
	bool no_holder; /* there can be none */
	struct error why;
	struct look look;
	struct pystack python;
	struct snapshot_sight sight;
};

struct snapshot_native *snapshot_native_open(struct target *target, const struct procfs *procfs, struct pyreader *reader, char *why, size_t size)
{
	struct snapshot_native *native = calloc(1, sizeof *native);
	struct error err = { 0 };

	if (!native) {
		snprintf(why, size, "out of memory");
		return NULL;
	}
	native->target = target;
	native->procfs = procfs;
	native->reader = reader;
	if (joiner_open(target, procfs, false, &native->joiner, &err) < 0 || looker_open(target, procfs, target_symbol(target, "_PyRuntime", NULL), &native->looker, &err) < 0) {
		snprintf(why, size, "%.200s", err.text);
		snapshot_native_close(native);
		return NULL;
	}
	return native;
}

void snapshot_native_close(struct snapshot_native *native)
{
	if (!native)
		return;
	looker_close(native->looker);
	joiner_close(native->joiner);
	tidmap_done(&native->inner);
	free(native);
}

static pid_t outer_tid(void *context, pid_t tid)
{
	return tidmap_outer(context, tid);
}

static void inner_read(struct snapshot_native *native)
{
	pid_t pid = target_facts(native->target)->pid, *tids = NULL;
	ssize_t count = procfs_threads_all(native->procfs, pid, THREADS_MAX, &tids);

	tidmap_clear(&native->inner);
	for (ssize_t i = 0; i < count; i++) {
		struct proc_status status;

		if (procfs_status(native->procfs, pid, tids[i], &status) == 0)
			tidmap_add(&native->inner, status.inner_pid, tids[i]);
	}
	tidmap_sort(&native->inner);
	free(tids);
}

/* A thread whose Python frames were read before is there; of one that has none it need not be asked again. */
static void threads_know(struct snapshot_native *native, pid_t tid, bool python)
{
	const struct target_facts *facts = target_facts(native->target);
	bool namespaced = facts->pid != facts->inner_pid;

	if (looker_knows(native->looker, tid) || (native->threads_read && !python))
		return;
	if (namespaced)
		inner_read(native);
	native->threads_read = looker_threads(native->looker, namespaced ? outer_tid : NULL, &native->inner);
}

static void sight_of_look(struct snapshot_native *native)
{
	struct snapshot_sight *sight = &native->sight;

	sight->hold_ns = native->look.hold_ns;
	sight->python = pyglance_stack(native->reader, native->look.glimpse, native->look.glimpse_size, &native->python) == 0 ? &native->python : NULL;
	joiner_walk_newest(native->joiner, &native->look.copy, &sight->native);
}

/* Holds the thread for a moment. False: it is as it was, and blocked. */
static bool look_held(struct snapshot_native *native, pid_t tid, bool force)
{
	struct snapshot_sight *sight = &native->sight;
	int error;

	if (!native->no_holder)
		native->no_holder = looker_hold(native->looker, &native->why) < 0;
	if (native->no_holder) {
		snprintf(sight->note, sizeof sight->note, "not held: %.150s", native->why.text);
		return true;
	}
	switch (looker_held(native->looker, tid, force, &native->look, &error)) {
	case HOLD_COPIED:
		sight_of_look(native);
		sight->held = !force;
		sight->note[0] = '\0';
		return true;
	case HOLD_BLOCKED:
	case HOLD_PRONE:
		return false;
	case HOLD_GONE:
		snprintf(sight->note, sizeof sight->note, "it ended");
		return true;
	case HOLD_REFUSED:
		snprintf(sight->note, sizeof sight->note, "not held: %s", strerror(error));
		return true;
	default:
		snprintf(sight->note, sizeof sight->note, "not held: it did not stop in time");
		return true;
	}
}

/* False when it did not stay where it was. */
static bool look_blocked(struct snapshot_native *native, pid_t tid)
{
	pid_t pid = target_facts(native->target)->pid;
	struct block before, after;

	if (block_read(native->procfs, pid, tid, &before) != BLOCK_BLOCKED || before.number == BLOCK_NOT_TOLD)
		return false;
	looker_blocked(native->looker, tid, &before, &native->look);
	sight_of_look(native);
	return block_read(native->procfs, pid, tid, &after) == BLOCK_BLOCKED && block_same(&before, &after);
}

/* A thread whose Python frames were read a moment ago has them, as a rule. */
static const struct snapshot_sight *seen(struct snapshot_sight *sight, const struct pystack *otherwise)
{
	if (!sight->python && otherwise && !sight->note[0])
		snprintf(sight->note, sizeof sight->note, "its Python frames could not be read beside the native ones");
	return sight;
}

const struct snapshot_sight *snapshot_native_at(struct snapshot_native *native, pid_t tid, bool stopped, const struct pystack *otherwise)
{
	struct snapshot_sight *sight = &native->sight;

	threads_know(native, tid, otherwise);
	joiner_refresh(native->joiner);
	for (int look = 0; look < LOOKS; look++) {
		sight->native.count = 0;
		sight->native.end = WALK_COMPLETE;
		sight->held = false;
		sight->hold_ns = 0;
		sight->note[0] = '\0';
		if (look_blocked(native, tid)) {
			/* An unwind that needs a register which only a stop can tell. */
			if (sight->native.end == WALK_CUT_REGISTER && !stopped)
				look_held(native, tid, true);
			return seen(sight, otherwise);
		}
		if (!stopped && look_held(native, tid, false))
			break;
	}
	if (!sight->held) {
		sight->native.count = 0;
		sight->python = otherwise;
		if (!sight->note[0])
			snprintf(sight->note, sizeof sight->note, "it moved all the time");
	}
	return seen(sight, otherwise);
}

void snapshot_native_join(struct snapshot_native *native, const struct snapshot_sight *sight, struct joined_stack *out)
{
	joiner_join(native->joiner, sight->python, &sight->native, 0, out);
}

size_t snapshot_native_frames(struct snapshot_native *native, const struct native_stack *stack, uint32_t index, struct snapshot_frame *out, size_t room)
{
	uint64_t ip = stack->frames[index].ip;
	struct symbol found[SYMBOL_INLINES_MAX];
	const struct module *module;
	size_t count = joiner_names(native->joiner, stack, index, found, &module), put = 0;

	while (count-- > 0 && put < room)
		out[put++] = (struct snapshot_frame){
			.function = found[count].name, .file = found[count].file, .line = found[count].line, .inlined = found[count].inlined,
			.module = module ? module->path : "", .offset = module ? ip - module->bias : ip,
		};
	return put;
}
