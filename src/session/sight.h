/* What was seen of one thread at one moment, as bytes, on its way from who looks (watch.c) to who tells (digest.c): a queue between two threads. */
#ifndef INFERSCOPE_SESSION_SIGHT_H
#define INFERSCOPE_SESSION_SIGHT_H

#include <pthread.h>

#include "session/look.h"

struct sight {
	struct sight *next;
	pid_t tid;
	uint64_t at_ns, weight_ns;
	pid_t holder;            /* of the GIL then, 0 = not seen */
	enum thread_state state; /* what it waits for; of a running one its frames tell */
	bool running;
	int64_t call;            /* system call that it is blocked in, negative = none */
	uint64_t argument;       /* its first one */
	bool again;              /* blocked as before, its stack is the last one that was seen: nothing but times is here */
	uint64_t still_above;    /* as in join_rules */
	uint64_t gained[SAMPLED_COUNTERS]; /* since the sample before, 0 where it is not known */
	struct pytask_now task;  /* that its Python frames run */
	uint64_t regs[DWARF_COUNT];
	uint64_t known;
	uint32_t stack_size, glimpse_size;
	_Alignas(8) unsigned char bytes[]; /* the glimpse, then the stack */
};

/* What who tells of a thread would have of who looks at it. */
struct sight_wish {
	pid_t tid;
	uint32_t stack_bytes; /* so much stack with its samples; 0: a hold in this block, for its registers */
};

enum { SIGHTS_ASKED = 16 };

struct sights {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct sight *first, **end;
	size_t bytes;
	uint64_t lost;  /* for which there was no room */
	struct sight_wish asked[SIGHTS_ASKED]; /* back to who looks */
	size_t asked_count;
	bool closed;
};

void sights_init(struct sights *sights);
void sights_done(struct sights *sights);
/* A sight of LOOK; NULL (an AGAIN one): of no look. NULL when memory is short. */
struct sight *sight_new(pid_t tid, const struct look *look);
/* Takes SIGHT over (accepts NULL, which is lost, too). False: lost, and counted. */
bool sights_push(struct sights *sights, struct sight *sight);
/* The oldest one, the caller's to free(). Waits for one; NULL: closed, and none is left. */
struct sight *sights_pop(struct sights *sights);
/* No more come. */
void sights_close(struct sights *sights);
/* Who tells asks who looks, where that did not tell enough; what there is no room for is forgotten. The other one takes these: how many (at most SIGHTS_ASKED). */
void sights_ask(struct sights *sights, struct sight_wish wish);
size_t sights_asked(struct sights *sights, struct sight_wish out[SIGHTS_ASKED]);
/* How full, 0 to 100; how many were lost. */
unsigned sights_load(struct sights *sights, uint64_t *lost);

#endif
