/* What the doubles of libcuda, libcudart and libcupti agree on. The driver holds devices, streams, graphs and the clock; the others get
 * its functions as a table from cuGetExportTable(), as the real ones do. */
#ifndef FAKECUDA_DRIVER_H
#define FAKECUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

enum { DOMAIN_DRIVER = 1, DOMAIN_RUNTIME = 2 };
enum { DEVICES_MAX = 16, NAME_MAX_BYTES = 256 };

enum op_kind { OP_KERNEL, OP_COPY, OP_PEER_COPY, OP_MEMSET, OP_SYNC, OP_GRAPH };

enum memory_kind { MEMORY_PAGEABLE = 1, MEMORY_PINNED = 2, MEMORY_DEVICE = 3, MEMORY_ARRAY = 4, MEMORY_MANAGED = 5 };
enum copy_kind { COPY_H2D = 1, COPY_D2H = 2, COPY_D2D = 8, COPY_H2H = 9, COPY_P2P = 10 };
enum sync_kind { SYNC_EVENT = 1, SYNC_STREAM_WAIT = 2, SYNC_STREAM = 3, SYNC_CONTEXT = 4 };

/* One thing that a device does; times are CLOCK_MONOTONIC (or the virtual clock). Filled by the caller but for what is marked. */
struct op {
	enum op_kind kind;
	uint32_t device, context, stream; /* marked */
	uint32_t correlation;             /* marked */
	uint64_t start_ns, end_ns;        /* marked */
	uint64_t duration_ns;
	const char *name;                 /* lives as long as the driver */
	uint32_t grid[3], block[3], dynamic_bytes;
	uint64_t graph_node, source_node;
	uint32_t graph, source_graph;
	uint64_t bytes;
	uint32_t peer_device, value, event, sync;
	uint8_t copy, from, to, async;
	uint8_t blocking; /* the call lasts until it is done */
	uint8_t raw; /* its stamps are taken as they stand: for records that a test makes up */
};

/* One call of the runtime or driver API. */
struct call {
	uint32_t domain, cbid, correlation;
	int tid;
	uint64_t start_ns, end_ns;
	const char *function, *symbol;
	const void *params;
	int result;
	uint64_t data; /* kept by the profiler between enter and leave */
	const struct hooks *hooks;
};

/* Memory that a call allocated or released. */
enum { MEMORY_ALLOCATED = 1, MEMORY_RELEASED = 2 };
struct memory_change {
	int operation;
	enum memory_kind kind;
	uint32_t device;
	const void *address;
	uint64_t bytes;
};

/* Of NVTX. Numbers as the flags of CUPTI's records. */
enum { RANGE_MARK = 1, RANGE_START = 2, RANGE_END = 4 };
struct range {
	int what;
	uint32_t id;
	int tid;
	const char *name, *domain; /* they live as long as the driver; name: NULL at the end; domain: NULL for the default one */
};

/* How CUPTI sees what happens. The table must live for ever. */
struct hooks {
	void (*enter)(struct call *);
	void (*leave)(struct call *);
	void (*ops)(const struct op *, size_t count, const struct call *);
	void (*stream)(uint32_t device, uint32_t context, uint32_t stream);
	void (*memory)(const struct memory_change *, const struct call *);
	void (*range)(const struct range *);
	void (*lost)(size_t records); /* for a test: as if so many had found no room */
};

struct stream;
struct graph;

struct driver {
	int (*ready)(void); /* 0 once cuInit succeeded, else its error */
	void (*hook)(const struct hooks *); /* NULL takes it off */
	uint64_t (*now_ns)(void);
	uint64_t (*stamp_ns)(uint64_t at_ns); /* of the engine's clock, in CUPTI's default domain */
	int (*devices)(void);
	void (*streams)(void (*each)(uint32_t device, uint32_t context, uint32_t stream));
	void (*took_memory)(uint64_t bytes);

	void (*call_begin)(struct call *, uint32_t domain, uint32_t cbid, const char *function, const char *symbol, const void *params);
	/* Does the operations on STREAM (NULL: the default one) and ends the call; returns RESULT. */
	int (*call_end)(struct call *, int result, void *stream, struct op *ops, size_t count);
	void (*memory)(const struct call *, int operation, enum memory_kind kind, const void *address, uint64_t bytes);
	/* Waits until the stream (all: every stream of the device) has nothing left; in the middle of a call. */
	void (*wait)(void *stream, int all);
	const char *(*name)(const char *);
	int *(*current_device)(void);
	void *(*context)(int device); /* its primary context, made when it is not there */

	/* Streams and graphs, of the current device. A capture ends with a graph of what was "done" meanwhile. */
	struct stream *(*stream_new)(void);
	void (*stream_free)(struct stream *);
	int (*capture_begin)(struct stream *);
	struct graph *(*capture_end)(struct stream *);
	struct graph *(*instantiate)(const struct graph *);
	struct op *(*graph_ops)(const struct graph *, size_t *count); /* a copy, the caller's to free */
};

extern const unsigned char driver_table_id[16];
int cuGetExportTable(const void **table, const void *id);

#endif
