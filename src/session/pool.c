/* The lanes mapping and its free list, seen from the attacher. */
#include "session/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DEFAULT_MB = 100, PUSH_TRIES = 100000 };

size_t pool_bytes(uint32_t size_mb)
{
	return PAGE_BYTES + (size_t)(size_mb ? size_mb : DEFAULT_MB) * 1024 * 1024 / SUBBUF_BYTES * SUBBUF_BYTES;
}

/* A memfd that can be sealed: every other file of tmpfs carries F_SEAL_SEAL, and must not be resized. */
static int check_seals(int fd, struct error *err)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals < 0 || seals & F_SEAL_SEAL ? fail(err, ERR_COLLECTOR, "the target gave a descriptor that is no memfd of its own for the lanes") : 0;
}

static int pool_map(int fd, int flags, size_t bytes, struct pool *out, struct error *err)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (map == MAP_FAILED)
		return fail(err, ERR_MEMORY, "mapping %zu MiB of lanes: %s", bytes >> 20, strerror(errno));
	out->page = map;
	out->bytes = bytes;
	out->count = 0;
	out->limit = (uint32_t)((bytes - PAGE_BYTES) / SUBBUF_BYTES);
	memset(map, 0, PAGE_BYTES); /* touches it */
	return 0;
}

int pool_open(int fd, size_t bytes, struct pool *out, struct error *err)
{
	if (check_seals(fd, err) < 0)
		return -1;
	if (ftruncate(fd, (off_t)bytes) < 0) {
		if (errno != EFBIG)
			return fail(err, ERR_MEMORY, "sizing the lanes to %zu MiB: %s", bytes >> 20, strerror(errno));
		fail(err, ERR_OUTPUT, "memory for events is shared as a file, and %zu MiB is larger than files may be here (ulimit -f)", bytes >> 20);
		return fail_hint(err, "raise that limit, or give a smaller --trace-size-mb");
	}
	/* Without these seals the target could shrink the file, and our next look at it would be a SIGBUS. */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return fail(err, ERR_COLLECTOR, "sealing the lanes: %s", strerror(errno));
	return pool_map(fd, MAP_SHARED, bytes, out, err);
}

int pool_open_anonymous(size_t bytes, struct pool *out, struct error *err)
{
	return pool_map(-1, MAP_SHARED | MAP_ANONYMOUS, bytes, out, err);
}

void pool_close(struct pool *pool)
{
	if (pool->page)
		munmap(pool->page, pool->bytes);
	memset(pool, 0, sizeof *pool);
}

struct subbuf *pool_subbuf(const struct pool *pool, uint32_t index)
{
	return (struct subbuf *)((char *)pool->page + PAGE_BYTES + (size_t)index * SUBBUF_BYTES);
}

bool pool_push(struct pool *pool, uint32_t index)
{
	struct page *page = pool->page;
	struct subbuf *subbuf = pool_subbuf(pool, index);
	uint64_t head = __atomic_load_n(&page->free_head, __ATOMIC_ACQUIRE), next;

	__atomic_store_n(&subbuf->state, SUBBUF_FREE, __ATOMIC_RELEASE);
	for (int i = 0; i < PUSH_TRIES; i++) {
		__atomic_store_n(&subbuf->next_free, (uint32_t)head, __ATOMIC_RELAXED);
		next = ((head >> 32) + 1) << 32 | (index + 1);
		if (__atomic_compare_exchange_n(&page->free_head, &head, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return true;
	}
	return false;
}

uint32_t pool_grow(struct pool *pool, uint32_t count)
{
	uint32_t grown = 0;

	for (; grown < count && pool->count < pool->limit; grown++) {
		uint32_t index = pool->count++;

		memset(pool_subbuf(pool, index), 0, SUBBUF_BYTES);
		__atomic_store_n(&pool->page->pool_count, pool->count, __ATOMIC_RELEASE);
		pool_push(pool, index);
	}
	return grown;
}
