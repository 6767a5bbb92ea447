#include "session/gpu_clock.h"

#include <string.h>

#define SECOND 1000000000ull
#define STEP_NS 1000000      /* more than this between two comparisons is no slewing: NTP slews 125 us in 250 ms at most */
#define FOREIGN_BOUND_NS 5000
#define WIDE_NS 5000
enum { KEPT = 1024, RECENT = 64 /* of them, that are looked at */, REJECT_MOST = 8, WIDER_FACTOR = 8 };

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static const struct gpu_point *last_of(const struct gpu_clock *clock)
{
	return clock->points.count ? &clock->points.items[clock->points.count - 1] : NULL;
}

static uint64_t narrowest(const struct gpu_clock *clock)
{
	uint64_t least = UINT64_MAX;
	size_t from = clock->points.count > RECENT ? clock->points.count - RECENT : 0;

	for (size_t i = from; i < clock->points.count; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): as many as are counted */
		least = clock->points.items[i].width < least ? clock->points.items[i].width : least;
	return least;
}

/* Something ran between the two looks at the device's clock. Always the same: then that is how it is here. */
static bool is_outlier(struct gpu_clock *clock, uint64_t width)
{
	if (!clock->points.count || width <= WIDE_NS || width <= WIDER_FACTOR * narrowest(clock) || ++clock->rejected >= REJECT_MOST) {
		clock->rejected = 0;
		return false;
	}
	clock->outliers++;
	return true;
}

/* On the line through both, GPU being at or after A: how long after A. */
static uint64_t line_at(const struct gpu_point *a, const struct gpu_point *b, uint64_t gpu)
{
	return (uint64_t)((unsigned __int128)(b->cpu_ns - a->cpu_ns) * (gpu - a->gpu) / (b->gpu - a->gpu));
}

/* How far the middle one of three lies off the line through the others: what a line between two may be wrong by. */
static uint64_t residual(const struct gpu_clock *clock)
{
	const struct gpu_point *last = last_of(clock);
	size_t count = clock->points.count;

	if (count < 3 || last->step || last[-1].step || last->gpu <= last[-2].gpu || last[-1].gpu < last[-2].gpu)
		return 0;
	return distance(last[-2].cpu_ns + line_at(&last[-2], last, last[-1].gpu), last[-1].cpu_ns);
}

/* Half a comparison's width between two of them; beyond the last one, for as long as they are apart, the line through both may lean by as much as both are wrong. */
void gpu_clock_add(struct gpu_clock *clock, uint64_t before, uint64_t cpu_ns, uint64_t real_ns, uint64_t after)
{
	const struct gpu_point *previous = last_of(clock);
	struct gpu_point point = { .gpu = before + (after - before) / 2, .cpu_ns = cpu_ns, .width = after - before }, *slot;
	uint64_t previous_width = previous ? previous->width : point.width, open;

	if (after < before || (previous && cpu_ns <= previous->cpu_ns) || is_outlier(clock, point.width))
		return;
	if (!clock->points.count)
		clock->foreign = distance(point.gpu, real_ns) > SECOND;
	point.step = previous && !clock->foreign && distance(point.gpu - previous->gpu, cpu_ns - previous->cpu_ns) > STEP_NS;
	clock->steps += point.step;
	if (clock->points.count == KEPT) {
		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): as many as are counted */
		memmove(clock->points.items, clock->points.items + KEPT - RECENT, RECENT * sizeof *clock->points.items);
		clock->points.count = RECENT;
	}
	slot = list_add(&clock->points, KEPT);
	if (!slot)
		return;
	*slot = point;
	clock->comparisons++;
	open = point.width / 2 + residual(clock) + (previous_width + point.width) / 2;
	clock->bound_ns = open > clock->bound_ns ? open : clock->bound_ns;
}

/* The latest comparison before GPU; after a step back two may be, and the nearer one is it. */
static size_t nearest(const struct gpu_clock *clock, uint64_t gpu)
{
	size_t count = clock->points.count, from = count > RECENT ? count - RECENT : 0, found = from;
	uint64_t least = UINT64_MAX;

	for (size_t i = from; i < count; i++) {
		uint64_t at = clock->points.items[i].gpu;

		if (at <= gpu && gpu - at <= least) {
			least = gpu - at;
			found = i;
		}
	}
	return found;
}

static uint64_t rate_between(const struct gpu_point *a, const struct gpu_point *b)
{
	if (b->step || b->gpu <= a->gpu)
		return SECOND;
	return (uint64_t)((unsigned __int128)(b->gpu - a->gpu) * SECOND / (b->cpu_ns - a->cpu_ns));
}

bool gpu_clock_at(const struct gpu_clock *clock, uint64_t gpu, struct clock_map *out)
{
	const struct gpu_point *points = clock->points.items;
	size_t i;

	if (!clock->points.count)
		return false;
	i = nearest(clock, gpu);
	*out = (struct clock_map){ points[i].gpu, points[i].cpu_ns, SECOND };
	if (i + 1 < clock->points.count && !points[i + 1].step)
		out->ticks_per_second = rate_between(&points[i], &points[i + 1]);
	else if (i > 0)
		out->ticks_per_second = rate_between(&points[i - 1], &points[i]);
	/* The clock was set after GPU's stamp, or before it: a stamp that lies beyond the time that passed is of the new reckoning. */
	if (i + 1 < clock->points.count && points[i + 1].step && gpu - points[i].gpu > points[i + 1].cpu_ns - points[i].cpu_ns)
		*out = (struct clock_map){ points[i + 1].gpu, points[i + 1].cpu_ns, SECOND };
	return true;
}

uint64_t gpu_clock_reached(const struct gpu_clock *clock)
{
	const struct gpu_point *last = last_of(clock);

	return clock->points.count >= 2 ? last->gpu : 0;
}

bool gpu_clock_good(const struct gpu_clock *clock)
{
	return clock->points.count >= 2 && (!clock->foreign || clock->bound_ns <= FOREIGN_BOUND_NS);
}

void gpu_clock_done(struct gpu_clock *clock)
{
	list_done(&clock->points);
}
