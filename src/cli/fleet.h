/* attach with several processes: which they are, measuring them at the same time, one report of all. */
#ifndef INFERSCOPE_CLI_FLEET_H
#define INFERSCOPE_CLI_FLEET_H

#include "cli/member.h"

struct members { struct member *items; size_t count, capacity; size_t brief; /* ended before they could be looked at; most are no items any more */ }; /* as LIST() */

/* Several processes are meant, or a way to find them. */
bool fleet_wanted(const struct invocation *invocation);
/* Returns as a command does. */
int fleet_attach(struct invocation *invocation, struct error *err);

/* fleet_query.c. From the options; patterns are compiled. Its parts live as long as INVOCATION; fleet_query_done() accepts a half-built one. */
struct fleet_query {
	struct find_query find;
	pid_t *pids;
	struct pattern *match;
};
int fleet_query_read(const struct invocation *invocation, struct fleet_query *out, struct error *err);
void fleet_query_done(struct fleet_query *query);
/* Processes that come later can be meant, too. */
bool fleet_query_follows(const struct fleet_query *query);

/* fleet_watch.c. Flight recorders of several processes, when the options ask for them. */
struct watch {
	bool wanted;
	uint64_t keep_ns, quiet_until_ns; /* CLOCK_MONOTONIC: so long no condition calls */
	uint32_t calls_most;
	int signals_seen;
};
/* FOLDER: where files go. Checks the words of all recorders, and what they say about the session. */
int watch_read(const struct options *options, const char *folder, struct session_options *session, struct watch *out, struct error *err);
/* What they ask for and have written since; a condition that holds in one of them, or SIGUSR1, calls all. */
void watch_step(struct watch *watch, struct members *members, struct fleet_page *page, const struct measure *measure, uint64_t now_ns);
/* All that may be written is called for. */
bool watch_full(const struct watch *watch, const struct fleet_page *page);
/* As fleet_report(). */
int watch_report(const struct members *members, const struct measure *measure, struct error *err);

/* fleet_report.c. The joint reports of PLAN and the summary; the exit status as of a command. FOLDER: where the members' files lie, or empty. */
int fleet_report(const struct members *members, const struct measure *measure, const struct outputs *plan, const char *folder, struct error *err);
/* Parts of it: what warns, who is absent; the worst that is to be told, or NULL; ERR of why none was measured, -1. */
void fleet_tell(const struct members *members, enum log_level level);
const struct error *fleet_worst(const struct members *members);
int fleet_none(const struct members *members, struct error *err);

#endif
