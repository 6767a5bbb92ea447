/* dump: the stacks of all threads of a process, now, as text or JSON. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/process.h"
#include "config.h"
#include "session/snapshot.h"

struct printing {
	struct text text;
	bool locals, native;
	size_t threads, tasks;
};

/* ---- text ---- */

static void add_visible(struct text *out, const char *text)
{
	text_add_visible(out, text, strlen(text));
}

static const char *state_words(const struct snapshot_thread *thread)
{
	static const char *const words[SNAPSHOT_STATES] = {
		"running", "waiting for the GIL", "waiting for a lock", "waiting for I/O", "waiting for something to do", "sleeping", "stopped",
	};

	return words[thread->state];
}

static void text_frame(struct printing *out, const struct snapshot_frame *frame)
{
	const char *module = strrchr(frame->module, '/');

	text_add_string(&out->text, "    ");
	add_visible(&out->text, frame->function);
	text_add_string(&out->text, " (");
	if (frame->python || frame->line)
		add_visible(&out->text, frame->file);
	if (frame->line)
		text_printf(&out->text, ":%u%s", frame->line, frame->python ? "" : ", ");
	if (!frame->python)
		add_visible(&out->text, module ? module + 1 : *frame->module ? frame->module : "in no file");
	text_printf(&out->text, "%s)\n", frame->inlined ? ", inlined" : "");
	for (size_t i = 0; i < frame->local_count; i++) {
		text_add_string(&out->text, "        ");
		add_visible(&out->text, frame->locals[i].name);
		text_add_string(&out->text, " = ");
		add_visible(&out->text, frame->locals[i].value);
		text_add_string(&out->text, "\n");
	}
}

static void text_task_name(struct printing *out, const char *task)
{
	if (!*task)
		return;
	text_add_string(&out->text, ", runs task \"");
	add_visible(&out->text, task);
	text_add_string(&out->text, "\"");
}

static void text_thread(void *context, const struct snapshot_thread *thread)
{
	struct printing *out = context;

	text_printf(&out->text, "\nThread %d \"", (int)thread->tid);
	add_visible(&out->text, thread->name);
	text_printf(&out->text, "\": %s", state_words(thread));
	if (thread->wait[0] && strcmp(thread->wait, "gil") != 0)
		text_printf(&out->text, " (%s%s", thread->wait, thread->object[0] ? " on " : "");
	if (thread->object[0])
		add_visible(&out->text, thread->object);
	text_printf(&out->text, "%s%s", thread->wait[0] && strcmp(thread->wait, "gil") != 0 ? ")" : "", thread->holds_gil ? ", holds the GIL" : "");
	text_task_name(out, thread->task);
	text_add_string(&out->text, "\n");
	if (thread->cut)
		text_add_string(&out->text, "    … (calls further out are left out)\n");
	for (size_t i = 0; i < thread->count; i++)
		text_frame(out, &thread->frames[i]);
	if (!thread->count)
		text_add_string(&out->text, "    (no Python)\n");
	if (thread->join == JOIN_FAILED)
		text_add_string(&out->text, "    (native and Python calls do not fit together: Python's stand first)\n");
	if (thread->join == JOIN_PARTIAL)
		text_add_string(&out->text, "    (where native calls begin is not known: only inner ones stand among Python's)\n");
	if (thread->native_end != WALK_COMPLETE)
		text_printf(&out->text, "    (outer native calls: %s)\n", walk_end_name(thread->native_end));
	if (*thread->note) {
		text_add_string(&out->text, "    (native calls: ");
		add_visible(&out->text, thread->note);
		text_add_string(&out->text, ")\n");
	}
	out->threads++;
}

