#include "analyze/align.h"

#include <string.h>
#include <strings.h>

#define SEARCH_NS 5000000000 /* where nobody vouches for a clock, partners are looked for so far off */
enum { CANDIDATES_MAX = 256, OVERLAP_LEAST = 4 };

static bool is_collective(const char *name)
{
	static const char *const kinds[] = { "allreduce", "allgather", "reducescatter", "broadcast", "alltoall", "_reduce_" };

	if (!name || (strncasecmp(name, "nccl", 4) != 0 && strncasecmp(name, "rccl", 4) != 0))
		return false;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcasestr(name, kinds[i]))
			return true;
	return false;
}

/* FNV-1a, 64 bits. */
static uint64_t hash_of(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	return hash;
}

static bool collective_take(void *context, const struct interval *interval)
{
	struct clock_source *source = context;
	struct collective *collective;

	if (interval->kind != EVENT_GPU_KERNEL || !is_collective(interval->name) || interval->end_ns > INT64_MAX / 4 || interval->start_ns > interval->end_ns)
		return true;
	collective = list_add_or_fail(&source->collectives, COLLECTIVES_MAX, &source->failed);
	if (!collective)
		return false;
	*collective = (struct collective){ interval->start_ns, interval->end_ns, hash_of(interval->name) };
	return true;
}

