/* Tasks of asyncio: for a terminal, in Markdown, as JSON. */
#include "report/tasks.h"

#include "report/name.h"

enum { TEXT_TASKS = 12, MD_TASKS = 20, JSON_TASKS = 1000, TEXT_WAITS = 2, JSON_WAITS = 50 };

void task_chain(const struct task_wait *wait, struct text *out)
{
	text_clear(out);
	for (size_t i = 0; i < wait->frame_count; i++) {
		text_add_string(out, i ? " > " : "");
		text_add_string(out, wait->frames[i].name);
	}
	text_add_string(out, *wait->future ? ", " : "");
	text_add_string(out, wait->future);
}

/* ---- for a terminal ---- */

static void add_task(struct terminal *t, const struct task_summary *task, struct text *chain)
{
	unsigned about = t->quantity | QUANTITY_ABOUT;

	terminal_right(t, SGR_BOLD, quantity_ns(task->wall_ns, about).text, 13);
	terminal_right(t, 0, quantity_ns(task->cpu_ns, about).text, 10);
	terminal_right(t, 0, quantity_ns(task->waited_ns, about).text, 11);
	terminal_right(t, 0, quantity_short(task->count, t->quantity).text, 7);
	text_add_string(&t->text, "  ");
	terminal_name(t, 0, task->name, 16, 0, true);
	text_add_string(&t->text, "  ");
	terminal_name(t, 0, task->coroutine.name, t->width - 62, 0, false);
	terminal_newline(t);
	for (size_t i = 0; i < task->wait_count && i < TEXT_WAITS; i++) {
		task_chain(&task->waits[i], chain);
		terminal_right(t, 0, quantity_ns(task->waits[i].time_ns, about).text, 34);
		text_add_string(&t->text, "  in ");
		terminal_name(t, SGR_DIM, text_string(chain), t->width - 40, 0, false);
		terminal_newline(t);
	}
}

void text_add_tasks(struct terminal *t, const struct report *report)
{
	const struct task_facts *facts = timeline_tasks(report->timeline);
	struct text chain;

	if (!facts->count)
		return;
	text_init(&chain);
	terminal_heading(t, "Tasks of asyncio, " TASKS_ABOUT);
	terminal_paint(t, SGR_DIM, "  On the loop       CPU  Suspended  Tasks  Task              Coroutine");
	terminal_newline(t);
	for (size_t i = 0; i < facts->count && i < TEXT_TASKS; i++)
		add_task(t, &facts->tasks[i], &chain);
	if (facts->count > TEXT_TASKS)
		text_printf(&t->text, "  and %zu more\n", facts->count - TEXT_TASKS);
	text_end(&chain, &t->text);
}

/* ---- in Markdown ---- */

void md_add_tasks(struct text *out, const struct report *report)
{
	const struct task_facts *facts = timeline_tasks(report->timeline);
	struct text chain;

	if (!facts->count)
		return;
	text_init(&chain);
	text_add_string(out, "\n## Tasks of asyncio\n\n| Task, coroutine | Tasks | On the loop | CPU | Suspended, most of it in |\n|---|---:|---:|---:|---|\n");
	for (size_t i = 0; i < facts->count && i < MD_TASKS; i++) {
		const struct task_summary *task = &facts->tasks[i];

		text_add_string(out, "| ");
		md_add_code(out, task->name, 40, 0);
		text_add_string(out, " ");
		md_add_code(out, task->coroutine.name, MD_NAME, 0);
		text_printf(out, " | %s | %s", quantity_short(task->count, 0).text, quantity_ns(task->wall_ns, QUANTITY_ABOUT).text);
		text_printf(out, " | %s | %s ", quantity_ns(task->cpu_ns, QUANTITY_ABOUT).text, quantity_ns(task->waited_ns, QUANTITY_ABOUT).text);
		if (task->wait_count) {
			task_chain(&task->waits[0], &chain);
			md_add_code(out, text_string(&chain), 2 * MD_NAME, 0);
		}
		text_add_string(out, " |\n");
	}
	if (facts->count > MD_TASKS)
		text_printf(out, "\nAnd %zu more.\n", facts->count - MD_TASKS);
	text_add_string(out, "\nAll " TASKS_ABOUT ".\n");
	text_end(&chain, out);
}

/* ---- as JSON ---- */

static void put_frame(struct json *json, cJSON *object, const struct task_frame *frame)
{
	put_known(json, object, "name", frame->name);
	put_line(json, object, frame->file, frame->line);
}

static void put_wait(struct json *json, cJSON *object, const struct task_wait *wait)
{
	cJSON *frames;

	put_known(json, object, "future", wait->future);
	put_u64(json, object, "time_ns", wait->time_ns);
	put_u64(json, object, "samples_count", wait->samples);
	frames = put_array(json, object, "frames");
	for (size_t i = 0; i < wait->frame_count && !json->failed; i++)
		put_frame(json, append_object(json, frames), &wait->frames[i]);
}

void put_tasks(struct json *json, cJSON *root, const struct timeline *timeline)
{
	const struct task_facts *facts = timeline_tasks(timeline);
	cJSON *tasks = put_array(json, root, "tasks");

	for (size_t i = 0; i < facts->count && i < JSON_TASKS && !json->failed; i++) {
		const struct task_summary *task = &facts->tasks[i];
		cJSON *object = append_object(json, tasks), *waits;

		put_string(json, object, "name", task->name);
		put_frame(json, put_object(json, object, "coroutine"), &task->coroutine);
		put_u64(json, object, "tasks_count", task->count);
		put_u64(json, object, "samples_count", task->samples);
		put_u64(json, object, "wall_ns", task->wall_ns);
		put_u64(json, object, "cpu_ns", task->cpu_ns);
		put_u64(json, object, "waited_ns", task->waited_ns);
		waits = put_array(json, object, "waits");
		for (size_t j = 0; j < task->wait_count && j < JSON_WAITS; j++)
			put_wait(json, append_object(json, waits), &task->waits[j]);
	}
}