static void text_task(void *context, const struct snapshot_task *task)
{
	struct printing *out = context;

	text_add_string(&out->text, "\nTask \"");
	add_visible(&out->text, task->name);
	text_printf(&out->text, "\": %s", snapshot_task_state_name(task->state));
	if (*task->waits_for) {
		text_add_string(&out->text, " for ");
		add_visible(&out->text, task->waits_for);
	}
	if (task->tid)
		text_printf(&out->text, " in thread %d", (int)task->tid);
	text_add_string(&out->text, "\n");
	for (size_t i = 0; i < task->count; i++)
		text_frame(out, &task->frames[i]);
	if (task->cut)
		text_add_string(&out->text, "    … (what it awaits further in is left out)\n");
}

static void text_head(struct printing *out, const struct target_facts *facts)
{
	text_printf(&out->text, "Process %d: ", (int)facts->pid);
	add_visible(&out->text, facts->command);
	text_printf(&out->text, "\nPython %d.%d.%d (", facts->python_major, facts->python_minor, facts->python_micro);
	add_visible(&out->text, facts->executable);
	text_add_string(&out->text, "), most recent call last\n");
}

static void text_tail(struct printing *out, const struct snapshot_totals *totals)
{
	if (*totals->native_why) {
		text_add_string(&out->text, "\nNo native calls: ");
		add_visible(&out->text, totals->native_why);
		text_add_string(&out->text, "\n");
	}
	if (totals->tasks_left_out)
		text_printf(&out->text, "\n%u more tasks\n", totals->tasks_left_out);
	if (totals->longest_hold_ns)
		text_printf(&out->text, "\nLongest hold of a thread: %.1f us\n", (double)totals->longest_hold_ns / 1e3);
	if (totals->torn)
		text_printf(&out->text, "\n%u stack%s changed while read, and left out\n", totals->torn, totals->torn == 1 ? "" : "s");
}

/* ---- JSON ---- */

static void json_string(struct text *out, const char *key, const char *value)
{
	text_printf(out, "\"%s\":\"", key);
	text_add_json(out, value, strlen(value));
	text_add_string(out, "\"");
}

static void json_frame(struct printing *out, const struct snapshot_frame *frame)
{
	text_printf(&out->text, "{\"kind\":\"%s\",", frame->python ? "python" : "native");
	json_string(&out->text, "function", frame->function);
	text_add_string(&out->text, ",");
	json_string(&out->text, "file", frame->file);
	text_printf(&out->text, ",\"line\":%u", frame->line);
	if (!frame->python) {
		text_add_string(&out->text, ",");
		json_string(&out->text, "module", frame->module);
		text_printf(&out->text, ",\"offset\":\"0x%llx\",\"inlined\":%s", (unsigned long long)frame->offset, frame->inlined ? "true" : "false");
	} else if (out->locals) {
		text_add_string(&out->text, ",\"locals\":[");
		for (size_t i = 0; i < frame->local_count; i++) {
			text_add_string(&out->text, i ? ",{" : "{");
			json_string(&out->text, "name", frame->locals[i].name);
			text_add_string(&out->text, ",");
			json_string(&out->text, "value", frame->locals[i].value);
			text_add_string(&out->text, "}");
		}
		text_add_string(&out->text, "]");
	}
	text_add_string(&out->text, "}");
}

static void json_frames(struct printing *out, const struct snapshot_frame *frames, size_t count)
{
	text_add_string(&out->text, "\"frames\":[");
	for (size_t i = 0; i < count; i++) {
		text_add_string(&out->text, i ? "," : "");
		json_frame(out, &frames[i]);
	}
	text_add_string(&out->text, "]");
}

