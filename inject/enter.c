/*
 * One entry from outside: lock, slot, window, then hand the raw thread what it needs and watch it work. Nothing here runs while a
 * thread is held.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "inject/critical.h"
#include "inject/memory.h"
#include "inject/scratch.h"
#include "inject/slot.h"
#include "inject/steps.h"
#include "inject/target.h"
#include "inject/threads.h"

#define NS_PER_MS 1000000ull
#define DEFAULT_THREAD_MS 50
#define PRONE_THREAD_MS 1000
#define MAX_PATIENCE_MS 800
#define SEIZE_TRIES 20
#define SEIZE_NAP_US 2000
#define DEFAULT_TOTAL_MS 10000
#define LOCK_MS 5000
#define SLOT_REST_MS 1500
#define RAW_MS 1000            /* for the raw thread to appear */
#define RAW_WAITS_MS 1000
#define LOOPS_PER_MS 10        /* of 100 us and somewhat more */
#define CANCEL_MS 20
#define TRIES_PER_WINDOW 20
#define MAX_TRIES 1000
#define MAX_ARGUMENT 1024

struct entry {
	struct target *target;
	uint64_t control;
	uint64_t attach_id;
	void (*step)(void *context, int step);
	void *step_context;
};

/* What one inject_enter() works with. */
struct attempt {
	struct target *target;
	const struct payload *payload;
	const void *argument;
	size_t argument_size;
	const struct inject_options *options;
	struct receipt *receipt;
	int lock_fd, memory_fd;
	struct slot slot;
	size_t slots_usable;
	struct stub_data data;
	uint64_t attach_id;
	struct scratch scratch;
	struct window *window;
	struct choice choice;
	uint64_t entry;  /* of a library that is there already; 0 = load */
	unsigned loaded; /* libraries of this name so far */
	uint64_t deadline_ns, started_ns;
	uint32_t seize_refused;
	uint32_t patience_ms; /* with one thread that does not stop */
};

