/* Four calls of NVML, by their documented names and types (nvml.h of CUDA 11 to 13). */
#include "session/nvml.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NVML_SUCCESS = 0, DESCRIPTORS_MAX = 65536 };

struct utilization { unsigned int gpu, memory; };

struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned int *count);
	int (*handle)(unsigned int index, void **device);
	int (*minor)(void *device, unsigned int *minor);
	int (*utilization)(void *device, struct utilization *utilization);
	unsigned int devices;
};

static bool calls_find(struct nvml *nvml)
{
	const struct { const char *name; void *place; } rows[] = {
		{ "nvmlInit_v2", &nvml->init }, { "nvmlShutdown", &nvml->shutdown }, { "nvmlDeviceGetCount_v2", &nvml->count }, { "nvmlDeviceGetHandleByIndex_v2", &nvml->handle },
		{ "nvmlDeviceGetMinorNumber", &nvml->minor }, { "nvmlDeviceGetUtilizationRates", &nvml->utilization },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		void *call = dlsym(nvml->library, rows[i].name);

		if (!call)
			return false;
		memcpy(rows[i].place, &call, sizeof call);
	}
	return true;
}

struct nvml *nvml_open(const char *library, char *why, size_t size)
{
	struct nvml *nvml = calloc(1, sizeof *nvml);
	int result;

	if (!nvml || !(nvml->library = dlopen(library ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)))
		snprintf(why, size, "no NVIDIA driver library (libnvidia-ml.so.1) here");
	else if (!calls_find(nvml))
		snprintf(why, size, "libnvidia-ml.so.1 is too old");
	else if ((result = nvml->init()) != NVML_SUCCESS)
		snprintf(why, size, "the NVIDIA driver does not answer (NVML error %d)", result);
	else if (nvml->count(&nvml->devices) == NVML_SUCCESS)
		return nvml;
	else {
		snprintf(why, size, "the NVIDIA driver names no devices");
		nvml->shutdown();
	}
	if (nvml && nvml->library)
		dlclose(nvml->library);
	free(nvml);
	return NULL;
}

void nvml_close(struct nvml *nvml)
{
	if (!nvml)
		return;
	nvml->shutdown();
	dlclose(nvml->library);
	free(nvml);
}

/* Bit N: the process has /dev/nvidiaN open. */
static uint64_t devices_open(const struct procfs *procfs, pid_t pid)
{
	char path[512], link[64];
	uint64_t open = 0;
	struct dirent *entry;
	DIR *folder;
	unsigned minor;
	int seen = 0;

	snprintf(path, sizeof path, "%s/%d/fd", procfs->root, (int)pid);
	folder = opendir(path);
	while (folder && seen++ < DESCRIPTORS_MAX && (entry = readdir(folder))) {
		ssize_t length = readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1);
		char rest;

		link[length > 0 ? length : 0] = '\0';
		if (sscanf(link, "/dev/nvidia%u%c", &minor, &rest) == 1 && minor < NVML_DEVICES_MAX)
			open |= 1ull << minor;
	}
	if (folder)
		closedir(folder);
	return open;
}

size_t nvml_read(struct nvml *nvml, const struct procfs *procfs, pid_t pid, struct nvml_use out[NVML_DEVICES_MAX])
{
	uint64_t open = devices_open(procfs, pid);
	size_t count = 0;

	for (unsigned i = 0; open && i < nvml->devices && count < NVML_DEVICES_MAX; i++) {
		struct utilization use;
		unsigned minor;
		void *device;

		if (nvml->handle(i, &device) != NVML_SUCCESS || nvml->minor(device, &minor) != NVML_SUCCESS || minor >= NVML_DEVICES_MAX || !(open >> minor & 1))
			continue;
		if (nvml->utilization(device, &use) == NVML_SUCCESS)
			out[count++] = (struct nvml_use){ minor, use.gpu };
	}
	return count;
}
