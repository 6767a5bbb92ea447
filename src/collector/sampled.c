/* Points on the stream of allocated bytes, and the set of sampled blocks that live. With libc alone: no logarithm, no exponential function. */
#include "collector/sampled.h"

#include <string.h>

#include "collector/machine.h"
#include "collector/mapping.h"

/* xorshift: never zero, whoever else is in here: two threads at the same moment may be given the same number. */
static uint64_t random_next(uint64_t *random)
{
	uint64_t next = __atomic_load_n(random, __ATOMIC_RELAXED);

	next ^= next << 13;
	next ^= next >> 7;
	next ^= next << 17;
	__atomic_store_n(random, next, __ATOMIC_RELAXED);
	return next;
}

/* -ln of a number between 0 and 1: of its exponent, and of its mantissa m by ln m = 2 artanh((m - 1) / (m + 1)). */
static double exponential(uint64_t bits)
{
	int zeros = __builtin_clzll(bits);
	double mantissa = 1 + (double)(bits << zeros << 1 >> 12) / 4503599627370496.0, s = (mantissa - 1) / (mantissa + 1), square = s * s, sum = 0;

	for (int n = 15; n > 0; n -= 2)
		sum = sum * square + 1.0 / n;
	return (zeros + 1) * 0.6931471805599453 - 2 * s * sum;
}

/* 1 - exp(-x) */
static double chance_of(double x)
{
	double term = 1, sum = 0;
	int doublings = 0;

	if (x > 40)
		return 1;
	while (x > 0.5) {
		x /= 2;
		doublings++;
	}
	for (int n = 1; n < 12; n++) {
		term *= -x / n;
		sum -= term;
	}
	while (doublings-- > 0)
		sum *= 2 - sum;
	return sum;
}

/*
 * The thread's floating-point environment is its program's: it may trap (a program that had FE_INEXACT trap died of SIGFPE here), round elsewhere, or
 * look at the flags later. No calculation is moved out from between the two: it needs what the first gives back, and the second needs what it gives.
 */
static uint64_t calm_begin(uint64_t *left, uint64_t *right)
{
	uint64_t before = machine_float_begin();

	__asm__ volatile("" : "+r"(*left), "+r"(*right));
	return before;
}

static uint64_t calm_end(uint64_t before, uint64_t value)
{
	__asm__ volatile("" : "+r"(value));
	machine_float_end(before);
	return value;
}

int64_t sampled_gap(struct sampled *sampled, uint64_t interval)
{
	uint64_t random = random_next(&sampled->random);
	uint64_t before = calm_begin(&random, &interval);
	double gap = exponential(random) * (double)interval;

	return (int64_t)calm_end(before, gap < (double)SAMPLED_NEVER ? (uint64_t)gap : SAMPLED_NEVER);
}

uint64_t sampled_weight(uint64_t size, uint64_t interval)
{
	uint32_t before;

	if (!size)
		return 0;
	before = calm_begin(&size, &interval);
	return calm_end(before, (uint64_t)((double)size / chance_of((double)size / (double)interval) + 0.5));
}

static uint32_t after(uint32_t at)
{
	return (at + 1) & (SAMPLED_SLOTS - 1);
}

/*
 * Where ADDRESS stands, or the empty place where it would. Half of the places are empty: no search goes through all of them, unless the program has written over them.
 * It ends then, too: the thread has the GIL, or the lock.
 */
static uint32_t place_of(const struct sampled *sampled, uint64_t address)
{
	uint32_t at = sampled_slot(address);

	for (uint32_t i = 0; i < SAMPLED_SLOTS && sampled->table[at] && sampled->table[at] != address; i++)
		at = after(at);
	return at;
}

/* One thread writes, all may read: whole words. */
static void filter_add(struct sampled *sampled, uint64_t address)
{
	uint32_t bit = sampled_slot(address) & (SAMPLED_FILTER - 1);

	if (sampled->held[bit] < UINT8_MAX)
		sampled->held[bit]++;
	__atomic_store_n(&sampled->filter[bit / 64], sampled->filter[bit / 64] | 1ull << bit % 64, __ATOMIC_RELAXED);
}

static void filter_remove(struct sampled *sampled, uint64_t address)
{
	uint32_t bit = sampled_slot(address) & (SAMPLED_FILTER - 1);

	if (!sampled->held[bit] || sampled->held[bit] == UINT8_MAX || --sampled->held[bit]) /* a full one does not know its number any more */
		return;
	__atomic_store_n(&sampled->filter[bit / 64], sampled->filter[bit / 64] & ~(1ull << bit % 64), __ATOMIC_RELAXED);
}

bool sampled_add(struct sampled *sampled, uint64_t address)
{
	uint32_t at = place_of(sampled, address);

	if (sampled->live >= SAMPLED_MAX)
		return false;
	if (sampled->table[at])
		return true; /* its end was not seen */
	sampled->table[at] = address;
	sampled->live++;
	filter_add(sampled, address);
	return true;
}

/* What follows moves up, so that no search ends too early. */
bool sampled_remove(struct sampled *sampled, uint64_t address)
{
	uint32_t hole = place_of(sampled, address), first = hole;

	if (sampled->table[hole] != address || !address)
		return false;
	for (uint32_t at = after(hole); sampled->table[at] && at != first; at = after(at)) {
		uint32_t home = sampled_slot(sampled->table[at]);

		if (((at - home) & (SAMPLED_SLOTS - 1)) < ((at - hole) & (SAMPLED_SLOTS - 1)))
			continue;
		sampled->table[hole] = sampled->table[at];
		hole = at;
	}
	sampled->table[hole] = 0;
	sampled->live--;
	filter_remove(sampled, address);
	return true;
}

bool sampled_begin(struct sampled *sampled, uint64_t random)
{
	if (!sampled->table) {
		sampled->table = mapping_make(SAMPLED_SLOTS * sizeof *sampled->table, -1);
		if (!sampled->table)
			return false;
	}
	sampled_end(sampled);
	sampled->random = random | 1;
	return true;
}

void sampled_forget(struct sampled *sampled)
{
	memset(sampled->filter, 0, sizeof sampled->filter);
	memset(sampled->held, 0, sizeof sampled->held);
}

void sampled_end(struct sampled *sampled)
{
	sampled->live = 0;
	sampled_forget(sampled);
	if (sampled->table && !mapping_empty(sampled->table, SAMPLED_SLOTS * sizeof *sampled->table))
		memset(sampled->table, 0, SAMPLED_SLOTS * sizeof *sampled->table);
}
