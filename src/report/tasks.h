/* Tasks of asyncio in reports, each format in a file of its own. Without tasks nothing is added. */
#ifndef INFERSCOPE_REPORT_TASKS_H
#define INFERSCOPE_REPORT_TASKS_H

#include "report/document.h"
#include "report/md.h"
#include "report/terminal.h"
#include "timeline/tasks.h"

#define TASKS_ABOUT "estimated from samples: on the loop, other tasks had to wait for it; suspended, it awaited something"

/* "handle > fetch > read, Future": the coroutines of WAIT, the task's own first, and what the last one awaits. Into OUT, which it clears; raw, for name_add(). */
void task_chain(const struct task_wait *wait, struct text *out);

void text_add_tasks(struct terminal *terminal, const struct report *report);
void md_add_tasks(struct text *out, const struct report *report);
void put_tasks(struct json *json, cJSON *root, const struct timeline *timeline);

#endif