static void nap_us(long us)
{
	nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

static void step(const struct attempt *attempt, int number)
{
	if (attempt->options && attempt->options->step)
		attempt->options->step(attempt->options->step_context, number);
}

static int gone(const struct target *target, struct error *err)
{
	return fail(err, ERR_EXITED, "process %d has ended", (int)target->pid);
}

/* One attach at a time for all targets of one interpreter file, for milliseconds: two in the same slot would kill the target. */
static int lock_interpreter(struct attempt *attempt, struct error *err)
{
	uint64_t until_ns = clock_monotonic_ns() + LOCK_MS * NS_PER_MS;
	char path[512];

	snprintf(path, sizeof path, "%s/%d/exe", attempt->target->procfs.root, (int)attempt->target->pid);
	attempt->lock_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (attempt->lock_fd < 0)
		return errno == ENOENT || errno == ESRCH ? gone(attempt->target, err)
		                                         : fail(err, ERR_PERMISSION, "cannot attach to %d: %s: %s", (int)attempt->target->pid, path, strerror(errno));
	while (flock(attempt->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return fail(err, ERR_INJECT, "cannot attach to %d: its executable cannot be locked: %s", (int)attempt->target->pid, strerror(errno));
		if (clock_monotonic_ns() > until_ns)
			return fail(err, ERR_BUSY, "cannot attach to %d: its executable %s is locked by another attach, or another program, for more than %d ms",
			            (int)attempt->target->pid, attempt->target->facts.executable, LOCK_MS);
		nap_us(500);
	}
	return 0;
}

static void unlock_interpreter(struct attempt *attempt)
{
	if (attempt->lock_fd >= 0)
		close(attempt->lock_fd);
	attempt->lock_fd = -1;
}

static void release(struct attempt *attempt)
{
	unlock_interpreter(attempt);
	if (attempt->memory_fd >= 0)
		close(attempt->memory_fd);
	attempt->memory_fd = -1;
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
		if (attempt->slots_usable == 0 || clock_monotonic_ns() > until_ns)
			return fail(err, ERR_NO_SLOT, "cannot attach to %d: all %zu places for the entry code are in use", (int)attempt->target->pid, count);
		nap_us(5000);
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
	data->wait_loops = RAW_WAITS_MS * LOOPS_PER_MS;
	if (attempt->options && attempt->options->raw_wait_ms > 0)
		data->wait_loops = (uint64_t)attempt->options->raw_wait_ms * LOOPS_PER_MS;
	data->used_ns = clock_monotonic_ns();
	snprintf(data->memfd_name, sizeof data->memfd_name, "%s", attempt->payload->memfd_name);
	slot_build(image, data);
	if (pwrite(attempt->memory_fd, image, STUB_SIZE, (off_t)attempt->slot.addr) != (ssize_t)STUB_SIZE)
		return fail(err, ERR_INJECT, "cannot attach to %d: writing to its code padding (%s): %s (a kernel built with PROC_MEM_NO_FORCE, or a "
		            "security module?)", (int)attempt->target->pid, attempt->slot.where, strerror(errno));
	if (memory_read(attempt->target->pid, attempt->slot.addr, check, STUB_SIZE) < 0 || memcmp(check, image, STUB_SIZE) != 0)
		return fail(err, ERR_INJECT, "cannot attach to %d: what was written to its code padding (%s) did not arrive", (int)attempt->target->pid,
		            attempt->slot.where);
	return 0;
}

static int prepare(struct attempt *attempt, struct error *err)
{
	char build_id[64], path[64];
	uint64_t random[2];
	struct target *target = attempt->target;

	if (getrandom(random, sizeof random, 0) != sizeof random)
		random[0] = random[1] = clock_monotonic_ns();
	if (target_refresh_maps(target) < 0)
		return gone(target, err);
	image_build_id_of(attempt->payload->bytes, attempt->payload->size, build_id, sizeof build_id);
	attempt->entry = target_dormant(target, attempt->payload->memfd_name, build_id, attempt->payload->entry, &attempt->loaded, NULL, 0);
	if (attempt->options && attempt->options->fresh_library)
		attempt->entry = 0;
	if (choose_slot(attempt, err) < 0)
		return -1;
	if (!scratch_plan(target, attempt->slot.scratch, random[0], &attempt->scratch))
		return fail(err, ERR_INJECT, "cannot attach to %d: no room in its address space", (int)target->pid);
	snprintf(path, sizeof path, "%s/%d/mem", target->procfs.root, (int)target->pid);
	attempt->memory_fd = open(path, O_RDWR | O_CLOEXEC);
	if (attempt->memory_fd < 0)
		return fail(err, ERR_PERMISSION, "cannot attach to %d: its memory cannot be opened: %s", (int)target->pid, strerror(errno));
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
	if (memory_write(attempt->target->pid, attempt->scratch.control, zeros, sizeof zeros) < 0)
		return fail(err, ERR_INJECT, "cannot attach to %d: its control page is gone: %s", (int)attempt->target->pid, strerror(errno));
	return 0;
}

static void fill_window(struct attempt *attempt, const struct candidate *thread)
{
	struct window *window = attempt->window;
	const struct target *target = attempt->target;
	const struct image *images[2] = { &target->libc, &target->loader };
	struct proc_status status;
	char path[512];
	int count = 0;

	window->tid = thread->tid;
	window->inner_tid = thread->inner_tid;
	window->tid_offset = target->facts.tid_offset;
	window->memory_fd = attempt->memory_fd;
	window->slot_entry = attempt->slot.addr + STUB_ENTRY_OFFSET;
	window->slot_saved = attempt->slot.addr + STUB_DATA_OFFSET;
	window->single_thread_flag = target->single_thread_flag;
	memset(window->libc_text, 0, sizeof window->libc_text);
	for (int i = 0; i < 2; i++)
		for (uint32_t j = 0; j < images[i]->segment_count && count < 4; j++)
			if (images[i]->segments[j].executable) {
				window->libc_text[count][0] = images[i]->segments[j].start;
				window->libc_text[count++][1] = images[i]->segments[j].end;
			}
	if (procfs_status(&target->procfs, target->pid, 0, &status) == 0)
		window->signals_caught = status.signals_caught;
	window->seccomp = thread->seccomp == 2;
	window->clone_flags = attempt->data.clone_flags;
	window->max_tries = TRIES_PER_WINDOW;
	window->stop_timeout_ms = attempt->patience_ms;
	window->hold_timeout_ms = DEFAULT_THREAD_MS;
	/* Woken by us it will say EINTR to its program unless it is repaired: wait until it gets to a CPU. It runs; it is not held. */
	if ((thread->kind == THREAD_PRONE_INFINITE || thread->kind == THREAD_PRONE_FINITE) && window->stop_timeout_ms < PRONE_THREAD_MS)
		window->stop_timeout_ms = PRONE_THREAD_MS;
	window->step = attempt->options ? attempt->options->step : NULL;
	window->step_context = attempt->options ? attempt->options->step_context : NULL;
	window->status_fd = -1;
	window->watched_since_ns = 0;
	if (thread->kind != THREAD_PRONE_FINITE)
		return;
	window->watched_since_ns = thread->first_seen_ns;
	window->switches = thread->switches;
	snprintf(path, sizeof path, "%s/%d/task/%d/status", target->procfs.root, (int)target->pid, (int)thread->tid);
	window->status_fd = open(path, O_RDONLY | O_CLOEXEC);
}

static const char *reason_text(const struct window *window)
{
	static const char *const texts[REASON_COUNT] = {
		"", "signals kept arriving", "signals were pending", "it stayed inside restartable sequences",
		"it is single-threaded and stayed inside malloc or the loader"
	};
	int most = REASON_SIGNAL;

	for (int i = REASON_SIGNAL; i < REASON_COUNT; i++)
		if (window->reasons[i] > window->reasons[most])
			most = i;
	return texts[most];
}

static int refuse_seize(const struct attempt *attempt, int error, struct error *err)
{
	pid_t pid = attempt->target->pid;
	struct proc_status status;
	char comm[64] = "?";

	if (procfs_status(&attempt->target->procfs, pid, attempt->window->tid, &status) == 0 && status.tracer) {
		if (procfs_read(&attempt->target->procfs, status.tracer, "comm", comm, sizeof comm) > 0)
			comm[strcspn(comm, "\n")] = '\0';
		return fail(err, ERR_ALREADY_TRACED, "cannot attach to %d: already traced by %d (%s)", (int)pid, (int)status.tracer, comm);
	}
	return fail(err, ERR_PERMISSION, "cannot attach to %d: ptrace: %s (a security module, or a container's seccomp profile)", (int)pid,
	            strerror(error));
}

/* 1: entered. 0: choose again. -1: refused, for good. */
static int judge_window(struct attempt *attempt, struct error *err)
{
	const struct window *window = attempt->window;
	int pid = (int)attempt->target->pid;

	switch ((enum window_result)window->result) {
	case WINDOW_ENTERED:
		return 1;
	case WINDOW_GONE:
		return target_alive(attempt->target) ? 0 : gone(attempt->target, err);
	case WINDOW_NO_SEIZE:
		/* A sampler, or another attach, holds a thread for microseconds: try again before calling it traced. */
		if (attempt->seize_refused++ < SEIZE_TRIES) {
			nap_us(SEIZE_NAP_US);
			return 0;
		}
		return refuse_seize(attempt, window->error, err);
	case WINDOW_STOPPED:
		return fail(err, ERR_STOPPED, "cannot attach to %d: it has just been stopped", pid);
	case WINDOW_SECCOMP_KILLS:
	case WINDOW_SECCOMP_FORBIDS:
		return fail(err, ERR_SECCOMP, "cannot attach to %d: its seccomp filter %s system call %d, which attaching needs", pid,
		            window->result == WINDOW_SECCOMP_KILLS ? "kills it for" : "forbids", window->error);
	case WINDOW_SECCOMP_UNREADABLE:
		return fail(err, ERR_SECCOMP, "cannot attach to %d: its seccomp filter cannot be read: %s", pid, strerror(window->error));
	case WINDOW_FAILED:
		return fail(err, ERR_INJECT, "cannot attach to %d: holding thread %d failed: %s", pid, (int)window->tid, strerror(window->error));
	case WINDOW_NO_MOMENT:
		if (attempt->receipt->tries >= MAX_TRIES || clock_monotonic_ns() >= attempt->deadline_ns)
			return fail(err, ERR_NO_THREAD, "cannot attach to %d: no good moment in %u tries: %s", pid, attempt->receipt->tries, reason_text(window));
		return 0;
	case WINDOW_NO_STOP:
	case WINDOW_ODD_THREAD:
	case WINDOW_NOT_RUN:
		if (clock_monotonic_ns() >= attempt->deadline_ns)
			return fail(err, ERR_NO_THREAD, "cannot attach to %d: no thread of it came to a stop in time (%u tries): its CPUs are busy, or it hangs in the "
			            "kernel", pid, attempt->receipt->tries);
		/* The machine may be so busy that nobody gets to a CPU: everybody gets longer next time. */
		if (window->result != WINDOW_ODD_THREAD && attempt->patience_ms < MAX_PATIENCE_MS)
			attempt->patience_ms *= 2;
		choice_exclude(&attempt->choice, window->tid, window->result == WINDOW_ODD_THREAD);
		return 0;
	}
	return fail(err, ERR_INTERNAL, "window result %d", window->result);
}

static void describe_thread(const struct attempt *attempt, const struct candidate *thread)
{
	struct receipt *receipt = attempt->receipt;
	const struct window *window = attempt->window;
	char name[32];

	receipt->tid = thread->tid;
	if ((long)window->regs.orig_rax < 0)
		snprintf(receipt->thread_state, sizeof receipt->thread_state, "running");
	else
		snprintf(receipt->thread_state, sizeof receipt->thread_state, "%s%s",
		         resume_call_name((long)window->regs.orig_rax, name, sizeof name), window->repaired ? " restarted" : "");
}

static int run_window(struct attempt *attempt, const struct candidate *thread, struct error *err)
{
	fill_window(attempt, thread);
	window_run(attempt->window);
	if (attempt->window->status_fd >= 0)
		close(attempt->window->status_fd);
	attempt->receipt->tries += attempt->window->tries;
	attempt->receipt->hold_ns = attempt->window->hold_ns;
	attempt->receipt->hold_total_ns = attempt->window->hold_total_ns;
	return judge_window(attempt, err);
}

/* Choosing may take seconds, so it happens without the lock; whoever is chosen is looked at again with it. */
static int borrow_thread(struct attempt *attempt, struct error *err)
{
	struct candidate thread;
	int verdict = 0;

	while (verdict == 0) {
		if (threads_choose(attempt->target, &attempt->choice, attempt->deadline_ns, &thread, err) < 0 || lock_interpreter(attempt, err) < 0)
			return -1;
		step(attempt, STEP_LOCKED);
		if (prepare(attempt, err) < 0 || write_slot(attempt, err) < 0 || renew_control(attempt, err) < 0)
			return -1;
		step(attempt, STEP_SLOT);
		if (attempt->started_ns == 0)
			attempt->started_ns = clock_monotonic_ns();
		if (thread_still_fit(attempt->target, &thread))
			verdict = run_window(attempt, &thread, err);
		if (verdict == 0)
			release(attempt);
	}
	if (verdict > 0)
		describe_thread(attempt, &thread);
	return verdict < 0 ? -1 : 0;
}

static int read_control(const struct attempt *attempt, struct control *out)
{
	return memory_read(attempt->target->pid, attempt->scratch.control, out, sizeof *out);
}

static int wait_for_raw_thread(struct attempt *attempt, struct control *control, struct error *err)
{
	uint64_t until_ns = clock_monotonic_ns() + RAW_MS * NS_PER_MS;
	int pid = (int)attempt->target->pid;
	long nap = 20;

	for (;; nap = nap < 500 ? nap + 10 : nap) {
		bool mapped = read_control(attempt, control) == 0 && control->attach_id == attempt->attach_id;

		if (mapped && control->done && control->clone_result < 0)
			return fail(err, ERR_INJECT, "cannot attach to %d: no thread could be made in it: %s", pid, strerror((int)-control->clone_result));
		if (mapped && control->done && control->state == RAW_WAITS)
			return 0;
		if (!mapped && !target_alive(attempt->target))
			return gone(attempt->target, err);
		if (clock_monotonic_ns() > until_ns)
			return fail(err, ERR_INJECT, "cannot attach to %d: %s within %d ms", pid,
			            mapped ? "its new thread did not get to run" : "no memory could be mapped in it, or its thread did not get to run", RAW_MS);
		nap_us(nap);
	}
}

static int fill_memfd(struct attempt *attempt, const struct control *control, struct error *err)
{
	const struct payload *payload = attempt->payload;
	char path[512];
	size_t done = 0;
	int fd;

	if (attempt->entry)
		return 0;
	if (control->memfd < 0)
		return fail(err, ERR_INJECT, "cannot attach to %d: memfd_create in it: %s", (int)attempt->target->pid, strerror((int)-control->memfd));
	snprintf(path, sizeof path, "%s/%d/fd/%d", attempt->target->procfs.root, (int)attempt->target->pid, (int)control->memfd);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	while (fd >= 0 && done < payload->size) {
		ssize_t put = write(fd, (const char *)payload->bytes + done, payload->size - done);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			break;
		done += (size_t)put;
	}
	if (done < payload->size)
		fail(err, ERR_INJECT, "cannot attach to %d: writing the library to it: %s", (int)attempt->target->pid, strerror(errno));
	if (fd >= 0)
		close(fd);
	return done < payload->size ? -1 : 0;
}

/* The loader knows libraries by name: one more "./" for each that is there, or it would take an old one for this. */
static void library_path(const struct attempt *attempt, int64_t memfd, char *out, size_t size)
{
	size_t length = (size_t)snprintf(out, size, "/proc/self/fd/");

	for (unsigned i = 0; i < attempt->loaded && length + 16 < size; i++)
		length += (size_t)snprintf(out + length, size - length, "./");
	snprintf(out + length, size - length, "%d", (int)memfd);
}

static int write_image(struct attempt *attempt, struct control *control, struct error *err)
{
	const struct target *target = attempt->target;
	const struct remote_functions *f = &target->functions;
	size_t from = offsetof(struct control, tls_block);

	control->tls_block = attempt->scratch.tcb;
	control->tls_init = f->tls_init;
	control->tls_argument = (uint64_t)(target->facts.tls_init_argument == 1);
	control->pthread_create = f->pthread_create;
	control->pthread_detach = f->pthread_detach;
	control->dlopen = f->dlopen;
	control->dlsym = f->dlsym;
	control->dlerror = f->dlerror;
	control->entry = attempt->entry;
	control->give_back = attempt->scratch.give_back;
	control->give_back_size = attempt->scratch.give_back_size;
	control->tls_repeat = 1;
	if (attempt->options && attempt->options->tls_init_repeat > 0)
		control->tls_repeat = (uint64_t)attempt->options->tls_init_repeat;
	library_path(attempt, control->memfd, control->path, sizeof control->path);
	snprintf(control->symbol, sizeof control->symbol, "%s", attempt->payload->entry);
	if (memory_write(target->pid, attempt->scratch.control + from, (char *)control + from, sizeof *control - from) < 0 ||
	    memory_write(target->pid, attempt->scratch.control + CONTROL_ARGUMENT, attempt->argument, attempt->argument_size) < 0 ||
	    scratch_write_thread(target, &attempt->scratch, attempt->window, (uint32_t)control->child) < 0)
		return fail(err, ERR_INJECT, "cannot attach to %d: writing to its new memory: %s", (int)target->pid, strerror(errno));
	return 0;
}

static int say_go(struct attempt *attempt, struct error *err)
{
	uint32_t go = 1;

	if (memory_write(attempt->target->pid, attempt->scratch.control + CONTROL_GO, &go, sizeof go) < 0)
		return fail(err, ERR_INJECT, "cannot attach to %d: writing to its new memory: %s", (int)attempt->target->pid, strerror(errno));
	return 0;
}

static int refuse_phase(const struct attempt *attempt, const struct control *control, struct error *err)
{
	int pid = (int)attempt->target->pid;
	struct text text;

	text_init(&text);
	text_add_visible(&text, control->message, strnlen(control->message, sizeof control->message));
	if (control->phase == PHASE_NO_THREAD)
		fail(err, ERR_INJECT, "cannot attach to %d: pthread_create in it: %s", pid, strerror((int)control->error));
	else if (control->phase == PHASE_CANCELLED)
		fail(err, ERR_TIMEOUT, "cannot attach to %d: given up before the library was loaded", pid);
	else
		fail(err, ERR_COLLECTOR, "cannot attach to %d: the library does not load in it: %s", pid, text.data && *text.data ? text.data : "no reason given");
	text_done(&text);
	return -1;
}

/* Asks the thread not to call the entry any more. True: it will not (or said so). False: it has begun to. */
static bool cancel(struct attempt *attempt, struct control *control)
{
	uint64_t until_ns = clock_monotonic_ns() + CANCEL_MS * NS_PER_MS, one = 1;

	if (memory_write(attempt->target->pid, attempt->scratch.control + CONTROL_CANCEL, &one, sizeof one) < 0)
		return true;
	/* It says CALLING and then looks; we said cancel and now look: at least one sees the other. */
	while (read_control(attempt, control) == 0 && control->phase == PHASE_CALLING && clock_monotonic_ns() < until_ns)
		nap_us(200);
	return control->phase != PHASE_CALLING && control->phase != PHASE_RETURNED;
}

static int wait_for_call(struct attempt *attempt, struct control *control, struct error *err)
{
	long nap = 30;

	for (;; nap = nap < 1000 ? nap + 10 : nap) {
		if (read_control(attempt, control) < 0 || control->attach_id != attempt->attach_id)
			return gone(attempt->target, err);
		if (control->phase >= PHASE_FAILED)
			return refuse_phase(attempt, control, err);
		if (control->phase >= PHASE_CALLING)
			return 0;
		if (control->phase == PHASE_NONE && control->state == RAW_GAVE_UP)
			return fail(err, ERR_INJECT, "cannot attach to %d: this process was too slow, and its raw thread did not wait", (int)attempt->target->pid);
		if (clock_monotonic_ns() > attempt->deadline_ns) {
			if (!cancel(attempt, control))
				return 0;
			return fail(err, ERR_TIMEOUT, "cannot attach to %d: its loader was not free in time", (int)attempt->target->pid);
		}
		nap_us(nap);
	}
}

static int enter(struct attempt *attempt, struct error *err)
{
	struct control control;

	if (!target_alive(attempt->target))
		return gone(attempt->target, err);
	if (borrow_thread(attempt, err) < 0 || wait_for_raw_thread(attempt, &control, err) < 0)
		return -1;
	unlock_interpreter(attempt);
	step(attempt, STEP_RAW_THREAD);
	if (fill_memfd(attempt, &control, err) < 0)
		return -1;
	step(attempt, STEP_LIBRARY);
	if (write_image(attempt, &control, err) < 0)
		return -1;
	step(attempt, STEP_IMAGE);
	if (say_go(attempt, err) < 0)
		return -1;
	step(attempt, STEP_GO);
	if (wait_for_call(attempt, &control, err) < 0)
		return -1;
	step(attempt, STEP_CALLED);
	return 0;
}

static void write_receipt(struct attempt *attempt)
{
	struct receipt *receipt = attempt->receipt;

	receipt->ready_ns = clock_monotonic_ns() - attempt->started_ns;
	receipt->reused_library = attempt->entry != 0;
	snprintf(receipt->slot, sizeof receipt->slot, "%s", attempt->slot.where);
	receipt->slots_left = (uint32_t)(attempt->slots_usable ? attempt->slots_usable - 1 : 0);
	receipt->left_bytes = attempt->scratch.size - attempt->scratch.give_back_size;
}

int inject_enter(struct target *target, const struct payload *payload, const void *argument, size_t size,
                 const struct inject_options *options, struct entry **out, struct receipt *receipt, struct error *err)
{
	struct attempt attempt = {
		.target = target, .payload = payload, .argument = argument, .argument_size = size, .options = options, .receipt = receipt,
		.lock_fd = -1, .memory_fd = -1
	};
	int total_ms = options && options->total_timeout_ms > 0 ? options->total_timeout_ms : DEFAULT_TOTAL_MS;
	struct entry *entry = calloc(1, sizeof *entry);
	int result = -1;

	memset(receipt, 0, sizeof *receipt);
	attempt.window = window_new();
	attempt.patience_ms = options && options->thread_timeout_ms > 0 ? (uint32_t)options->thread_timeout_ms : DEFAULT_THREAD_MS;
	attempt.choice.any = options && options->any_thread;
	attempt.deadline_ns = clock_monotonic_ns() + (uint64_t)total_ms * NS_PER_MS;
	if (!entry || !attempt.window) {
		fail(err, ERR_MEMORY, "attaching to %d", (int)target->pid);
	} else if (size > MAX_ARGUMENT || strlen(payload->memfd_name) >= sizeof attempt.data.memfd_name ||
	           strlen(payload->entry) >= sizeof ((struct control *)0)->symbol) {
		fail(err, ERR_INTERNAL, "attaching to %d: a name or the argument is too long", (int)target->pid);
	} else if (enter(&attempt, err) == 0) {
		write_receipt(&attempt);
		entry->target = target;
		entry->control = attempt.scratch.control;
		entry->attach_id = attempt.attach_id;
		entry->step = options ? options->step : NULL;
		entry->step_context = options ? options->step_context : NULL;
		*out = entry;
		entry = NULL;
		result = 0;
	}
	/* Whatever it looked like from here: a process that has ended refuses everything. */
	if (result < 0 && !target_alive(target))
		gone(target, err);
	release(&attempt);
	window_free(attempt.window);
	free(entry);
	return result;
}

remote_addr entry_argument(const struct entry *entry)
{
	return entry->control + CONTROL_ARGUMENT;
}

int entry_wait(struct entry *entry, int timeout_ms, struct error *err)
{
	uint64_t until_ns = clock_monotonic_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * NS_PER_MS;
	struct control control;
	long nap = 50;

	for (;; nap = nap < 5000 ? nap + nap / 4 : nap) {
		if (memory_read(entry->target->pid, entry->control, &control, sizeof control) < 0 || control.attach_id != entry->attach_id)
			return target_alive(entry->target) ? fail(err, ERR_EXITED, "process %d has replaced itself (exec)", (int)entry->target->pid)
			                                   : gone(entry->target, err);
		if (control.ended && !slot_thread_lives(entry->target, (pid_t)control.thread)) {
			if (entry->step)
				entry->step(entry->step_context, STEP_ENDED);
			return 0;
		}
		if (!control.ended && !target_alive(entry->target))
			return gone(entry->target, err);
		if (clock_monotonic_ns() > until_ns)
			return fail(err, ERR_TIMEOUT, "the thread of ours in %d has not ended within %d ms", (int)entry->target->pid, timeout_ms);
		nap_us(nap);
	}
}

void entry_close(struct entry *entry)
{
	uint64_t one = 1, id;

	/* Its page may be used again from now on. Best effort: after a second it may anyway. */
	if (entry && memory_read(entry->target->pid, entry->control, &id, sizeof id) == 0 && id == entry->attach_id)
		memory_write(entry->target->pid, entry->control + offsetof(struct control, released), &one, sizeof one);
	free(entry);
}
