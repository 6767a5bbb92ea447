/* libcupti.so.{11.8,12,13}: the library itself: whether it can be used, its version, clock and names, who has subscribed. Records are activity.c, version 2 of the API is cupti_v2.c. */
#include "cupti_api.h"
#include "settings.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

pthread_mutex_t profiler_lock = PTHREAD_MUTEX_INITIALIZER;
struct client clients[CLIENTS_MAX];
const struct driver *driver;
timestamp_fn *timestamp_callback;
int thread_id_type;

/* 11.8 and 12.0 say 18 both; inside, 11.8 is 17. */
uint32_t version(void)
{
	uint32_t said = (uint32_t)setting(SET_VERSION);

	if (!said)
		said = FAKECUDA_MAJOR == 11 ? V_12_0 : FAKECUDA_MAJOR == 12 ? 28 : V_13_0U1;
	return FAKECUDA_MAJOR == 11 && said == V_12_0 ? V_12_0 - 1 : said;
}

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
	found->hook(&profiler_hooks);
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
	if (!calls_elsewhere())
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