static void json_thread(void *context, const struct snapshot_thread *thread)
{
	struct printing *out = context;

	text_printf(&out->text, "%s\n{\"tid\":%d,\"inner_tid\":%d,", out->threads++ ? "," : "", (int)thread->tid, (int)thread->inner_tid);
	json_string(&out->text, "name", thread->name);
	text_add_string(&out->text, ",");
	json_string(&out->text, "state", snapshot_state_name(thread->state));
	text_add_string(&out->text, ",");
	json_string(&out->text, "wait", thread->wait);
	text_add_string(&out->text, ",");
	json_string(&out->text, "object", thread->object);
	text_printf(&out->text, ",\"holds_gil\":%s,\"cut\":%s,", thread->holds_gil ? "true" : "false", thread->cut ? "true" : "false");
	if (out->native) {
		json_string(&out->text, "join", join_result_name(thread->join));
		text_add_string(&out->text, ",");
		json_string(&out->text, "native_end", walk_end_name(thread->native_end));
		text_add_string(&out->text, ",");
		json_string(&out->text, "note", thread->note);
		text_printf(&out->text, ",\"hold_ns\":%llu,", (unsigned long long)thread->hold_ns);
	}
	json_string(&out->text, "task", thread->task);
	text_add_string(&out->text, ",");
	json_frames(out, thread->frames, thread->count);
	text_add_string(&out->text, "}");
}

static void json_task(void *context, const struct snapshot_task *task)
{
	struct printing *out = context;

	text_printf(&out->text, "%s\n{", out->tasks++ ? "," : "],\"tasks\":[");
	json_string(&out->text, "name", task->name);
	text_printf(&out->text, ",\"state\":\"%s\",\"tid\":%d,", snapshot_task_state_name(task->state), (int)task->tid);
	json_string(&out->text, "waits_for", task->waits_for);
	text_printf(&out->text, ",\"cut\":%s,", task->cut ? "true" : "false");
	json_frames(out, task->frames, task->count);
	text_add_string(&out->text, "}");
}

static void json_head(struct printing *out, const struct target_facts *facts)
{
	text_printf(&out->text, "{\"schema\":\"inferscope.dump/1\",\"inferscope\":\"%s\",\"pid\":%d,", PACKAGE_VERSION, (int)facts->pid);
	json_string(&out->text, "command", facts->command);
	text_add_string(&out->text, ",");
	json_string(&out->text, "executable", facts->executable);
	text_printf(&out->text, ",\"python\":\"%d.%d.%d\",\"threads\":[", facts->python_major, facts->python_minor, facts->python_micro);
}

static void json_tail(struct printing *out, const struct snapshot_totals *totals)
{
	text_printf(&out->text, "%s],\"tasks_left_out_count\":%u,\"torn_count\":%u", out->tasks ? "" : "],\"tasks\":[", totals->tasks_left_out, totals->torn);
	if (out->native) {
		text_add_string(&out->text, ",");
		json_string(&out->text, "native_why", totals->native_why);
		text_printf(&out->text, ",\"failed_join_count\":%u,\"longest_hold_ns\":%llu", totals->joins[JOIN_FAILED], (unsigned long long)totals->longest_hold_ns);
	}
	text_add_string(&out->text, "}\n");
}

/* ---- the command ---- */

int dump_process_command(struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	const struct inject_options inject = { .unverified = options_flag(options, OPT_UNVERIFIED), .look_only = true };
	const struct snapshot_options wanted = { .locals = options_flag(options, OPT_LOCALS), .native = options_flag(options, OPT_NATIVE_FRAMES) };
	struct printing printing = { .locals = wanted.locals, .native = wanted.native };
	bool json = options_flag(options, OPT_JSON);
	struct snapshot_totals totals;
	struct target *target = NULL;
	int result = -1;
	pid_t pid;

	text_init(&printing.text);
	if (process_named(invocation, true, &pid, err) < 0 || target_open(pid, &inject, &target, err) < 0)
		goto out;
	(json ? json_head : text_head)(&printing, target_facts(target));
	if (snapshot_take(target, &wanted, &(struct snapshot_teller){ json ? json_thread : text_thread, json ? json_task : text_task, &printing }, &totals, err) < 0)
		goto out;
	(json ? json_tail : text_tail)(&printing, &totals);
	if (printing.text.failed)
		fail(err, ERR_MEMORY, "looking at process %d", (int)pid);
	else
		result = stdout_put(printing.text.data, printing.text.length, err);
out:
	target_close(target);
	text_done(&printing.text);
	return result;
}
