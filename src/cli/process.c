/* Naming a process, and telling what was found out about it. */
#include "cli/process.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/value.h"
#include "session/gpu_look.h"

int process_pid(const char *given, int *out, struct error *err)
{
	struct text shown;

	if (!value_pid(given, out)) {
		text_init(&shown);
		text_add_visible(&shown, given, strlen(given));
		fail(err, ERR_PID_SYNTAX, "\"%.80s\" is not the pid of a process", text_string(&shown));
		text_done(&shown);
		return -1;
	}
	return *out == getpid() ? fail(err, ERR_OWN_PROCESS, "process %d is inferscope itself", *out) : 0;
}

int process_named(const struct invocation *invocation, bool required, pid_t *out, struct error *err)
{
	const char *option = options_text(&invocation->options, OPT_PID), *given = invocation->argument_count ? invocation->arguments[0] : option;
	int pid;

	*out = 0;
	if (*option && invocation->argument_count && strcmp(option, given) != 0)
		return fail(err, ERR_USAGE, "two processes are given: %.40s and %.40s", given, option);
	if (!invocation->argument_count && !*option) {
		if (!required)
			return 0;
		fail(err, ERR_USAGE, "%s needs the pid of a process", invocation->command->name);
		return fail_hint(err, "`pgrep -af python` lists the running Python processes");
	}
	if (process_pid(given, &pid, err) < 0)
		return -1;
	*out = pid;
	return 0;
}

/* What stands in the way of following the device; it stops nothing else. */
static bool gpu_finding(const struct target *target, struct finding *out)
{
	const struct target_facts *facts = target_facts(target);
	struct gpu_look look;

	if (!facts->pid || !gpu_look_read(&procfs_real, facts->pid, &look))
		return false;
	memset(out, 0, sizeof *out);
	out->check = "gpu";
	out->warning = look.driver && (look.tool[0] || look.cupti_count > 1 || (!look.cupti_count && !look.runtime));
	gpu_look_text(&look, out->text, sizeof out->text);
	return true;
}

static void finding_print(const struct finding *finding, bool colour)
{
	const char *mark = finding->warning ? "warn" : finding->code ? "FAIL" : "ok";
	const char *paint = !colour ? "" : finding->warning ? "\x1b[33m" : finding->code ? "\x1b[31m" : "\x1b[32m";
	struct text text;

	text_init(&text);
	text_add_visible(&text, finding->text, strlen(finding->text));
	printf("  %s%-4s%s  %-12s %s\n", paint, mark, colour ? "\x1b[0m" : "", finding->check, text_string(&text));
	text_clear(&text);
	text_add_visible(&text, finding->hint, strlen(finding->hint));
	if ((finding->warning || finding->code) && text.length)
		printf("        %-12s %s\n", "", text_string(&text));
	text_done(&text);
}

void findings_print(const struct target *target, bool colour)
{
	struct finding gpu;

	for (size_t i = 0; i < target_finding_count(target); i++)
		finding_print(target_finding(target, i), colour);
	if (gpu_finding(target, &gpu))
		finding_print(&gpu, colour);
}

static void json_string(struct text *out, const char *key, const char *value)
{
	text_printf(out, "\"%s\":\"", key);
	text_add_json(out, value, strlen(value));
	text_add_string(out, "\"");
}

static void finding_json(struct text *out, const struct finding *finding, bool first)
{
	text_printf(out, "%s{", first ? "" : ",");
	json_string(out, "check", finding->check);
	text_printf(out, ",\"ok\":%s,\"warning\":%s,\"code\":", finding->code && !finding->warning ? "false" : "true", finding->warning ? "true" : "false");
	if (finding->code)
		text_printf(out, "\"%s\",", error_name(finding->code));
	else
		text_add_string(out, "null,");
	json_string(out, "text", finding->text);
	text_add_string(out, ",");
	json_string(out, "hint", finding->hint);
	text_add_string(out, "}");
}

void findings_json(pid_t pid, const struct target *target, const struct error *refusal)
{
	struct finding gpu;
	struct text out;

	text_init(&out);
	text_printf(&out, "{\"schema\":\"inferscope.doctor/1\",\"pid\":%d,\"ok\":%s,\"refusal\":", (int)pid, refusal ? "false" : "true");
	if (refusal) {
		text_printf(&out, "{\"code\":\"%s\",\"exit\":%d,", error_name(refusal->code), error_status(refusal->code));
		json_string(&out, "message", refusal->text);
		text_add_string(&out, ",");
		json_string(&out, "hint", error_hint(refusal));
		text_add_string(&out, "}");
	} else
		text_add_string(&out, "null");
	text_add_string(&out, ",\"findings\":[");
	for (size_t i = 0; target && i < target_finding_count(target); i++)
		finding_json(&out, target_finding(target, i), i == 0);
	if (target && gpu_finding(target, &gpu))
		finding_json(&out, &gpu, target_finding_count(target) == 0);
	text_add_string(&out, "]}\n");
	if (!out.failed)
		fwrite(out.data, 1, out.length, stdout);
	text_done(&out);
}
