/*
 * The attacher's side of the lanes mapping: page, sub-buffers, free list. The pool starts small and grows in steps that are
 * touched here first, so that our memory cgroup pays for them and not the target's.
 */
#ifndef INFERSCOPE_SESSION_POOL_H
#define INFERSCOPE_SESSION_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/page.h"
#include "base/error.h"

struct pool {
	struct page *page;
	size_t bytes;
	uint32_t count, limit; /* sub-buffers given out, and that fit; ours, not the page's: the target may lie */
};

/* Bytes of a mapping whose sub-buffers fill SIZE_MB (0 = 100). */
size_t pool_bytes(uint32_t size_mb);
/* FD is a memfd of the target: checked to be one, sized, mapped, sealed against shrinking. FD stays the caller's. */
int pool_open(int fd, size_t bytes, struct pool *out, struct error *err);
/* The same over memory of our own, for tests. */
int pool_open_anonymous(size_t bytes, struct pool *out, struct error *err);
void pool_close(struct pool *pool);

struct subbuf *pool_subbuf(const struct pool *pool, uint32_t index); /* index < count */
/* Touches and gives out up to COUNT more. Returns how many. */
uint32_t pool_grow(struct pool *pool, uint32_t count);
/* Gives one back. False when the free list could not be changed in many tries (a target that fights over it): it is then lost to the pool. */
bool pool_push(struct pool *pool, uint32_t index);

#endif
