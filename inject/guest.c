/* From the raw thread's first sign to the call of the entry: the target runs all the time, we only read and write our page in it. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "inject/attempt.h"
#include "inject/memfd.h"
#include "inject/memory.h"
#include "inject/steps.h"

#define RAW_MS 1000 /* for the raw thread to appear */
#define CANCEL_MS 20

static int read_control(const struct attempt *attempt, struct control *out)
{
	return memory_read(&attempt->target->memory, attempt->scratch.control, out, sizeof *out);
}

static int wait_for_raw_thread(struct attempt *attempt, struct control *control, struct error *err)
{
	uint64_t until_ns = clock_monotonic_ns() + RAW_MS * NS_PER_MS;
	int pid = (int)attempt->target->pid;
	long nap = 20;

	for (;; nap = nap < 500 ? nap + 10 : nap) {
		int error = read_control(attempt, control) < 0 ? errno : 0;
		bool mapped = !error && control->attach_id == attempt->attach_id;
		/* The rest of its call may last for ever; it will not touch what the raw thread gives back. */
		bool passed = mapped && (control->done || (attempt->window->part && control->clone_result));

		if (passed && control->clone_result < 0)
			return fail(err, ERR_INJECT, "cannot attach to %d: no thread could be made in it: %s", pid, strerror((int)-control->clone_result));
		if (passed && control->state == RAW_WAITS)
			return 0;
		if (!mapped && !target_alive(attempt->target))
			return target_gone(attempt->target, err);
		if (clock_monotonic_ns() > until_ns && error && error != EFAULT)
			return fail(err, error_of(error, ERR_INJECT), "cannot attach to %d: its new memory cannot be read: %s", pid, strerror(error));
		if (clock_monotonic_ns() > until_ns)
			return fail(err, ERR_INJECT, "cannot attach to %d: %s within %d ms", pid,
			            mapped ? "its new thread did not get to run" : "no memory could be mapped in it, or its thread did not get to run", RAW_MS);
		if (attempt_stopped(attempt, err))
			return -1; /* it leaves by itself when nobody says go */
		attempt_nap_us(nap);
	}
}

static int fill_memfd(struct attempt *attempt, const struct control *control, struct error *err)
{
	const struct payload *payload = attempt->payload;
	size_t done = 0;
	int fd;

	if (attempt->entry)
		return 0;
	if (control->memfd < 0)
		return fail(err, ERR_INJECT, "cannot attach to %d: memfd_create in it: %s", (int)attempt->target->pid, strerror((int)-control->memfd));
	fd = memfd_open(&attempt->target->procfs, attempt->target->pid, (int)control->memfd, payload->memfd_name, O_WRONLY, err);
	if (fd < 0)
		return -1;
	while (done < payload->size) {
		ssize_t put = write(fd, (const char *)payload->bytes + done, payload->size - done);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			break;
		done += (size_t)put;
	}
	if (done < payload->size) {
		int error = errno;

		fail(err, ERR_INJECT, "cannot attach to %d: writing the library to it: %s", (int)attempt->target->pid, strerror(error));
		if (error == EFBIG)
			fail_hint(err, "the file size limit of this shell is in the way: ulimit -f unlimited");
	}
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
	if (target_write(target, attempt->scratch.control + from, (char *)control + from, sizeof *control - from) < 0 ||
	    target_write(target, attempt->scratch.control + CONTROL_ARGUMENT, attempt->argument, attempt->argument_size) < 0 ||
	    scratch_write_thread(target, &attempt->scratch, attempt->window, (uint32_t)control->child) < 0)
		return fail(err, ERR_INJECT, "cannot attach to %d: writing to its new memory: %s", (int)target->pid, strerror(errno));
	return 0;
}

static int say_go(struct attempt *attempt, struct error *err)
{
	uint32_t go = 1;

	if (target_write(attempt->target, attempt->scratch.control + CONTROL_GO, &go, sizeof go) < 0)
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

	if (target_write(attempt->target, attempt->scratch.control + CONTROL_CANCEL, &one, sizeof one) < 0)
		return true;
	/* It says CALLING and then looks; we said cancel and now look: at least one sees the other. */
	while (read_control(attempt, control) == 0 && control->phase == PHASE_CALLING && clock_monotonic_ns() < until_ns)
		attempt_nap_us(200);
	return control->phase != PHASE_CALLING && control->phase != PHASE_RETURNED;
}

static int wait_for_call(struct attempt *attempt, struct control *control, struct error *err)
{
	long nap = 30;
	bool stopped;

	for (;; nap = nap < 1000 ? nap + 10 : nap) {
		if (read_control(attempt, control) < 0 || control->attach_id != attempt->attach_id)
			return target_gone(attempt->target, err);
		if (control->phase >= PHASE_FAILED)
			return refuse_phase(attempt, control, err);
		if (control->phase >= PHASE_CALLING)
			return 0;
		if (control->phase == PHASE_NONE && control->state == RAW_GAVE_UP)
			return fail(err, ERR_INJECT, "cannot attach to %d: this process was too slow, and its raw thread did not wait", (int)attempt->target->pid);
		stopped = attempt_stopped(attempt, err);
		if (stopped || clock_monotonic_ns() > attempt->deadline_ns) {
			if (!cancel(attempt, control))
				return 0;
			return stopped ? -1 : fail(err, ERR_TIMEOUT, "cannot attach to %d: its loader was not free in time", (int)attempt->target->pid);
		}
		attempt_nap_us(nap);
	}
}

int attempt_guest(struct attempt *attempt, struct error *err)
{
	struct control control;

	if (wait_for_raw_thread(attempt, &control, err) < 0)
		return -1;
	attempt_unlock(attempt);
	attempt_step(attempt, STEP_RAW_THREAD);
	if (fill_memfd(attempt, &control, err) < 0)
		return -1;
	attempt_step(attempt, STEP_LIBRARY);
	if (write_image(attempt, &control, err) < 0)
		return -1;
	attempt_step(attempt, STEP_IMAGE);
	if (say_go(attempt, err) < 0)
		return -1;
	attempt_step(attempt, STEP_GO);
	if (wait_for_call(attempt, &control, err) < 0)
		return -1;
	attempt_step(attempt, STEP_CALLED);
	return 0;
}
