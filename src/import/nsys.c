/*
 * Tables and columns as Nsight Systems' "SQLite Export Schema Reference" describes them (2021.5 to 2025), tried on exports of 2022.1 and 2024.5. Versions differ in columns: what a table lacks reads as
 * 0. The database is hostile: opened read-only and immutable, nothing of its schema but plain tables is used, and the work that one query may cause is bounded.
 */
#include "import/nsys.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "base/map.h"
#include "base/text.h"
#include "import/gather.h"

enum { COLUMNS_MAX = 16, STEPS = 1 << 20, STEPS_MAX = 1 << 16 /* of STEPS instructions of SQLite's machine each */, VALUE_BYTES_MAX = 1 << 20, KINDS_MAX = 16, GPUS_MAX = 1024, DEVICES_MAX = 1 << 16 };

/* What the machine has. */
struct gpu { int64_t id; uint64_t memory_bytes; uint32_t multiprocessors, compute; char *name, *uuid; };
/* Which of them a process sees as its device NUMBER. */
struct seen { int64_t process, gpu; uint64_t identity; uint32_t number; };

struct nsys {
	sqlite3 *db;
	struct gather *gather;
	uint8_t memory[KINDS_MAX]; /* of their numbers for kinds of memory, ours */
	struct gather_about about;
	LIST(struct gpu) gpus;
	LIST(struct seen) seen;
	struct map seen_by_process; /* process << 32 | number: its place there */
	bool alike, compared;       /* all processes call the same devices the same, as far as told */
	bool failed;
	unsigned steps;
	char broken[256];
};

static int64_t number(sqlite3_stmt *row, int column)
{
	return sqlite3_column_int64(row, column);
}

