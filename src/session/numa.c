/* /sys/devices/system/node, /sys/bus/pci/devices and /proc/PID/numa_maps, as Linux 5.10 to 6.18 have them. */
#include "session/numa.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/smallfile.h"

enum { PCI_DISPLAY = 0x03, PCI_ACCELERATOR = 0x12, VENDOR_NVIDIA = 0x10de, VENDOR_AMD = 0x1002 };

/* Calls EACH with every number of "0-3,8". */
static void list_each(const char *text, void (*each)(void *context, unsigned long number), void *context)
{
	enum { LONGEST = 1 << 16 };
	char *end;

	while (*text) {
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (end == text)
			return;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long i = first; i <= last && i - first < LONGEST; i++)
			each(context, i);
		text = end + (*end == ',');
	}
}

static void add_bit(void *context, unsigned long number)
{
	if (number < NUMA_NODES)
		*(uint64_t *)context |= UINT64_C(1) << number;
}

uint64_t numa_list(const char *text)
{
	uint64_t bits = 0;

	list_each(text, add_bit, &bits);
	return bits;
}

struct node_cpus { struct numa *numa; int node; };

static void add_cpu(void *context, unsigned long cpu)
{
	const struct node_cpus *of = context;

	if (cpu < NUMA_CPUS)
		of->numa->node_of[cpu] = (int8_t)of->node;
}

static int64_t hex_file(const char *folder, const char *device, const char *name)
{
	char path[PATH_MAX], text[32];

	if (snprintf(path, sizeof path, "%s/%s/%s", folder, device, name) >= (int)sizeof path || !smallfile_read(path, text, sizeof text))
		return -1;
	return (int64_t)strtoul(text, NULL, 16);
}

static int compare_devices(const void *left, const void *right)
{
	return strcmp(((const struct numa_device *)left)->address, ((const struct numa_device *)right)->address);
}

static void add_device(struct numa *out, const char *address, int node)
{
	out->device_nodes |= UINT64_C(1) << node;
	if (out->device_count == NUMA_DEVICES)
		return;
	snprintf(out->devices[out->device_count].address, sizeof out->devices->address, "%.15s", address);
	out->devices[out->device_count++].node = node;
}

static void find_devices(const char *sysfs, struct numa *out)
{
	char folder[PATH_MAX], path[PATH_MAX];
	struct dirent *entry;
	DIR *devices;

	snprintf(folder, sizeof folder, "%s/bus/pci/devices", sysfs);
	devices = opendir(folder);
	while (devices && (entry = readdir(devices))) {
		int64_t class_ = hex_file(folder, entry->d_name, "class") >> 16, vendor = hex_file(folder, entry->d_name, "vendor"), node;

		if ((class_ != PCI_DISPLAY && class_ != PCI_ACCELERATOR) || (vendor != VENDOR_NVIDIA && vendor != VENDOR_AMD))
			continue;
		if (snprintf(path, sizeof path, "%s/%s/numa_node", folder, entry->d_name) >= (int)sizeof path)
			continue;
		node = smallfile_number(path, NUMA_NONE);
		if (node >= 0 && node < NUMA_NODES)
			add_device(out, entry->d_name, (int)node);
	}
	if (devices)
		closedir(devices);
	qsort(out->devices, (size_t)out->device_count, sizeof *out->devices, compare_devices);
}

void numa_find(const char *sysfs, struct numa *out)
{
	char path[PATH_MAX], text[4096];
	uint64_t online;

	memset(out, 0, sizeof *out);
	memset(out->node_of, NUMA_NONE, sizeof out->node_of);
	snprintf(path, sizeof path, "%s/devices/system/node/online", sysfs);
	online = smallfile_read(path, text, sizeof text) ? numa_list(text) : 0;
	out->nodes = __builtin_popcountll(online);
	if (out->nodes < 2)
		return;
	for (int node = 0; node < NUMA_NODES; node++) {
		struct node_cpus of = { out, node };

		snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", sysfs, node);
		if (online >> node & 1 && smallfile_read(path, text, sizeof text))
			list_each(text, add_cpu, &of);
	}
	find_devices(sysfs, out);
}

int numa_node(const struct numa *numa, int cpu)
{
	return cpu >= 0 && cpu < NUMA_CPUS ? numa->node_of[cpu] : NUMA_NONE;
}

/* "7f… default anon=3 dirty=3 N0=2 N1=1 kernelpagesize_kB=4" */
static void add_line(char *line, struct numa_pages *out)
{
	const char *size = strstr(line, " kernelpagesize_kB=");
	uint64_t pages = size ? strtoull(size + strlen(" kernelpagesize_kB="), NULL, 10) / 4 : 1;
	char *save = NULL;

	for (char *word = strtok_r(line, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		unsigned long node, count;

		if (sscanf(word, "N%lu=%lu", &node, &count) == 2 && node < NUMA_NODES)
			out->of[node] += count * (pages ? pages : 1);
	}
}

bool numa_pages_read(const struct procfs *procfs, pid_t pid, struct numa_pages *out)
{
	char path[PATH_MAX], *line = NULL;
	size_t room = 0;
	FILE *file;

	memset(out, 0, sizeof *out);
	snprintf(path, sizeof path, "%s/%d/numa_maps", procfs->root, (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (getline(&line, &room, file) > 0)
		add_line(line, out);
	free(line);
	fclose(file);
	return true;
}
