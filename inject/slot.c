/* Finds padding behind code, tells whether a slot there is free, and fills the master copy of the stub. */
#include "inject/slot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "inject/memory.h"

#define SLOT_ALIGN 32
#define PAGE 4096ull
#define REST_NS 1000000000ull  /* a thread that runs at all has left a dozen instructions behind after this */
#define PASSED_NS 200000ull    /* … or after this much time on a CPU */
#define LOOKS 4
#define LOOK_AGAIN_NS 2000000l

void slot_data_init(struct stub_data *data)
{
	memcpy(data, stub_data, sizeof *data);
}

void slot_build(unsigned char *image, const struct stub_data *data)
{
	memcpy(image, stub_begin, STUB_SIZE);
	memcpy(image + STUB_DATA_OFFSET, data, sizeof *data);
}

bool slot_thread_lives(const struct target *target, pid_t inner_tid)
{
	struct proc_status status;
	pid_t tid;
	int found;

	if (inner_tid <= 0)
		return false;
	/* Without a namespace of its own this is one look. */
	if (target->status.ns_depth > 1)
		found = target_find_thread(target, inner_tid, &tid, &status);
	else if (procfs_status(&target->procfs, target->pid, inner_tid, &status) == 0)
		found = 1;
	else
		found = errno == ENOENT || errno == ESRCH ? 0 : -1;
	/* Where we could not look (no descriptor, say), it may be at work in there. */
	return found < 0 || (found > 0 && status.state != 'X' && status.state != 'Z');
}

/* False for another boot's clock, too. */
static bool is_recent(const struct stub_data *data)
{
	uint64_t now_ns = clock_monotonic_ns();

	return now_ns >= data->used_ns && now_ns - data->used_ns <= REST_NS;
}

/*
 * Has the thread that was sent into this slot left it? It is gone, or waits somewhere else, or is seen to run for far longer than the
 * stub takes. (A signal handler that runs on top of the stub, and blocks there, would be taken for "somewhere else": the stub runs
 * with all signals blocked but for its last dozen instructions.)
 */
static bool has_left(const struct target *target, const struct slot *slot, uint64_t tid)
{
	uint64_t first_ns = 0, run_ns, wait_ns, pc;
	char name[64], text[256], *last;

	if (tid == 0 || tid > INT32_MAX)
		return false;
	snprintf(name, sizeof name, "task/%d/syscall", (int)tid);
	for (int look = 0; look < LOOKS; look++) {
		if (procfs_read(&target->procfs, target->pid, name, text, sizeof text) < 0 ||
		    procfs_schedstat(&target->procfs, target->pid, (pid_t)tid, &run_ns, &wait_ns) < 0)
			return errno == ESRCH || errno == ENOENT;
		last = strrchr(text, ' ');
		if (last && strncmp(text, "running", 7) != 0) {
			pc = strtoull(last, NULL, 16);
			return pc < slot->addr || pc >= slot->addr + STUB_SIZE;
		}
		if (first_ns && run_ns > first_ns + PASSED_NS)
			return true;
		if (!first_ns)
			first_ns = run_ns;
		nanosleep(&(struct timespec){ 0, LOOK_AGAIN_NS }, NULL);
	}
	return false;
}

static bool borrowed_is_gone(const struct target *target, uint64_t tid)
{
	struct proc_status status;

	return tid && tid <= INT32_MAX && procfs_status(&target->procfs, target->pid, (pid_t)tid, &status) < 0 && (errno == ESRCH || errno == ENOENT);
}

static enum slot_state state_of_used(const struct target *target, struct slot *slot, const struct stub_data *data)
{
	uint64_t page = data->scratch - BIAS;
	struct control control;
	bool known = memory_read(&target->memory, page, &control, sizeof control) == 0 && control.attach_id == data->attach_id;