static uint32_t small(sqlite3_stmt *row, int column)
{
	int64_t value = number(row, column);

	return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static const char *text(sqlite3_stmt *row, int column)
{
	const char *value = (const char *)sqlite3_column_text(row, column);

	return value ? value : "";
}

/* The process in bits 24 to 47, the thread in bits 0 to 23. */
static uint32_t thread_of(struct nsys *nsys, int64_t global)
{
	return gather_thread(nsys->gather, global >> 24 & 0xffffff, global & 0xffffff);
}

/* ---- devices ---- */

static void take_gpu(struct nsys *nsys, sqlite3_stmt *row)
{
	struct gpu *gpu = list_add_or_fail(&nsys->gpus, GPUS_MAX, &nsys->failed);

	for (size_t i = 0; i < ABOUT_ROWS; i++)
		if (strcmp(about_rows[i].word, "numSms") == 0 && !nsys->about.numbers[i].known && number(row, 0) > 0)
			nsys->about.numbers[i] = (struct number){ number(row, 0), true };
	if (!gpu)
		return;
	*gpu = (struct gpu){ number(row, 1), number(row, 3) > 0 ? (uint64_t)number(row, 3) : 0, small(row, 0), small(row, 4) * 10 + small(row, 5), strdup(text(row, 2)), strdup(text(row, 6)) };
	nsys->failed |= !gpu->name || !gpu->uuid;
}

/* A part of a GPU (MIG) has a UUID of its own. */
static void take_seen(struct nsys *nsys, sqlite3_stmt *row)
{
	struct seen *seen = list_add_or_fail(&nsys->seen, DEVICES_MAX, &nsys->failed);
	uint64_t identity = mix64((uint64_t)number(row, 0) + 1);

	if (!seen)
		return;
	for (const char *at = text(row, 3); *at; at++)
		identity = mix64(identity + (unsigned char)*at);
	*seen = (struct seen){ number(row, 2), number(row, 0), identity, small(row, 1) };
	nsys->failed |= !map_put(&nsys->seen_by_process, (uint64_t)seen->process << 32 | seen->number, (uint32_t)nsys->seen.count - 1);
}

/* False when KEY had another value. */
static bool same_value(struct nsys *nsys, struct map *map, uint64_t key, uint32_t value)
{
	uint32_t before = map_get(map, key);

	if (before == MAP_ABSENT)
		nsys->failed |= !map_put(map, key, value);
	return before == MAP_ABSENT || before == value;
}

/* Whether one number is one device, and one device has one number, in all processes. No process has one device twice: then nothing is told. */
static bool seen_alike(struct nsys *nsys)
{
	struct map numbers = { 0 }, places = { 0 }, own = { 0 };
	bool alike = true, told = true;

	for (uint32_t i = 0; i < nsys->seen.count; i++) {
		const struct seen *seen = &nsys->seen.items[i];
		uint32_t first = map_get(&places, seen->number);

		alike &= same_value(nsys, &numbers, seen->identity, seen->number);
		if (first == MAP_ABSENT)
			nsys->failed |= !map_put(&places, seen->number, i);
		else
			alike &= nsys->seen.items[first].identity == seen->identity;
		told &= same_value(nsys, &own, mix64(seen->identity) + (uint64_t)seen->process, seen->number);
	}
	map_done(&numbers);
	map_done(&places);
	map_done(&own);
	if (!told)
		nsys->seen.count = 0;
	return alike || !told;
}

static struct device_facts facts_of(const struct nsys *nsys, const struct seen *seen)
{
	for (size_t i = 0; seen && i < nsys->gpus.count; i++) {
		const struct gpu *gpu = &nsys->gpus.items[i];

		if (gpu->id == seen->gpu && gpu->name && gpu->uuid)
			return (struct device_facts){ gpu->memory_bytes, gpu->multiprocessors, gpu->compute, gpu->name, gpu->uuid };
	}
	return (struct device_facts){ .name = "", .uuid = "" };
}

static uint32_t new_device(struct nsys *nsys, uint64_t identity, uint32_t cuda_id, const struct seen *seen)
{
	struct device_facts facts;
	uint32_t wanted = seen && !nsys->alike && seen->gpu >= 0 && seen->gpu < GPUS_MAX ? (uint32_t)seen->gpu : cuda_id;

	for (size_t i = 0; !seen && nsys->alike && i < nsys->seen.count; i++)
		if (nsys->seen.items[i].number == cuda_id) /* NOLINT(clang-analyzer-core.NullDereference): there are items where the count says so */
			seen = &nsys->seen.items[i];
	facts = facts_of(nsys, seen);
	return gather_device_add(nsys->gather, identity, wanted, &facts);
}

/* What a process calls CUDA_ID. It keeps that number while all that are told of call it so; else it has the machine's. */
static uint32_t device_of(struct nsys *nsys, int64_t process, uint32_t cuda_id)
{
	uint32_t at, known;
	const struct seen *seen;
	uint64_t identity;

	if (!nsys->compared)
		nsys->alike = seen_alike(nsys);
	nsys->compared = true;
	at = map_get(&nsys->seen_by_process, (uint64_t)process << 32 | cuda_id);
	seen = at < nsys->seen.count ? &nsys->seen.items[at] : NULL;
	identity = seen && !nsys->alike ? seen->identity : cuda_id;
	known = gather_device_known(nsys->gather, identity);
	return known == UINT32_MAX ? new_device(nsys, identity, cuda_id, seen) : known;
}

/* ---- rows ---- */

/* Columns 0 to 5 of all work: start, end, deviceId, streamId, correlationId, globalPid (the process as in a thread's number; 0: not told). */
static struct device_work work_of(struct nsys *nsys, sqlite3_stmt *row, enum event_kind kind)
{
	int64_t pid = number(row, 5) >> 24 & 0xffffff;

	return (struct device_work){ .kind = kind, .name = "", .start_ns = number(row, 0), .end_ns = number(row, 1), .device = device_of(nsys, pid, small(row, 2)), .stream = small(row, 3), .correlation = small(row, 4),
		.owner = number(row, 5) ? gather_process(nsys->gather, pid) + 1 : 0 };
}

static void take_kernel(struct nsys *nsys, sqlite3_stmt *row)
{
	struct device_work work = work_of(nsys, row, EVENT_GPU_KERNEL);

	for (int i = 0; i < 3; i++) {
		work.grid[i] = small(row, 6 + i);
		work.block[i] = small(row, 9 + i);
	}
	work.name = text(row, 12);
	gather_device(nsys->gather, &work);
}

static uint32_t memory_of(const struct nsys *nsys, sqlite3_stmt *row, int column)
{
	int64_t kind = number(row, column);

	return kind >= 0 && kind < KINDS_MAX ? nsys->memory[kind] : 0;
}

static void take_copy(struct nsys *nsys, sqlite3_stmt *row)
{
	enum { H2D = 1, D2H = 2, P2P = 10 }; /* CUpti_ActivityMemcpyKind */
	int64_t kind = number(row, 7);
	struct device_work work = work_of(nsys, row, kind == H2D ? EVENT_H2D_COPY : kind == D2H ? EVENT_D2H_COPY : EVENT_D2D_COPY);

	work.bytes = number(row, 6) > 0 ? (uint64_t)number(row, 6) : 0;
	work.detail = memory_of(nsys, row, 8) | memory_of(nsys, row, 9) << 8 | (kind == P2P ? 1u << 16 : 0);
	gather_device(nsys->gather, &work);
}

/* A launch of a CUDA graph as a whole, as nsys records them unless told to look inside (--cuda-graph-trace=node): its kernels are in no table. */
static void take_graph(struct nsys *nsys, sqlite3_stmt *row)
{
	struct device_work work = work_of(nsys, row, EVENT_GPU_KERNEL);

	work.name = "CUDA graph";
	gather_device(nsys->gather, &work);
}

static void take_memset(struct nsys *nsys, sqlite3_stmt *row)
{
	struct device_work work = work_of(nsys, row, EVENT_GPU_MEMSET);

	work.bytes = number(row, 6) > 0 ? (uint64_t)number(row, 6) : 0;
	gather_device(nsys->gather, &work);
}

static void take_sync(struct nsys *nsys, sqlite3_stmt *row)
{
	struct device_work work = work_of(nsys, row, EVENT_GPU_SYNC);

	work.detail = small(row, 6);
	gather_device(nsys->gather, &work);
}

static void take_runtime(struct nsys *nsys, sqlite3_stmt *row)
{
	gather_api(nsys->gather, thread_of(nsys, number(row, 2)), text(row, 4), number(row, 0), number(row, 1), small(row, 3));
}

static void take_call(struct nsys *nsys, sqlite3_stmt *row)
{
	gather_row(nsys->gather, thread_of(nsys, number(row, 2)), ROW_C, text(row, 3), "libc", 0, number(row, 0), number(row, 1));
}

static void take_range(struct nsys *nsys, sqlite3_stmt *row)
{
	enum { MARK = 34, PUSH_POP = 59, START_END = 60 };
	const char *name = *text(row, 4) ? text(row, 4) : text(row, 5);
	int64_t kind = number(row, 3);

	if (kind == MARK)
		gather_row(nsys->gather, thread_of(nsys, number(row, 2)), ROW_INSTANT, name, "", 0, number(row, 0), number(row, 0));
	else if ((kind == PUSH_POP || kind == START_END) && number(row, 1) >= number(row, 0))
		gather_row(nsys->gather, thread_of(nsys, number(row, 2)), ROW_SCOPE, name, "", 0, number(row, 0), number(row, 1));
	else
		gather_totals(nsys->gather)->ignored++;
}

/* They are those of the whole machine: only of threads that did something. */
static void take_thread(struct nsys *nsys, sqlite3_stmt *row)
{
	int64_t global = number(row, 0);

	gather_thread_name(nsys->gather, gather_known_thread(nsys->gather, global >> 24 & 0xffffff, global & 0xffffff), text(row, 1));
}

/* Newer versions say what their numbers mean, by the names that abi/memory.def has. */
static void take_memory_kind(struct nsys *nsys, sqlite3_stmt *row)
{
	static const char *const names[] = {
#define MEMORY(number, name) [number] = name,
#include "abi/memory.def"
#undef MEMORY
	};
	int64_t id = number(row, 0);

	for (size_t i = 0; id >= 0 && id < KINDS_MAX && i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], text(row, 1)) == 0)
			nsys->memory[id] = (uint8_t)i;
}

