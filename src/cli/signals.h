/* Signals of the command line: the one piece of state that a handler needs. */
#ifndef INFERSCOPE_CLI_SIGNALS_H
#define INFERSCOPE_CLI_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

/* From now on SIGINT, SIGTERM and SIGHUP count in *signals_stop() instead of ending us, what comes within 0.2 s of one that counted not again; a SIGHUP that is ignored stays so. */
void signals_catch(void);
const volatile int *signals_stop(void);
/* From now on SIGUSR1 counts in *signals_wanted(): write what there is. */
void signals_catch_wanted(void);
const volatile int *signals_wanted(void);
/* From now on SIGTERM makes *COUNT 1 where it was 0, and SIGINT and SIGHUP do nothing: for a process that measures on behalf of another one. */
void signals_stop_once(volatile int *count);
/* From now on SIGTSTP and SIGCONT only count, for a command that gives the terminal back before it stops. */
void signals_catch_suspend(void);
/* SIGTSTP, or SIGCONT, came since the last question. */
bool signals_suspended(void);
bool signals_continued(void);
/* From now on signals that somebody sends us go on to signals_child(); what the terminal sends, it gets by itself. */
void signals_forward(void);
/* The process they go to, a child of ours that nobody has waited for yet; until it is known they wait for it. */
void signals_child(pid_t pid);
/* Ends us as a child with this wait status ended: exit status, or the same signal (without a core of ours). */
int signals_end_as(int wait_status);

#endif
