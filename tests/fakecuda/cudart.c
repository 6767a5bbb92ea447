/* libcudart.so.{11.0,12,13}: the runtime API as a thin layer over the driver, initialised by its first call. Kernels as in cuda.c. Memory of
 * the "device" is memory of the process, so that copies copy and a program can check its data. */
#include "blocks.h"
#include "driver.h"
#include "settings.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
	CBID_DRIVER_VERSION = 1, CBID_GET_LAST_ERROR = 10, CBID_SET_DEVICE = 16, CBID_GET_DEVICE = 17, CBID_MALLOC = 20, CBID_FREE = 22, CBID_MALLOC_HOST = 25, CBID_FREE_HOST = 26, CBID_MEMCPY = 31,
	CBID_MEMCPY_ASYNC = 41, CBID_MEMSET_ASYNC = 51, CBID_STREAM_CREATE = 129, CBID_STREAM_SYNCHRONIZE = 131, CBID_EVENT_CREATE = 133, CBID_EVENT_RECORD = 135,
	CBID_EVENT_SYNCHRONIZE = 137, CBID_MEMCPY_PEER_ASYNC = 161, CBID_DEVICE_SYNCHRONIZE = 165, CBID_STREAM_DESTROY = 201, CBID_LAUNCH_KERNEL = 211, CBID_GRAPH_LAUNCH = 311,
	CBID_BEGIN_CAPTURE = 315, CBID_END_CAPTURE = 319, CBID_INSTANTIATE = 418, CBID_LAUNCH_KERNEL_EXC = 430, CBID_LAUNCH_KERNEL_13 = 505
};
enum { CUDA_INSUFFICIENT_DRIVER = 35 };
/* Bytes per µs, and what a copy takes at least. */
enum { RATE_PAGEABLE = 6000, RATE_PINNED = 24000, RATE_DEVICE = 1000000, COPY_LEAST_NS = 1500 };

struct shape {
	unsigned x, y, z;
};

struct event {
	struct stream *stream;
	uint32_t id;
};

static const struct driver *driver;
static int init_error;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t next_event = 1;

static void init(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int (*table_of)(const void **, const void *) = library ? (int (*)(const void **, const void *))dlsym(library, "cuGetExportTable") : NULL;
	int (*init_driver)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : NULL;
	const void *table;

	init_error = CUDA_INSUFFICIENT_DRIVER;
	if (table_of && init_driver && table_of(&table, "fakecuda driver") == CUDA_OK) {
		init_error = init_driver(0);
		driver = init_error ? NULL : table;
	}
}

/* The driver's error, or 0 and a call that has begun. */
static int begin(struct call *call, uint32_t cbid, const char *function, const char *symbol, const void *params)
{
	int error;

	pthread_once(&once, init);
	error = driver ? driver->ready() : init_error;
	if (!error)
		driver->call_begin(call, DOMAIN_RUNTIME, cbid, function, symbol, params);
	return error;
}

static int end(struct call *call, int result)
{
	return driver->call_end(call, result, NULL, NULL, 0);
}

/* ---- devices ---- */

int cudaGetDeviceCount(int *count)
{
	pthread_once(&once, init);
	*count = driver ? driver->devices() : 0;
	return init_error;
}

int cudaSetDevice(int device)
{
	struct call call;
	int error = begin(&call, CBID_SET_DEVICE, "cudaSetDevice", NULL, &device);

	if (error)
		return error;
	if (device < 0 || device >= driver->devices())
		return end(&call, CUDA_INVALID_VALUE);
	*driver->current_device() = device;
	driver->context(device);
	return end(&call, CUDA_OK);
}

int cudaGetDevice(int *device)
{
	struct call call;
	int error = begin(&call, CBID_GET_DEVICE, "cudaGetDevice", NULL, &device);

	if (error)
		return error;
	*device = *driver->current_device();
	return end(&call, CUDA_OK);
}

int cudaDriverGetVersion(int *version)
{
	struct call call;
	int error = begin(&call, CBID_DRIVER_VERSION, "cudaDriverGetVersion", NULL, &version);

	if (error)
		return error;
	*version = (int)setting(SET_DRIVER);
	return end(&call, CUDA_OK);
}

int cudaGetLastError(void)
{
	struct call call;
	int error = begin(&call, CBID_GET_LAST_ERROR, "cudaGetLastError", NULL, NULL);

	return error ? error : end(&call, CUDA_OK);
}

/* ---- memory ---- */

int cudaMalloc(void **at, size_t size)
{
	const struct {
		void **at;
		size_t size;
	} params = { at, size };
	struct call call;
	int error = begin(&call, CBID_MALLOC, "cudaMalloc", NULL, &params);

	if (error)
		return error;
	error = block_new(at, size, MEMORY_DEVICE);
	if (!error)
		driver->memory(&call, MEMORY_ALLOCATED, MEMORY_DEVICE, *at, size);
	return end(&call, error);
}

int cudaFree(void *at)
{
	struct call call;
	int error = begin(&call, CBID_FREE, "cudaFree", NULL, &at);

	if (error)
		return error;
	driver->wait(NULL, 1);
	if (at)
		driver->memory(&call, MEMORY_RELEASED, MEMORY_DEVICE, at, block_size(at));
	return end(&call, at ? block_free(at) : CUDA_OK);
}

