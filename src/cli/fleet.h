/* attach with several processes: which they are, measuring them at the same time, one report of all. */
#ifndef INFERSCOPE_CLI_FLEET_H
#define INFERSCOPE_CLI_FLEET_H

#include "cli/member.h"

struct members { struct member *items; size_t count, capacity; }; /* as LIST() */

/* Several processes are meant, or a way to find them. */
bool fleet_wanted(const struct invocation *invocation);
/* Returns as a command does. */
int fleet_attach(struct invocation *invocation, struct error *err);

/* fleet_query.c. From the options; patterns are compiled. Its parts live as long as INVOCATION; fleet_query_done() accepts a half-built one. */
struct fleet_query {
	struct find_query find;
	pid_t *pids;
	regex_t match;
	bool matching;
};
int fleet_query_read(const struct invocation *invocation, struct fleet_query *out, struct error *err);
void fleet_query_done(struct fleet_query *query);
/* Processes that come later can be meant, too. */
bool fleet_query_follows(const struct fleet_query *query);

/* fleet_report.c. The joint reports of PLAN and the summary; the exit status as of a command. FOLDER: where the members' files lie, or empty. */
int fleet_report(const struct members *members, const struct measure *measure, const struct outputs *plan, const char *folder, struct error *err);

#endif