	slot->used_ns = data->used_ns;
	/* An attacher gave up before it stopped anything. The page that it had made new for that is used again: else each that gives up would leave one. */
	if (data->saved.pc == 0) {
		slot->scratch = known ? page : 0;
		return SLOT_EMPTY;
	}
	if (!known || control.clone_result == 0) {
		/* Its attacher died between saving and entering, or its thread has not got to run, or could map nothing. */
		if (is_recent(data))
			return SLOT_RESTING;
		return has_left(target, slot, data->saved.borrowed_tid) ? SLOT_EMPTY : SLOT_BUSY;
	}
	if (slot_thread_lives(target, (pid_t)(uint32_t)control.child) || slot_thread_lives(target, (pid_t)(uint32_t)control.thread))
		return SLOT_BUSY;
	slot->scratch = page;
	/* Not said to be done: in the rest of its call for as long as that takes; or in a forked child, whose borrowed thread stayed with its parent. */
	if (control.done != 1)
		return is_recent(data) ? SLOT_RESTING : borrowed_is_gone(target, data->saved.borrowed_tid) ? SLOT_FINISHED : SLOT_BUSY;
	/* Its attacher may still read there; if it was killed, a second of waiting is enough. */
	if (!control.released && control.phase >= PHASE_CALLING && is_recent(data))
		return SLOT_RESTING;
	return !is_recent(data) || has_left(target, slot, data->saved.borrowed_tid) ? SLOT_FINISHED : SLOT_RESTING;
}

static bool all_zero(const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			return false;
	return true;
}

/* False when these bytes are somebody else's. */
static bool classify(const struct target *target, const unsigned char *bytes, struct slot *slot)
{
	struct stub_data data;

	if (all_zero(bytes, STUB_SIZE)) {
		slot->state = SLOT_EMPTY;
		return true;
	}
	if (memcmp(bytes, stub_begin, STUB_DATA_OFFSET) != 0)
		return false;
	memcpy(&data, bytes + STUB_DATA_OFFSET, sizeof data);
	slot->state = state_of_used(target, slot, &data);
	return true;
}

static void name_slot(const struct target *target, const struct image *image, struct slot *slot)
{
	const char *name = image->soname[0] ? image->soname : "executable";

	if (image->base == target->python.base && !image->soname[0])
		name = "python";
	snprintf(slot->where, sizeof slot->where, "%.40s+0x%llx", name, (unsigned long long)(slot->addr - image->bias));
}

static size_t slots_in(const struct target *target, const struct image *image, struct slot *list, size_t count)
{
	size_t step = (STUB_SIZE + SLOT_ALIGN - 1) & ~(size_t)(SLOT_ALIGN - 1);
	unsigned char bytes[PAGE];

	for (uint32_t i = 0; i < image->segment_count; i++) {
		const struct image_segment *segment = &image->segments[i];
		uint64_t page_end = (segment->end + PAGE - 1) & ~(PAGE - 1);
		uint64_t addr = (segment->end + 16 + SLOT_ALIGN - 1) & ~(uint64_t)(SLOT_ALIGN - 1);
		const struct mapping *mapping = maps_find(&target->maps, segment->end - 1);

		if (!segment->executable || segment->writable || segment->end <= segment->start)
			continue;
		if (!mapping || !mapping->executable || mapping->writable || mapping->shared || mapping->end < page_end)
			continue;
		for (; addr + step <= page_end && count < MAX_SLOTS; addr += step) {
			memset(&list[count], 0, sizeof *list);
			list[count].addr = addr;
			if (memory_read(&target->memory, addr, bytes, STUB_SIZE) < 0 || !classify(target, bytes, &list[count]))
				continue;
			name_slot(target, image, &list[count]);
			count++;
		}
	}
	return count;
}

size_t slots_find(const struct target *target, struct slot *list)
{
	size_t count = slots_in(target, &target->libc, list, 0);

	count = slots_in(target, &target->loader, list, count);
	/* The C library makes nearly all system calls: where the stub must be near its thread, it must be near that. */
	if (!MACHINE_BORROWS_RUNNING)
		return count;
	if (target->executable.base)
		count = slots_in(target, &target->executable, list, count);
	if (target->python.base && target->python.base != target->executable.base)
		count = slots_in(target, &target->python, list, count);
	return count;
}

size_t slots_usable(const struct slot *list, size_t count)
{
	size_t usable = 0;

	for (size_t i = 0; i < count; i++)
		usable += list[i].state != SLOT_BUSY;
	return usable;
}

/* A finished one brings its control page with it, and so may one that was given up: repeated attaches map nothing more. */
static int rank(const struct slot *slot)
{
	return slot->state == SLOT_FINISHED ? 2 : slot->scratch != 0;
}

const struct slot *slots_choose(const struct slot *list, size_t count)
{
	const struct slot *best = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct slot *slot = &list[i];

		if (slot->state != SLOT_FINISHED && slot->state != SLOT_EMPTY)
			continue;
		if (!best || rank(slot) > rank(best) || (rank(slot) == rank(best) && slot->used_ns < best->used_ns))
			best = slot;
	}
	return best;
}
