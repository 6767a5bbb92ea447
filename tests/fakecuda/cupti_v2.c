/* Version 2 of the API. 13.0 and 13.1 have cuptiSubscribe_v2 alone, for one subscriber with a name; from 13.2 on
 * (complete from 13.3), and with a driver of that age, there may be several, each with activity of its own. */
#include "cupti_api.h"
#include "settings.h"

#include <stdio.h>
#include <string.h>

struct subscriber_params {
	size_t size;
	const char *name;
	char *holder;
	size_t holder_size;
	uint8_t multiple;
};
_Static_assert(offsetof(struct subscriber_params, multiple) == 32, "CUpti_SubscriberParams");

enum { PARAMS_13_0 = 32, PARAMS_13_2 = 40, DRIVER_13_3 = 13030 };

static int v1_in_use(void)
{
	int used = clients[0].subscribed || clients[0].request != NULL;

	for (int i = 0; i < KINDS_MAX; i++)
		used |= clients[0].kinds[i];
	return used;
}

static int any_subscriber(void)
{
	for (int i = 0; i < CLIENTS_MAX; i++)
		if (clients[i].subscribed)
			return i;
	return -1;
}

static void tell_holder(const struct subscriber_params *params, const char *name)
{
	if (params->holder && params->holder_size)
		snprintf(params->holder, params->holder_size, "%s", name);
}

static struct client *free_client(int multiple)
{
	for (int i = multiple ? 1 : 0; i < CLIENTS_MAX; i++)
		if (!clients[i].subscribed)
			return &clients[i];
	return NULL;
}

/* The lock is held. */
static int subscribe(void **handle, callback_fn *callback, void *user, const struct subscriber_params *params, int multiple)
{
	int other = any_subscriber();
	struct client *client;

	if (setting(SET_INIT_RC) == RC_BUSY) {
		tell_holder(params, setting_text("FAKECUDA_NAME") ? setting_text("FAKECUDA_NAME") : "CUPTI");
		return RC_BUSY;
	}
	if (other >= 0 && (!multiple || !clients[other].v2)) {
		tell_holder(params, clients[other].name);
		return RC_BUSY;
	}
	if (multiple && setting(SET_DRIVER) < DRIVER_13_3)
		return RC_BUSY;
	if (multiple && v1_in_use())
		return RC_NOT_COMPATIBLE;
	client = free_client(multiple);
	if (!client)
		return RC_BUSY;
	client->subscribed = 1;
	client->v2 = multiple;
	client->callback = callback;
	client->user = user;
	snprintf(client->name, sizeof client->name, "CUPTI for %s", params->name ? params->name : "unnamed");
	*handle = client;
	return RC_OK;
}

int cuptiSubscribe_v2(void **handle, callback_fn *callback, void *user, const struct subscriber_params *params)
{
	static const struct subscriber_params none = { PARAMS_13_0, NULL, NULL, 0, 0 };
	const struct subscriber_params *used = params ? params : &none;
	int multiple = version() >= V_13_2 && used->size >= PARAMS_13_2 && used->multiple;
	int rc;

	api_enter("Subscribe_v2", (uint64_t)multiple);
	rc = profiler_init();
	if (!rc && used->size < PARAMS_13_0)
		rc = RC_INVALID_PARAMETER;
	pthread_mutex_lock(&profiler_lock);
	if (!rc)
		rc = subscribe(handle, callback, user, used, multiple);
	pthread_mutex_unlock(&profiler_lock);
	return api_leave("Subscribe_v2", (uint64_t)multiple, rc);
}

/* The client of a handle of the v2 kind; *rc says what is wrong otherwise. */
static struct client *v2_client(void *handle, int *rc)
{
	struct client *client;

	*rc = profiler_init();
	client = *rc ? NULL : client_of(handle);
	if (!*rc)
		*rc = !client ? RC_INVALID_PARAMETER : client->v2 ? RC_OK : RC_NOT_COMPATIBLE;
	return *rc ? NULL : client;
}

int cuptiActivityEnable_v2(void *handle, uint32_t kind, const void *config)
{
	struct client *client;
	int rc;

	api_enter("ActivityEnable_v2", kind);
	client = v2_client(handle, &rc);
	return api_leave("ActivityEnable_v2", kind, client ? activity_enable(client, kind, 0) : rc);
}

