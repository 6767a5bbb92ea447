/* Values as people type them. Each returns false when TEXT is not one; *out is untouched then. */
#ifndef INFERSCOPE_CLI_VALUE_H
#define INFERSCOPE_CLI_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 30, 30s, 500ms, 2m, 1h, 1.5s; at most 30 days. */
bool value_duration(const char *text, uint64_t *out_ns);
/* 5%, 5, 0.5%, none (= 0); more than 0 and at most 100. */
bool value_percent(const char *text, uint32_t *out_ppm);
bool value_count(const char *text, uint64_t lowest, uint64_t highest, uint64_t *out);
/* A moment of the wall clock: /10s the next multiple, +30s from NOW on, @1767225600 that second; all in ns since 1970. */
bool value_moment(const char *text, uint64_t now_unix_ns, uint64_t *out_unix_ns);
/* yes/no, true/false, on/off, 1/0 */
bool value_flag(const char *text, bool *out);
/* A process id: decimal digits, more than 0, within pid_t. */
bool value_pid(const char *text, int *out);
/* Position of TEXT in "a|b|c". */
bool value_choice(const char *text, const char *choices, unsigned *out);

#endif
