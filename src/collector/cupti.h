/*
 * CUPTI as this process has it: its library found, never a second copy loaded, never unloaded. One table of calls with a row for
 * each of the two families of functions: the old one has one subscriber and one set of buffers per process, the one from 13.3 on
 * (with a driver of CUDA 13.3 or later) one per subscriber; the two must not be mixed.
 */
#ifndef INFERSCOPE_COLLECTOR_CUPTI_H
#define INFERSCOPE_COLLECTOR_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cupti.h"

typedef void (*cupti_called)(void *user, int domain, uint32_t cbid, const void *data);
typedef void (*cupti_request)(uint8_t **buffer, size_t *size, size_t *records);
typedef void (*cupti_complete)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef void (*cupti_request2)(uint8_t **buffer, size_t *size, size_t *records, void *info);
typedef void (*cupti_complete2)(uint8_t *buffer, size_t size, size_t valid, void *info);

/* FUNCTION(needed by every family, name without "cupti", arguments) */
#define CUPTI_FUNCTIONS(FUNCTION) \
	FUNCTION(true, GetVersion, (uint32_t *)) \
	FUNCTION(true, GetTimestamp, (uint64_t *)) \
	FUNCTION(true, Subscribe, (void **, cupti_called, void *)) \
	FUNCTION(true, Unsubscribe, (void *)) \
	FUNCTION(true, EnableCallback, (uint32_t, void *, int, uint32_t)) \
	FUNCTION(true, ActivityRegisterCallbacks, (cupti_request, cupti_complete)) \
	FUNCTION(true, ActivityEnable, (int)) \
	FUNCTION(true, ActivityDisable, (int)) \
	FUNCTION(true, ActivityEnableAndDump, (int)) \
	FUNCTION(true, ActivityFlushAll, (uint32_t)) \
	FUNCTION(true, ActivityGetNextRecord, (uint8_t *, size_t, uint8_t **)) \
	FUNCTION(true, ActivitySetAttribute, (int, size_t *, void *)) \
	FUNCTION(true, GetThreadIdType, (int *)) \
	FUNCTION(true, SetThreadIdType, (int)) \
	FUNCTION(false, ActivityGetNumDroppedRecords, (void *, uint32_t, size_t *)) \
	FUNCTION(false, GetResultString, (int, const char **)) \
	FUNCTION(false, GetErrorMessage, (int, const char **)) \
	FUNCTION(false, GetCallbackName, (int, uint32_t, const char **)) \
	FUNCTION(false, Finalize, (void)) \
	FUNCTION(false, ActivityEnableRuntimeApi, (uint32_t, uint8_t)) \
	FUNCTION(false, ActivityEnableDriverApi, (uint32_t, uint8_t)) \
	FUNCTION(false, Subscribe_v2, (void **, cupti_called, void *, struct cupti_subscriber *)) \
	FUNCTION(false, GetTimestamp_v2, (void *, uint64_t *)) \
	FUNCTION(false, ActivityRegisterCallbacks_v2, (void *, cupti_request2, cupti_complete2)) \
	FUNCTION(false, ActivityEnable_v2, (void *, int, void *)) \
	FUNCTION(false, ActivityDisable_v2, (void *, int, void *)) \
	FUNCTION(false, ActivityEnableAndDump_v2, (void *, int, void *)) \
	FUNCTION(false, ActivityGetNextRecord_v2, (void *, uint8_t *, size_t, uint8_t **)) \
	FUNCTION(false, ActivityGetNumDroppedRecords_v2, (void *, void *, uint32_t, size_t *)) \
	FUNCTION(false, ActivitySetAttribute_v2, (void *, int, size_t *, void *)) \
	FUNCTION(false, ActivityEnableRuntimeApi_v2, (void *, uint32_t, uint8_t)) \
	FUNCTION(false, ActivityEnableDriverApi_v2, (void *, uint32_t, uint8_t)) \
	FUNCTION(false, IsTracingSessionRunning, (uint8_t *))

struct cupti;

/* What differs between the families. Each returns CUPTI's result; CUPTI_MISSING where this release has no such function. */
enum { CUPTI_MISSING = -1 };
struct cupti_family {
	uint32_t number;
	int (*subscribe)(struct cupti *, cupti_called);
	int (*thread_ids_begin)(struct cupti *);
	int (*thread_ids_end)(struct cupti *);
	int (*attribute)(struct cupti *, int attribute, uint8_t value);
	int (*buffers)(struct cupti *);
	int (*enable)(struct cupti *, int kind);
	int (*dump)(struct cupti *, int kind); /* enables it, and tells what exists already */
	int (*disable)(struct cupti *, int kind);
	int (*runtime_call)(struct cupti *, uint32_t cbid, bool on);
	int (*driver_call)(struct cupti *, uint32_t cbid, bool on);
	int (*timestamp)(struct cupti *, uint64_t *ns);
	int (*step)(struct cupti *, uint8_t *buffer, size_t valid, uint8_t **record);
	int (*dropped)(struct cupti *, size_t *count);
};

struct cupti {
	const struct cupti_family *family;
	void *subscriber;
	cupti_request request; /* these four are set before buffers() */
	cupti_complete complete;
	cupti_request2 request2; /* of the second family: one argument more */
	cupti_complete2 complete2;
	uint32_t version;
	bool is_11;           /* 11.8: by its file's name, as it calls itself 18 like 12.0 and 12.1 */
	int thread_id_type;   /* as found */
	bool thread_id_known;
	char path[512];
	char holder[64];      /* who subscribed before us, where CUPTI tells */
#define CUPTI_FIELD_OF(needed, name, args) int (*name) args;
	CUPTI_FUNCTIONS(CUPTI_FIELD_OF)
#undef CUPTI_FIELD_OF
};

/* Finds the library and its functions. 0, or -1 with the cause in TEXT; then nothing of it may be called. Takes the loader's locks: a thread of our own only. */
int cupti_find(struct cupti *cupti, char *text, size_t size);
/* Chooses the family for the version found and DRIVER (cuDriverGetVersion()). */
void cupti_choose(struct cupti *cupti, uint32_t driver);
/* "cuptiSubscribe: CUPTI_ERROR_NOT_INITIALIZED (15)" */
void cupti_explain(const struct cupti *cupti, const char *call, int result, char *text, size_t size);

#endif
