/* The table of asyncio's tasks. */
#include "report/html.h"
#include "report/tasks.h"

enum { TASKS_SHOWN = 60, NAME_SHOWN = 48, PLACE_SHOWN = 40, CHAIN_SHOWN = 100 };

static void add_task(struct text *out, const struct task_summary *task, struct text *chain)
{
	text_add_string(out, "<tr><td class=\"fn\">");
	html_add_name(out, task->name, NAME_SHOWN);
	text_add_string(out, "</td><td class=\"fn\">");
	html_add_name(out, task->coroutine.name, NAME_SHOWN);
	html_add_place(out, task->coroutine.file, task->coroutine.line, PLACE_SHOWN);
	text_add_string(out, "</td>");
	html_add_number(out, (double)task->count, quantity_short(task->count, 0), false);
	html_add_number(out, (double)task->wall_ns, quantity_ns(task->wall_ns, QUANTITY_ABOUT), true);
	html_add_number(out, (double)task->cpu_ns, quantity_ns(task->cpu_ns, QUANTITY_ABOUT), false);
	html_add_number(out, (double)task->waited_ns, quantity_ns(task->waited_ns, QUANTITY_ABOUT), false);
	text_add_string(out, "<td class=\"fn\">");
	if (task->wait_count) {
		task_chain(&task->waits[0], chain);
		html_add_name(out, text_string(chain), CHAIN_SHOWN);
		text_printf(out, " <small>%s</small>", quantity_ns(task->waits[0].time_ns, QUANTITY_ABOUT).text);
	}
	text_add_string(out, "</td></tr>\n");
}

void html_add_tasks(struct text *out, const struct report *report)
{
	const struct task_facts *facts = timeline_tasks(report->timeline);
	struct text chain;

	if (!facts->count)
		return;
	text_init(&chain);
	text_add_string(out, "<section id=\"tasks\"><h2>Tasks of asyncio<small>" TASKS_ABOUT "</small></h2>");
	html_begin_table(out, "Tasks of asyncio", "<th scope=\"col\">Task</th><th scope=\"col\">Coroutine</th><th scope=\"col\" class=\"n\">Tasks</th><th scope=\"col\" class=\"n\">On the loop</th>"
		"<th scope=\"col\" class=\"n\">CPU</th><th scope=\"col\" class=\"n\">Suspended</th><th scope=\"col\">Most of it in</th>");
	for (size_t i = 0; i < facts->count && i < TASKS_SHOWN; i++)
		add_task(out, &facts->tasks[i], &chain);
	html_end_table(out, facts->count, TASKS_SHOWN);
	text_add_string(out, "</section>\n");
	text_end(&chain, out);
}
