/* A small client of CUPTI, as a library: it proves the doubles by themselves, and plays the other profiler (Kineto, nsys, a second of our kind) in the
 * live tests. Knows CUPTI by symbol names and tests/fakecuda/layout.def alone. One session at a time per process. */
#include "settings.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KIND_COUNT = 64, NAMES_MAX = 256, NAME_BYTES = 128, BUFFER_BYTES = 64 * 1024, BUFFERS_MAX = 256, RC_NO_CALLBACK = -4, RC_NO_FUNCTION = -2 };
enum { CLIENT_SUBSCRIBE = 1, CLIENT_CALLBACKS = 2, CLIENT_OWN_CLOCK = 4, CLIENT_DUMP = 8, CLIENT_REFUSE = 16, CLIENT_EXTERNAL = 32, CLIENT_V2 = 64 };
enum { STOP_SOFT, STOP_HARD, STOP_FINALIZE };
enum { DOMAIN_DRIVER = 1, DOMAIN_RUNTIME = 2, CBID_DRIVER_VERSION = 2, CBID_LAUNCH = 211, SITE_EXIT = 1 };

enum field {
#define KIND(id, number, type) KIND_##id = number,
#define SIZE(id, since, bytes)
#define FIELD(id, name, offset, bytes, since, header) id##_##name = offset,
#include "layout.def"
};

#define FUNCTIONS(X) \
	X(Subscribe, (void **, void *, void *)) X(Subscribe_v2, (void **, void *, void *, void *)) X(Unsubscribe, (void *)) X(EnableCallback, (uint32_t, void *, int, uint32_t)) \
	X(SetThreadIdType, (int)) X(ActivityRegisterCallbacks, (void *, void *)) X(ActivityRegisterCallbacks_v2, (void *, void *, void *)) X(ActivityEnable, (int)) \
	X(ActivityEnable_v2, (void *, int, void *)) X(ActivityDisable_v2, (void *, int, void *)) X(ActivityEnableAndDump, (int)) X(ActivityDisable, (int)) \
	X(ActivityFlushAll, (uint32_t)) X(ActivityGetNextRecord, (uint8_t *, size_t, uint8_t **)) X(ActivityGetNumDroppedRecords, (void *, uint32_t, size_t *)) \
	X(ActivityRegisterTimestampCallback, (void *)) X(ActivityPushExternalCorrelationId, (int, uint64_t)) X(ActivityPopExternalCorrelationId, (int, uint64_t *)) X(Finalize, (void))
#define POINTER(name, arguments) int(*name) arguments;
static struct {
	FUNCTIONS(POINTER)
} cupti;

/* What it saw; Python reads it by client_counts(). */
struct counts {
	uint64_t kinds[KIND_COUNT], buffers, requests, dropped, invalid, no_end, out_of_order, unknown_names, callbacks, digest;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counts counts;
static struct {
	char text[NAME_BYTES];
	uint64_t count;
} names[NAMES_MAX];
static void *subscriber;
static uint64_t kinds_on, last_api;
static int flags_on, finalize_in_exit, exit_seen;
static uint8_t *held[BUFFERS_MAX]; /* buffers that CUPTI has of us */
static int (*driver_version)(int *);

static uint64_t get(const uint8_t *record, enum field offset, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, record + offset, bytes);
	return value;
}

static uint8_t **held_place(const uint8_t *buffer)
{
	for (int i = 0; i < BUFFERS_MAX; i++)
		if (held[i] == buffer)
			return &held[i];
	return NULL;
}

static void request(uint8_t **buffer, size_t *size, size_t *records)
{
	uint8_t **place;

	pthread_mutex_lock(&lock);
	counts.requests++;
	place = held_place(NULL);
	*buffer = place && !(flags_on & CLIENT_REFUSE) ? malloc(BUFFER_BYTES) : NULL;
	if (place)
		*place = *buffer;
	pthread_mutex_unlock(&lock);
	*size = *buffer ? BUFFER_BYTES : 0;
	*records = 0;
}

static void name_count(const char *text)
{
	for (int i = 0; i < NAMES_MAX; i++) {
		if (!names[i].count)
			strncpy(names[i].text, text, NAME_BYTES - 1);
		if (strncmp(names[i].text, text, NAME_BYTES - 1) == 0) {
			names[i].count++;
			return;
		}
	}
	counts.unknown_names++;
}

/* FNV-1a over some bytes of a record, added up: which thread wrote it when is nobody's matter. */
static void digest(const uint8_t *at, size_t bytes)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ at[i]) * 0x100000001b3u;
	counts.digest += hash;
}

