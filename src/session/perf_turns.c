/* Turns begin with what they cost saved up, and end when all is spent. */
#include "session/perf_turns.h"

#define TURN_NS 300000000ull   /* long enough for some samples of each thread that runs */
#define LINGER_NS 1000000000ull /* so long switches take longer after the last event was closed (Linux 6.18: perf_sched_delayed; the thread keeps an empty context, which is looked at no more then) */
#define FIRST_NS 250000000ull  /* so much time's part of the budget is free: the first switches are not the ones to miss */
enum { USELESS_PART = 100 };

void perf_turns_init(struct perf_turns *turns, uint32_t max_overhead_ppm, uint64_t now_ns, uint64_t seed)
{
	*turns = (struct perf_turns){ .max_overhead_ppm = max_overhead_ppm, .began = { .at_ns = now_ns }, .random = seed | 1 };
}

uint64_t perf_turns_spent_ns(const struct perf_turns *turns)
{
	return turns->switches * turns->switch_ns + turns->resting * turns->resting_ns;
}

static uint64_t allowed_ns(const struct perf_turns *turns, uint64_t cpu_ns)
{
	return (uint64_t)((__uint128_t)cpu_ns * turns->max_overhead_ppm / 2000000);
}

/* Half of a turn more or less, so that turns do not go in step with what the program does again and again. */
static uint64_t next_turn_ns(struct perf_turns *turns)
{
	turns->random ^= turns->random << 13;
	turns->random ^= turns->random >> 7;
	turns->random ^= turns->random << 17;
	return TURN_NS / 2 + turns->random % (TURN_NS + 1);
}

/* The next turn costs as much for its time as the one that ends, and is paid for by what is allowed meanwhile, too. */
static void rest(struct perf_turns *turns, struct perf_bill now)
{
	uint64_t lasted_ns = now.at_ns > turns->began.at_ns ? now.at_ns - turns->began.at_ns : 1, spent_ns = now.spent_ns - turns->began.spent_ns;
	uint64_t paid_ns = allowed_ns(turns, now.cpu_ns - turns->began.cpu_ns);
	double debt = spent_ns > paid_ns ? (double)(spent_ns - paid_ns) / (double)lasted_ns : 0;

	turns->rests = true;
	turns->useless = spent_ns / USELESS_PART > paid_ns;
	turns->wanted_ns = (uint64_t)(debt * (double)next_turn_ns(turns));
	turns->began = now;
}

void perf_turns_switched(struct perf_turns *turns, uint64_t more, bool open, uint64_t cpu_ns, uint64_t now_ns)
{
	struct perf_bill now = { now_ns, 0, cpu_ns };
	uint64_t may_ns = allowed_ns(turns, cpu_ns + FIRST_NS);

	if (open)
		turns->switches += more;
	else if (now_ns - turns->began.at_ns < LINGER_NS)
		turns->resting += more;
	now.spent_ns = perf_turns_spent_ns(turns);
	if (!turns->max_overhead_ppm)
		return;
	if (!turns->rests && now.spent_ns > may_ns) {
		rest(turns, now);
	} else if (turns->rests && now.spent_ns + turns->wanted_ns <= may_ns) {
		turns->rests = false;
		turns->began = now;
	}
}
