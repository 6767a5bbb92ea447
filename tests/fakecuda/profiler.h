/* The inside of the CUPTI double: its clients, their buffers, and the records that go into them. One lock; no client is called under it. */
#ifndef FAKECUDA_PROFILER_H
#define FAKECUDA_PROFILER_H

#include "driver.h"

#include <pthread.h>

/* CUptiResult */
enum {
	RC_OK = 0, RC_INVALID_PARAMETER = 1, RC_INVALID_OPERATION = 7, RC_SIZE = 10, RC_NO_MORE = 12, RC_NOT_COMPATIBLE = 14, RC_NOT_INITIALIZED = 15, RC_QUEUE_EMPTY = 18,
	RC_INVALID_KIND = 21, RC_BUSY = 39, RC_UNKNOWN = 999
};
enum { V_12_0 = 18, V_12_9 = 27, V_13_0 = 130000, V_13_0U1 = 130001, V_13_2 = 130200 };
enum { KINDS_MAX = 64, CBIDS_MAX = 1024, CLIENTS_MAX = 8, ATTRIBUTES_MAX = 24, EXTERNAL_DEPTH = 64 };
enum {
#define KIND(id, number, type) KIND_##id = number,
#define SIZE(id, since, bytes)
#define FIELD(id, name, offset, bytes, since, header)
#include "layout.def"
#undef KIND
#undef SIZE
#undef FIELD
};
enum { ATTRIBUTE_ZEROED = 5, ATTRIBUTE_PINNED = 8, ATTRIBUTE_PER_THREAD = 9, ATTRIBUTE_THREAD_ID_TYPE = 21 };

typedef void callback_fn(void *user, int domain, uint32_t cbid, const void *data);
typedef void request_fn(uint8_t **buffer, size_t *size, size_t *records);
typedef void complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef void request_v2_fn(uint8_t **buffer, size_t *size, size_t *records, void *info);
typedef void complete_v2_fn(uint8_t *buffer, size_t size, size_t valid, void *info);
typedef uint64_t timestamp_fn(void);

struct buffer {
	struct buffer *next;
	uint8_t *bytes;
	size_t size, used, records, records_max;
	int tid; /* 0: the GPU's own */
};

/* An operation whose record is not written yet: it is not done. */
struct pending {
	struct op op;
	int tid;
};

/* Clients 1 and up are subscribers of the v2 kind; client 0 is everybody who uses the v1 API, subscribed or not. */
struct client {
	int subscribed, v2;
	char name[64];
	callback_fn *callback;
	void *user;
	uint8_t callbacks[3][CBIDS_MAX], filters[3][CBIDS_MAX]; /* filters: 0 as its kind, 1 on, 2 off */
	uint8_t kinds[KINDS_MAX];
	int had_graph_trace; /* one way: nodes are not traced again */
	request_fn *request;
	complete_fn *complete;
	request_v2_fn *request_v2;
	complete_v2_fn *complete_v2;
	uint64_t attributes[ATTRIBUTES_MAX];
	struct buffer *open, *full, **full_end;
	struct pending *pending;
	size_t pending_count, pending_room, dropped;
	unsigned generation; /* of sessions: what a call began in an earlier one is lost */
	int handing;         /* a thread hands buffers back */
	int delivering;      /* threads that write or hand over records of it */
};

extern pthread_mutex_t profiler_lock;
extern struct client clients[CLIENTS_MAX];
extern const struct driver *driver; /* NULL: not initialised */
extern timestamp_fn *timestamp_callback;
extern int thread_id_type;

uint32_t version(void);
int record_size(uint32_t kind); /* 0: no such kind */

void stamp_begin(void); /* record.c: somebody registered a clock; lock held */

/* record.c: all with the lock held, which they may let go for a while. */
void record_call(struct client *, const struct call *);
void record_external(struct client *, const struct call *, int kind, uint64_t id);
void record_ops(struct client *, const struct op *, size_t count, const struct call *);
void record_done(struct client *, int forced); /* records of operations that are done by now; forced: all, without an end */
void record_overhead(struct client *, uint32_t type, uint64_t start_ns, uint64_t end_ns);
void record_memory(struct client *, const struct memory_change *, const struct call *);
void record_range(struct client *, const struct range *);
void record_dump(struct client *, uint32_t kind);
void record_stream(struct client *, uint32_t device, uint32_t context, uint32_t stream);

/* names.c */
const char *name_keep(const char *text); /* a copy for records to point to */
void names_forget(void); /* what records point to is gone */

/* buffer.c */
uint8_t *buffer_room(struct client *, int tid, size_t size); /* lock held, let go meanwhile; NULL: dropped and counted */
void buffer_flush(struct client *, int forced);              /* lock held, let go meanwhile */
void buffer_forget(struct client *);
int worker_start(void); /* lock held */
void worker_stop(void); /* lock not held; waits for it */

void journal_note(const char *text);

#endif
