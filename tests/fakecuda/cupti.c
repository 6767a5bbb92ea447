/* libcupti.so.{11.8,12,13}: the API as clients see it, its journal, and the hooks of the driver. Version 2 of the API is cupti_v2.c. */
#include "cupti_api.h"
#include "settings.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pthread_mutex_t profiler_lock = PTHREAD_MUTEX_INITIALIZER;
struct client clients[CLIENTS_MAX];
const struct driver *driver;
timestamp_fn *timestamp_callback;
int thread_id_type;

static int in_flight, stolen;
static uint64_t gpu_ops;
static __thread int depth;
static __thread struct {
	int kind;
	uint64_t id;
} external[EXTERNAL_DEPTH];
static __thread int external_depth;

/* 11.8 and 12.0 say 18 both; inside, 11.8 is 17. */
uint32_t version(void)
{
	uint32_t said = (uint32_t)setting(SET_VERSION);

	if (!said)
		said = FAKECUDA_MAJOR == 11 ? V_12_0 : FAKECUDA_MAJOR == 12 ? 28 : V_13_0U1;
	return FAKECUDA_MAJOR == 11 && said == V_12_0 ? V_12_0 - 1 : said;
}

/* ---- the journal: every call before and after, with the thread and whether it has all signals blocked ---- */

static const char *signals_state(void)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	return sigismember(&now, SIGTERM) && sigismember(&now, SIGINT) && sigismember(&now, SIGUSR1) && sigismember(&now, SIGPROF) ? "masked" : "open";
}

void journal_note(const char *text)
{
	file_line("FAKECUDA_JOURNAL", "%lu\t%d\t%d\t%s\t#\t%s\t0\t0", mono_ns() / 1000, getpid(), own_tid(), signals_state(), text);
}

int quiet_enter(void)
{
	__atomic_add_fetch(&in_flight, 1, __ATOMIC_ACQ_REL);
	return depth++;
}

int quiet_leave(int rc)
{
	depth--;
	__atomic_sub_fetch(&in_flight, 1, __ATOMIC_ACQ_REL);
	return rc;
}

void api_enter(const char *name, uint64_t argument)
{
	quiet_enter();
	file_line("FAKECUDA_JOURNAL", "%lu\t%d\t%d\t%s\t>\t%s\t%lu\t0", mono_ns() / 1000, getpid(), own_tid(), signals_state(), name, argument);
}

int api_leave(const char *name, uint64_t argument, int rc)
{
	file_line("FAKECUDA_JOURNAL", "%lu\t%d\t%d\t%s\t<\t%s\t%lu\t%d", mono_ns() / 1000, getpid(), own_tid(), signals_state(), name, argument, rc);
	return quiet_leave(rc);
}

/* ---- the driver's side ---- */

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

static void on_lost(size_t records)
{
	pthread_mutex_lock(&profiler_lock);
	for (int i = 0; i < CLIENTS_MAX && driver; i++)
		clients[i].dropped += records;
	pthread_mutex_unlock(&profiler_lock);
}

static const struct hooks hooks = { on_enter, on_leave, on_ops, on_stream, on_lost };

static void fork_prepare(void) { pthread_mutex_lock(&profiler_lock); }
static void fork_parent(void) { pthread_mutex_unlock(&profiler_lock); }
static void fork_child(void) { driver = NULL; pthread_mutex_unlock(&profiler_lock); }
static void at_exit(void) { journal_note("exit"); }

__attribute__((constructor)) static void loaded(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	atexit(at_exit);
}

static int no_driver(void)
{
	return version() < V_13_0 ? RC_NOT_INITIALIZED : RC_UNKNOWN;
}

/* Finds the driver as the real one does, and initialises CUDA where nobody has: a client that must not do that must not come here. */
static const struct driver *find_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int (*table_of)(const void **, const void *) = library ? (int (*)(const void **, const void *))dlsym(library, "cuGetExportTable") : NULL;
	int (*init)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : NULL;
	const void *table;
	const struct driver *found;

	if (!table_of || !init || table_of(&table, "fakecuda driver"))
		return NULL;
	found = table;
	if (found->ready()) {
		journal_note("CUPTI initialises CUDA");
		if (init(0))
			return NULL;
	}
	return found;
}

