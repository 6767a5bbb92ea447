/* Between the two versions of the double's API. */
#ifndef FAKECUDA_CUPTI_API_H
#define FAKECUDA_CUPTI_API_H

#include "profiler.h"

/* Every exported function begins and ends with one of these pairs; the quiet one is for those that are called too often for the journal. */
void api_enter(const char *name, uint64_t argument);
int api_leave(const char *name, uint64_t argument, int rc);
int quiet_enter(void);
int quiet_leave(int rc);
int calls_elsewhere(void); /* is another thread within one? */

extern const struct hooks profiler_hooks;

int profiler_init(void);
int v1_init(void);
struct client *client_of(void *handle);
int activity_enable(struct client *, uint32_t kind, int dump);
int activity_disable(struct client *, uint32_t kind);
int activity_filter(struct client *, int domain, uint32_t cbid, int enable);
int activity_dropped(struct client *, size_t *out);
int activity_attribute(struct client *, uint32_t attribute, size_t *size, void *value, int set);

int cuptiGetTimestamp(uint64_t *out);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record);

#endif
