/* Telling people what went wrong, on stderr. */
#ifndef INFERSCOPE_CLI_FAILURE_H
#define INFERSCOPE_CLI_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum log_level { LOG_DEBUG = 0, LOG_INFO = 1, LOG_WARN = 2, LOG_ERROR = 3 };

/* The general hint on a wrong option names the COMMAND. */
void failure_of_command(struct error *err, const char *command);
/* Two lines, or one of JSON. Returns the exit status. */
int failure_print(const struct error *err, bool json);
/* What is printed for people or machines, and what is still on its way there; 0 also where nobody reads it any more. */
int stdout_put(const char *bytes, size_t length, struct error *err);
int stdout_flush(struct error *err);
/* "inferscope: TEXT" when LEVEL is at least WANTED. */
void log_print(enum log_level wanted, enum log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
