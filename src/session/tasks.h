/* Tasks of asyncio in the trace: a number for each, by its name and its coroutine; and, a few times per second, what those await that are suspended. */
#ifndef INFERSCOPE_SESSION_TASKS_H
#define INFERSCOPE_SESSION_TASKS_H

#include "session/stacks.h"
#include "unwind/walk.h"

/* So many names are remembered; then it begins anew, with numbers that go on: what is older than twice as many is meant by no later event. */
enum { TASKS_KEPT = 1 << 17 };

struct tasks;

/* READER, STACKS and BUILDER stay the caller's and must outlive it; events go to BUILDER. ERR_MEMORY. */
int tasks_open(struct pyreader *reader, struct stacks *stacks, struct event_builder *builder, struct tasks **out, struct error *err);
void tasks_close(struct tasks *tasks); /* accepts NULL */
/* The number of the task that is called NAME and whose coroutine is the function CODE, as stacks_code() has it. TICKS: of the event, where it is new. 0 without memory. */
uint32_t tasks_id(struct tasks *tasks, const char *name, uint32_t code, uint64_t ticks);
/* The task ID is the one at these addresses, until another one is. */
void tasks_learn(struct tasks *tasks, uint32_t id, uint64_t task, uint64_t coroutine, uint64_t frame);
/* The task that ran when COPY was taken: those that call its coroutine keep addresses of the two in registers and on their stack. 0: none that is known. */
uint32_t tasks_in(const struct tasks *tasks, const struct thread_copy *copy);
/* Looks at the suspended ones, where the last look is long enough ago: a hundredth of a CPU at most is spent on it. */
void tasks_look(struct tasks *tasks, uint64_t now_ns, uint64_t ticks);

#endif