int profiler_init(void)
{
	int rc = (int)setting(SET_INIT_RC);
	const struct driver *found;

	if (rc && rc != RC_BUSY)
		return rc;
	pthread_mutex_lock(&profiler_lock);
	found = driver;
	pthread_mutex_unlock(&profiler_lock);
	if (found)
		return RC_OK;
	found = find_driver();
	if (!found)
		return no_driver();
	pthread_mutex_lock(&profiler_lock);
	driver = found;
	pthread_mutex_unlock(&profiler_lock);
	found->hook(&hooks);
	return RC_OK;
}

/* No version 1 call works while version 2 has subscribers. */
int v1_init(void)
{
	int rc = profiler_init();

	for (int i = 1; i < CLIENTS_MAX && !rc; i++)
		if (clients[i].subscribed)
			rc = RC_NOT_COMPATIBLE;
	return rc;
}

/* ---- the library itself ---- */

static int is_initialised(void)
{
	int found;

	pthread_mutex_lock(&profiler_lock);
	found = driver != NULL;
	pthread_mutex_unlock(&profiler_lock);
	return found;
}

int cuptiGetVersion(uint32_t *out)
{
	api_enter("GetVersion", 0);
	if (version() >= 130500 && profiler_init() == RC_UNKNOWN)
		return api_leave("GetVersion", 0, RC_UNKNOWN);
	*out = version() == V_12_0 - 1 ? V_12_0 : version();
	return api_leave("GetVersion", 0, RC_OK);
}

/* 13.5 writes nothing when there is no driver. */
int cuptiGetResultString(int rc, const char **text)
{
	static const struct {
		int rc;
		const char *text;
	} known[] = {
		{ RC_OK, "CUPTI_SUCCESS" }, { RC_INVALID_PARAMETER, "CUPTI_ERROR_INVALID_PARAMETER" }, { RC_INVALID_OPERATION, "CUPTI_ERROR_INVALID_OPERATION" },
		{ RC_NO_MORE, "CUPTI_ERROR_MAX_LIMIT_REACHED" }, { RC_NOT_COMPATIBLE, "CUPTI_ERROR_NOT_COMPATIBLE" }, { RC_NOT_INITIALIZED, "CUPTI_ERROR_NOT_INITIALIZED" },
		{ RC_INVALID_KIND, "CUPTI_ERROR_INVALID_KIND" }, { 35, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" },
		{ RC_BUSY, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" }, { RC_UNKNOWN, "CUPTI_ERROR_UNKNOWN" },
	};

	if (version() >= 130500 && !is_initialised())
		return RC_UNKNOWN;
	*text = "<unknown>";
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].rc == rc)
			*text = known[i].text;
	return RC_OK;
}

int cuptiGetTimestamp(uint64_t *out)
{
	struct timespec t;

	quiet_enter();
	if (timestamp_callback) {
		*out = timestamp_callback();
	} else if (is_initialised()) {
		*out = driver->stamp_ns(driver->now_ns());
	} else if (version() >= 130500) {
		return quiet_leave(RC_UNKNOWN);
	} else {
		clock_gettime(CLOCK_REALTIME, &t);
		*out = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	}
	return quiet_leave(RC_OK);
}

int cuptiGetCallbackName(int domain, uint32_t cbid, const char **name)
{
	static const struct {
		int domain;
		uint32_t cbid;
		const char *name;
	} known[] = {
#define CBID(domain, number, name) { DOMAIN_##domain, number, name },
#include "cbid.def"
	};

	quiet_enter();
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].domain == domain && known[i].cbid == cbid) {
			*name = known[i].name;
			return quiet_leave(RC_OK);
		}
	return quiet_leave(RC_INVALID_PARAMETER);
}

int cuptiSetThreadIdType(int type)
{
	int rc;

	api_enter("SetThreadIdType", (uint64_t)type);
	rc = v1_init();
	if (!rc)
		thread_id_type = type;
	return api_leave("SetThreadIdType", (uint64_t)type, rc);
}

int cuptiGetThreadIdType(int *type)
{
	int rc;

	api_enter("GetThreadIdType", 0);
	rc = v1_init();
	if (!rc)
		*type = thread_id_type;
	return api_leave("GetThreadIdType", 0, rc);
}

