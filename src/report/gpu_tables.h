/* What devices did and what programs asked of them, by name, with the columns of Nsight Systems' statistics: from one pass over the trace. Memory grows with names. */
#ifndef INFERSCOPE_REPORT_GPU_TABLES_H
#define INFERSCOPE_REPORT_GPU_TABLES_H

#include "report/model.h"

enum gpu_table_kind { GPU_TABLE_KERNELS = 0, GPU_TABLE_MEMORY /* copies and memory set */, GPU_TABLE_CALLS, GPU_TABLES };

/* How each is called: by people, in JSON, and its columns of counts and names as nsys stats has them (cuda_gpu_kern_sum, cuda_gpu_mem_time_sum, cuda_api_sum). */
struct gpu_table_words { const char *title, *key, *count, *name; };
extern const struct gpu_table_words GPU_TABLE_WORDS[GPU_TABLES];

struct gpu_row {
	const char *name;
	uint64_t count, total_ns, min_ns, max_ns; /* total_ns: the sum, also of those that ran at the same time */
	uint64_t bytes;                           /* of copies and memory set */
	double mean_ns, median_ns, deviation_ns;
	double pct;                               /* of the total of the table */
	bool median_about;                        /* an estimate: there were too many to keep each */
};

struct gpu_table {
	const struct gpu_row *rows; /* most time first */
	size_t count, omitted;      /* omitted: other names, beyond GPU_ROWS_MAX */
};
enum { GPU_ROWS_MAX = 2000 };

struct gpu_tables {
	struct gpu_table of[GPU_TABLES];
	struct gpu_tables_private *private_;
};

/* Empty where no device was seen or the trace was not kept. gpu_tables_free() frees what it holds; after a failure there is nothing to free. */
int gpu_tables_read(const struct report *report, struct gpu_tables *out, struct error *err);
void gpu_tables_free(struct gpu_tables *tables);

enum { COPIES_NAME = 96 };
/* As torch.profiler names them: "Memcpy HtoD (Pageable -> Device)". */
void copies_name(enum event_kind kind, uint32_t memory_kinds, char out[COPIES_NAME]);

/* For people: "host late", "graph launch". */
extern const char *const GPU_IDLE_LABELS[GPU_IDLE_CAUSES];
extern const char *const GPU_CALL_LABELS[GPU_CALL_CLASSES];

#endif