int cudaMallocHost(void **at, size_t size)
{
	const struct {
		void **at;
		size_t size;
	} params = { at, size };
	struct call call;
	int error = begin(&call, CBID_MALLOC_HOST, "cudaMallocHost", NULL, &params);

	return error ? error : end(&call, block_new(at, size, MEMORY_PINNED));
}

int cudaFreeHost(void *at)
{
	struct call call;
	int error = begin(&call, CBID_FREE_HOST, "cudaFreeHost", NULL, &at);

	return error ? error : end(&call, block_free(at));
}

static void fill_copy(struct op *op, void *to, const void *from, size_t size, int async)
{
	int rate;

	*op = (struct op){ .kind = OP_COPY, .bytes = size, .from = (uint8_t)block_memory(from), .to = (uint8_t)block_memory(to), .async = (uint8_t)async };
	op->copy = op->from == MEMORY_DEVICE ? (op->to == MEMORY_DEVICE ? COPY_D2D : COPY_D2H) : op->to == MEMORY_DEVICE ? COPY_H2D : COPY_H2H;
	rate = op->copy == COPY_D2D ? RATE_DEVICE : op->from == MEMORY_PAGEABLE || op->to == MEMORY_PAGEABLE ? RATE_PAGEABLE : RATE_PINNED;
	op->duration_ns = COPY_LEAST_NS + size * 1000 / (unsigned)rate;
	op->blocking = !async || rate == RATE_PAGEABLE;
}

int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream)
{
	const struct {
		void *to;
		const void *from;
		size_t size;
		int kind;
		void *stream;
	} params = { to, from, size, kind, stream };
	struct call call;
	struct op op;
	int error = begin(&call, CBID_MEMCPY_ASYNC, "cudaMemcpyAsync", NULL, &params);

	if (error)
		return error;
	fill_copy(&op, to, from, size, 1);
	memcpy(to, from, size);
	return driver->call_end(&call, CUDA_OK, stream, &op, 1);
}

int cudaMemcpy(void *to, const void *from, size_t size, int kind)
{
	const struct {
		void *to;
		const void *from;
		size_t size;
		int kind;
	} params = { to, from, size, kind };
	struct call call;
	struct op op;
	int error = begin(&call, CBID_MEMCPY, "cudaMemcpy", NULL, &params);

	if (error)
		return error;
	fill_copy(&op, to, from, size, 0);
	memcpy(to, from, size);
	return driver->call_end(&call, CUDA_OK, NULL, &op, 1);
}

int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size, void *stream)
{
	const struct {
		void *to;
		int to_device;
		const void *from;
		int from_device;
		size_t size;
		void *stream;
	} params = { to, to_device, from, from_device, size, stream };
	struct call call;
	struct op op;
	int error = begin(&call, CBID_MEMCPY_PEER_ASYNC, "cudaMemcpyPeerAsync", NULL, &params);

	if (error)
		return error;
	fill_copy(&op, to, from, size, 1);
	op.kind = OP_PEER_COPY;
	op.copy = COPY_P2P;
	op.peer_device = (uint32_t)to_device;
	memcpy(to, from, size);
	return driver->call_end(&call, CUDA_OK, stream, &op, 1);
}

int cudaMemsetAsync(void *at, int value, size_t size, void *stream)
{
	const struct {
		void *at;
		int value;
		size_t size;
		void *stream;
	} params = { at, value, size, stream };
	struct op op = { .kind = OP_MEMSET, .bytes = size, .value = (uint8_t)value, .to = MEMORY_DEVICE, .async = 1, .duration_ns = COPY_LEAST_NS + size * 1000 / RATE_DEVICE };
	struct call call;
	int error = begin(&call, CBID_MEMSET_ASYNC, "cudaMemsetAsync", NULL, &params);

	if (error)
		return error;
	memset(at, value, size);
	return driver->call_end(&call, CUDA_OK, stream, &op, 1);
}

/* ---- kernels ---- */

struct launch {
	const char *kernel;
	struct shape grid, block;
	void **arguments;
	size_t shared_bytes;
	void *stream;
};

static int launch(uint32_t cbid, const char *function, const struct launch *params)
{
	struct op op = { .kind = OP_KERNEL, .name = params->kernel, .grid = { params->grid.x, params->grid.y, params->grid.z },
		.block = { params->block.x, params->block.y, params->block.z }, .dynamic_bytes = (uint32_t)params->shared_bytes };
	struct call call;
	int error = begin(&call, cbid, function, params->kernel, params);

	if (error)
		return error;
	op.duration_ns = *(const uint64_t *)params->arguments[0];
	return driver->call_end(&call, CUDA_OK, params->stream, &op, 1);
}

int cudaLaunchKernel(const char *kernel, struct shape grid, struct shape block, void **arguments, size_t shared_bytes, void *stream)
{
	const struct launch params = { kernel, grid, block, arguments, shared_bytes, stream };

	return launch(CBID_LAUNCH_KERNEL, "cudaLaunchKernel", &params);
}

