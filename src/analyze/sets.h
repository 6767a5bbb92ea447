/* What time(), count() and their like can be asked about: functions, operations of devices, system calls, gaps, the rule's scope. */
#ifndef INFERSCOPE_ANALYZE_SETS_H
#define INFERSCOPE_ANALYZE_SETS_H

#include "analyze/expression.h"

enum set_family { SET_FUNCTIONS, SET_OPERATIONS, SET_GAPS, SET_SCOPE };
#define SET_OPERATION(operation) (1u << ((operation) - OP_TIME))

/* LOW to HIGH: kinds of functions, or of events, or the cause of gaps. */
struct set_info { const char *name; enum set_family family; int low, high; unsigned operations; const char *meaning; };
const struct set_info *set_infos(size_t *count);

#endif
