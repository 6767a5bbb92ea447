/* Event JSON: objects with event_type, name, start_us, end_us, thread_id …, as `-f events` writes them. For this layer alone. */
#ifndef INFERSCOPE_IMPORT_EVENT_JSON_H
#define INFERSCOPE_IMPORT_EVENT_JSON_H

#include "import/gather.h"
#include "import/json.h"

/* As chrome_events(). */
bool event_json_events(struct json *json, struct gather *gather);

#endif
