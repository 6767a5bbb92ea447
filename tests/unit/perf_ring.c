/* Samples out of rings made by hand. */
#include <criterion/criterion.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/perf_record.h"

enum { RING = 4096, STACK = 64, SAMPLE = 8 + 32 + 17 * 8 + 8 + STACK + 8 };

struct made {
	unsigned char ring[RING];
	uint64_t head;
};

static void put(struct made *made, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		made->ring[made->head++ & (RING - 1)] = ((const unsigned char *)bytes)[i];
}

static void put_word(struct made *made, uint64_t word)
{
	put(made, &word, sizeof word);
}

static void put_header(struct made *made, uint32_t type, uint16_t size)
{
	struct perf_event_header header = { .type = type, .size = size };

	put(made, &header, sizeof header);
}

/* VALID bytes of the stack's are the kernel's. */
static void put_registers_and_stack(struct made *made, uint64_t abi, uint64_t valid)
{
	put_word(made, abi);
	for (uint64_t i = 0; i < 17; i++)
		put_word(made, 100 + i);
	put_word(made, STACK);
	for (uint64_t i = 0; i < STACK / 8; i++)
		put_word(made, i);
	put_word(made, valid);
}

static void put_sample(struct made *made, uint32_t tid, uint64_t abi, uint64_t valid)
{
	put_header(made, PERF_RECORD_SAMPLE, SAMPLE);
	put(made, (uint32_t[]){ 1, tid }, 8);
	put_word(made, 1000 + tid);
	put_word(made, 2000 + tid);
	put_registers_and_stack(made, abi, valid);
}

struct seen {
	int count;
	uint64_t cpu_ns;
	struct thread_copy last;
};

static void see(void *context, const struct thread_copy *copy, uint64_t cpu_ns)
{
	struct seen *seen = context;

	seen->count++;
	seen->cpu_ns = cpu_ns;
	seen->last = *copy;
}

static struct thread_copy scratch;

static uint64_t parse(const struct made *made, uint64_t tail, struct seen *seen, struct perf_counts *counts)
{
	memset(counts, 0, sizeof *counts);
	memset(seen, 0, sizeof *seen);
	return perf_parse(made->ring, RING, tail, made->head, false, &scratch, see, seen, counts);
}

Test(ring, gives_samples_in_dwarf_order_also_across_its_end)
{
	static const unsigned char dwarf[17] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15 };

	for (uint64_t start = RING - SAMPLE - 8; start <= RING; start += 8) {
		struct made made = { .head = start };
		struct perf_counts counts;
		struct seen seen;

		put_sample(&made, 7, PERF_SAMPLE_REGS_ABI_64, 40);
		cr_assert_eq(parse(&made, start, &seen, &counts), made.head);
		cr_assert(seen.count == 1 && counts.samples == 1 && counts.damaged == 0);
		cr_assert(seen.last.tid == 7 && seen.last.at_ns == 1007 && seen.cpu_ns == 2007 && seen.last.stack_size == 40);
		for (unsigned i = 0; i < 17; i++)
			cr_assert_eq(seen.last.regs[dwarf[i]], 100 + i);
		cr_assert_eq(seen.last.stack[8], 1);
	}
}

/* A sample as before, with a group of COUNT values instead of its clock. */
static void put_counted(struct made *made, uint64_t count, uint64_t stated)
{
	put_header(made, PERF_RECORD_SAMPLE, (uint16_t)(SAMPLE + count * 8));
	put(made, (uint32_t[]){ 1, 7 }, 8);
	put_word(made, 1007);
	put_word(made, stated);
	for (uint64_t i = 0; i < count; i++)
		put_word(made, 50 + i);
	put_registers_and_stack(made, PERF_SAMPLE_REGS_ABI_64, 40);
}

static void parse_counted(const struct made *made, struct seen *seen, struct perf_counts *counts)
{
	memset(counts, 0, sizeof *counts);
	memset(seen, 0, sizeof *seen);
	perf_parse(made->ring, RING, 0, made->head, true, &scratch, see, seen, counts);
}

