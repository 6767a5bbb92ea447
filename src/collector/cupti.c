/* Finding CUPTI in this process, and the two families of its functions. */
#include "collector/cupti.h"

#include <dirent.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/libc.h"

enum { ATTRIBUTE_THREAD_ID_TYPE = 21 /* of the second family, in place of cuptiSetThreadIdType() */, CUDA_13_3 = 13030, SUBSCRIBER_BYTES_13_0 = 32 };

#define OUR_NAME "inferscope"

/* ---- where it is ---- */

struct mapped {
	char cupti[512], runtime[512];
};

static bool starts(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0;
}

/* Libraries loaded with RTLD_LOCAL are in no other list: dlopen("libcupti.so", RTLD_NOLOAD) does not find libcupti.so.13. */
static int look(struct dl_phdr_info *info, size_t size, void *context)
{
	struct mapped *mapped = context;
	const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;

	(void)size;
	if (!mapped->cupti[0] && starts(name, "libcupti.so"))
		snprintf(mapped->cupti, sizeof mapped->cupti, "%s", info->dlpi_name);
	if (!mapped->runtime[0] && starts(name, "libcudart.so"))
		snprintf(mapped->runtime, sizeof mapped->runtime, "%s", info->dlpi_name);
	return 0;
}

/* A file libcupti.so.MAJOR… in FOLDER. */
static bool in_folder(const char *folder, int major, char *out, size_t size)
{
	char begin[32];
	DIR *open = opendir(folder);
	const struct dirent *entry;
	bool found = false;

	if (!open)
		return false;
	snprintf(begin, sizeof begin, "libcupti.so.%d", major);
	while (!found && (entry = readdir(open))) {
		char after = starts(entry->d_name, begin) ? entry->d_name[strlen(begin)] : 'x';

		found = (after == '\0' || after == '.') && (size_t)snprintf(out, size, "%s/%s", folder, entry->d_name) < size;
	}
	closedir(open);
	return found;
}

/*
 * Beside the CUDA runtime of the same major version: wheels have nvidia/cuda_runtime/lib and nvidia/cuda_cupti/lib, from CUDA 13 on both in
 * nvidia/cu13/lib; the toolkit lib64 and extras/CUPTI/lib64 (seen in wheels 11.8 to 13.5, toolkit 13.0).
 */
static bool beside_runtime(const char *runtime, char *out, size_t size)
{
	static const char *const folders[] = { ".", "../../cuda_cupti/lib", "../extras/CUPTI/lib64", "../../extras/CUPTI/lib64", "../../../extras/CUPTI/lib64" };
	const char *slash = strrchr(runtime, '/'), *version = strstr(slash ? slash : runtime, ".so.");
	int major = version ? atoi(version + 4) : 0;
	char folder[1024];

	if (!slash || major < 11)
		return false;
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		snprintf(folder, sizeof folder, "%.*s/%s", (int)(slash - runtime), runtime, folders[i]);
		if (in_folder(folder, major, out, size))
			return true;
	}
	return false;
}