static void take(const uint8_t *record)
{
	uint32_t kind = (uint32_t)get(record, 0, 4);
	uint64_t start, end;

	counts.kinds[kind < KIND_COUNT ? kind : 0]++;
	if (kind == KIND_RUNTIME || kind == KIND_DRIVER) {
		digest(record + RUNTIME_CBID, 20); /* with its stamps */
		if (get(record, RUNTIME_CORRELATION, 4) > last_api)
			last_api = get(record, RUNTIME_CORRELATION, 4);
	}
	if (kind != KIND_KERNEL && kind != KIND_COPY && kind != KIND_MEMSET && kind != KIND_PEER_COPY)
		return;
	start = get(record, KERNEL_START, 8);
	end = get(record, KERNEL_END, 8);
	counts.no_end += start && !end;
	counts.invalid += !start || end < start;
	digest(record + KERNEL_START, 16);
	if (kind == KIND_KERNEL) {
		name_count((const char *)(uintptr_t)get(record, KERNEL_NAME, 8));
		digest(record + KERNEL_DEVICE, 36); /* device to block sizes */
		counts.out_of_order += get(record, KERNEL_CORRELATION, 4) > last_api;
	}
}

/* ---- what is kept of the records: for each its length (u32) and its bytes, a length of 0 after each buffer; before the first record with a name that name as a record of kind 0xffffffff: pointer (u64 at 8), text ---- */

static FILE *saved;
static size_t saved_left;
static uint64_t saved_names[NAMES_MAX];

static void save_bytes(const void *bytes, uint32_t length)
{
	if (saved_left < sizeof length + length)
		return;
	saved_left -= sizeof length + length;
	fwrite(&length, sizeof length, 1, saved);
	if (length)
		fwrite(bytes, 1, length, saved);
}

static void save_name(uint64_t pointer)
{
	struct {
		uint32_t kind, padding;
		uint64_t pointer;
		char text[NAME_BYTES];
	} name = { UINT32_MAX, 0, pointer, "" };
	int i = 0;

	while (i < NAMES_MAX && saved_names[i] && saved_names[i] != pointer)
		i++;
	if (!pointer || i == NAMES_MAX || saved_names[i])
		return;
	saved_names[i] = pointer;
	strncpy(name.text, (const char *)(uintptr_t)pointer, NAME_BYTES - 1);
	save_bytes(&name, (uint32_t)(offsetof(__typeof__(name), text) + strlen(name.text)));
}

static void save(uint8_t *buffer, size_t valid, const uint8_t *record)
{
	uint32_t kind = (uint32_t)get(record, 0, 4);
	uint8_t *next = (uint8_t *)(uintptr_t)record;

	if (!saved)
		return;
	if (cupti.ActivityGetNextRecord(buffer, valid, &next) != 0)
		next = buffer + valid;
	if (kind == KIND_KERNEL || kind == KIND_DEVICE)
		save_name(get(record, kind == KIND_KERNEL ? KERNEL_NAME : DEVICE_NAME, 8));
	save_bytes(record, (uint32_t)(next - record));
}

/* From here on records go to PATH, LIMIT bytes at most; NULL ends it. */
int client_save(const char *path, size_t limit)
{
	int failed = 0;

	pthread_mutex_lock(&lock);
	if (saved)
		failed = fclose(saved);
	saved = path ? fopen(path, "we") : NULL;
	saved_left = limit;
	memset(saved_names, 0, sizeof saved_names);
	pthread_mutex_unlock(&lock);
	return failed || (path && !saved) ? RC_NO_FUNCTION : 0;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *record = NULL, **place;
	size_t dropped = 0;

	pthread_mutex_lock(&lock);
	place = buffer ? held_place(buffer) : NULL;
	if (!place) { /* another client's, from before we came: left alone, as Kineto does */
		pthread_mutex_unlock(&lock);
		return;
	}
	*place = NULL;
	counts.buffers++;
	while (valid && cupti.ActivityGetNextRecord(buffer, valid, &record) == 0) {
		take(record);
		save(buffer, valid, record);
	}
	if (saved)
		save_bytes(NULL, 0);
	if (!(flags_on & CLIENT_V2) && cupti.ActivityGetNumDroppedRecords(NULL, 0, &dropped) == 0)
		counts.dropped += dropped;
	pthread_mutex_unlock(&lock);
	free(buffer);
}

static void request_v2(uint8_t **buffer, size_t *size, size_t *records, void *info)
{
	request(buffer, size, records);
}

static void complete_v2(uint8_t *buffer, size_t size, size_t valid, void *info)
{
	complete(NULL, 0, buffer, size, valid);
}

/* A clock of another rate and origin, as a time stamp counter is. */
static uint64_t own_clock(void)
{
	return 1000 + mono_ns() * 2 + (uint64_t)setting(SET_STEP_NS);
}

static void callback(void *user, int domain, uint32_t cbid, const void *data)
{
	int site;

	memcpy(&site, data, sizeof site);
	__atomic_add_fetch(&counts.callbacks, 1, __ATOMIC_RELAXED);
	if (!__atomic_load_n(&finalize_in_exit, __ATOMIC_ACQUIRE) || domain != DOMAIN_DRIVER || cbid != CBID_DRIVER_VERSION || site != SITE_EXIT)
		return;
	__atomic_store_n(&finalize_in_exit, 0, __ATOMIC_RELEASE);
	exit_seen = 1;
	cupti.Unsubscribe(subscriber);
	cupti.Finalize();
}

