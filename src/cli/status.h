/*
 * What is going on, on stderr: one line that is written over, at most four times a second, on a terminal; elsewhere (and on a dumb terminal) a plain
 * line every 10 s. No ESC byte in either. May be called from any thread.
 */
#ifndef INFERSCOPE_CLI_STATUS_H
#define INFERSCOPE_CLI_STATUS_H

#include <stdbool.h>
#include <stddef.h>

struct status;

/* QUIET: says nothing. NULL when out of memory; every function accepts that, and is then quiet. */
struct status *status_open(bool quiet);
void status_close(struct status *status);
/* What goes on from here: "attaching". Its time is told with it, until the next call. NULL = nothing is. */
void status_phase(struct status *status, const char *what);
/* Is it time for a line? */
bool status_due(struct status *status);
/* A line about the phase instead of its time; the hint is for terminals alone, and may be NULL. */
void status_say(struct status *status, const char *line, const char *hint);
/* Takes the line away, before something else is printed. */
void status_clear(struct status *status);
/* The line as it is shown: of CHARACTERS at most, in ASCII where ASCII is asked for. OUT has room for SIZE. */
void status_fit(const char *line, size_t characters, bool ascii, char *out, size_t size);

#endif
