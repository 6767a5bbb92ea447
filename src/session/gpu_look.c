/* From the list of mappings and the environment. */
#include "session/gpu_look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mappings.h"

enum { ENVIRONMENT_BYTES = 256 * 1024 };

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool starts(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0;
}

/* Libraries by which tools sit in a CUDA process. */
static const struct { const char *begin, *tool; } tools[] = {
	{ "libToolsInjection", "Nsight Systems" }, { "libcuda-injection", "Nsight Compute" }, { "libInterceptorInjection", "Nsight Compute" },
	{ "libsanitizer-collection", "compute-sanitizer" }, { "libTreeLauncherTargetInjection", "compute-sanitizer" }, { "libcudadebugger", "cuda-gdb" },
};

static void mapping_look(struct gpu_look *look, const char *path)
{
	const char *name = base_of(path);

	look->driver |= starts(name, "libcuda.so");
	look->runtime |= starts(name, "libcudart.so");
	look->torch |= starts(name, "libtorch_cpu.so");
	if (starts(name, "libcupti.so") && strcmp(look->cupti, path) != 0) {
		if (!look->cupti_count++)
			snprintf(look->cupti, sizeof look->cupti, "%s", path);
	}
	for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
		if (!look->tool[0] && starts(name, tools[i].begin))
			snprintf(look->tool, sizeof look->tool, "%s", tools[i].tool);
}

static void environment_look(const struct procfs *procfs, pid_t pid, struct gpu_look *look)
{
	static const char *const names[] = { "CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH=", "TEARDOWN_CUPTI=", "KINETO_USE_DAEMON=" };
	char *text = malloc(ENVIRONMENT_BYTES);
	ssize_t length = text ? procfs_read(procfs, pid, "environ", text, ENVIRONMENT_BYTES) : -1;
	size_t used = 0;

	for (ssize_t at = 0; at < length; at += (ssize_t)strlen(text + at) + 1) {
		look->ranges |= starts(text + at, "NVTX_INJECTION64_PATH=") && starts(base_of(strchr(text + at, '=') + 1), "libcupti.so");
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (starts(text + at, names[i]) && text[at + (ssize_t)strlen(names[i])] && used < sizeof look->environment)
				used += (size_t)snprintf(look->environment + used, sizeof look->environment - used, "%s%.*s", used ? " " : "", (int)strlen(names[i]) - 1, names[i]);
	}
	free(text);
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue …" */
static void kernel_look(const struct procfs *procfs, struct gpu_look *look)
{
	char path[256], line[256];
	char *number = NULL, *save = NULL;
	FILE *file;

	snprintf(path, sizeof path, "%s/driver/nvidia/version", procfs->root);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(line, sizeof line, file))
		for (char *word = strtok_r(line, " \t\n", &save); word && !number; word = strtok_r(NULL, " \t\n", &save))
			number = strspn(word, "0123456789.") == strlen(word) && strchr(word, '.') ? word : NULL;
	snprintf(look->kernel_driver, sizeof look->kernel_driver, "%s", number ? number : "");
	fclose(file);
}

bool gpu_look_read(const struct procfs *procfs, pid_t pid, struct gpu_look *out)
{
	struct gpu_look look = { 0 };
	struct maps maps;

	if (maps_read(procfs, pid, &maps) < 0)
		return false;
	for (size_t i = 0; i < maps.count; i++)
		mapping_look(&look, maps.list[i].path);
	maps_done(&maps);
	environment_look(procfs, pid, &look);
	if (look.driver)
		kernel_look(procfs, &look);
	*out = look;
	return true;
}

void gpu_look_text(const struct gpu_look *look, char *out, size_t size)
{
	size_t used;

	if (!look->driver) {
		snprintf(out, size, "no CUDA driver in the target");
		return;
	}
	used = (size_t)snprintf(out, size, "CUDA driver%s%s%s", look->kernel_driver[0] ? " " : "", look->kernel_driver, look->cupti_count ? ", " : "");
	if (look->cupti_count && used < size)
		used += (size_t)snprintf(out + used, size - used, "%.120s%s", base_of(look->cupti), look->cupti_count > 1 ? " and another libcupti" : "");
	else if (used < size)
		used += (size_t)snprintf(out + used, size - used, look->runtime ? "; libcupti is looked for beside the CUDA runtime" : "; neither libcupti nor a CUDA runtime");
	if (look->tool[0] && used < size)
		used += (size_t)snprintf(out + used, size - used, "; %s is in it and may hold CUPTI", look->tool);
	if (look->environment[0] && used < size)
		snprintf(out + used, size - used, "; set: %.200s", look->environment);
}
