/* The debuginfod client, loaded only when a user asked for it: libdebuginfod brings curl with it. Its progress display is replaced by a time limit. */
#include "unwind/debugfile.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char library_name[] = "libdebuginfod.so.1";

typedef int progress_function(void *client, long a, long b);

struct debuginfod {
	void *library, *client;
	void (*end)(void *client);
	int (*find)(void *client, const unsigned char *id, int id_length, char **path);
	uint32_t timeout_s;
	time_t until;
	bool silent; /* no answer in time: not asked again */
};

static time_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Called by the library while it waits; non-zero ends that. All it hands over is its own client. */
static int in_time(void *client, long a, long b)
{
	void *library = dlopen(library_name, RTLD_LAZY | RTLD_NOLOAD);
	void *(*user_data)(void *client) = library ? (void *(*)(void *))dlsym(library, "debuginfod_get_user_data") : NULL;
	struct debuginfod *debuginfod = user_data ? user_data(client) : NULL;

	if (library)
		dlclose(library);
	if (!debuginfod || seconds() <= debuginfod->until)
		return 0;
	debuginfod->silent = true;
	return 1;
}

struct debuginfod *debuginfod_open(uint32_t timeout_s, char *why, size_t why_size)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct debuginfod *d = calloc(1, sizeof *d);
	void *(*begin)(void);
	void (*set_user_data)(void *client, void *data);
	void (*set_progress)(void *client, progress_function *function);

	if (!d)
		return NULL;
	if (!urls || !urls[strspn(urls, " ")]) {
		snprintf(why, why_size, "DEBUGINFOD_URLS is not set");
		goto fail;
	}
	d->library = dlopen(library_name, RTLD_LAZY | RTLD_LOCAL);
	if (!d->library) {
		snprintf(why, why_size, "%s is not installed", library_name);
		goto fail;
	}
	begin = (void *(*)(void))dlsym(d->library, "debuginfod_begin");
	set_user_data = (void (*)(void *, void *))dlsym(d->library, "debuginfod_set_user_data");
	set_progress = (void (*)(void *, progress_function *))dlsym(d->library, "debuginfod_set_progressfn");
	d->end = (void (*)(void *))dlsym(d->library, "debuginfod_end");
	d->find = (int (*)(void *, const unsigned char *, int, char **))dlsym(d->library, "debuginfod_find_debuginfo");
	if (!begin || !set_user_data || !set_progress || !d->end || !d->find || !(d->client = begin())) {
		snprintf(why, why_size, "%s cannot be used", library_name);
		goto fail;
	}
	d->timeout_s = timeout_s;
	set_user_data(d->client, d);
	set_progress(d->client, in_time);
	return d;
fail:
	debuginfod_close(d);
	return NULL;
}

void debuginfod_close(struct debuginfod *d)
{
	if (!d)
		return;
	if (d->client)
		d->end(d->client);
	if (d->library)
		dlclose(d->library);
	free(d);
}

int debuginfod_fetch(struct debuginfod *d, const char *id_hex)
{
	char *path = NULL;
	int fd;

	if (d->silent)
		return -1;
	d->until = seconds() + d->timeout_s;
	fd = d->find(d->client, (const unsigned char *)id_hex, 0, &path); /* length 0: the id is hex */
	free(path);
	return fd < 0 ? -1 : fd;
}
