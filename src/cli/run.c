/* run: a program from its first line on; its status is ours. */
#include "cli/command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/measure.h"
#include "cli/nsys_run.h"
#include "cli/present.h"
#include "cli/signals.h"
#include "inject/launch.h"

enum { OUR_FAILURE = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

/* python SCRIPT ARGS, python -m MODULE ARGS, python -c CODE ARGS. Freed by the caller; the strings are not. */
static char **program_make(const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	const char *module = options_text(options, OPT_MODULE), *code = options_text(options, OPT_CODE);
	bool has_module = options_given(options, OPT_MODULE), has_code = options_given(options, OPT_CODE);
	char **program = calloc(invocation->argument_count + 4, sizeof *program);
	size_t count = 0;

	if (!program) {
		fail(err, ERR_MEMORY, "starting the program");
		return NULL;
	}
	if ((has_module && has_code) || (!has_module && !has_code && !invocation->argument_count)) {
		fail(err, ERR_USAGE, has_module ? "run takes a script, or -m, or -c, not two of them" : "run needs a script, -m MODULE or -c CODE");
		free(program);
		return NULL;
	}
	program[count++] = (char *)options_text(options, OPT_PYTHON);
	if (has_module || has_code) {
		program[count++] = (char *)(has_module ? "-m" : "-c");
		program[count++] = (char *)(has_module ? module : code);
	}
	for (size_t i = 0; i < invocation->argument_count; i++)
		program[count++] = invocation->arguments[i];
	return program;
}

/* Ours all end with 125 to 127, so that nobody takes them for the program's. */
static int failure_status(const struct invocation *invocation, struct error *err)
{
	failure_of_command(err, invocation->command->name);
	failure_print(err, options_choice(&invocation->options, OPT_ERROR_FORMAT) == 1);
	if (err->code == ERR_LAUNCH)
		return err->sys_errno == EACCES || err->sys_errno == ENOEXEC ? NOT_EXECUTABLE : NOT_FOUND;
	return OUR_FAILURE;
}

static int run_unmeasured(char **program, struct error *err)
{
	fflush(NULL);
	execvp(program[0], program);
	return fail(err, ERR_LAUNCH, "%s cannot be started: %s", program[0], strerror(errno));
}

static int child_wait(struct launch *launch, int *status, struct error *err)
{
	int waited;

	while ((waited = launch_wait(launch, -1, status, err)) == 0)
		;
	return waited < 0 ? -1 : 0;
}

static void child_known(void *context, pid_t pid)
{
	signals_child(pid);
}

/* Measures the child at its gate until it ends. On failure before the gate opens the child is ended by launch_close(). */
static int child_measure(struct measure *measure, struct launch *launch, struct target *target, bool *opened, int *status, struct error *err)
{
	struct session *session;
	struct error left = { 0 };
	int result;

	if (measure_spool(measure, err) < 0 || session_start(target, &measure->session, measure->spool, &session, err) < 0)
		return -1;
	if (launch_release(launch, err) < 0) {
		session_free(session);
		return -1;
	}
	*opened = true;
	measure_record(measure, session, NULL, &left);
	session_free(session);
	if (child_wait(launch, status, err) < 0)
		return -1;
	measure_tell(measure); /* until now the terminal was the program's */
	result = measure_present(measure, STDERR_FILENO, err);
	return measure_outcome(result, &left, err);
}

/* What the program says counts; what we have to say only where it says nothing. */
static int status_join(const struct invocation *invocation, int wait_status, int result, const struct error *err)
{
	int ours = 0;

	if (result < 0) {
		failure_print(err, options_choice(&invocation->options, OPT_ERROR_FORMAT) == 1);
		ours = err->code == ERR_GATE || err->code == ERR_PARTIAL ? error_status(err->code) : OUR_FAILURE;
	}
	if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0)
		return ours;
	return signals_end_as(wait_status);
}

static int run_measured(struct measure *measure, char **program, struct error *err)
{
	const struct invocation *invocation = measure->invocation;
	struct launch *launch = NULL;
	struct target *target = NULL;
	bool opened = false;
	int status = 0, result = -1;

	signals_forward();
	if (setenv("INFERSCOPE_ENABLED", "1", 1) < 0 || launch_start_watched(program, NULL, child_known, NULL, &launch, err) < 0)
		return failure_status(invocation, err);
	signals_child(launch_pid(launch));
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (!launch_at_gate(launch)) {
		result = child_wait(launch, &status, err);
		log_print(measure->level, LOG_INFO, "the program ended without a line of Python of its own: there is nothing to report; what a shell or launcher starts as its child is measured by `inferscope attach PID --children`");
		launch_close(launch);
		return result < 0 ? failure_status(invocation, err) : signals_end_as(status);
	}
	/* The trace's name holds the pid, which is known only now. */
	if (outputs_plan(&invocation->options, launch_pid(launch), &measure->outputs, err) == 0 && target_open(launch_pid(launch), &measure->session.inject, &target, err) == 0)
		result = child_measure(measure, launch, target, &opened, &status, err);
	target_close(target);
	launch_close(launch);
	if (!opened)
		return failure_status(invocation, err);
	return status_join(invocation, status, result, err);
}

static int run_by_nsys(const struct invocation *invocation, char **program, struct error *err)
{
	bool started;
	int status = 0, result = nsys_run(&invocation->options, program, &status, &started, err);

	return started ? status_join(invocation, status, result, err) : failure_status(invocation, err);
}

int run_command(struct invocation *invocation, struct error *err)
{
	struct measure measure = { .invocation = invocation };
	char **program = program_make(invocation, err);
	int result;

	if (!program)
		return failure_status(invocation, err);
	if (!options_flag(&invocation->options, OPT_ENABLED)) {
		run_unmeasured(program, err);
		result = failure_status(invocation, err);
	} else if (options_choice(&invocation->options, OPT_GPU_BACKEND) == 1) {
		result = run_by_nsys(invocation, program, err);
	} else if (measure_init(&measure, invocation, getpid(), "run", err) < 0 || outputs_test(&measure.outputs, err) < 0) {
		result = failure_status(invocation, err);
	} else {
		measure.session.duration_ns = 0;
		result = run_measured(&measure, program, err);
	}
	measure_done(&measure);
	free(program);
	return result;
}
