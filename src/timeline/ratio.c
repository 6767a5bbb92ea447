#include "timeline/ratio.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { ROUNDS = 1000, TAIL = ROUNDS / 40 /* 2.5 % */ };

static void add(struct ratio_pair *sums, const struct ratio_pair *pair)
{
	sums->work_on += pair->work_on;
	sums->cpu_on += pair->cpu_on;
	sums->work_off += pair->work_off;
	sums->cpu_off += pair->cpu_off;
}

static double ratio_of(const struct ratio_pair *sums)
{
	return sums->work_on / sums->cpu_on / (sums->work_off / sums->cpu_off);
}

/* splitmix64 */
static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static double resampled(const struct ratio_pair *pairs, size_t count, uint64_t *state)
{
	struct ratio_pair sums = { 0 };

	for (size_t i = 0; i < count; i++)
		add(&sums, &pairs[(uint64_t)((unsigned __int128)random_next(state) * count >> 64)]);
	return ratio_of(&sums);
}

/* What is no number (nothing was done in any turn that was drawn) comes last. */
static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	return a < b ? -1 : a > b;
}

bool ratio_of_pairs(const struct ratio_pair *pairs, size_t count, struct ratio *out)
{
	struct ratio_pair sums = { 0 };
	uint64_t state = 1;
	double ratios[ROUNDS];

	for (size_t i = 0; i < count; i++)
		add(&sums, &pairs[i]);
	if (count < RATIO_PAIRS_LEAST || sums.work_on <= 0 || sums.work_off <= 0 || sums.cpu_on <= 0 || sums.cpu_off <= 0)
		return false;
	for (int i = 0; i < ROUNDS; i++)
		ratios[i] = resampled(pairs, count, &state);
	qsort(ratios, ROUNDS, sizeof *ratios, compare);
	*out = (struct ratio){ ratio_of(&sums), ratios[TAIL], ratios[ROUNDS - 1 - TAIL] };
	return true;
}
