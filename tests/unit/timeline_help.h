/* Timelines from the text of a trace. */
#ifndef TESTS_TIMELINE_HELP_H
#define TESTS_TIMELINE_HELP_H

#include "timeline/timeline.h"

/* Ticks are ns where a chunk says CLOCK. */
#define CLOCK " clock=1000000000/0/0\n"
#define META "chunk process=0 lane=1 tid=0 kind=meta sequence=1 lost=0 depth=0 refs=" CLOCK
#define SESSION "chunk process=0 lane=2 tid=0 kind=session sequence=1 lost=0 depth=0 refs=" CLOCK
#define THREAD(lane, tid) "chunk process=0 lane=" #lane " tid=" #tid " kind=thread sequence=1 lost=0 depth=0 refs=" CLOCK
/* Functions 1 main, 2 work, 3 step (all of /srv/app.py), 4 the C function time.sleep. */
#define NAMES \
	"0 code ref=1 line=1 name=\"main\" qualname=\"main\" file=\"/srv/app.py\"\n" \
	"0 code ref=2 line=10 name=\"work\" qualname=\"work\" file=\"/srv/app.py\"\n" \
	"0 code ref=3 line=20 name=\"step\" qualname=\"App.step\" file=\"/srv/app.py\"\n" \
	"0 c_function ref=4 name=\"sleep\" module=\"time\"\n"
#define ON(at) #at " window_on reason=1\n"
#define OFF(at) #at " window_off reason=1\n"
#define BRAKE(at) #at " window_off reason=2\n"
#define RELEASE(at) #at " window_on reason=2\n"

/* Both end the test when it cannot be; what they hand out is freed when the test ends. */
struct trace *trace_from_text(const char *text);
struct timeline *timeline_from_text(const char *text);
void keep_until_end(void *object, void (*free_object)(void *object));
const struct function *function_named(const struct timeline *timeline, const char *name);
/* The node of a path like "main;work", of any thread; NULL when there is none. */
const struct tree_node *node_at(const struct timeline *timeline, const char *path);

#endif
