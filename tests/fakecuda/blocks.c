/* See blocks.h. */
#include "blocks.h"

#include <pthread.h>
#include <stdlib.h>

enum { BLOCKS_MAX = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char *at;
	size_t size;
	enum memory_kind kind;
} blocks[BLOCKS_MAX];

int block_new(void **at, size_t size, enum memory_kind kind)
{
	int error = CUDA_OUT_OF_MEMORY;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < BLOCKS_MAX && error; i++)
		if (!blocks[i].at && (*at = malloc(size ? size : 1))) {
			blocks[i].at = *at;
			blocks[i].size = size;
			blocks[i].kind = kind;
			error = CUDA_OK;
		}
	pthread_mutex_unlock(&lock);
	return error;
}

int block_free(void *at)
{
	int error = CUDA_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < BLOCKS_MAX && error; i++)
		if (blocks[i].at == at) {
			blocks[i].at = NULL;
			free(at);
			error = CUDA_OK;
		}
	pthread_mutex_unlock(&lock);
	return error;
}

size_t block_size(const void *at)
{
	size_t size = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < BLOCKS_MAX; i++)
		if (blocks[i].at == at)
			size = blocks[i].size;
	pthread_mutex_unlock(&lock);
	return size;
}

enum memory_kind block_memory(const void *address)
{
	const char *at = address;
	enum memory_kind kind = MEMORY_PAGEABLE;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < BLOCKS_MAX; i++)
		if (blocks[i].at && at >= blocks[i].at && at < blocks[i].at + blocks[i].size)
			kind = blocks[i].kind;
	pthread_mutex_unlock(&lock);
	return kind;
}
