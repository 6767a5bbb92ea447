/* What attach and run share: options into a session, signals, progress, the trace on disk. */
#ifndef INFERSCOPE_CLI_MEASURE_H
#define INFERSCOPE_CLI_MEASURE_H

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/outputs.h"
#include "cli/status.h"
#include "session/nvml.h"
#include "session/session.h"

#define LAUNCHER_NS 300000000ull /* so long a process is watched before it is called idle: some ticks, by which the kernel counts */

struct recorder;

struct measure {
	const struct invocation *invocation;
	struct outputs outputs;
	struct session_options session;
	enum log_level level;
	struct status *status;   /* NULL = no progress */
	struct nvml *nvml;       /* NULL = no GPU is told of */
	pid_t pid;
	struct session_receipt receipt;
	struct spool *spool;
	char **skips;            /* patterns of --skip */
	char *command_line;      /* ours */
	struct launcher *launcher; /* NULL = there is nothing more to say of one */
	struct rank *rank;       /* as presentation.rank */
	const char *rank_name;
	struct recorder *recorder; /* keeps the last while only; NULL = all is recorded */
};

/* Reads the options. PID for the default name of the trace. */
int measure_init(struct measure *measure, const struct invocation *invocation, pid_t pid, const char *mode, struct error *err);
/* From now on progress is told of, unless warnings alone are wanted. */
void measure_tell(struct measure *measure);
/* Tells whoever started us that measuring has begun. That it cannot be told is no reason to end. */
void measure_begun(const struct measure *measure);
void measure_done(struct measure *measure);
/* Opens the temporary trace where the kept one will be, or in TMPDIR. */
int measure_spool(struct measure *measure, struct error *err);
/* Records until its end and leaves. *STOP as session_record(). LEFT is filled (ERR_NOT_CLEAN) when something stayed in the process. */
void measure_record(struct measure *measure, struct session *session, const volatile int *stop, struct error *left);
/* Keeps the trace and makes the reports, the summary on SUMMARY_FD. Returns 0 or -1. */
int measure_present(struct measure *measure, int summary_fd, struct error *err);
/* RESULT and ERR are of the files that were made; what stayed in the process, LEFT, outranks them. Returns 0 or -1. */
int measure_outcome(int result, const struct error *left, struct error *err);
/* A line that says what is waited for. CONTEXT is a struct measure. */
void measure_notice(void *context, const char *text);
/* Says where the work is, once it has been watched for long enough. */
void measure_launcher(struct measure *measure, uint64_t elapsed_ns);

#endif
