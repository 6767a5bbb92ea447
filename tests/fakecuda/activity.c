/* The double of CUPTI: kinds of records, buffers, attributes, flushes: version 1 of the API, and what both versions do alike. */
#include "cupti_api.h"
#include "settings.h"

#include <string.h>
#include <unistd.h>

int activity_enable(struct client *client, uint32_t kind, int dump)
{
	if (!record_size(kind))
		return RC_INVALID_KIND;
	pthread_mutex_lock(&profiler_lock);
	client->kinds[kind] = 1;
	client->had_graph_trace |= kind == KIND_GRAPH_TRACE;
	if (kind == KIND_RUNTIME)
		memset(client->filters[DOMAIN_RUNTIME], 0, CBIDS_MAX);
	if (kind == KIND_DRIVER)
		memset(client->filters[DOMAIN_DRIVER], 0, CBIDS_MAX);
	worker_start();
	if (dump)
		record_dump(client, kind);
	pthread_mutex_unlock(&profiler_lock);
	return RC_OK;
}

/* What is under way stays: it is written when done, or by a forced flush. */
int activity_disable(struct client *client, uint32_t kind)
{
	if (kind == KIND_KERNEL && setting(SET_STALL_DISABLE))
		usleep((useconds_t)setting(SET_STALL_DISABLE) * 1000);
	if (!record_size(kind))
		return RC_INVALID_KIND;
	pthread_mutex_lock(&profiler_lock);
	client->kinds[kind] = 0;
	pthread_mutex_unlock(&profiler_lock);
	return RC_OK;
}

int activity_filter(struct client *client, int domain, uint32_t cbid, int enable)
{
	if (cbid >= CBIDS_MAX)
		return RC_INVALID_PARAMETER;
	pthread_mutex_lock(&profiler_lock);
	client->filters[domain][cbid] = enable ? 1 : 2;
	worker_start();
	pthread_mutex_unlock(&profiler_lock);
	return RC_OK;
}

/* Up to 12.9 a worker is left behind even when the library cannot be initialised. */
static int enable(const char *name, uint32_t kind, int dump)
{
	int rc;

	api_enter(name, kind);
	rc = v1_init();
	if (rc && version() < V_13_0) {
		pthread_mutex_lock(&profiler_lock);
		worker_start();
		pthread_mutex_unlock(&profiler_lock);
	}
	return api_leave(name, kind, rc ? rc : activity_enable(&clients[0], kind, dump));
}

int cuptiActivityEnable(uint32_t kind)
{
	return enable("ActivityEnable", kind, 0);
}

int cuptiActivityEnableAndDump(uint32_t kind)
{
	return enable("ActivityEnableAndDump", kind, 1);
}

int cuptiActivityDisable(uint32_t kind)
{
	int rc;

	api_enter("ActivityDisable", kind);
	rc = v1_init();
	return api_leave("ActivityDisable", kind, rc ? rc : activity_disable(&clients[0], kind));
}

int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t on)
{
	int rc;

	api_enter("ActivityEnableRuntimeApi", cbid);
	rc = v1_init();
	return api_leave("ActivityEnableRuntimeApi", cbid, rc ? rc : activity_filter(&clients[0], DOMAIN_RUNTIME, cbid, on));
}

int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t on)
{
	int rc;

	api_enter("ActivityEnableDriverApi", cbid);
	rc = v1_init();
	return api_leave("ActivityEnableDriverApi", cbid, rc ? rc : activity_filter(&clients[0], DOMAIN_DRIVER, cbid, on));
}

/* Succeeds without a driver below 13.1, and replaces whoever was there. */
int cuptiActivityRegisterCallbacks(request_fn *request, complete_fn *complete)
{
	int rc;

	api_enter("ActivityRegisterCallbacks", 0);
	rc = v1_init();
	if ((rc == RC_NOT_INITIALIZED || rc == RC_UNKNOWN) && version() < 130100)
		rc = RC_OK;
	if (!request || !complete)
		rc = RC_INVALID_PARAMETER;
	if (!rc) {
		pthread_mutex_lock(&profiler_lock);
		clients[0].request = request;
		clients[0].complete = complete;
		pthread_mutex_unlock(&profiler_lock);
	}
	return api_leave("ActivityRegisterCallbacks", 0, rc);
}

