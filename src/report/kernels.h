/* What devices ran, by name: kernels and memory set, from one pass over the trace. Memory grows with names. */
#ifndef INFERSCOPE_REPORT_KERNELS_H
#define INFERSCOPE_REPORT_KERNELS_H

#include "report/model.h"

struct kernel_row {
	const char *name;
	uint64_t count, total_ns, longest_ns; /* total_ns: the sum, also of those that ran at the same time */
	double pct;                           /* of the total of all */
};

struct kernels {
	const struct kernel_row *rows; /* most time first */
	size_t count, omitted;         /* omitted: other names, beyond KERNELS_MAX */
	struct kernels_private *private_;
};
enum { KERNELS_MAX = 2000 };

/* None where no device was seen or the trace was not kept. kernels_free() frees what it holds; after a failure there is nothing to free. */
int kernels_read(const struct report *report, struct kernels *out, struct error *err);
void kernels_free(struct kernels *kernels);

enum { COPIES_NAME = 96 };
/* As torch.profiler names them: "Memcpy HtoD (Pageable -> Device)". */
void copies_name(const struct gpu_copies *copies, char out[COPIES_NAME]);

#endif
