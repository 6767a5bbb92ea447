/* What can be seen of CUDA in a process from outside, without touching it. */
#ifndef INFERSCOPE_SESSION_GPU_LOOK_H
#define INFERSCOPE_SESSION_GPU_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/procfs.h"

struct gpu_look {
	bool driver;           /* libcuda.so is mapped: only then is CUPTI worth a thought */
	bool runtime;          /* libcudart.so */
	bool torch;            /* libtorch_cpu.so, which holds torch.profiler */
	uint32_t cupti_count;  /* different files */
	char cupti[512];       /* the first */
	char tool[64];         /* whose library is in it: "Nsight Systems"; or "" */
	bool ranges;           /* the program's NVTX gives its ranges to CUPTI */
	char environment[256]; /* variables by which tools come in that are set: "CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH"; or "" */
	char kernel_driver[64]; /* version of the kernel's driver, or "" */
};

/* False with errno when the process cannot be looked at. */
bool gpu_look_read(const struct procfs *procfs, pid_t pid, struct gpu_look *out);
/* One line for people: "no CUDA driver in the target", "CUDA driver and libcupti.so.12 mapped". */
void gpu_look_text(const struct gpu_look *look, char *out, size_t size);

#endif