static int compare_starts(const void *left, const void *right)
{
	const struct collective *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

int clock_source_read(const struct timeline *timeline, struct trace *trace, struct clock_source *out, struct error *err)
{
	out->wall = timeline->wall;
	if (timeline->gpu.count[GPU_COMMUNICATION] && timeline_device_work(timeline, trace, collective_take, out, err) < 0)
		return -1;
	if (out->failed)
		return fail(err, ERR_MEMORY, "reading collectives: out of memory");
	if (out->collectives.count)
		qsort(out->collectives.items, out->collectives.count, sizeof *out->collectives.items, compare_starts);
	return 0;
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* What the wall clocks alone promise; UINT64_MAX: nothing. */
static uint64_t wall_bound(const struct rank *first, const struct rank *other, const struct wall_clock *a, const struct wall_clock *b)
{
	uint64_t bound = add_capped(a->bound_ns, b->bound_ns);

	if (*first->host && strcmp(first->host, other->host) == 0)
		return bound;
	return add_capped(bound, add_capped(a->sync_ns, b->sync_ns));
}

/* How far B's clock is ahead of A's can be from LOW to HIGH. */
struct range { int64_t low, high; };

/* B's collective j is A's j + SHIFT, for all that both have. AHEAD: of B's times to make them A's, as the wall clocks say. */
static size_t shift_try(const struct clock_source *a, const struct clock_source *b, int64_t shift, int64_t ahead, struct range *out)
{
	size_t pairs = 0;

	for (size_t j = shift < 0 ? (size_t)-shift : 0; j < b->collectives.count && (int64_t)j + shift < (int64_t)a->collectives.count; j++) {
		const struct collective *mine = &a->collectives.items[(int64_t)j + shift], *other = &b->collectives.items[j];
		int64_t low = (int64_t)other->start_ns + ahead - (int64_t)mine->end_ns, high = (int64_t)other->end_ns + ahead - (int64_t)mine->start_ns;

		if (mine->name != other->name)
			return 0;
		out->low = low > out->low ? low : out->low;
		out->high = high < out->high ? high : out->high;
		if (out->low > out->high)
			return 0;
		pairs++;
	}
	return pairs;
}

/* The first of B that A can have, too: its partner is sought among A's. */
static size_t anchor_of(const struct clock_source *a, const struct clock_source *b, int64_t ahead, int64_t reach)
{
	size_t j = 0;

	while (j < b->collectives.count && (int64_t)b->collectives.items[j].start_ns + ahead + reach < (int64_t)a->collectives.items[0].start_ns)
		j++;
	return j;
}

/* Every way to pair them that contradicts nothing; more than one leaves a wider range, and *shift unknown. Returns how many pairs the longest one has. */
static size_t pair_up(const struct clock_source *a, const struct clock_source *b, int64_t ahead, int64_t reach, struct range *out, int64_t *shift)
{
	struct range all = { INT64_MAX, INT64_MIN };
	size_t most = 0, ways = 0, j;

	if (!a->collectives.count || (j = anchor_of(a, b, ahead, reach)) == b->collectives.count)
		return 0;
	for (size_t i = 0, tried = 0; i < a->collectives.count && tried < CANDIDATES_MAX; i++) {
		const struct collective *mine = &a->collectives.items[i], *other = &b->collectives.items[j];
		struct range range = { -reach, reach };
		size_t pairs;

		if ((int64_t)mine->start_ns > (int64_t)other->end_ns + ahead + reach)
			break;
		if ((int64_t)mine->end_ns < (int64_t)other->start_ns + ahead - reach || mine->name != other->name)
			continue;
		tried++;
		pairs = shift_try(a, b, (int64_t)i - (int64_t)j, ahead, &range);
		if (pairs < OVERLAP_LEAST)
			continue;
		ways++;
		*shift = (int64_t)i - (int64_t)j;
		most = pairs > most ? pairs : most;
		all.low = range.low < all.low ? range.low : all.low;
		all.high = range.high > all.high ? range.high : all.high;
	}
	if (ways != 1)
		*shift = INT64_MIN;
	if (ways)
		*out = all;
	return ways ? most : 0;
}

/* Where the traces lie before collectives are asked: AHEAD of B's times makes them A's, within BOUND. */
struct placing { enum rank_clock_way way; int64_t ahead; uint64_t bound; };

static struct placing place_by_wall(const struct rank *first, const struct wall_clock *a, const struct rank *rank, const struct wall_clock *b)
{
	uint64_t bound = wall_bound(first, rank, a, b);

	return (struct placing){ bound == UINT64_MAX ? CLOCK_UNKNOWN : CLOCK_BY_WALL, (int64_t)(b->unix_ns - a->unix_ns), bound };
}

static struct placing place_by_boot(const struct wall_clock *a, const struct wall_clock *b)
{
	return (struct placing){ CLOCK_BY_BOOT, (int64_t)(b->monotonic_ns - a->monotonic_ns), add_capped(a->monotonic_bound_ns, b->monotonic_bound_ns) };
}

static bool same_boot(const struct rank *first, const struct wall_clock *a, const struct rank *rank, const struct wall_clock *b)
{
	return *first->boot && strcmp(first->boot, rank->boot) == 0 && a->monotonic && b->monotonic;
}

/* How far B's wall clock goes ahead of A's, of one machine: stepped meanwhile, or another one was shown to who recorded. */
static int64_t wall_ahead(const struct wall_clock *a, const struct wall_clock *b, const struct placing *placing)
{
	int64_t ahead = (int64_t)(b->unix_ns - a->unix_ns - (uint64_t)placing->ahead);
	uint64_t distance = ahead < 0 ? 0 - (uint64_t)ahead : (uint64_t)ahead;

	return distance > add_capped(placing->bound, add_capped(a->bound_ns, b->bound_ns)) ? ahead : 0;
}

static void align_one(const struct rank *first, const struct clock_source *a, struct rank *rank, const struct clock_source *b)
{
	struct rank_clock *clock = &rank->clock;
	bool boot = same_boot(first, &a->wall, rank, &b->wall);
	struct placing placing = boot ? place_by_boot(&a->wall, &b->wall) : place_by_wall(first, &a->wall, rank, &b->wall);
	int64_t reach = placing.bound > SEARCH_NS ? SEARCH_NS : (int64_t)placing.bound;
	struct range range;
	int64_t shift;

	clock->shift = INT64_MIN;
	if (!a->wall.readings || !b->wall.readings || placing.ahead > INT64_MAX / 4 || placing.ahead < INT64_MIN / 4)
		return;
	clock->way = placing.way;
	clock->zero_ns = placing.ahead;
	clock->bound_ns = placing.bound;
	if (boot)
		clock->ahead_ns = wall_ahead(&a->wall, &b->wall, &placing);
	clock->collectives = (uint32_t)pair_up(a, b, placing.ahead, reach, &range, &shift);
	if (!clock->collectives)
		return;
	clock->shift = shift;
	if (boot)
		return; /* one clock: what collectives leave open is wider */
	clock->way = CLOCK_BY_COLLECTIVES;
	clock->ahead_ns = range.low + (range.high - range.low) / 2;
	clock->bound_ns = (uint64_t)(range.high - range.low + 1) / 2;
	clock->zero_ns = placing.ahead - clock->ahead_ns;
}

/* Of the first rank's collective INDEX: rank K's, on the first rank's clock. False: it has none. */
static bool arrival(const struct rank *rank, const struct clock_source *source, size_t index, int64_t *out)
{
	int64_t j;

	if (rank->clock.shift == INT64_MIN)
		return false;
	j = (int64_t)index - rank->clock.shift;
	if (j < 0 || j >= (int64_t)source->collectives.count)
		return false;
	*out = (int64_t)source->collectives.items[j].start_ns + rank->clock.zero_ns;
	return true;
}

/* The one that arrives last lets the others wait since the one before it came; what the clocks cannot tell apart counts for nobody. */
static void lateness_add(struct rank *ranks, const struct clock_source *sources, size_t count, size_t index)
{
	int64_t last = INT64_MIN, second = INT64_MIN, at;
	size_t who = 0, before = 0;

	for (size_t k = 0; k < count; k++) {
		if (!arrival(&ranks[k], &sources[k], index, &at))
			return;
		if (at > last) {
			second = last;
			before = who;
			last = at;
			who = k;
		} else if (at > second) {
			second = at;
			before = k;
		}
	}
	for (size_t k = 0; k < count; k++)
		ranks[k].late.collectives++;
	if ((uint64_t)(last - second) <= add_capped(ranks[who].clock.bound_ns, ranks[before].clock.bound_ns))
		return;
	ranks[who].late.count++;
	ranks[who].late.time_ns += (uint64_t)(last - second);
}

void align_ranks(struct rank *ranks, const struct clock_source *sources, size_t count)
{
	if (!count)
		return;
	ranks[0].clock = (struct rank_clock){ .way = !sources[0].wall.readings ? CLOCK_UNKNOWN : sources[0].wall.monotonic ? CLOCK_BY_BOOT : CLOCK_BY_WALL, .shift = 0 };
	for (size_t k = 1; k < count; k++)
		align_one(&ranks[0], &sources[0], &ranks[k], &sources[k]);
	for (size_t i = 0; count > 1 && i < sources[0].collectives.count; i++)
		lateness_add(ranks, sources, count, i);
}