int cuptiActivityRegisterTimestampCallback(timestamp_fn *callback)
{
	int rc;

	api_enter("ActivityRegisterTimestampCallback", 0);
	rc = v1_init();
	if (!rc) {
		pthread_mutex_lock(&profiler_lock);
		timestamp_callback = callback;
		if (callback)
			stamp_begin();
		pthread_mutex_unlock(&profiler_lock);
	}
	return api_leave("ActivityRegisterTimestampCallback", 0, rc);
}

int cuptiActivityFlushPeriod(uint32_t ms)
{
	int rc;

	api_enter("ActivityFlushPeriod", ms);
	rc = v1_init();
	return api_leave("ActivityFlushPeriod", ms, rc);
}

/* Of all clients, in both versions of the API. */
int cuptiActivityFlushAll(uint32_t flag)
{
	uint64_t begun = mono_ns();
	int rc, registered = 0;

	api_enter("ActivityFlushAll", flag);
	rc = profiler_init();
	if (setting(SET_STALL_FLUSH))
		usleep((useconds_t)setting(SET_STALL_FLUSH) * 1000);
	pthread_mutex_lock(&profiler_lock);
	for (int i = 0; i < CLIENTS_MAX && driver && !rc; i++) {
		if (!clients[i].complete && !clients[i].complete_v2)
			continue;
		registered = 1;
		buffer_flush(&clients[i], flag & 1);
		if (driver && !(flag & 1))
			record_overhead(&clients[i], 1 << 16, begun, mono_ns());
	}
	pthread_mutex_unlock(&profiler_lock);
	return api_leave("ActivityFlushAll", flag, rc ? rc : registered ? RC_OK : RC_INVALID_OPERATION);
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
	size_t at = 0;
	int size;

	quiet_enter();
	if (!buffer || !record)
		return quiet_leave(RC_INVALID_PARAMETER);
	if (*record) {
		size = record_size(*(uint32_t *)*record);
		if (!size)
			return quiet_leave(RC_INVALID_KIND);
		at = (size_t)(*record - buffer) + (size_t)size;
	}
	if (at >= valid)
		return quiet_leave(RC_NO_MORE);
	*record = buffer + at;
	return quiet_leave(RC_OK);
}

int activity_dropped(struct client *client, size_t *out)
{
	pthread_mutex_lock(&profiler_lock);
	*out = client->dropped;
	client->dropped = 0;
	pthread_mutex_unlock(&profiler_lock);
	return RC_OK;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *out)
{
	quiet_enter();
	return quiet_leave(activity_dropped(&clients[0], out));
}

static size_t attribute_bytes(uint32_t attribute)
{
	return attribute == ATTRIBUTE_ZEROED || attribute == ATTRIBUTE_PINNED || attribute == ATTRIBUTE_PER_THREAD ? 1 : attribute == ATTRIBUTE_THREAD_ID_TYPE ? 4 : 8;
}

int activity_attribute(struct client *client, uint32_t attribute, size_t *size, void *value, int set)
{
	if (attribute >= ATTRIBUTES_MAX || !size || !value)
		return RC_INVALID_PARAMETER;
	if (*size < attribute_bytes(attribute))
		return RC_SIZE;
	pthread_mutex_lock(&profiler_lock);
	if (set) {
		client->attributes[attribute] = 0;
		memcpy(&client->attributes[attribute], value, attribute_bytes(attribute));
	} else {
		memcpy(value, &client->attributes[attribute], attribute_bytes(attribute));
	}
	*size = attribute_bytes(attribute);
	pthread_mutex_unlock(&profiler_lock);
	return RC_OK;
}

int cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value)
{
	int rc;

	api_enter("ActivitySetAttribute", attribute);
	rc = v1_init();
	return api_leave("ActivitySetAttribute", attribute, rc ? rc : activity_attribute(&clients[0], attribute, size, value, 1));
}

int cuptiActivityGetAttribute(uint32_t attribute, size_t *size, void *value)
{
	int rc;

	api_enter("ActivityGetAttribute", attribute);
	rc = v1_init();
	return api_leave("ActivityGetAttribute", attribute, rc ? rc : activity_attribute(&clients[0], attribute, size, value, 0));
}