static void check_race(void)
{
	if (__atomic_load_n(&in_flight, __ATOMIC_ACQUIRE) <= depth)
		return;
	journal_note("finalize races another call");
	if (setting(SET_FINALIZE_RACE))
		abort();
}

static void client_forget(struct client *client)
{
	unsigned generation = client->generation + 1;
	int delivering = client->delivering;

	buffer_forget(client);
	memset(client, 0, sizeof *client);
	client->generation = generation;
	client->delivering = delivering;
}

int cuptiFinalize(void)
{
	const struct driver *had;

	api_enter("Finalize", 0);
	check_race();
	worker_stop();
	pthread_mutex_lock(&profiler_lock);
	had = driver;
	driver = NULL;
	timestamp_callback = NULL;
	thread_id_type = 0;
	for (int i = 0; i < CLIENTS_MAX; i++)
		client_forget(&clients[i]);
	names_forget();
	pthread_mutex_unlock(&profiler_lock);
	if (had)
		had->hook(NULL);
	return api_leave("Finalize", 0, !had && version() >= 130500 ? RC_UNKNOWN : RC_OK);
}

/* ---- subscribers ---- */

struct client *client_of(void *handle)
{
	struct client *client = handle;

	return client >= clients && client < clients + CLIENTS_MAX && client->subscribed ? client : NULL;
}

int cuptiSubscribe(void **handle, callback_fn *callback, void *user)
{
	int rc;

	api_enter("Subscribe", 0);
	rc = v1_init();
	if (!rc && (setting(SET_INIT_RC) == RC_BUSY || clients[0].subscribed))
		rc = RC_BUSY;
	if (!rc) {
		pthread_mutex_lock(&profiler_lock);
		clients[0].subscribed = 1;
		clients[0].callback = callback;
		clients[0].user = user;
		snprintf(clients[0].name, sizeof clients[0].name, "CUPTI");
		*handle = &clients[0];
		pthread_mutex_unlock(&profiler_lock);
	}
	return api_leave("Subscribe", 0, rc);
}

/* Ends the callbacks alone: kinds of the v1 API go on, they never were the subscriber's. */
int cuptiUnsubscribe(void *handle)
{
	struct client *client = client_of(handle);

	api_enter("Unsubscribe", 0);
	if (!client)
		return api_leave("Unsubscribe", 0, RC_INVALID_PARAMETER);
	pthread_mutex_lock(&profiler_lock);
	if (client->v2) {
		client_forget(client);
	} else {
		client->subscribed = 0;
		client->callback = NULL;
		memset(client->callbacks, 0, sizeof client->callbacks);
	}
	pthread_mutex_unlock(&profiler_lock);
	return api_leave("Unsubscribe", 0, RC_OK);
}

int cuptiEnableCallback(uint32_t enable, void *handle, int domain, uint32_t cbid)
{
	struct client *client = client_of(handle);
	int rc = client && cbid < CBIDS_MAX && (domain == DOMAIN_DRIVER || domain == DOMAIN_RUNTIME) ? RC_OK : RC_INVALID_PARAMETER;

	api_enter("EnableCallback", cbid);
	if (!rc) {
		pthread_mutex_lock(&profiler_lock);
		client->callbacks[domain][cbid] = enable != 0;
		pthread_mutex_unlock(&profiler_lock);
	}
	return api_leave("EnableCallback", cbid, rc);
}

int cuptiEnableDomain(uint32_t enable, void *handle, int domain)
{
	struct client *client = client_of(handle);

	api_enter("EnableDomain", (uint64_t)domain);
	if (!client)
		return api_leave("EnableDomain", (uint64_t)domain, RC_INVALID_PARAMETER);
	pthread_mutex_lock(&profiler_lock);
	if (domain == DOMAIN_DRIVER || domain == DOMAIN_RUNTIME)
		memset(client->callbacks[domain], enable != 0, CBIDS_MAX);
	pthread_mutex_unlock(&profiler_lock);
	return api_leave("EnableDomain", (uint64_t)domain, RC_OK);
}

/* ---- activity ---- */

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