/* A column with "@" is an id in StringIds; of "a|b" the first that the table has. */
static const struct source {
	const char *table;
	const char *columns[COLUMNS_MAX];
	void (*take)(struct nsys *nsys, sqlite3_stmt *row);
} sources[] = {
	{ "ENUM_CUDA_MEM_KIND", { "id", "label" }, take_memory_kind },
	{ "TARGET_INFO_GPU", { "smCount", "id", "name", "totalMemory", "computeMajor", "computeMinor", "uuid" }, take_gpu },
	{ "TARGET_INFO_CUDA_DEVICE", { "gpuId", "cudaId", "pid", "uuid" }, take_seen },
	{ "CUPTI_ACTIVITY_KIND_KERNEL", { "start", "end", "deviceId", "streamId", "correlationId", "globalPid", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "@demangledName|shortName" }, take_kernel },
	{ "CUPTI_ACTIVITY_KIND_MEMCPY", { "start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "copyKind", "srcKind", "dstKind" }, take_copy },
	{ "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", { "start", "end", "deviceId", "streamId", "correlationId", "globalPid" }, take_graph },
	{ "CUPTI_ACTIVITY_KIND_MEMSET", { "start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes" }, take_memset },
	{ "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", { "start", "end", "deviceId", "streamId", "correlationId", "globalPid", "syncType" }, take_sync },
	{ "CUPTI_ACTIVITY_KIND_RUNTIME", { "start", "end", "globalTid", "correlationId", "@nameId" }, take_runtime },
	{ "NVTX_EVENTS", { "start", "end", "globalTid", "eventType", "text", "@textId" }, take_range },
	{ "OSRT_API", { "start", "end", "globalTid", "@nameId" }, take_call },
	{ "ThreadNames", { "globalTid", "@nameId" }, take_thread },
};

/* ---- queries ---- */

/* A view, or a virtual table, may compute anything. */
static bool has_table(struct nsys *nsys, const char *table)
{
	sqlite3_stmt *query = NULL;
	bool found = sqlite3_prepare_v2(nsys->db, "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?1", -1, &query, NULL) == SQLITE_OK && sqlite3_bind_text(query, 1, table, -1, SQLITE_STATIC) == SQLITE_OK &&
		sqlite3_step(query) == SQLITE_ROW && strncmp(text(query, 0), "CREATE TABLE", 12) == 0;

	sqlite3_finalize(query);
	return found;
}

static bool has_column(struct nsys *nsys, const char *table, const char *column, size_t length)
{
	char name[64];

	snprintf(name, sizeof name, "%.*s", (int)length, column);
	return sqlite3_table_column_metadata(nsys->db, NULL, table, name, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

static void add_column(struct nsys *nsys, struct text *sql, const char *table, const char *column, bool strings)
{
	bool string = *column == '@';

	for (const char *at = column + string, *end; *at; at = *end ? end + 1 : end) {
		end = at + strcspn(at, "|");
		if (!has_column(nsys, table, at, (size_t)(end - at)))
			continue;
		if (string && strings)
			text_printf(sql, "(SELECT value FROM StringIds WHERE StringIds.id = T.\"%.*s\")", (int)(end - at), at);
		else if (!string)
			text_printf(sql, "T.\"%.*s\"", (int)(end - at), at);
		else
			break;
		return;
	}
	text_add_string(sql, "0");
}

static void query_of(struct nsys *nsys, const struct source *source, struct text *sql)
{
	bool strings = has_table(nsys, "StringIds");

	text_add_string(sql, "SELECT ");
	for (size_t i = 0; i < COLUMNS_MAX && source->columns[i]; i++) {
		text_add_string(sql, i ? ", " : "");
		add_column(nsys, sql, source->table, source->columns[i], strings);
	}
	text_printf(sql, " FROM \"%s\" AS T", source->table);
}

/* False when the rest of the table cannot be read. */
static bool read_source(struct nsys *nsys, const struct source *source)
{
	sqlite3_stmt *query = NULL;
	struct text sql;
	int result;

	if (!has_table(nsys, source->table))
		return true;
	text_init(&sql);
	query_of(nsys, source, &sql);
	nsys->steps = 0;
	result = sql.failed ? SQLITE_NOMEM : sqlite3_prepare_v2(nsys->db, sql.data, -1, &query, NULL);
	while (result == SQLITE_OK || result == SQLITE_ROW) {
		result = sqlite3_step(query);
		if (result == SQLITE_ROW)
			source->take(nsys, query);
	}
	if (result != SQLITE_DONE && !*nsys->broken)
		snprintf(nsys->broken, sizeof nsys->broken, "%s, in its table %s", result == SQLITE_INTERRUPT ? "reading takes too long" : sqlite3_errstr(result), source->table);
	sqlite3_finalize(query);
	text_done(&sql);
	return result == SQLITE_DONE;
}

static int count_steps(void *context)
{
	struct nsys *nsys = context;

	return ++nsys->steps > STEPS_MAX;
}

/* immutable: neither locks nor a journal beside it, whatever its header asks for. */
static int open_database(struct nsys *nsys, const char *path, struct error *err)
{
	struct text uri;
	int result;

	text_init(&uri);
	text_add_string(&uri, "file:");
	for (const unsigned char *at = (const unsigned char *)path; *at; at++)
		text_printf(&uri, strchr("%?#", *at) ? "%%%02x" : "%c", *at);
	text_add_string(&uri, "?immutable=1");
	result = uri.failed ? SQLITE_NOMEM : sqlite3_open_v2(uri.data, &nsys->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_PRIVATECACHE, NULL);
	text_done(&uri);
	if (result != SQLITE_OK)
		return fail(err, ERR_TRACE_OPEN, "cannot read %s: %s", path, sqlite3_errstr(result));
	sqlite3_db_config(nsys->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(nsys->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(nsys->db, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
	sqlite3_progress_handler(nsys->db, STEPS, count_steps, nsys);
	return 0;
}

int nsys_convert(const char *path, int fd, struct error *err)
{
	/* Their own numbers begin with 0 for pageable; CUPTI's, which we have, with 1. Seen without a table that says so in exports of 2022.1. */
	struct nsys nsys = { .broken = "", .memory = { 1, 2, 3, 4, 5, 6, 7 } };
	int result = -1;

	if (open_database(&nsys, path, err) < 0 || gather_open(fd, "nsys SQLite", &nsys.gather, err) < 0)
		goto out;
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
		read_source(&nsys, &sources[i]);
	if (nsys.failed)
		gather_fail(nsys.gather);
	gather_set_about(nsys.gather, &nsys.about);
	result = gather_finish(nsys.gather, *nsys.broken ? nsys.broken : NULL, err);
out:
	for (size_t i = 0; i < nsys.gpus.count; i++) {
		free(nsys.gpus.items[i].name);
		free(nsys.gpus.items[i].uuid);
	}
	list_done(&nsys.gpus);
	list_done(&nsys.seen);
	map_done(&nsys.seen_by_process);
	gather_close(nsys.gather);
	sqlite3_close(nsys.db);
	return result;
}
