/*
 * The device's part: a thread of its own (gpu.c), on it a late client of CUPTI (gpu_client.c), buffers from a bounded pool (gpu_buffers.c), records
 * decoded into two lanes (gpu_records.c), what is asked of the driver (gpu_cuda.c). Nothing here takes the GIL. CUPTI calls back on
 * its own threads and on the program's: there we only take a buffer from a bitmap, or decode one under a lock that nobody holds over a call into CUPTI
 * but the step to the next record.
 */
#ifndef INFERSCOPE_COLLECTOR_GPU_H
#define INFERSCOPE_COLLECTOR_GPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/page.h"
#include "collector/cupti.h"

enum {
	GPU_BUFFERS = 64, GPU_BUFFER_BYTES = 1 << 20, /* host memory for CUPTI's records: 64 MiB at most, touched as used */
	GPU_NAMES = 16384, GPU_NAME_BYTES = 4096, GPU_NAMES_BYTES = 16 << 20,
	GPU_CBIDS = 2048, GPU_CONTEXTS = 64,
};

/* The driver's functions, as the process has them. */
#define CUDA_FUNCTIONS(FUNCTION) \
	FUNCTION(cuDriverGetVersion, (int *)) \
	FUNCTION(cuDeviceGetCount, (int *)) \
	FUNCTION(cuGetErrorName, (int, const char **)) \
	FUNCTION(cuDevicePrimaryCtxGetState, (int, unsigned *, int *)) \
	FUNCTION(cuDevicePrimaryCtxRetain, (void **, int)) \
	FUNCTION(cuDevicePrimaryCtxRelease_v2, (int)) \
	FUNCTION(cuCtxPushCurrent_v2, (void *)) \
	FUNCTION(cuCtxPopCurrent_v2, (void **)) \
	FUNCTION(cuMemGetInfo_v2, (size_t *, size_t *))

struct cuda {
	void *library;
	int (*cudaDriverGetVersion)(int *); /* of the runtime; NULL where there is none */
#define CUDA_FIELD(name, args) int (*name) args;
	CUDA_FUNCTIONS(CUDA_FIELD)
#undef CUDA_FIELD
};

/* A name that the session was told, in the order of their numbers. */
struct gpu_name {
	const char *key; /* where CUPTI has it */
	uint32_t at;     /* in the copies */
	uint32_t ref;    /* 0: free */
};

struct gpu_context { uint32_t id, device, ordinal; };

struct gpu {
	struct cuda cuda;
	struct cupti cupti;
	pthread_t thread;
	bool made;        /* to be joined */
	bool running;     /* atomic: its thread exists; also after we gave up waiting for it */
	bool profiled;    /* torch.profiler was at work when last looked at: when we were armed; after a takeover, when we are disarmed */
	bool taken;       /* atomic: another tool took CUPTI's buffers over */
	uint32_t quit;    /* futex: 1 = leave */
	/* under the lock */
	pthread_mutex_t lock;
	bool open;        /* page and lanes may be written */
	struct lane *names_lane, *work_lane;
	struct gpu_name *names; /* a hash table */
	char *copies;           /* their text, one after the other */
	uint32_t copies_used, name_count;
	const char **call_names; /* [2][GPU_CBIDS]: driver, runtime; asked beforehand */
	uint32_t *call_refs;
	struct gpu_context contexts[GPU_CONTEXTS];
	uint32_t context_count;
	bool graph_seen;
	uint64_t not_before, not_after; /* stamps outside are impossible */
	/* buffers */
	uint64_t free_buffers; /* a bit for each, atomic */
	uint8_t *buffers;      /* mapped once, kept: CUPTI may return one late */
	uint8_t *discard;      /* one more, whose contents nobody reads */
	uint64_t discarded;    /* requests that got none, atomic */
	/* callbacks */
	bool listening;  /* atomic: callbacks do something */
	uint32_t inside; /* atomic: how many threads are in one */
	pthread_t self;
	bool finalizing; /* atomic: our own call's end is the moment */
	int finalized;   /* result of cuptiFinalize(), -1 = it was not reached */
	uint32_t callbacks; /* atomic: seen */
	uint64_t skipped;   /* atomic: calls that could not be recorded */
	/* its thread's own */
	int devices;
	uint32_t driver;
	size_t kinds_on;  /* how many rows of its table are enabled */
	uint64_t beats_before, discarded_before;
	uint32_t beats_missing;
};

/* gpu.c. Started where page.gpu asks for it, once its lanes are taken; needs no GIL. */
void gpu_start(void);
/* Asks it to leave, waits a bounded time, and from then on nothing of it writes. */
void gpu_stop(void);
/* In a forked child: plain stores. */
void gpu_forked(void);
/* Takes the lock if there is something to write to. */
bool gpu_begin(void);
void gpu_end(void);
/* What is told to the attacher: under the lock, or by the setters, which take it. */
struct gpu_status *gpu_status(void);
void gpu_set_state(enum gpu_state state);
void gpu_set_end(enum gpu_state state, int result, const char *text);
void gpu_publish(void); /* counts that callbacks keep; under the lock */
void gpu_pause_ms(unsigned ms);

/* gpu_client.c. Finds CUPTI and what is needed of it; false: told why not. */
bool gpu_client_find(void);
/* Subscribes and switches everything on; false: told why not, and taken back. */
bool gpu_client_begin(void);
/* CUPTI's clock beside ours, told to the session. */
bool gpu_client_clock(void);
/* TAKEN: the buffers are another tool's by now, and its session must not suffer: what it may use as well stays on … */
void gpu_client_leave(bool taken);
/* … until here, once it is known that it is not at work any more. */
void gpu_client_clear(void);

/* gpu_torch.c: is torch.profiler at work? Under the GIL. */
bool torch_profiled(void);

/* gpu_cuda.c */
bool cuda_find(struct cuda *cuda);
uint64_t cuda_free_bytes(const struct cuda *cuda, int devices); /* of all devices in use; 0 = not told */
void cuda_explain(const struct cuda *cuda, const char *call, int result, char *text, size_t size);

/* gpu_buffers.c */
bool gpu_buffers_open(void);
void gpu_buffer_request(uint8_t **buffer, size_t *size, size_t *records);
void gpu_buffer_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
/* The same for the second family. */
void gpu_buffer_request2(uint8_t **buffer, size_t *size, size_t *records, void *info);
void gpu_buffer_complete2(uint8_t *buffer, size_t size, size_t valid, void *info);

/* gpu_names.c. Both numbers are 0 where there is no room; under the lock. */
bool gpu_names_open(void); /* none is known */
uint32_t gpu_name_ref(const char *name); /* a string of CUPTI's, or NULL */
uint32_t gpu_call_ref(int domain, uint32_t cbid);
void gpu_put(struct lane *lane, uint64_t at, uint8_t kind, uint32_t ref, uint8_t flags, const void *payload, size_t size);

/* gpu_records.c: what stands in a buffer, into the lanes. */
void gpu_records_begin(void);
void gpu_records_decode(uint8_t *buffer, size_t valid);
/* A call as our own callback saw it: releases before 12.8 cannot be asked for single driver calls. False: not now. */
bool gpu_record_call(int domain, uint32_t cbid, uint64_t start_ns, uint64_t end_ns, uint32_t correlation);
void gpu_record_bracket(uint64_t ticks, uint64_t before, uint64_t realtime, uint64_t after);

#endif