Test(ring, gives_what_the_counters_of_a_group_stand_at)
{
	struct made made = { .head = 0 };
	struct perf_counts counts;
	struct seen seen;

	put_counted(&made, 3, 3);
	parse_counted(&made, &seen, &counts);
	cr_assert(seen.count == 1 && seen.last.gained_count == 2 && seen.last.stack_size == 40 && seen.last.regs[0] == 100 && seen.cpu_ns == 50);
	cr_expect(seen.last.gained[0] == 51 && seen.last.gained[1] == 52, "the first one is the clock");
}

Test(ring, takes_no_group_that_does_not_fit)
{
	static const uint64_t stated[] = { 0, SAMPLED_COUNTERS + 2, 1000, UINT64_MAX };

	for (size_t i = 0; i < sizeof stated / sizeof *stated; i++) {
		struct made made = { .head = 0 };
		struct perf_counts counts;
		struct seen seen;

		put_counted(&made, 3, stated[i]);
		parse_counted(&made, &seen, &counts);
		cr_expect(seen.count == 0 && counts.without_stack == 1, "%llu", (unsigned long long)stated[i]);
	}
}

Test(ring, counts_what_was_lost_throttled_or_has_no_stack)
{
	struct made made = { .head = 0 };
	struct perf_counts counts;
	struct seen seen;

	put_header(&made, PERF_RECORD_LOST, 24);
	put_word(&made, 1);
	put_word(&made, 5);
	put_header(&made, PERF_RECORD_LOST_SAMPLES, 16);
	put_word(&made, 3);
	put_header(&made, PERF_RECORD_THROTTLE, 8);
	put_header(&made, 77, 16); /* of a later kernel */
	put_word(&made, 0);
	put_sample(&made, 7, PERF_SAMPLE_REGS_ABI_32, 40);
	put_sample(&made, 8, PERF_SAMPLE_REGS_ABI_NONE, 40);
	put_sample(&made, 9, PERF_SAMPLE_REGS_ABI_64, 0);
	parse(&made, 0, &seen, &counts);
	cr_assert(counts.lost == 8 && counts.throttled == 1 && counts.without_stack == 2 && counts.damaged == 0);
	cr_assert(seen.count == 1 && seen.last.tid == 9 && seen.last.stack_size == 0);
}

Test(ring, drops_what_makes_no_sense)
{
	struct perf_counts counts;
	struct seen seen;

	for (uint16_t size = 0; size < 8; size++) {
		struct made made = { .head = 0 };

		put_header(&made, PERF_RECORD_SAMPLE, size);
		put_sample(&made, 9, PERF_SAMPLE_REGS_ABI_64, 0);
		cr_assert_eq(parse(&made, 0, &seen, &counts), made.head);
		cr_assert(seen.count == 0 && counts.damaged == 1);
	}
	{
		struct made made = { .head = 3 * RING };

		cr_assert_eq(parse(&made, RING, &seen, &counts), made.head);
		cr_assert_eq(counts.damaged, 1);
	}
}

Test(ring, reads_nothing_outside_whatever_it_holds)
{
	struct made *made = malloc(sizeof *made); /* exactly as large, for the sanitizer */
	struct perf_counts counts;
	struct seen seen;
	unsigned seed = 1;

	for (int round = 0; round < 20000; round++) {
		uint64_t tail = (uint64_t)rand_r(&seed) % RING & ~7ull;

		made->head = tail;
		for (int i = 0; i < 3; i++)
			put_sample(made, 7, PERF_SAMPLE_REGS_ABI_64, 40);
		for (int i = 0; i < 12; i++)
			made->ring[rand_r(&seed) % RING] = (unsigned char)rand_r(&seed);
		made->ring[(tail + 8 + 32 + 17 * 8 + (unsigned)rand_r(&seed) % 8) % RING] = (unsigned char)rand_r(&seed); /* the size of the stack */
		cr_assert(parse(made, tail, &seen, &counts) <= made->head);
		cr_assert(seen.count <= 512 && seen.last.stack_size <= THREAD_COPY_STACK_MAX);
	}
	free(made);
}
