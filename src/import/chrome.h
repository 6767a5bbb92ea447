/* Chrome's trace event format, and what torch.profiler (Kineto) makes of it for NVIDIA and AMD devices. For this layer alone. */
#ifndef INFERSCOPE_IMPORT_CHROME_H
#define INFERSCOPE_IMPORT_CHROME_H

#include "import/gather.h"
#include "import/json.h"

/* Reads the events of the array that JSON has just opened, to its end. False when it broke; what came before is in GATHER. */
bool chrome_events(struct json *json, struct gather *gather);

#endif
