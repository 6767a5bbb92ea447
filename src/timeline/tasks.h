/*
 * Tasks of asyncio, as samples saw them: those that ran on the thread of their loop, and those that were suspended. Tasks that nobody named (Task-1, Task-2,
 * …) are one row for each function that is their coroutine.
 */
#ifndef INFERSCOPE_TIMELINE_TASKS_H
#define INFERSCOPE_TIMELINE_TASKS_H

#include "timeline/timeline.h"

enum { TASK_ROWS_LIMIT = 1 << 14, TASK_WAITS_LIMIT = 1 << 16, TASK_FRAMES_MAX = 256 };

struct task_frame {
	const char *name, *file; /* "" when not known */
	uint32_t line;           /* where it begins, 0 = not known */
};

/* What a task was suspended in. */
struct task_wait {
	const char *future; /* what the innermost coroutine awaits: "Future", "task \"reader\"" */
	uint64_t time_ns, samples;
	size_t frame_count;
	const struct task_frame *frames; /* its coroutines, the task's own first; outer ones beyond TASK_FRAMES_MAX are missing */
};

struct task_summary {
	const char *name;            /* "Task-*": all that nobody named; "(other)": those beyond TASK_ROWS_LIMIT */
	struct task_frame coroutine;
	uint64_t count;              /* tasks that were seen; of those with one name and one coroutine only the first counts */
	uint64_t samples;            /* on its loop's thread */
	uint64_t wall_ns, cpu_ns;    /* it ran there for so long: other tasks of the loop had to wait; on a CPU. Estimates */
	uint64_t waited_ns;          /* suspended; of several tasks at once the sum */
	size_t wait_count;
	const struct task_wait *waits; /* longest first; beyond TASK_WAITS_LIMIT they are in waited_ns alone */
};

struct task_facts {
	size_t count;
	const struct task_summary *tasks; /* longest wall_ns first, then waited_ns */
};

/* Never NULL; empty where no task was seen. */
const struct task_facts *timeline_tasks(const struct timeline *timeline);

#endif
