/* The command line into an invocation. */
#ifndef INFERSCOPE_CLI_PARSE_H
#define INFERSCOPE_CLI_PARSE_H

#include "cli/command.h"

/* ARGUMENTS follow the command's name and end with NULL; they are kept (run's program keeps its own part of them). OUT has command
 * and options set; its arguments are filled here. Options may stand before and behind arguments; "--" ends them, and so
 * does the first argument of a command that passes the rest on. The array stays the caller's and is reordered. */
int parse_arguments(char **arguments, struct invocation *out, struct error *err);

#endif