#if FAKECUDA_MAJOR >= 13
/* What <<<>>> compiles to from CUDA 13 on. */
int __cudaLaunchKernel(const char *kernel, struct shape grid, struct shape block, void **arguments, size_t shared_bytes, void *stream)
{
	const struct launch params = { kernel, grid, block, arguments, shared_bytes, stream };

	return launch(CBID_LAUNCH_KERNEL_13, "__cudaLaunchKernel", &params);
}
#endif

struct launch_config {
	struct shape grid, block;
	size_t shared_bytes;
	void *stream, *attributes;
	unsigned attribute_count;
};

int cudaLaunchKernelExC(const struct launch_config *config, const char *kernel, void **arguments)
{
	const struct launch params = { kernel, config->grid, config->block, arguments, config->shared_bytes, config->stream };

	return launch(CBID_LAUNCH_KERNEL_EXC, "cudaLaunchKernelExC", &params);
}

/* ---- streams, events ---- */

int cudaStreamCreate(void **stream)
{
	struct call call;
	int error = begin(&call, CBID_STREAM_CREATE, "cudaStreamCreate", NULL, &stream);

	if (error)
		return error;
	*stream = driver->stream_new();
	return end(&call, *stream ? CUDA_OK : CUDA_OUT_OF_MEMORY);
}

int cudaStreamDestroy(void *stream)
{
	struct call call;
	int error = begin(&call, CBID_STREAM_DESTROY, "cudaStreamDestroy", NULL, &stream);

	if (error)
		return error;
	driver->wait(stream, 0);
	driver->stream_free(stream);
	return end(&call, CUDA_OK);
}

static int synchronize(uint32_t cbid, const char *function, const void *params, void *stream, int all, enum sync_kind kind, uint32_t event)
{
	struct op op = { .kind = OP_SYNC, .sync = kind, .event = event };
	struct call call;
	int error = begin(&call, cbid, function, NULL, params);

	if (error)
		return error;
	driver->wait(stream, all);
	return driver->call_end(&call, CUDA_OK, stream, &op, 1);
}

int cudaStreamSynchronize(void *stream)
{
	return synchronize(CBID_STREAM_SYNCHRONIZE, "cudaStreamSynchronize", &stream, stream, 0, SYNC_STREAM, 0);
}

int cudaDeviceSynchronize(void)
{
	return synchronize(CBID_DEVICE_SYNCHRONIZE, "cudaDeviceSynchronize", NULL, NULL, 1, SYNC_CONTEXT, 0);
}

int cudaEventCreate(struct event **event)
{
	struct call call;
	int error = begin(&call, CBID_EVENT_CREATE, "cudaEventCreate", NULL, &event);

	if (error)
		return error;
	*event = calloc(1, sizeof **event);
	if (!*event)
		return end(&call, CUDA_OUT_OF_MEMORY);
	(*event)->id = __atomic_fetch_add(&next_event, 1, __ATOMIC_RELAXED);
	return end(&call, CUDA_OK);
}

int cudaEventRecord(struct event *event, void *stream)
{
	struct call call;
	int error = begin(&call, CBID_EVENT_RECORD, "cudaEventRecord", NULL, &event);

	if (error)
		return error;
	event->stream = stream;
	return end(&call, CUDA_OK);
}

int cudaEventSynchronize(struct event *event)
{
	return synchronize(CBID_EVENT_SYNCHRONIZE, "cudaEventSynchronize", &event, event->stream, 0, SYNC_EVENT, event->id);
}

/* ---- graphs ---- */

int cudaStreamBeginCapture(void *stream, int mode)
{
	struct call call;
	int error = begin(&call, CBID_BEGIN_CAPTURE, "cudaStreamBeginCapture", NULL, &stream);

	return error ? error : end(&call, driver->capture_begin(stream));
}

int cudaStreamEndCapture(void *stream, struct graph **graph)
{
	struct call call;
	int error = begin(&call, CBID_END_CAPTURE, "cudaStreamEndCapture", NULL, &stream);

	if (error)
		return error;
	*graph = driver->capture_end(stream);
	return end(&call, *graph ? CUDA_OK : CUDA_INVALID_VALUE);
}

int cudaGraphInstantiateWithFlags(struct graph **executable, const struct graph *graph, unsigned long long flags)
{
	struct call call;
	int error = begin(&call, CBID_INSTANTIATE, "cudaGraphInstantiateWithFlags", NULL, &executable);

	if (error)
		return error;
	*executable = driver->instantiate(graph);
	return end(&call, *executable ? CUDA_OK : CUDA_OUT_OF_MEMORY);
}

int cudaGraphLaunch(const struct graph *graph, void *stream)
{
	const struct {
		const struct graph *graph;
		void *stream;
	} params = { graph, stream };
	struct call call;
	struct op *ops;
	size_t count;
	int error = begin(&call, CBID_GRAPH_LAUNCH, "cudaGraphLaunch", NULL, &params);

	if (error)
		return error;
	ops = driver->graph_ops(graph, &count);
	error = driver->call_end(&call, CUDA_OK, stream, ops, count);
	free(ops);
	return error;
}
