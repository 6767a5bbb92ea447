/* libcuda.so.1: what a program or a profiler asks of the driver itself. A CUfunction is a name of fakecuda_name(), a kernel's first
 * argument is how long it takes, in ns (u64). */
#include "engine.h"
#include "settings.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CBID_INIT = 1, CBID_DRIVER_VERSION = 2, CBID_DEVICE_COUNT = 4, CBID_CTX_SYNCHRONIZE = 17, CBID_MEM_INFO = 242, CBID_LAUNCH = 307, CBID_GRAPH_LAUNCH = 514, CBID_LAUNCH_EX = 652 };
enum { CONTEXT_DEPTH = 8 };

static __thread void *context_stack[CONTEXT_DEPTH];
static __thread int context_depth;

const unsigned char driver_table_id[16] = "fakecuda driver";

static int simple_call(uint32_t cbid, const char *function, const void *params, int result)
{
	struct call call;

	engine_driver.call_begin(&call, DOMAIN_DRIVER, cbid, function, NULL, params);
	return engine_driver.call_end(&call, result, NULL, NULL, 0);
}

int cuGetExportTable(const void **table, const void *id)
{
	if (memcmp(id, driver_table_id, sizeof driver_table_id) != 0)
		return CUDA_NOT_FOUND;
	*table = &engine_driver;
	return CUDA_OK;
}

int cuInit(unsigned flags)
{
	return simple_call(CBID_INIT, "cuInit", &flags, engine_init());
}

int cuDriverGetVersion(int *version)
{
	*version = (int)setting(SET_DRIVER);
	return simple_call(CBID_DRIVER_VERSION, "cuDriverGetVersion", &version, CUDA_OK);
}

int cuDeviceGetCount(int *count)
{
	int error = engine_ready() ? engine_ready() : (int)setting(SET_COUNT_RC);

	*count = error ? 0 : engine_driver.devices();
	return error ? error : simple_call(CBID_DEVICE_COUNT, "cuDeviceGetCount", &count, CUDA_OK);
}

int cuDeviceGet(int *device, int ordinal)
{
	if (engine_ready())
		return engine_ready();
	*device = ordinal;
	return ordinal >= 0 && ordinal < engine_driver.devices() ? CUDA_OK : CUDA_INVALID_VALUE;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	if (engine_ready())
		return engine_ready();
	*flags = 0;
	*active = engine_context_active(device);
	return CUDA_OK;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	if (engine_ready())
		return engine_ready();
	*context = engine_driver.context(device);
	return CUDA_OK;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	return engine_ready();
}

int cuCtxGetCurrent(void **context)
{
	*context = context_depth ? context_stack[context_depth - 1] : NULL;
	return engine_ready();
}

int cuCtxPushCurrent_v2(void *context)
{
	if (context_depth == CONTEXT_DEPTH || engine_context_device(context) < 0)
		return CUDA_INVALID_VALUE;
	context_stack[context_depth++] = context;
	return CUDA_OK;
}

int cuCtxPopCurrent_v2(void **context)
{
	if (!context_depth)
		return CUDA_INVALID_CONTEXT;
	context_depth--;
	if (context)
		*context = context_stack[context_depth];
	return CUDA_OK;
}

int cuCtxSetCurrent(void *context)
{
	if (engine_context_device(context) < 0)
		return CUDA_INVALID_VALUE;
	if (!context_depth)
		context_depth = 1;
	context_stack[context_depth - 1] = context;
	return CUDA_OK;
}

int cuCtxSynchronize(void)
{
	struct op sync = { .kind = OP_SYNC, .sync = SYNC_CONTEXT };
	struct call call;

	if (engine_ready())
		return engine_ready();
	engine_driver.call_begin(&call, DOMAIN_DRIVER, CBID_CTX_SYNCHRONIZE, "cuCtxSynchronize", NULL, NULL);
	engine_driver.wait(NULL, 1);
	return engine_driver.call_end(&call, CUDA_OK, NULL, &sync, 1);
}

/* As the real one, for threads with a current context only. */
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	if (engine_ready())
		return engine_ready();
	if (!context_depth)
		return CUDA_INVALID_CONTEXT;
	*free_bytes = engine_free_bytes();
	*total_bytes = (size_t)setting(SET_FREE_MB) * 1048576;
	return simple_call(CBID_MEM_INFO, "cuMemGetInfo_v2", NULL, CUDA_OK);
}