int cuptiActivityEnableAndDump_v2(void *handle, uint32_t kind, const void *config)
{
	struct client *client;
	int rc;

	api_enter("ActivityEnableAndDump_v2", kind);
	client = v2_client(handle, &rc);
	return api_leave("ActivityEnableAndDump_v2", kind, client ? activity_enable(client, kind, 1) : rc);
}

int cuptiActivityDisable_v2(void *handle, uint32_t kind, const void *config)
{
	struct client *client;
	int rc;

	api_enter("ActivityDisable_v2", kind);
	client = v2_client(handle, &rc);
	return api_leave("ActivityDisable_v2", kind, client ? activity_disable(client, kind) : rc);
}

int cuptiActivityEnableRuntimeApi_v2(void *handle, uint32_t cbid, uint8_t on)
{
	struct client *client;
	int rc;

	api_enter("ActivityEnableRuntimeApi_v2", cbid);
	client = v2_client(handle, &rc);
	return api_leave("ActivityEnableRuntimeApi_v2", cbid, client ? activity_filter(client, DOMAIN_RUNTIME, cbid, on) : rc);
}

int cuptiActivityEnableDriverApi_v2(void *handle, uint32_t cbid, uint8_t on)
{
	struct client *client;
	int rc;

	api_enter("ActivityEnableDriverApi_v2", cbid);
	client = v2_client(handle, &rc);
	return api_leave("ActivityEnableDriverApi_v2", cbid, client ? activity_filter(client, DOMAIN_DRIVER, cbid, on) : rc);
}

int cuptiActivityRegisterCallbacks_v2(void *handle, request_v2_fn *request, complete_v2_fn *complete)
{
	struct client *client;
	int rc;

	api_enter("ActivityRegisterCallbacks_v2", 0);
	client = v2_client(handle, &rc);
	if (client && (!request || !complete))
		rc = RC_INVALID_PARAMETER;
	if (!rc) {
		pthread_mutex_lock(&profiler_lock);
		client->request_v2 = request;
		client->complete_v2 = complete;
		pthread_mutex_unlock(&profiler_lock);
	}
	return api_leave("ActivityRegisterCallbacks_v2", 0, rc);
}

int cuptiActivitySetAttribute_v2(void *handle, uint32_t attribute, size_t *size, void *value)
{
	struct client *client;
	int rc;

	api_enter("ActivitySetAttribute_v2", attribute);
	client = v2_client(handle, &rc);
	return api_leave("ActivitySetAttribute_v2", attribute, client ? activity_attribute(client, attribute, size, value, 1) : rc);
}

int cuptiActivityGetAttribute_v2(void *handle, uint32_t attribute, size_t *size, void *value)
{
	struct client *client;
	int rc;

	api_enter("ActivityGetAttribute_v2", attribute);
	client = v2_client(handle, &rc);
	return api_leave("ActivityGetAttribute_v2", attribute, client ? activity_attribute(client, attribute, size, value, 0) : rc);
}

int cuptiActivityGetNextRecord_v2(void *handle, uint8_t *buffer, size_t valid, uint8_t **record)
{
	return cuptiActivityGetNextRecord(buffer, valid, record);
}

int cuptiActivityGetNumDroppedRecords_v2(void *handle, void *context, uint32_t stream, size_t *out)
{
	struct client *client = client_of(handle);

	quiet_enter();
	return quiet_leave(client ? activity_dropped(client, out) : RC_INVALID_PARAMETER);
}

int cuptiGetTimestamp_v2(void *handle, uint64_t *out)
{
	return client_of(handle) ? cuptiGetTimestamp(out) : RC_INVALID_PARAMETER;
}

/* Whether anybody uses the library: subscribers, or kinds of the v1 API. */
int cuptiIsTracingSessionRunning(uint8_t *out)
{
	api_enter("IsTracingSessionRunning", 0);
	pthread_mutex_lock(&profiler_lock);
	*out = any_subscriber() >= 0 || v1_in_use();
	pthread_mutex_unlock(&profiler_lock);
	return api_leave("IsTracingSessionRunning", *out, RC_OK);
}
