/* Names in CUPTI's records: told to the session once, from then on a number. CUPTI keeps a name for as long as its module is loaded, so that it is copied at its first use. */
#include "collector/collector.h"

#include <string.h>

#include "collector/libc.h"
#include "collector/mapping.h"

enum { CALL_NAME_BYTES = 128 };

void gpu_put(struct lane *lane, uint64_t at, uint8_t kind, uint32_t ref, uint8_t flags, const void *payload, size_t size)
{
	size_t whole = (sizeof(struct event) + size + 7) / 8 * 8;
	struct event *event = lane_reserve(lane, whole, ticks_now());

	if (!event)
		return;
	*event = (struct event){ at, ref, (uint16_t)whole, kind, flags };
	memset((char *)event + whole - 8, 0, 8);
	memcpy(event + 1, payload, size);
	lane_commit(lane, whole);
}

bool gpu_names_open(void)
{
	size_t names = GPU_NAMES * sizeof *the.gpu.names, calls = 2ull * GPU_CBIDS * (sizeof *the.gpu.call_names + sizeof *the.gpu.call_refs);

	if (!the.gpu.names) {
		char *memory = mapping_make(names + calls + GPU_NAMES_BYTES, -1);

		if (!memory)
			return false;
		the.gpu.names = (struct gpu_name *)memory;
		the.gpu.call_names = (const char **)(memory + names);
		the.gpu.call_refs = (uint32_t *)(the.gpu.call_names + 2 * GPU_CBIDS);
		the.gpu.copies = memory + names + calls;
	}
	if (!mapping_empty(the.gpu.names, names + calls + GPU_NAMES_BYTES))
		memset(the.gpu.names, 0, names + calls);
	the.gpu.copies_used = the.gpu.name_count = 0;
	return true;
}

static void tell_name(uint32_t ref, const char *text, size_t length, uint8_t flags)
{
	struct { uint16_t length; char text[GPU_NAME_BYTES]; } payload;

	payload.length = (uint16_t)length;
	memcpy(payload.text, text, length);
	gpu_put(the.gpu.names_lane, ticks_now(), EVENT_GPU_NAME, ref, flags, &payload, sizeof payload.length + length);
}

/* The number of a name that CUPTI keeps at KEY for as long as the module is loaded; told to the session at its first use. 0: no room. */
uint32_t gpu_name_ref(const char *key)
{
	uint32_t slot = (uint32_t)(((uintptr_t)key >> 3) * 0x9e3779b97f4a7c15ull >> 40) % GPU_NAMES;
	size_t length;

	if (!key)
		return 0;
	/* A module that is loaded again may have another kernel's name at the same place. */
	for (; the.gpu.names[slot].ref; slot = (slot + 1) % GPU_NAMES)
		if (the.gpu.names[slot].key == key && strncmp(the.gpu.copies + the.gpu.names[slot].at, key, GPU_NAME_BYTES - 1) == 0)
			return the.gpu.names[slot].ref;
	length = strnlen(key, GPU_NAME_BYTES - 1);
	if (the.gpu.name_count + 1 >= GPU_NAMES / 2 || the.gpu.copies_used + length + 1 > GPU_NAMES_BYTES)
		return 0;
	memcpy(the.gpu.copies + the.gpu.copies_used, key, length);
	the.gpu.names[slot] = (struct gpu_name){ key, the.gpu.copies_used, ++the.gpu.name_count };
	the.gpu.copies_used += (uint32_t)length + 1;
	tell_name(the.gpu.name_count, key, length, key[length] ? EVENT_FLAG_CUT : 0);
	return the.gpu.name_count;
}

/* "cudaLaunchKernel" of "cudaLaunchKernel_v7000". Calls that nvcc 13 makes in place of others begin with two underscores. */
static size_t call_name(int domain, uint32_t cbid, char *out, size_t size)
{
	const char *name = the.gpu.call_names[(size_t)(domain - CUPTI_DOMAIN_DRIVER) * GPU_CBIDS + cbid], *version;

	if (!name)
		return (size_t)snprintf(out, size, "%s call %u", domain == CUPTI_DOMAIN_DRIVER ? "driver" : "runtime", (unsigned)cbid);
	while (*name == '_')
		name++;
	version = domain == CUPTI_DOMAIN_RUNTIME ? strrchr(name, '_') : NULL;
	if (version && version[1] == 'v' && version[2] >= '0' && version[2] <= '9' && (size_t)(version - name) < size)
		return (size_t)snprintf(out, size, "%.*s", (int)(version - name), name);
	return (size_t)snprintf(out, size, "%.*s", (int)size - 1, name);
}

uint32_t gpu_call_ref(int domain, uint32_t cbid)
{
	uint32_t *ref = &the.gpu.call_refs[(size_t)(domain - CUPTI_DOMAIN_DRIVER) * GPU_CBIDS + cbid];
	char name[CALL_NAME_BYTES];

	if (!*ref) {
		size_t length = call_name(domain, cbid, name, sizeof name);

		*ref = ++the.gpu.name_count;
		tell_name(*ref, name, length < sizeof name ? length : sizeof name - 1, 0);
	}
	return *ref;
}
