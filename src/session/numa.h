/*
 * Memory nodes: which node each CPU belongs to, where devices are plugged in, and how many pages of a process lie where. Reads below folders that play /proc and
 * /sys; a machine with one node has nothing to say.
 */
#ifndef INFERSCOPE_SESSION_NUMA_H
#define INFERSCOPE_SESSION_NUMA_H

#include "base/procfs.h"

enum { NUMA_NODES = 64, NUMA_CPUS = 4096, NUMA_NONE = -1, NUMA_DEVICES = 16 };

struct numa_device { char address[16]; /* of PCI: "0000:01:00.0" */ int node; };

struct numa {
	int nodes;                     /* 1: nothing else here matters; 0: the kernel does not tell */
	int8_t node_of[NUMA_CPUS];     /* by CPU; NUMA_NONE = not told */
	uint64_t device_nodes;         /* bit per node with an NVIDIA or AMD display or compute device; 0 = none, or not told */
	struct numa_device devices[NUMA_DEVICES]; /* the same one by one, by address */
	int device_count;
};

void numa_find(const char *sysfs, struct numa *out);
/* Nodes of a list like "0-3,8" into bits; numbers beyond 63 are left out. */
uint64_t numa_list(const char *text);
/* NUMA_NONE for a CPU that is not known. */
int numa_node(const struct numa *numa, int cpu);

struct numa_pages { uint64_t of[NUMA_NODES]; /* in pages of 4 KiB */ };
/* Adds up /proc/PID/numa_maps. The kernel walks the page tables for it: some 150 ns a page, in which the process can map nothing. False: not readable. */
bool numa_pages_read(const struct procfs *procfs, pid_t pid, struct numa_pages *out);
/* The same of some 2 000 addresses of its own data, by chance: of those where a page is. For a process that is too large for the other one. False: none was found, or not permitted. */
bool numa_pages_sample(const struct procfs *procfs, pid_t pid, struct numa_pages *out);

#endif
