/* Words that dump and assembler share. For this layer alone. */
#ifndef INFERSCOPE_TRACE_GRAMMAR_H
#define INFERSCOPE_TRACE_GRAMMAR_H

#include "abi/event.h"
#include "abi/lane.h"

static const struct { const char *name; uint32_t value; } grammar_lane_kinds[] = {
	{ "meta", LANE_META }, { "thread", LANE_THREAD }, { "session", LANE_SESSION }, { "gpu", LANE_GPU }, { "memory", LANE_MEMORY },
};
static const struct { const char *name; uint32_t value; } grammar_flags[] = {
	{ "exception", EVENT_FLAG_EXCEPTION }, { "cut", EVENT_FLAG_CUT }, { "later", EVENT_FLAG_LATER }, { "sampled", EVENT_FLAG_SAMPLED },
};
enum {
	grammar_lane_kind_count = sizeof grammar_lane_kinds / sizeof *grammar_lane_kinds,
	grammar_flag_count = sizeof grammar_flags / sizeof *grammar_flags,
};

#endif
