/* A list under a lock, bounded by bytes. */
#include "session/sight.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 32 << 20 };

void sights_init(struct sights *sights)
{
	*sights = (struct sights){ .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
	sights->end = &sights->first;
}

void sights_done(struct sights *sights)
{
	while (sights->first) {
		struct sight *sight = sights->first;

		sights->first = sight->next;
		free(sight);
	}
	pthread_cond_destroy(&sights->changed);
	pthread_mutex_destroy(&sights->lock);
}

static size_t size_of(const struct sight *sight)
{
	return sizeof *sight + sight->glimpse_size + sight->stack_size;
}

struct sight *sight_new(pid_t tid, const struct look *look)
{
	uint32_t glimpse_size = look ? look->glimpse_size : 0, stack_size = look && look->copy.known ? look->copy.stack_size : 0;
	struct sight *sight = malloc(sizeof *sight + glimpse_size + stack_size);

	if (!sight)
		return NULL;
	memset(sight, 0, sizeof *sight);
	sight->tid = tid;
	sight->again = !look;
	if (!look)
		return sight;
	sight->at_ns = look->copy.at_ns;
	sight->known = look->copy.known;
	sight->task = look->task;
	memcpy(sight->regs, look->copy.regs, sizeof sight->regs);
	sight->glimpse_size = glimpse_size;
	sight->stack_size = stack_size;
	memcpy(sight->bytes, look->glimpse, glimpse_size);
	memcpy(sight->bytes + glimpse_size, look->copy.stack, stack_size);
	return sight;
}

bool sights_push(struct sights *sights, struct sight *sight)
{
	bool kept;

	pthread_mutex_lock(&sights->lock);
	kept = sight && sights->bytes < BYTES_MAX;
	if (kept) {
		sights->bytes += size_of(sight);
		*sights->end = sight;
		sights->end = &sight->next;
		pthread_cond_signal(&sights->changed);
	}
	sights->lost += !kept;
	pthread_mutex_unlock(&sights->lock);
	if (!kept)
		free(sight);
	return kept;
}

struct sight *sights_pop(struct sights *sights)
{
	struct sight *sight;

	pthread_mutex_lock(&sights->lock);
	while (!sights->first && !sights->closed)
		pthread_cond_wait(&sights->changed, &sights->lock);
	sight = sights->first;
	if (sight) {
		sights->first = sight->next;
		if (!sights->first)
			sights->end = &sights->first;
		sights->bytes -= size_of(sight);
	}
	pthread_mutex_unlock(&sights->lock);
	return sight;
}

void sights_close(struct sights *sights)
{
	pthread_mutex_lock(&sights->lock);
	sights->closed = true;
	pthread_cond_broadcast(&sights->changed);
	pthread_mutex_unlock(&sights->lock);
}

void sights_ask(struct sights *sights, struct sight_wish wish)
{
	pthread_mutex_lock(&sights->lock);
	if (sights->asked_count < SIGHTS_ASKED)
		sights->asked[sights->asked_count++] = wish;
	pthread_mutex_unlock(&sights->lock);
}

size_t sights_asked(struct sights *sights, struct sight_wish out[SIGHTS_ASKED])
{
	size_t count;

	pthread_mutex_lock(&sights->lock);
	count = sights->asked_count;
	memcpy(out, sights->asked, count * sizeof *out);
	sights->asked_count = 0;
	pthread_mutex_unlock(&sights->lock);
	return count;
}

unsigned sights_load(struct sights *sights, uint64_t *lost)
{
	unsigned load;

	pthread_mutex_lock(&sights->lock);
	load = (unsigned)(sights->bytes * 100 / BYTES_MAX);
	*lost = sights->lost;
	pthread_mutex_unlock(&sights->lock);
	return load < 100 ? load : 100;
}