static void *open_library(struct cupti *cupti, char *text, size_t size)
{
	struct mapped mapped = { .cupti = "" };
	void *library;

	dl_iterate_phdr(look, &mapped);
	if (mapped.cupti[0]) {
		snprintf(cupti->path, sizeof cupti->path, "%s", mapped.cupti);
		library = dlopen(mapped.cupti, RTLD_NOW | RTLD_NOLOAD);
	} else if (!mapped.runtime[0]) {
		snprintf(text, size, "the process has no libcupti, and no CUDA runtime beside which one could be looked for");
		return NULL;
	} else if (!beside_runtime(mapped.runtime, cupti->path, sizeof cupti->path)) {
		snprintf(text, size, "the process has no libcupti, and none lies beside %.300s", mapped.runtime);
		return NULL;
	} else {
		library = dlopen(cupti->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	}
	if (!library)
		snprintf(text, size, "%.300s cannot be loaded", cupti->path);
	return library;
}

int cupti_find(struct cupti *cupti, char *text, size_t size)
{
	void *library = open_library(cupti, text, size);

	if (!library)
		return -1;
	cupti->is_11 = strstr(cupti->path, "/libcupti.so.11") != NULL;
#define CUPTI_FIND(needed, name, args) \
	*(void **)&cupti->name = dlsym(library, "cupti" #name); \
	if (needed && !cupti->name) { \
		snprintf(text, size, "%.300s has no cupti%s: CUPTI 11.8 or later is needed", cupti->path, #name); \
		return -1; \
	}
	CUPTI_FUNCTIONS(CUPTI_FIND)
#undef CUPTI_FIND
	return 0;
}

void cupti_explain(const struct cupti *cupti, const char *call, int result, char *text, size_t size)
{
	const char *name = NULL, *message = NULL;

	/* 13.5 without a driver writes nothing. */
	if (cupti->GetResultString)
		cupti->GetResultString(result, &name);
	if (cupti->GetErrorMessage)
		cupti->GetErrorMessage(result, &message);
	snprintf(text, size, "%s: %s (%d)%s%.300s", call, name ? name : "failed", result, message && *message ? ": " : "", message ? message : "");
}

/* ---- the first family: one subscriber, buffers of the process ---- */

static int old_subscribe(struct cupti *cupti, cupti_called called)
{
	struct cupti_subscriber subscriber = { SUBSCRIBER_BYTES_13_0, OUR_NAME, cupti->holder, sizeof cupti->holder, 0, { 0 } };

	/* 13.0 to 13.2: the same, and it tells who is there already. */
	if (cupti->version >= CUPTI_13_0 && cupti->version < CUPTI_13_3 && cupti->Subscribe_v2)
		return cupti->Subscribe_v2(&cupti->subscriber, called, NULL, &subscriber);
	return cupti->Subscribe(&cupti->subscriber, called, NULL);
}

static int old_thread_ids_begin(struct cupti *cupti)
{
	cupti->thread_id_known = cupti->GetThreadIdType(&cupti->thread_id_type) == CUPTI_OK;
	return cupti->SetThreadIdType(CUPTI_THREAD_ID_SYSTEM);
}

static int old_thread_ids_end(struct cupti *cupti)
{
	return cupti->thread_id_known ? cupti->SetThreadIdType(cupti->thread_id_type) : CUPTI_OK;
}

static int old_attribute(struct cupti *cupti, int attribute, uint8_t value)
{
	size_t size = sizeof value;

	return cupti->ActivitySetAttribute(attribute, &size, &value);
}

static int old_buffers(struct cupti *cupti)
{
	return cupti->ActivityRegisterCallbacks(cupti->request, cupti->complete);
}

static int old_enable(struct cupti *cupti, int kind)
{
	return cupti->ActivityEnable(kind);
}

static int old_dump(struct cupti *cupti, int kind)
{
	return cupti->ActivityEnableAndDump(kind);
}

static int old_disable(struct cupti *cupti, int kind)
{
	return cupti->ActivityDisable(kind);
}

static int old_runtime_call(struct cupti *cupti, uint32_t cbid, bool on)
{
	return cupti->ActivityEnableRuntimeApi ? cupti->ActivityEnableRuntimeApi(cbid, on) : CUPTI_MISSING;
}

static int old_driver_call(struct cupti *cupti, uint32_t cbid, bool on)
{
	return cupti->ActivityEnableDriverApi ? cupti->ActivityEnableDriverApi(cbid, on) : CUPTI_MISSING;
}

static int old_timestamp(struct cupti *cupti, uint64_t *ns)
{
	return cupti->GetTimestamp(ns);
}

static int old_step(struct cupti *cupti, uint8_t *buffer, size_t valid, uint8_t **record)
{
	return cupti->ActivityGetNextRecord(buffer, valid, record);
}

static int old_dropped(struct cupti *cupti, size_t *count)
{
	return cupti->ActivityGetNumDroppedRecords ? cupti->ActivityGetNumDroppedRecords(NULL, 0, count) : CUPTI_MISSING;
}

static const struct cupti_family family_old = {
	1, old_subscribe, old_thread_ids_begin, old_thread_ids_end, old_attribute, old_buffers, old_enable, old_dump, old_disable,
	old_runtime_call, old_driver_call, old_timestamp, old_step, old_dropped,
};

/* ---- the second family: several subscribers, each with buffers of its own ---- */

static int new_subscribe(struct cupti *cupti, cupti_called called)
{
	struct cupti_subscriber subscriber = { sizeof subscriber, OUR_NAME, cupti->holder, sizeof cupti->holder, 1, { 0 } };

	return cupti->Subscribe_v2(&cupti->subscriber, called, NULL, &subscriber);
}

static int new_thread_ids_begin(struct cupti *cupti)
{
	int type = CUPTI_THREAD_ID_SYSTEM;
	size_t size = sizeof type;

	return cupti->ActivitySetAttribute_v2(cupti->subscriber, ATTRIBUTE_THREAD_ID_TYPE, &size, &type);
}

static int new_thread_ids_end(struct cupti *cupti)
{
	(void)cupti; /* it was ours alone */
	return CUPTI_OK;
}

static int new_attribute(struct cupti *cupti, int attribute, uint8_t value)
{
	size_t size = sizeof value;

	return cupti->ActivitySetAttribute_v2(cupti->subscriber, attribute, &size, &value);
}

static int new_buffers(struct cupti *cupti)
{
	return cupti->ActivityRegisterCallbacks_v2(cupti->subscriber, cupti->request2, cupti->complete2);
}

static int new_enable(struct cupti *cupti, int kind)
{
	return cupti->ActivityEnable_v2(cupti->subscriber, kind, NULL);
}

static int new_dump(struct cupti *cupti, int kind)
{
	return cupti->ActivityEnableAndDump_v2(cupti->subscriber, kind, NULL);
}

static int new_disable(struct cupti *cupti, int kind)
{
	return cupti->ActivityDisable_v2(cupti->subscriber, kind, NULL);
}

static int new_runtime_call(struct cupti *cupti, uint32_t cbid, bool on)
{
	return cupti->ActivityEnableRuntimeApi_v2 ? cupti->ActivityEnableRuntimeApi_v2(cupti->subscriber, cbid, on) : CUPTI_MISSING;
}

static int new_driver_call(struct cupti *cupti, uint32_t cbid, bool on)
{
	return cupti->ActivityEnableDriverApi_v2 ? cupti->ActivityEnableDriverApi_v2(cupti->subscriber, cbid, on) : CUPTI_MISSING;
}

static int new_timestamp(struct cupti *cupti, uint64_t *ns)
{
	return cupti->GetTimestamp_v2(cupti->subscriber, ns);
}

static int new_step(struct cupti *cupti, uint8_t *buffer, size_t valid, uint8_t **record)
{
	return cupti->ActivityGetNextRecord_v2(cupti->subscriber, buffer, valid, record);
}

static int new_dropped(struct cupti *cupti, size_t *count)
{
	return cupti->ActivityGetNumDroppedRecords_v2 ? cupti->ActivityGetNumDroppedRecords_v2(cupti->subscriber, NULL, 0, count) : CUPTI_MISSING;
}

static const struct cupti_family family_new = {
	2, new_subscribe, new_thread_ids_begin, new_thread_ids_end, new_attribute, new_buffers, new_enable, new_dump, new_disable,
	new_runtime_call, new_driver_call, new_timestamp, new_step, new_dropped,
};

void cupti_choose(struct cupti *cupti, uint32_t driver)
{
	bool whole = cupti->Subscribe_v2 && cupti->ActivitySetAttribute_v2 && cupti->ActivityRegisterCallbacks_v2 && cupti->ActivityEnable_v2 && cupti->ActivityEnableAndDump_v2 &&
		     cupti->ActivityDisable_v2 && cupti->GetTimestamp_v2 && cupti->ActivityGetNextRecord_v2;

	cupti->family = whole && cupti->version >= CUPTI_13_3 && driver >= CUDA_13_3 ? &family_new : &family_old;
}
