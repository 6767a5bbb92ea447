/*
 * How busy the GPUs of a process are, as the driver's management library (libnvidia-ml.so.1) tells; loaded at run time where it is there. Touches
 * neither the process nor the device's work.
 */
#ifndef INFERSCOPE_SESSION_NVML_H
#define INFERSCOPE_SESSION_NVML_H

#include "base/procfs.h"

enum { NVML_DEVICES_MAX = 64 };

struct nvml_use {
	uint32_t minor;    /* N of /dev/nvidiaN */
	uint32_t busy_pct; /* part of the driver's last period in which some kernel of anybody ran */
};

struct nvml;

/* LIBRARY NULL = libnvidia-ml.so.1. NULL, with the reason in WHY, when there is none or it does not answer. */
struct nvml *nvml_open(const char *library, char *why, size_t size);
void nvml_close(struct nvml *nvml); /* accepts NULL */
/* Those devices that PID has open, into OUT; returns how many. */
size_t nvml_read(struct nvml *nvml, const struct procfs *procfs, pid_t pid, struct nvml_use out[NVML_DEVICES_MAX]);

#endif
