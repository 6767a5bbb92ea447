/* The public side of entering: one attempt from preparation to the call, and the entry that came of it. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "inject/attempt.h"
#include "inject/memory.h"
#include "inject/steps.h"

#define DEFAULT_THREAD_MS 50
#define DEFAULT_TOTAL_MS 10000
#define MAX_ARGUMENT 1024

struct entry {
	struct target *target;
	uint64_t control;
	uint64_t attach_id;
	void (*step)(void *context, int step);
	void *step_context;
};

static int enter(struct attempt *attempt, struct error *err)
{
	if (!target_alive(attempt->target))
		return target_gone(attempt->target, err);
	return attempt_borrow(attempt, err) < 0 ? -1 : attempt_guest(attempt, err);
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
		.process_fd = -1, .lock_fd = -1
	};
	int total_ms = options && options->total_timeout_ms > 0 ? options->total_timeout_ms : DEFAULT_TOTAL_MS;
	struct entry *entry = calloc(1, sizeof *entry);
	int result = -1;

	memset(receipt, 0, sizeof *receipt);
	attempt.window = window_new();
	attempt.patience_ms = options && options->thread_timeout_ms > 0 ? (uint32_t)options->thread_timeout_ms : DEFAULT_THREAD_MS;
	attempt.choice.any = options && options->any_thread;
	attempt.choice.stop = options ? options->stop : NULL;
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
		target_gone(target, err);
	attempt_end(&attempt);
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
		if (memory_read(&entry->target->memory, entry->control, &control, sizeof control) < 0 || control.attach_id != entry->attach_id)
			return target_gone(entry->target, err);
		if (control.ended && !slot_thread_lives(entry->target, (pid_t)control.thread)) {
			if (entry->step)
				entry->step(entry->step_context, STEP_ENDED);
			return 0;
		}
		if (!control.ended && !target_alive(entry->target))
			return target_gone(entry->target, err);
		if (clock_monotonic_ns() > until_ns)
			return fail(err, ERR_TIMEOUT, "the thread of ours in %d has not ended within %d ms", (int)entry->target->pid, timeout_ms);
		attempt_nap_us(nap);
	}
}

void entry_close(struct entry *entry)
{
	uint64_t one = 1, id;

	/* Its page may be used again from now on. Best effort: after a second it may anyway. */
	if (entry && memory_read(&entry->target->memory, entry->control, &id, sizeof id) == 0 && id == entry->attach_id)
		target_write(entry->target, entry->control + offsetof(struct control, released), &one, sizeof one);
	free(entry);
}
