/* run --gpu-backend nsys: the program under Nsight Systems, for machines on which CUPTI cannot be ours; what it exports is what is reported. No hooks, no samples of our own. */
#include "cli/nsys_run.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/present.h"
#include "cli/signals.h"

extern char **environ;

enum { FOLDER_BYTES = 256, COPY_BYTES = 1 << 16 };

/* What nsys writes of one run, in a folder of its own. */
struct export { char folder[FOLDER_BYTES]; char output[FOLDER_BYTES + 32], sqlite[FOLDER_BYTES + 16], report[FOLDER_BYTES + 16]; };

static int export_open(struct export *export, struct error *err)
{
	const char *temporary = getenv("TMPDIR");

	if ((size_t)snprintf(export->folder, sizeof export->folder, "%s/inferscope-nsys-XXXXXX", temporary && *temporary ? temporary : "/tmp") >= sizeof export->folder || !mkdtemp(export->folder)) {
		fail(err, ERR_OUTPUT, "no folder for what nsys writes can be made in %s: %s", temporary && *temporary ? temporary : "/tmp", strerror(errno));
		export->folder[0] = '\0';
		return -1;
	}
	snprintf(export->output, sizeof export->output, "--output=%s/run", export->folder);
	snprintf(export->sqlite, sizeof export->sqlite, "%s/run.sqlite", export->folder);
	snprintf(export->report, sizeof export->report, "%s/run.nsys-rep", export->folder);
	return 0;
}

static void export_close(const struct export *export)
{
	if (!*export->folder)
		return;
	unlink(export->sqlite);
	unlink(export->report);
	rmdir(export->folder);
}

/* nsys profile … PROGRAM. Freed by the caller; the strings are not. */
static char **command_make(const struct export *export, char **program, struct error *err)
{
	static const char *const begin[] = { "nsys", "profile", "--trace=cuda,nvtx,osrt", "--sample=none", "--cpuctxsw=none", "--export=sqlite", "--force-overwrite=true" };
	size_t count = 0, used = sizeof begin / sizeof *begin;
	char **command;

	while (program[count])
		count++;
	command = calloc(used + count + 2, sizeof *command);
	if (!command) {
		fail(err, ERR_MEMORY, "starting the program");
		return NULL;
	}
	memcpy(command, begin, sizeof begin);
	command[used++] = (char *)export->output;
	memcpy(command + used, program, count * sizeof *command);
	return command;
}

static int command_run(char **command, int *status, struct error *err)
{
	posix_spawnattr_t attributes;
	sigset_t defaults;
	pid_t pid;
	int result;

	signals_forward();
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	sigaddset(&defaults, SIGXFSZ);
	if (posix_spawnattr_init(&attributes))
		return fail(err, ERR_MEMORY, "starting nsys");
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	result = posix_spawnp(&pid, command[0], NULL, &attributes, command, environ);
	posix_spawnattr_destroy(&attributes);
	if (result)
		return fail(err, ERR_NSYS, "nsys cannot be started: %s", strerror(result));
	signal(SIGCHLD, SIG_DFL); /* if it is ignored the program is to find it so, but we want its status */
	signals_child(pid);
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return fail(err, ERR_NSYS, "nsys cannot be waited for: %s", strerror(errno));
	return 0;
}

/* --trace FILE: the export, which analyze reads like a trace. */
static int export_keep(const struct export *export, const struct outputs *outputs, const char *path, struct error *err)
{
	char bytes[COPY_BYTES];
	struct sink *sink;
	size_t count;
	FILE *file = fopen(export->sqlite, "rbe");

	if (!file)
		return fail(err, ERR_NSYS, "what nsys exported cannot be read: %s", strerror(errno));
	if (sink_open_path(path, outputs->force, &sink, err) < 0) {
		fclose(file);
		return -1;
	}
	while ((count = fread(bytes, 1, sizeof bytes, file)) > 0)
		sink_write(sink, bytes, count);
	if (ferror(file)) {
		fclose(file);
		sink_discard(sink);
		return fail(err, ERR_NSYS, "what nsys exported cannot be read to its end");
	}
	fclose(file);
	return sink_commit(sink, err);
}

static int export_present(const struct export *export, const struct options *options, const struct outputs *outputs, int status, struct error *err)
{
	const char *kept = options_given(options, OPT_TRACE) && strcmp(options_text(options, OPT_TRACE), "none") != 0 ? options_text(options, OPT_TRACE) : "";
	struct presentation how = { .options = options, .outputs = outputs, .level = (enum log_level)options_choice(options, OPT_LOG_LEVEL), .source_root = "/" };
	struct present_result result;

	if (access(export->sqlite, R_OK) < 0)
		return fail(err, ERR_NSYS, "nsys ended with status %d and exported nothing", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	how.summary_fd = STDERR_FILENO;
	if ((*kept && export_keep(export, outputs, kept, err) < 0) || present_trace(export->sqlite, kept, &how, &result, err) < 0)
		return -1;
	return present_status(options, &result, err);
}

int nsys_run(const struct options *options, char **program, int *status, bool *started, struct error *err)
{
	struct export export = { .folder = "" };
	struct outputs outputs;
	char **command = NULL;
	int result = -1;

	*started = false;
	if (present_check(options, err) < 0 || outputs_plan(options, 0, &outputs, err) < 0 || outputs_test(&outputs, err) < 0 || export_open(&export, err) < 0)
		goto out;
	command = command_make(&export, program, err);
	if (!command || command_run(command, status, err) < 0)
		goto out;
	*started = true;
	result = export_present(&export, options, &outputs, *status, err);
out:
	free(command);
	export_close(&export);
	return result;
}
