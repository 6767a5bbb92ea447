/* Memory of the runtime's double: blocks of the process, and what kind of memory they stand for. */
#ifndef FAKECUDA_BLOCKS_H
#define FAKECUDA_BLOCKS_H

#include "driver.h"

enum { CUDA_OK = 0, CUDA_INVALID_VALUE = 1, CUDA_OUT_OF_MEMORY = 2 };

/* Both return CUDA's error. */
int block_new(void **at, size_t size, enum memory_kind kind);
int block_free(void *at);
size_t block_size(const void *at); /* 0: no block begins there */
enum memory_kind block_memory(const void *address);

#endif
