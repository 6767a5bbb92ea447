/* Before a thread is held: one attach at a time, a slot and a place for our memory, the stub written and read back. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/attempt.h"
#include "inject/memory.h"
#include "inject/steps.h"

#define LOCK_MS 5000
#define SLOT_REST_MS 2500
#define RAW_WAITS_MS 1000
#define LOOPS_PER_MS 10 /* of 100 us and somewhat more */

void attempt_nap_us(long us)
{
	nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

void attempt_step(const struct attempt *attempt, int step)
{
	if (attempt->options && attempt->options->step)
		attempt->options->step(attempt->options->step_context, step);
}

bool attempt_stopped(const struct attempt *attempt, struct error *err)
{
	if (!attempt->options || !attempt->options->stop || *attempt->options->stop == 0)
		return false;
	fail(err, ERR_INTERRUPTED, "attaching to %d was interrupted", (int)attempt->target->pid);
	return true;
}

/* Who holds the flock on FD, 0 = not to be seen. proc(5), /proc/locks: "1: FLOCK  ADVISORY  WRITE 4121 00:17:4711 0 EOF" */
static pid_t lock_holder(const struct procfs *procfs, int fd)
{
	char path[512], line[256];
	struct stat info;
	pid_t found = 0;
	FILE *locks;

	snprintf(path, sizeof path, "%s/locks", procfs->root);
	locks = fopen(path, "re");
	if (!locks)
		return 0;
	while (fstat(fd, &info) == 0 && !found && fgets(line, sizeof line, locks)) {
		unsigned long long inode;
		int pid;

		if (sscanf(line, "%*d: FLOCK %*s %*s %d %*x:%*x:%llu", &pid, &inode) == 2 && inode == info.st_ino)
			found = pid;
	}
	fclose(locks);
	return found;
}

static int refuse_locked(const struct attempt *attempt, const char *path, int fd, struct error *err)
{
	pid_t holder = lock_holder(&attempt->target->procfs, fd);
	char name[64] = "?";

	if (holder <= 0)
		return fail(err, ERR_BUSY, "cannot attach to %d: %s is locked by another attach, or another program, for more than %d ms", (int)attempt->target->pid, path, LOCK_MS);
	if (procfs_read(&attempt->target->procfs, holder, "comm", name, sizeof name) > 0)
		name[strcspn(name, "\n")] = '\0';
	return fail(err, ERR_BUSY, "cannot attach to %d: process %d (%s) has locked %s for more than %d ms", (int)attempt->target->pid, (int)holder, name, path, LOCK_MS);
}

/* Waits until PATH can be locked: the lock is a flock, which ends with whoever holds it. */
static int lock_file(const struct attempt *attempt, const char *path, int *out, struct error *err)
{
	uint64_t until_ns = clock_monotonic_ns() + LOCK_MS * NS_PER_MS;
	int pid = (int)attempt->target->pid;

	*out = open(path, O_RDONLY | O_CLOEXEC);
	if (*out < 0)
		return errno == ENOENT || errno == ESRCH ? target_gone(attempt->target, err)
		                                         : fail(err, error_of(errno, ERR_PERMISSION), "cannot attach to %d: %s: %s", pid, path, strerror(errno));
	while (flock(*out, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return fail(err, ERR_INJECT, "cannot attach to %d: %s cannot be locked: %s", pid, path, strerror(errno));
		if (clock_monotonic_ns() > until_ns)
			return refuse_locked(attempt, path, *out, err);
		if (attempt_stopped(attempt, err))
			return -1;
		attempt_nap_us(500);
	}
	return 0;
}

/* Two that both find no library in it would both load one, and two collectors know nothing of each other. Its own file, which lives as long as it is open. */
static int lock_process(struct attempt *attempt, struct error *err)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%d/stat", attempt->target->procfs.root, (int)attempt->target->pid);
	return attempt->process_fd >= 0 ? 0 : lock_file(attempt, path, &attempt->process_fd, err);
}

/* One attach at a time for all targets of one interpreter file, for milliseconds: two in the same slot would kill the target. */
static int lock_interpreter(struct attempt *attempt, struct error *err)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%d/exe", attempt->target->procfs.root, (int)attempt->target->pid);
	return lock_file(attempt, path, &attempt->lock_fd, err);
}

