/* The CUDA driver, as far as it is asked: is it there, is it initialised, how much memory is left. Never initialises anything. */
#include "collector/gpu.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

#include "collector/libc.h"

enum { NAME_BYTES = 512 };

struct wanted { const char *begin; char path[NAME_BYTES]; };

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
	struct wanted *wanted = context;
	const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;

	(void)size;
	if (strncmp(name, wanted->begin, strlen(wanted->begin)) != 0)
		return 0;
	snprintf(wanted->path, sizeof wanted->path, "%s", info->dlpi_name);
	return 1;
}

static void *library_mapped(const char *begin)
{
	struct wanted wanted = { .begin = begin };

	return dl_iterate_phdr(look, &wanted) ? dlopen(wanted.path, RTLD_NOW | RTLD_NOLOAD) : NULL;
}

bool cuda_find(struct cuda *cuda)
{
	void *runtime;

	memset(cuda, 0, sizeof *cuda);
	cuda->library = library_mapped("libcuda.so");
	if (!cuda->library)
		return false;
#define CUDA_FIND(name, args) *(void **)&cuda->name = dlsym(cuda->library, #name);
	CUDA_FUNCTIONS(CUDA_FIND)
#undef CUDA_FIND
	runtime = library_mapped("libcudart.so");
	if (runtime)
		*(void **)&cuda->cudaDriverGetVersion = dlsym(runtime, "cudaDriverGetVersion");
	return cuda->cuDriverGetVersion && cuda->cuDeviceGetCount;
}

void cuda_explain(const struct cuda *cuda, const char *call, int result, char *text, size_t size)
{
	const char *name = NULL;

	if (cuda->cuGetErrorName)
		cuda->cuGetErrorName(result, &name);
	snprintf(text, size, "the CUDA driver cannot be used: %s: %s (%d)", call, name ? name : "failed", result);
}

/* A primary context that the program uses is kept alive for the question, never made for it. */
static bool free_of_device(const struct cuda *cuda, int device, uint64_t *bytes)
{
	size_t left = 0, total = 0;
	unsigned flags;
	void *context;
	int active = 0;
	bool told;

	if (cuda->cuDevicePrimaryCtxGetState(device, &flags, &active) || !active || cuda->cuDevicePrimaryCtxRetain(&context, device))
		return false;
	told = !cuda->cuCtxPushCurrent_v2(context);
	if (told) {
		told = !cuda->cuMemGetInfo_v2(&left, &total);
		cuda->cuCtxPopCurrent_v2(&context);
	}
	cuda->cuDevicePrimaryCtxRelease_v2(device);
	*bytes += left;
	return told;
}

uint64_t cuda_free_bytes(const struct cuda *cuda, int devices)
{
	uint64_t bytes = 0;

	if (!cuda->cuDevicePrimaryCtxGetState || !cuda->cuDevicePrimaryCtxRetain || !cuda->cuDevicePrimaryCtxRelease_v2 || !cuda->cuCtxPushCurrent_v2 || !cuda->cuCtxPopCurrent_v2 ||
	    !cuda->cuMemGetInfo_v2)
		return 0;
	for (int device = 0; device < devices; device++)
		free_of_device(cuda, device, &bytes);
	return bytes;
}