static int launch(uint32_t cbid, const char *function, const char *kernel, const unsigned *shape, unsigned shared_bytes, void *stream, void **arguments, const void *params)
{
	struct op op = { .kind = OP_KERNEL, .name = kernel, .grid = { shape[0], shape[1], shape[2] }, .block = { shape[3], shape[4], shape[5] }, .dynamic_bytes = shared_bytes };
	struct call call;

	if (engine_ready())
		return engine_ready();
	op.duration_ns = *(const uint64_t *)arguments[0];
	engine_driver.call_begin(&call, DOMAIN_DRIVER, cbid, function, kernel, params);
	return engine_driver.call_end(&call, CUDA_OK, stream, &op, 1);
}

int cuLaunchKernel(const char *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream,
	void **arguments, void **extra)
{
	const struct {
		const char *kernel;
		unsigned shape[6], shared_bytes;
		void *stream;
		void **arguments, **extra;
	} params = { kernel, { grid_x, grid_y, grid_z, block_x, block_y, block_z }, shared_bytes, stream, arguments, extra };

	return launch(CBID_LAUNCH, "cuLaunchKernel", kernel, params.shape, shared_bytes, stream, arguments, &params);
}

struct launch_config {
	unsigned shape[6], shared_bytes;
	void *stream, *attributes;
	unsigned attribute_count;
};

int cuLaunchKernelEx(const struct launch_config *config, const char *kernel, void **arguments, void **extra)
{
	const struct {
		const struct launch_config *config;
		const char *kernel;
		void **arguments, **extra;
	} params = { config, kernel, arguments, extra };

	return launch(CBID_LAUNCH_EX, "cuLaunchKernelEx", kernel, config->shape, config->shared_bytes, config->stream, arguments, &params);
}

int cuGraphLaunch(struct graph *graph, void *stream)
{
	const struct {
		struct graph *graph;
		void *stream;
	} params = { graph, stream };
	struct call call;
	struct op *ops;
	size_t count;
	int error = engine_ready();

	if (error)
		return error;
	engine_driver.call_begin(&call, DOMAIN_DRIVER, CBID_GRAPH_LAUNCH, "cuGraphLaunch", NULL, &params);
	ops = engine_driver.graph_ops(graph, &count);
	error = engine_driver.call_end(&call, CUDA_OK, stream, ops, count);
	free(ops);
	return error;
}

/* A module is its text; its kernels are those that the text has. */
int cuModuleLoadData(void **module, const void *image)
{
	if (engine_ready())
		return engine_ready();
	*module = strdup(image);
	return *module ? CUDA_OK : CUDA_INVALID_VALUE;
}

int cuModuleUnload(void *module)
{
	free(module);
	return engine_ready();
}

int cuModuleGetFunction(const char **function, void *module, const char *name)
{
	char entry[NAME_MAX_BYTES];

	snprintf(entry, sizeof entry, ".entry %s(", name);
	if (!strstr(module, entry))
		return CUDA_NOT_FOUND;
	*function = engine_driver.name(name);
	return CUDA_OK;
}

int cuGetErrorString(int error, const char **text)
{
	*text = error == CUDA_OK ? "no error" : error == CUDA_NO_DEVICE ? "no CUDA-capable device is detected" : error == CUDA_NOT_INITIALIZED ? "initialization error" : "an error";
	return CUDA_OK;
}

int cuGetErrorName(int error, const char **text)
{
	*text = error == CUDA_OK ? "CUDA_SUCCESS" : error == CUDA_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : error == CUDA_NOT_INITIALIZED ? "CUDA_ERROR_NOT_INITIALIZED" : "CUDA_ERROR";
	return CUDA_OK;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
	void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD); /* not RTLD_DEFAULT: the library may have been loaded RTLD_LOCAL */

	*function = self ? dlsym(self, name) : NULL;
	if (status)
		*status = *function ? 0 : 1;
	return *function ? CUDA_OK : CUDA_NOT_FOUND;
}

int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

const char *fakecuda_name(const char *text)
{
	return engine_driver.name(text);
}
