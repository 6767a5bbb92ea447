/* The virtual machine behind the doubles: devices, streams that work off operations one by one, graphs, and the clock. In libcuda alone. */
#ifndef FAKECUDA_ENGINE_H
#define FAKECUDA_ENGINE_H

#include "driver.h"

/* CUDA's error codes that the doubles use. */
enum { CUDA_OK = 0, CUDA_INVALID_VALUE = 1, CUDA_NOT_INITIALIZED = 3, CUDA_NO_DEVICE = 100, CUDA_INVALID_CONTEXT = 201, CUDA_NOT_FOUND = 500 };

extern const struct driver engine_driver;

int engine_init(void); /* what cuInit returns */
int engine_ready(void);
int engine_context_active(int device);
int engine_context_device(const void *context); /* -1: none of ours */
uint64_t engine_free_bytes(void);
const struct hooks *engine_hooks(void); /* NULL: nobody listens */

#endif