void attempt_unlock(struct attempt *attempt)
{
	if (attempt->lock_fd >= 0)
		close(attempt->lock_fd);
	attempt->lock_fd = -1;
}

void attempt_end(struct attempt *attempt)
{
	attempt_unlock(attempt);
	if (attempt->process_fd >= 0)
		close(attempt->process_fd);
	attempt->process_fd = -1;
}

static int choose_slot(struct attempt *attempt, struct error *err)
{
	uint64_t until_ns = clock_monotonic_ns() + SLOT_REST_MS * NS_PER_MS;
	struct slot slots[MAX_SLOTS];

	for (;;) {
		size_t count = slots_find(attempt->target, slots);
		const struct slot *slot = slots_choose(slots, count);

		attempt->slots_usable = slots_usable(slots, count);
		if (slot) {
			attempt->slot = *slot;
			return 0;
		}
		if (attempt->slots_usable == 0 && target_unread(attempt->target, err) < 0)
			return -1;
		if (attempt->slots_usable == 0 || clock_monotonic_ns() > until_ns)
			return fail(err, ERR_NO_SLOT, "cannot attach to %d: all %zu places for the entry code are in use: threads of earlier attaches are at work in %zu of them", (int)attempt->target->pid,
			            count, count - attempt->slots_usable);
		if (attempt_stopped(attempt, err))
			return -1;
		attempt_nap_us(5000);
	}
}

/* All of the stub but its saved registers: with those zero the slot counts as free. */
static int write_slot(struct attempt *attempt, struct error *err)
{
	unsigned char image[4096], check[4096];
	struct stub_data *data = &attempt->data;
	const struct scratch *scratch = &attempt->scratch;

	slot_data_init(data);
	data->attach_id = attempt->attach_id;
	data->scratch = scratch->control + BIAS;
	data->map_addr = scratch->control_mapped ? scratch->control + CONTROL_SIZE : scratch->control;
	data->map_size = scratch->control + scratch->size - data->map_addr;
	data->map_negative = 0 - data->map_addr;
	data->single_thread_flag = attempt->target->single_thread_flag ? attempt->target->single_thread_flag : scratch->control + CONTROL_SPARE;
	data->stack = scratch->stack_top;
	data->child_tid = scratch->control + CONTROL_CHILD;
	data->tcb = scratch->tcb;
	data->want_memfd = attempt->entry == 0;
	if (MACHINE_BLOCK_BYTES)
		data->constant = attempt->target->block_below;
	data->wait_loops = RAW_WAITS_MS * LOOPS_PER_MS;
	if (attempt->options && attempt->options->raw_wait_ms > 0)
		data->wait_loops = (uint64_t)attempt->options->raw_wait_ms * LOOPS_PER_MS;
	data->used_ns = clock_monotonic_ns();
	snprintf(data->memfd_name, sizeof data->memfd_name, "%s", attempt->payload->memfd_name);
	slot_build(image, data);
	if (pwrite(attempt->target->memory_fd, image, STUB_SIZE, (off_t)attempt->slot.addr) != (ssize_t)STUB_SIZE)
		return fail(err, ERR_INJECT, "cannot attach to %d: writing to its code padding (%s): %s (a kernel built with PROC_MEM_NO_FORCE, or a "
		            "security module?)", (int)attempt->target->pid, attempt->slot.where, strerror(errno));
	if (memory_read(&attempt->target->memory, attempt->slot.addr, check, STUB_SIZE) < 0)
		return fail(err, ERR_INJECT, "cannot attach to %d: its code padding (%s) cannot be read again: %s", (int)attempt->target->pid, attempt->slot.where, strerror(errno));
	if (memcmp(check, image, STUB_SIZE) != 0)
		return fail(err, ERR_INJECT, "cannot attach to %d: what was written to its code padding (%s) did not arrive", (int)attempt->target->pid,
		            attempt->slot.where);
	return 0;
}

