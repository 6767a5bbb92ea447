/* Rows of libraries and of the variables that each reads: their own documentation (GCC 12, LLVM 17, oneMKL 2024, OpenBLAS 0.3, PyTorch 2). */
#include "session/pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/environment.h"

enum { THREADS_MOST = 1 << 16, VARIABLES = 2 };

/* Names that the file begins with; wheels add a hash ("libgomp-a34b3233.so.1"). Each reads the first variable of its that is set. */
static const struct { const char *library, *variables[VARIABLES]; } rows[] = {
	{ "libgomp", { "OMP_NUM_THREADS" } }, { "libiomp5", { "OMP_NUM_THREADS" } }, { "libomp", { "OMP_NUM_THREADS" } },
	{ "libmkl_rt", { "MKL_NUM_THREADS", "OMP_NUM_THREADS" } }, { "libmkl_core", { "MKL_NUM_THREADS", "OMP_NUM_THREADS" } },
	{ "libopenblas", { "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS" } }, { "libscipy_openblas", { "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS" } },
	{ "libtorch_cpu", { "OMP_NUM_THREADS", "MKL_NUM_THREADS" } }, { "libonnxruntime", { 0 } }, { "libtbb", { 0 } },
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "libomp" is not the beginning of "libompi.so". */
static bool is_library(const char *path, const char *library)
{
	const char *base = base_of(path);
	size_t length = strlen(library);

	return strncmp(base, library, length) == 0 && strchr("-._64", base[length]) && strstr(base, ".so");
}

static bool is_mapped(const struct maps *maps, const char *library)
{
	for (size_t i = 0; i < maps->count; i++)
		if (*maps->list[i].path == '/' && is_library(maps->list[i].path, library))
			return true;
	return false;
}

/* Each word once. */
static void add_word(char *out, size_t size, const char *word)
{
	size_t used = strlen(out);

	if (!strstr(out, word) && used + strlen(word) + 3 < size)
		snprintf(out + used, size - used, "%s%s", used ? ", " : "", word);
}

/* What the environment sets for the pool of ROW; -1 = nothing. */
static long threads_set(size_t row, const char *environment, size_t size, struct pools *out)
{
	for (size_t i = 0; i < VARIABLES && rows[row].variables[i]; i++) {
		long threads = environment_number(environment, size, rows[row].variables[i]);
		char word[64];

		if (threads < 0)
			continue;
		snprintf(word, sizeof word, "%s=%ld", rows[row].variables[i], threads);
		add_word(out->environment, sizeof out->environment, word);
		return threads;
	}
	return -1;
}

void pools_find(const struct maps *maps, const char *environment, size_t size, int cpus, struct pools *out)
{
	memset(out, 0, sizeof *out);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		long threads;

		if (!is_mapped(maps, rows[i].library))
			continue;
		add_word(out->libraries, sizeof out->libraries, rows[i].library);
		threads = threads_set(i, environment, size, out);
		if (threads <= 0 || threads > THREADS_MOST)
			threads = cpus;
		if (threads > out->asked)
			out->asked = threads;
	}
}
