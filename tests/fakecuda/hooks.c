/* The double of CUPTI on the driver's side: what it is told of calls and of work on devices, the callbacks of its clients, and the thief that takes their buffers. */
#include "cupti_api.h"
#include "settings.h"

#include <stdlib.h>

static int stolen;
static uint64_t gpu_ops;
static __thread struct {
	int kind;
	uint64_t id;
} external[EXTERNAL_DEPTH];
static __thread int external_depth;

struct callback_data {
	int site;
	const char *function;
	const void *params;
	void *result;
	const char *symbol;
	void *context;
	uint32_t context_id;
	uint64_t *data;
	uint32_t correlation;
};
_Static_assert(offsetof(struct callback_data, data) == 56 && offsetof(struct callback_data, correlation) == 64, "CUpti_CallbackData");

struct callback {
	callback_fn *function;
	void *user;
};

/* Copied under the lock: an unsubscribe may come between here and the call. */
static int callbacks_of(const struct call *call, struct callback *out)
{
	int count = 0;

	for (int i = 0; i < CLIENTS_MAX; i++)
		if (clients[i].subscribed && clients[i].callback && call->cbid < CBIDS_MAX && clients[i].callbacks[call->domain][call->cbid])
			out[count++] = (struct callback){ clients[i].callback, clients[i].user };
	return setting(SET_NO_CALLBACK) ? 0 : count;
}

static void call_back(const struct callback *callbacks, int count, struct call *call, int site)
{
	struct callback_data data = { site, call->function, call->params, &call->result, call->symbol, NULL, 1, &call->data, call->correlation };

	for (int i = 0; i < count; i++)
		callbacks[i].function(callbacks[i].user, (int)call->domain, call->cbid, &data);
}

static void on_enter(struct call *call)
{
	struct callback callbacks[CLIENTS_MAX];
	int count = 0;

	pthread_mutex_lock(&profiler_lock);
	if (driver)
		count = callbacks_of(call, callbacks);
	pthread_mutex_unlock(&profiler_lock);
	call_back(callbacks, count, call, 0);
}

static void on_leave(struct call *call)
{
	struct callback callbacks[CLIENTS_MAX];
	int count = 0;

	pthread_mutex_lock(&profiler_lock);
	for (int i = 0; i < CLIENTS_MAX && driver; i++) {
		for (int j = 0; j < external_depth; j++)
			record_external(&clients[i], call, external[j].kind, external[j].id);
		if (driver)
			record_call(&clients[i], call);
	}
	if (driver)
		count = callbacks_of(call, callbacks);
	pthread_mutex_unlock(&profiler_lock);
	call_back(callbacks, count, call, 1);
}

static void thief_request(uint8_t **buffer, size_t *size, size_t *records)
{
	*size = 65536;
	*records = 0;
	*buffer = malloc(*size);
}

/* Keeps what it gets: it cannot know whose buffers these are. */
static void thief_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
}

static void on_ops(const struct op *ops, size_t count, const struct call *call)
{
	pthread_mutex_lock(&profiler_lock);
	gpu_ops += count;
	if (setting(SET_STEAL) && gpu_ops >= (uint64_t)setting(SET_STEAL) && !stolen && clients[0].request) {
		stolen = 1;
		clients[0].request = thief_request;
		clients[0].complete = thief_complete;
		journal_note("stolen");
	}
	for (int i = 0; i < CLIENTS_MAX && driver; i++)
		record_ops(&clients[i], ops, count, call);
	pthread_mutex_unlock(&profiler_lock);
}

static void on_stream(uint32_t device, uint32_t context, uint32_t stream)
{
	pthread_mutex_lock(&profiler_lock);
	for (int i = 0; i < CLIENTS_MAX && driver; i++)
		if (clients[i].kinds[KIND_STREAM])
			record_stream(&clients[i], device, context, stream);
	pthread_mutex_unlock(&profiler_lock);
}

static void on_memory(const struct memory_change *change, const struct call *call)
{
	pthread_mutex_lock(&profiler_lock);
	for (int i = 0; i < CLIENTS_MAX && driver; i++)
		record_memory(&clients[i], change, call);
	pthread_mutex_unlock(&profiler_lock);
}

static void on_range(const struct range *range)
{
	pthread_mutex_lock(&profiler_lock);
	for (int i = 0; i < CLIENTS_MAX && driver; i++)
		record_range(&clients[i], range);
	pthread_mutex_unlock(&profiler_lock);
}

static void on_lost(size_t records)
{
	pthread_mutex_lock(&profiler_lock);
	for (int i = 0; i < CLIENTS_MAX && driver; i++)
		clients[i].dropped += records;
	pthread_mutex_unlock(&profiler_lock);
}

const struct hooks profiler_hooks = { on_enter, on_leave, on_ops, on_stream, on_memory, on_range, on_lost };

/* ---- ids of a client's own, which the thread's next calls get ---- */

int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id)
{
	int rc;

	quiet_enter();
	rc = profiler_init();
	if (!rc && external_depth < EXTERNAL_DEPTH) {
		external[external_depth].kind = kind;
		external[external_depth++].id = id;
	}
	return quiet_leave(rc);
}

int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last)
{
	quiet_enter();
	if (!external_depth)
		return quiet_leave(RC_QUEUE_EMPTY);
	external_depth--;
	if (last)
		*last = external[external_depth].id;
	return quiet_leave(RC_OK);
}
