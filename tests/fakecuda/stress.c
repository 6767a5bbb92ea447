/* The doubles under threads: stress FOLDER SECONDS. Three threads launch, one attaches and detaches in every way, and each session's records are whole.
 * For the thread sanitizer (tests/fakecuda/proof.test --sanitizers): the doubles, this and the client are built with it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, NODES = 5, STOP_HARD = 1, SUBSCRIBE = 1, CALLBACKS = 2, DUMP = 8 };
enum { KINDS = 1 << 1 | 1 << 2 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 10 };

struct shape {
	unsigned x, y, z;
};

struct counts {
	uint64_t kinds[64], buffers, requests, dropped, invalid, no_end, out_of_order, unknown_names, callbacks, digest;
};

static struct {
	int (*launch)(const char *, struct shape, struct shape, void **, size_t, void *);
	int (*stream)(void **);
	int (*memset_async)(void *, int, size_t, void *);
	int (*allocate)(void **, size_t);
	int (*begin)(void *, int);
	int (*end)(void *, void **);
	int (*instantiate)(void **, void *, unsigned long long);
	int (*graph)(void *, void *);
	int (*synchronize)(void *);
	int (*start)(uint64_t, int);
	int (*stop)(int);
	const struct counts *(*counts)(void);
	const char *(*name)(const char *);
} call;
static atomic_int over;
static atomic_ulong launched;

static void *open_in(const char *folder, const char *name, int mode)
{
	char path[4096];
	void *library;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	library = dlopen(path, mode | RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return library;
}

static void kernel(void *stream, const char *name)
{
	uint64_t ns = 2000;
	void *arguments[] = { &ns };
	struct shape one = { 1, 1, 1 };

	if (call.launch(name, one, one, arguments, 0, stream))
		exit(3);
	atomic_fetch_add(&launched, 1);
}

static void *work(void *unused)
{
	const char *name = call.name("stress_kernel");
	void *stream, *captured, *graph, *memory;

	if (call.stream(&stream) || call.allocate(&memory, 4096) || call.begin(stream, 0))
		exit(3);
	for (int i = 0; i < NODES; i++)
		kernel(stream, name);
	if (call.end(stream, &captured) || call.instantiate(&graph, captured, 0))
		exit(3);
	while (!atomic_load(&over)) {
		kernel(stream, name);
		call.memset_async(memory, 0, 64, stream);
		call.graph(graph, stream);
		call.synchronize(stream);
	}
	return NULL;
}

static int check(int round, int rc)
{
	const struct counts *seen = call.counts();

	if (rc == 0 && !seen->out_of_order && !seen->unknown_names && seen->kinds[8] == 1)
		return 0;
	fprintf(stderr, "round %d: rc %d, %lu kernels, %lu before their calls, %lu devices, %lu dropped, %lu requests, %lu buffers, %lu calls\n", round, rc, seen->kinds[10], seen->out_of_order, seen->kinds[8], seen->dropped, seen->requests, seen->buffers, seen->kinds[5]);
	return 1;
}

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[2]) : 2;
	pthread_t threads[THREADS];
	struct timespec begun, now;
	int rounds = 0, failed = 0;
	void *cuda, *cudart, *client;
	int (*open_cupti)(const char *);
	char cupti[4096];

	if (argc < 2)
		return 2;
	cuda = open_in(argv[1], "libcuda.so.1", RTLD_GLOBAL);
	cudart = open_in(argv[1], "libcudart.so.12", RTLD_LOCAL);
	client = open_in(argv[1], "libfakeclient.so", RTLD_LOCAL);
#define RESOLVE(field, library, symbol) *(void **)&call.field = dlsym(library, symbol)
	RESOLVE(launch, cudart, "cudaLaunchKernel");
	RESOLVE(stream, cudart, "cudaStreamCreate");
	RESOLVE(memset_async, cudart, "cudaMemsetAsync");
	RESOLVE(allocate, cudart, "cudaMalloc");
	RESOLVE(begin, cudart, "cudaStreamBeginCapture");
	RESOLVE(end, cudart, "cudaStreamEndCapture");
	RESOLVE(instantiate, cudart, "cudaGraphInstantiateWithFlags");
	RESOLVE(graph, cudart, "cudaGraphLaunch");
	RESOLVE(synchronize, cudart, "cudaStreamSynchronize");
	RESOLVE(start, client, "client_start");
	RESOLVE(stop, client, "client_stop");
	RESOLVE(counts, client, "client_counts");
	RESOLVE(name, cuda, "fakecuda_name");
	*(void **)&open_cupti = dlsym(client, "client_open");
	snprintf(cupti, sizeof cupti, "%s/libcupti.so.12", argv[1]);
	if (open_cupti(cupti))
		return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	while (!atomic_load(&launched))
		usleep(1000);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		int rc = call.start(KINDS, SUBSCRIBE | DUMP | (rounds % 3 ? CALLBACKS : 0));

		usleep(3000);
		rc |= call.stop(rounds % 2 ? STOP_HARD : 0);
		failed |= check(rounds++, rc);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - begun.tv_sec) + (double)(now.tv_nsec - begun.tv_nsec) / 1e9 < seconds && !failed);
	atomic_store(&over, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%d sessions, %lu launches\n", rounds, atomic_load(&launched));
	return failed;
}
