/* The conversation with the collector's entry thread (abi/handover.h): arm, re-arm, disarm. Every wait has an end. */
#ifndef INFERSCOPE_SESSION_HANDSHAKE_H
#define INFERSCOPE_SESSION_HANDSHAKE_H

#include "abi/handover.h"
#include "inject/inject.h"
#include "session/inside.h"
#include "session/pool.h"

struct handshake {
	struct target *target;
	const struct inject_options *inject;
	struct inside *inside;   /* NULL, or: the process itself calls the collector to arm and disarm it, while it waits for us */
	struct receipt receipt;  /* of the entry made last */
	uint64_t page_addr;      /* where the lanes lie in the target, 0 = not (any more) */
	uint32_t attacher_pid;   /* as the target sees it, 0 = it does not */
	const volatile int *stop; /* NULL, or: arming is given up once it is not 0 */
	void (*notice)(void *context, const char *text); /* NULL, or told what arming waits for when that takes long */
	void *notice_context;
	uint64_t pushed_ns;      /* the last moment until which the deadline was moved ahead in time, since hooks are on */
	uint32_t reason;         /* enum collector_reason why arming failed; 0 = not that */
};

enum { DEADLINE_AHEAD_MS = 2000 }; /* so far it is moved each time: hooks that hear nothing for so long take themselves off */

/*
 * Enters, maps the lanes (SETTINGS are copied into their page, FIRST sub-buffers given out) and waits until hooks are on. *POOL is then the caller's.
 * On failure nothing is armed, and nothing will be later.
 */
int handshake_arm(struct handshake *handshake, const struct page *settings, size_t lanes_bytes, uint32_t first, uint32_t gil_timeout_ms, struct pool *pool, struct error *err);
/* Hooks off, lanes unmapped, by the collector LIBRARY chooses. ERR_TIMEOUT when it did not answer in time. */
int handshake_disarm(struct handshake *handshake, enum library_choice library, uint32_t timeout_ms, struct error *err);
/* Why the hooks are in the process still although the collector has answered that it leaves; NULL: they are off. */
const char *handshake_stay(const struct page *page);
/* Throttled locations on again (HANDOVER_REARM), or the device's part begins (HANDOVER_GPU): worth a try of TIMEOUT_MS, not more. */
int handshake_try(struct handshake *handshake, enum handover_command command, uint32_t timeout_ms, struct error *err);

#endif
