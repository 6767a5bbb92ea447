/* The built-in rules, read once, not with each input. */
#ifndef INFERSCOPE_FUZZ_RULES_H
#define INFERSCOPE_FUZZ_RULES_H

#include <stdlib.h>

#include "analyze/analysis.h"

static const struct ruleset *fuzz_rules(void)
{
	static struct ruleset *rules;
	struct error err;

	if (!rules && ruleset_new(&rules, &err) < 0)
		abort();
	return rules;
}

#endif
