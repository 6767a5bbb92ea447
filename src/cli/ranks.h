/* Reads the traces of a job, several at once where there are CPUs for it; what is kept of each is small. */
#ifndef INFERSCOPE_CLI_RANKS_H
#define INFERSCOPE_CLI_RANKS_H

#include "analyze/align.h"
#include "analyze/request_path.h"
#include "cli/present.h"

/* What is read of a trace beside its rank, to lay it beside others. */
struct rank_side { struct clock_source clock; struct spans spans; };
void rank_sides_free(struct rank_side *sides, size_t count);

/* Fills RANKS, COUNT of them, and SIDES (NULL: not wanted), all zeroed by the caller, in the order of PATHS. Of several that cannot be read the first one is told. */
int ranks_read(char *const *paths, size_t count, const struct options *options, struct rank *ranks, struct rank_side *sides, struct present_result *result, struct error *err);

#endif