int client_open(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (!library)
		return RC_NO_FUNCTION;
#define RESOLVE(name, arguments) cupti.name = (int(*) arguments)dlsym(library, "cupti" #name);
	FUNCTIONS(RESOLVE)
	driver_version = cuda ? (int (*)(int *))dlsym(cuda, "cuDriverGetVersion") : NULL;
	return cupti.Subscribe && cupti.ActivityGetNextRecord ? 0 : RC_NO_FUNCTION;
}

static int subscribe(const char *name)
{
	struct {
		size_t size;
		const char *name;
		char *holder;
		size_t holder_size;
		uint8_t multiple, padding[7];
	} params = { 40, name, NULL, 0, 1, { 0 } };

	if (flags_on & CLIENT_V2)
		return cupti.Subscribe_v2 ? cupti.Subscribe_v2(&subscriber, (void *)callback, NULL, &params) : RC_NO_FUNCTION;
	return cupti.Subscribe(&subscriber, (void *)callback, NULL);
}

static int enable(int kind)
{
	if (flags_on & CLIENT_V2)
		return cupti.ActivityEnable_v2(subscriber, kind, NULL);
	return (flags_on & CLIENT_DUMP) && (kind == KIND_DEVICE || kind == KIND_CONTEXT || kind == KIND_STREAM) ? cupti.ActivityEnableAndDump(kind) : cupti.ActivityEnable(kind);
}

/* Starts a session with the activity KINDS (a bit each). Returns CUPTI's first error. */
int client_start(uint64_t kinds, int flags)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	memset(&counts, 0, sizeof counts);
	memset(names, 0, sizeof names);
	last_api = 0;
	flags_on = flags;
	kinds_on = kinds;
	pthread_mutex_unlock(&lock);
	if (flags & (CLIENT_SUBSCRIBE | CLIENT_V2))
		rc = subscribe("client");
	if (!rc && (flags & CLIENT_OWN_CLOCK))
		rc = cupti.ActivityRegisterTimestampCallback((void *)own_clock);
	if (!rc && !(flags & CLIENT_V2))
		rc = cupti.ActivityRegisterCallbacks((void *)request, (void *)complete);
	if (!rc && (flags & CLIENT_V2))
		rc = cupti.ActivityRegisterCallbacks_v2(subscriber, (void *)request_v2, (void *)complete_v2);
	for (int kind = 0; kind < KIND_COUNT && !rc; kind++)
		if (kinds >> kind & 1)
			rc = enable(kind);
	if (!rc && (flags & CLIENT_CALLBACKS))
		rc = cupti.EnableCallback(1, subscriber, DOMAIN_RUNTIME, CBID_LAUNCH);
	if (!rc && (flags & CLIENT_EXTERNAL))
		rc = cupti.ActivityPushExternalCorrelationId(3, 4711);
	return rc;
}

int client_flush(int forced)
{
	return cupti.ActivityFlushAll((uint32_t)forced);
}

/* Finalizes as the rules say: in the exit callback of a harmless call. */
static int finalize_in_callback(void)
{
	int version;

	exit_seen = 0;
	__atomic_store_n(&finalize_in_exit, 1, __ATOMIC_RELEASE);
	cupti.EnableCallback(1, subscriber, DOMAIN_DRIVER, CBID_DRIVER_VERSION);
	if (driver_version)
		driver_version(&version);
	__atomic_store_n(&finalize_in_exit, 0, __ATOMIC_RELEASE);
	return exit_seen ? 0 : RC_NO_CALLBACK;
}

int client_stop(int mode)
{
	int rc = 0;

	if (flags_on & CLIENT_EXTERNAL)
		cupti.ActivityPopExternalCorrelationId(3, NULL);
	for (int kind = KIND_COUNT - 1; kind >= 0; kind--)
		if (kinds_on >> kind & 1)
			rc = rc | (flags_on & CLIENT_V2 ? cupti.ActivityDisable_v2(subscriber, kind, NULL) : cupti.ActivityDisable(kind));
	rc = rc ? rc : cupti.ActivityFlushAll(1);
	if (mode == STOP_HARD)
		return rc | finalize_in_callback();
	if (flags_on & (CLIENT_SUBSCRIBE | CLIENT_V2))
		rc = rc | cupti.Unsubscribe(subscriber);
	return mode == STOP_FINALIZE ? rc | cupti.Finalize() : rc;
}

const struct counts *client_counts(void)
{
	return &counts;
}

/* The I-th kernel name and how often it was seen; NULL: there are no more. */
const char *client_name(int i, uint64_t *count)
{
	if (i < 0 || i >= NAMES_MAX || !names[i].count)
		return NULL;
	*count = names[i].count;
	return names[i].text;
}
