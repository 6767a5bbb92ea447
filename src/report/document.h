/*
 * Building JSON documents. cJSON holds the structure; numbers and strings go in as raw tokens, because cJSON would print large integers as floating point
 * and pass invalid UTF-8 on. Out of memory is sticky: `failed` is set, and cJSON frees what was added.
 */
#ifndef INFERSCOPE_REPORT_DOCUMENT_H
#define INFERSCOPE_REPORT_DOCUMENT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "report/report.h"

struct json { bool failed; };

/* VALUE belongs to OBJECT (or ARRAY) from here on, also after a failure. */
void put(struct json *json, cJSON *object, const char *key, cJSON *value);
void append(struct json *json, cJSON *array, cJSON *value);
cJSON *string_token(const char *string); /* cut at 64 KiB; NULL when out of memory */
void put_string(struct json *json, cJSON *object, const char *key, const char *string); /* NULL = null */
void put_known(struct json *json, cJSON *object, const char *key, const char *string);  /* unknown is null, never an empty string */
void put_u64(struct json *json, cJSON *object, const char *key, uint64_t value);
void put_i64(struct json *json, cJSON *object, const char *key, int64_t value);
void put_number(struct json *json, cJSON *object, const char *key, double value, unsigned decimals); /* NAN = null */
void put_line(struct json *json, cJSON *object, const char *file, uint32_t line); /* file, line; unknown is null */
void put_us(struct json *json, cJSON *object, const char *key, uint64_t ns);
void put_unix_ns(struct json *json, cJSON *object, const char *key, uint64_t value);    /* a string: beyond 2^53; 0 = null */
void put_bool(struct json *json, cJSON *object, const char *key, bool value);
/* NULL after a failure; what is put into NULL is freed. */
cJSON *put_object(struct json *json, cJSON *parent, const char *key);
cJSON *put_array(struct json *json, cJSON *parent, const char *key);
cJSON *append_object(struct json *json, cJSON *array);
/* Writes ROOT and frees it. */
int document_write(struct json *json, cJSON *root, struct sink *sink, struct error *err);

struct gpu_tables;
/* write_json_gpu.c: the sets of numbers about devices among METRICS, and what stands beside them in ROOT. */
void put_gpu_metrics(struct json *json, cJSON *metrics, const struct timeline *timeline);
void put_gpu_lists(struct json *json, cJSON *root, const struct timeline *timeline);
/* What a device did not do, by cause, in microseconds. */
void put_idle_causes(struct json *json, cJSON *object, const uint64_t idle_ns[GPU_IDLE_CAUSES]);
void put_gpu_tables(struct json *json, cJSON *root, const struct gpu_tables *tables);
struct report;
/* write_json_program.c: what the program did. */
const char *function_kind_name(enum function_kind kind);
void put_functions(struct json *json, cJSON *root, const struct report *report);
void put_threads(struct json *json, cJSON *root, const struct timeline *timeline);
void put_gil(struct json *json, cJSON *root, const struct timeline *timeline);
void put_stacks(struct json *json, cJSON *root, const struct timeline *timeline);
void put_processes(struct json *json, cJSON *root, const struct timeline *timeline);
void put_syscalls(struct json *json, cJSON *root, const struct report *report);
void put_scopes(struct json *json, cJSON *root, const struct timeline *timeline);
/* write_json_memory.c */
void put_collections(struct json *json, cJSON *root, const struct report *report);
void put_memory(struct json *json, cJSON *root, const struct report *report);
void put_counters(struct json *json, cJSON *root, const struct report *report); /* write_json_counters.c */

#endif
