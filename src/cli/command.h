/* The commands, one row each, and what they get. */
#ifndef INFERSCOPE_CLI_COMMAND_H
#define INFERSCOPE_CLI_COMMAND_H

#include "cli/options.h"

struct invocation {
	const struct command_row *command;
	struct options options;
	char *const *arguments; /* what is no option; the array's end is NULL */
	size_t argument_count;
	char *const *words;     /* all of ours as typed, for the trace: NULL at the end */
};

struct command_row {
	const char *name;      /* "attach", "config show" */
	unsigned bit;
	const char *arguments; /* "PID" */
	size_t fewest, most;   /* arguments; SIZE_MAX = any */
	bool passes_rest;      /* what follows the first argument is not ours */
	const char *about;     /* one line */
	const char *more;      /* a paragraph for help and man page */
	/* Returns the exit status; -1 with err filled for a failure. */
	int (*run)(struct invocation *invocation, struct error *err);
};
extern const struct command_row command_rows[];
extern const size_t command_count;

/* By name, or NULL. */
const struct command_row *command_find(const char *name);
const char *command_suggest(const char *name);

int attach_command(struct invocation *invocation, struct error *err);
int run_command(struct invocation *invocation, struct error *err);
int analyze_command(struct invocation *invocation, struct error *err);
int merge_command(struct invocation *invocation, struct error *err);
int diff_command(struct invocation *invocation, struct error *err);
int dump_process_command(struct invocation *invocation, struct error *err);
int top_command(struct invocation *invocation, struct error *err);
int dump_command(struct invocation *invocation, struct error *err);
int assemble_command(struct invocation *invocation, struct error *err);
int detach_command(struct invocation *invocation, struct error *err);
int doctor_command(struct invocation *invocation, struct error *err);
int schema_command(struct invocation *invocation, struct error *err);
int config_command(struct invocation *invocation, struct error *err);

#endif