static int choose_places(struct attempt *attempt, struct error *err)
{
	char build_id[64];
	uint64_t random[2];
	struct target *target = attempt->target;
	const struct payload *payload = attempt->payload;
	enum library_choice choice = attempt->options ? attempt->options->library : LIBRARY_OWN;

	if (getrandom(random, sizeof random, 0) != sizeof random)
		random[0] = random[1] = clock_monotonic_ns();
	if (target_refresh_maps(target) < 0) {
		int error = errno;

		return target_alive(target) ? fail(err, error_of(error, ERR_INJECT), "the memory map of process %d cannot be read (%s)", (int)target->pid, strerror(error)) : target_gone(target, err);
	}
	image_build_id_of(payload->bytes, payload->size, build_id, sizeof build_id);
	target->memory_trouble = 0;
	attempt->entry = target_dormant(target, payload->memfd_name, build_id, choice == LIBRARY_OTHER, payload->entry, &attempt->loaded, NULL, 0);
	if (!attempt->entry && choice == LIBRARY_ANY)
		attempt->entry = target_dormant(target, payload->memfd_name, NULL, false, payload->entry, &attempt->loaded, NULL, 0);
	/* It would be loaded a second time, beside the one that has the hooks. */
	if (!attempt->entry && target_unread(target, err) < 0)
		return -1;
	if (!attempt->entry && choice == LIBRARY_OTHER)
		return fail(err, ERR_COLLECTOR, "no collector of another build is in process %d", (int)target->pid);
	if (attempt->options && attempt->options->fresh_library)
		attempt->entry = 0;
	if (choose_slot(attempt, err) < 0)
		return -1;
	if (!scratch_plan(target, attempt->slot.scratch, random[0], &attempt->scratch))
		return fail(err, ERR_INJECT, "cannot attach to %d: no room in its address space", (int)target->pid);
	if (target_open_memory(target) < 0) {
		bool closed = errno == EACCES;

		fail(err, error_of(errno, ERR_PERMISSION), "cannot attach to %d: its memory cannot be opened: %s", (int)target->pid, strerror(errno));
		return closed ? fail_hint(err, "%s/%d/mem is for its user alone: CAP_DAC_OVERRIDE passes, CAP_SYS_PTRACE does not", target->procfs.root, (int)target->pid) : -1;
	}
	attempt->attach_id = random[1] | 1;
	return 0;
}

/* An earlier attach's control page is made new, with the id that the slot will name. */
static int renew_control(struct attempt *attempt, struct error *err)
{
	unsigned char zeros[CONTROL_SIZE] = { 0 };

	if (!attempt->scratch.control_mapped)
		return 0;
	memcpy(zeros, &attempt->attach_id, sizeof attempt->attach_id);
	if (target_write(attempt->target, attempt->scratch.control, zeros, sizeof zeros) < 0)
		return fail(err, ERR_INJECT, "cannot attach to %d: its control page is gone: %s", (int)attempt->target->pid, strerror(errno));
	return 0;
}

int attempt_prepare(struct attempt *attempt, struct error *err)
{
	if (lock_process(attempt, err) < 0 || lock_interpreter(attempt, err) < 0)
		return -1;
	attempt_step(attempt, STEP_LOCKED);
	if (choose_places(attempt, err) < 0 || write_slot(attempt, err) < 0 || renew_control(attempt, err) < 0)
		return -1;
	attempt_step(attempt, STEP_SLOT);
	return 0;
}
