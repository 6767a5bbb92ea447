/* attach: a running process, from preflight to summary. */
#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/at.h"
#include "cli/fleet.h"
#include "cli/launcher.h"
#include "cli/measure.h"
#include "cli/present.h"
#include "cli/process.h"
#include "cli/recorder.h"
#include "cli/rounds.h"
#include "cli/signals.h"

static int outputs_tell(const struct measure *measure, struct error *err)
{
	struct outputs *outputs = calloc(1, sizeof *outputs);
	int result = -1;

	if (!outputs)
		return fail(err, ERR_MEMORY, "looking at what would be written");
	if (measure->recorder)
		result = recorder_outputs_next(measure->recorder, outputs, err);
	else {
		*outputs = measure->outputs;
		result = 0;
	}
	for (size_t i = 0; result == 0 && i < outputs->count; i++)
		printf("  would write %s\n", outputs->reports[i].path);
	if (result == 0 && *outputs->trace)
		printf("  would write %s%s\n", outputs->trace, measure->recorder ? ", and further ones, each time that there is a reason" : "");
	free(outputs);
	return result;
}

static int dry_run(struct measure *measure, const struct target *target, struct error *err)
{
	const struct target_facts *facts = target_facts(target);
	const char *duration = measure->session.duration_ns ? options_text(&measure->invocation->options, OPT_DURATION) : NULL;

	if (session_check(facts, &measure->session, err) < 0)
		return -1;
	if (measure->launcher)
		nanosleep(&(struct timespec){ 0, LAUNCHER_NS }, NULL);
	measure_launcher(measure, LAUNCHER_NS);
	printf("process %d: Python %d.%d.%d (%s), %s, %u threads\n", (int)facts->pid, facts->python_major, facts->python_minor, facts->python_micro < 0 ? 0 : facts->python_micro,
	       facts->python_file, facts->libc, facts->threads);
	findings_print(target, colour_wanted(&measure->invocation->options, STDOUT_FILENO));
	printf("attaching would measure it %s%s, with --hook %s; it was not touched\n", duration ? "for " : "until Ctrl-C", duration ? duration : "", options_text(&measure->invocation->options, OPT_HOOK));
	return outputs_tell(measure, err);
}

/* A process that measures itself has opened its memory: nothing of it needs to be traced, or to have room. */
static int inside_begin(struct measure *measure, struct error *err)
{
	struct session_options *session = &measure->session;
	int fd = (int)options_count(&measure->invocation->options, OPT_INSIDE_FD);

	if (fd == 0)
		return 0;
	if (inside_open(&procfs_real, fd, measure->pid, &session->inside, err) < 0)
		return -1;
	session->inject.memory_fd = inside_memory(session->inside);
	session->inject.look_only = true;
	return 0;
}

/* Waits for --at. The process may have changed meanwhile, so that it is looked at again. */
static int begin_together(struct measure *measure, uint64_t unix_ns, struct target **target, struct error *err)
{
	if (at_wait(unix_ns, measure, signals_stop(), err) < 0)
		return -1;
	target_close(*target);
	*target = NULL;
	return target_open(measure->pid, &measure->session.inject, target, err);
}

/* Everything between a good target and the files. AT_NS: since 1970, when to begin; 0 = now. */
static int measure_target(struct measure *measure, struct target **opened, uint64_t at_ns, struct error *err)
{
	const volatile int *stop = signals_stop();
	struct target *target;
	struct session *session;
	struct error left = { 0 };
	int result;

	if (measure_spool(measure, err) < 0 || (measure->recorder && recorder_start(measure->recorder, err) < 0))
		return -1;
	signals_catch();
	measure->session.stop = stop;
	measure->session.notice = measure_notice;
	measure->session.notice_context = measure;
	measure_tell(measure);
	if (at_ns && begin_together(measure, at_ns, opened, err) < 0)
		return -1;
	target = *opened;
	status_phase(measure->status, "attaching");
	log_print(measure->level, LOG_DEBUG, "entering process %d", (int)target_facts(target)->pid);
	if (session_start(target, &measure->session, measure->spool, &session, err) < 0) {
		status_phase(measure->status, NULL);
		return -1;
	}
	measure_begun(measure);
	measure_record(measure, session, stop, &left);
	session_free(session);
	if (measure->receipt.end == END_ABANDONED || *stop >= 2) {
		if (left.code)
			return measure_outcome(0, &left, err);
		log_print(measure->level, LOG_WARN, "left at once; nothing was written");
		return 130;
	}
	if (measure->recorder)
		result = recorder_finish(measure->recorder, err);
	else
		result = measure_present(measure, outputs_use_stdout(&measure->outputs) ? STDERR_FILENO : STDOUT_FILENO, err);
	return measure_outcome(result, &left, err);
}

int attach_command(struct invocation *invocation, struct error *err)
{
	struct measure measure;
	struct target *target = NULL;
	uint64_t at_ns;
	pid_t pid;
	int result = -1;

	if (options_duration_ns(&invocation->options, OPT_EVERY))
		return rounds_attach(invocation, err);
	if (options_given(&invocation->options, OPT_SHIP))
		return fail(err, ERR_USAGE, "--ship goes with --every");
	if (fleet_wanted(invocation))
		return fleet_attach(invocation, err);
	if (process_named(invocation, true, &pid, err) < 0)
		return -1;
	if (measure_init(&measure, invocation, pid, "attach", err) < 0 || (recorder_wanted(&invocation->options) ? recorder_open(&measure, NULL, &measure.recorder, err) : outputs_test(&measure.outputs, err)) < 0 ||
	    at_read(&invocation->options, &at_ns, err) < 0 || inside_begin(&measure, err) < 0)
		goto out;
	if (target_open(pid, &measure.session.inject, &target, err) < 0) {
		if (target && options_flag(&invocation->options, OPT_DRY_RUN)) {
			printf("process %d: cannot be measured\n", (int)pid);
			findings_print(target, colour_wanted(&invocation->options, STDOUT_FILENO));
			if (options_choice(&invocation->options, OPT_ERROR_FORMAT) != 1)
				result = error_status(err->code); /* it has been said, with what to do */
		}
		goto out;
	}
	for (size_t i = 0; i < target_finding_count(target); i++)
		if (target_finding(target, i)->warning && !options_flag(&invocation->options, OPT_DRY_RUN))
			log_print(measure.level, LOG_WARN, "%s", target_finding(target, i)->text);
	measure.launcher = launcher_open(&procfs_real, pid);
	result = options_flag(&invocation->options, OPT_DRY_RUN) ? dry_run(&measure, target, err) : measure_target(&measure, &target, at_ns, err);
out:
	recorder_close(measure.recorder);
	target_close(target);
	measure_done(&measure);
	return result;
}
