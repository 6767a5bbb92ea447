/* How a trace was made, as CAPTURE and PROCESS events. */
#ifndef INFERSCOPE_SESSION_CAPTURE_H
#define INFERSCOPE_SESSION_CAPTURE_H

#include "session/environment.h"
#include "session/session.h"

void capture_add(struct event_builder *builder, uint64_t ticks, const char *key, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* How allocations were sampled: STATE, after which a colon and the reason follow where they are not; they were until GIVEN_UP_NS after the beginning (0: never, or to the end). */
void capture_sampling(struct event_builder *builder, uint64_t ticks, const char *key, const char *state, uint64_t given_up_ns);
/* What is known before the target is entered. */
void capture_begin(struct event_builder *builder, uint64_t ticks, const struct target_facts *facts, const struct session_options *options, const struct environment *environment, enum clock_kind clock);
int capture_affinity(pid_t pid); /* CPUs that the process may run on */

#endif
