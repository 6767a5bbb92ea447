/* Every length is checked against what is there, though it is the kernel that wrote it. */
#include "unwind/perf_record.h"

#include <linux/perf_event.h>
#include <string.h>

#include "unwind/perf_ring.h"

/* sample_id_all is off: LOST is id and count, LOST_SAMPLES a count. */
enum { HEADER = 8, FIXED = 16 /* ids, time */, ABI = 8, REGISTERS = DWARF_COUNT, RECORD_MAX = 1 << 16, LOST_AT = 16, LOST_SAMPLES_AT = 8 };

/* DWARF number of the Nth register in a sample. */
static const unsigned char dwarf_of[REGISTERS] = PERF_ORDER;

static uint64_t take_word(const struct perf_ring *ring, uint64_t at)
{
	uint64_t word;

	perf_ring_take(ring, at, &word, sizeof word);
	return word;
}

/* What the event stands at, or its group: how many, then each; the first one is the clock that samples. Returns the bytes that they take, 0 when they do not fit. */
static uint64_t read_counts(const struct perf_ring *ring, uint64_t at, uint64_t room, bool counted, struct thread_copy *copy, uint64_t *clock_ns)
{
	uint64_t count;

	if (room < 8)
		return 0;
	count = take_word(ring, at);
	if (!counted) {
		*clock_ns = count;
		return 8;
	}
	if (!count || count > SAMPLED_COUNTERS + 1 || room < 8 + count * 8)
		return 0;
	*clock_ns = take_word(ring, at + 8);
	copy->gained_count = (uint32_t)count - 1;
	for (uint64_t i = 1; i < count; i++)
		copy->gained[i - 1] = take_word(ring, at + 8 + i * 8);
	return 8 + count * 8;
}

/* Layout: header, pid and tid, time, clock or counters, abi, registers, size of the stack, stack, how much of it is valid. False: not a sample we can use. */
static bool read_sample(const struct perf_ring *ring, uint64_t at, uint64_t size, bool counted, struct thread_copy *copy, uint64_t *clock_ns)
{
	uint64_t counts, registers, stack, room, valid;
	uint32_t ids[2];

	copy->gained_count = 0;
	counts = size < HEADER + FIXED ? 0 : read_counts(ring, at + HEADER + FIXED, size - HEADER - FIXED, counted, copy, clock_ns);
	if (!counts)
		return false;
	registers = at + HEADER + FIXED + counts + ABI;
	stack = registers + REGISTERS * 8;
	if (size < stack + 8 - at || take_word(ring, registers - ABI) != PERF_SAMPLE_REGS_ABI_64)
		return false;
	perf_ring_take(ring, at + HEADER, ids, sizeof ids);
	copy->tid = (pid_t)ids[1];
	copy->at_ns = take_word(ring, at + HEADER + 8);
	copy->known = (1ull << DWARF_COUNT) - 1;
	for (unsigned i = 0; i < REGISTERS; i++)
		copy->regs[dwarf_of[i]] = take_word(ring, registers + i * 8);
	copy->stack_size = copy->stack_asked = 0;
	room = take_word(ring, stack);
	if (room == 0)
		return true;
	if (room > THREAD_COPY_STACK_MAX || size < stack + 8 - at + room + 8)
		return false;
	valid = take_word(ring, stack + 8 + room);
	copy->stack_size = (uint32_t)(valid < room ? valid : room);
	copy->stack_asked = (uint32_t)room;
	perf_ring_take(ring, stack + 8, copy->stack, copy->stack_size);
	return true;
}

uint64_t perf_parse(const unsigned char *bytes, uint64_t size, uint64_t tail, uint64_t head, bool counted, struct thread_copy *copy, perf_each *each, void *context,
                    struct perf_counts *counts)
{
	struct perf_ring ring = { bytes, size };
	struct perf_event_header header;
	uint64_t clock_ns;

	while (perf_ring_next(&ring, &tail, head, &header, &counts->damaged)) {
		if (header.type == PERF_RECORD_SAMPLE && read_sample(&ring, tail, header.size, counted, copy, &clock_ns)) {
			counts->samples++;
			each(context, copy, clock_ns);
		} else if (header.type == PERF_RECORD_SAMPLE) {
			counts->without_stack++;
		} else if (header.type == PERF_RECORD_LOST && header.size >= LOST_AT + 8) {
			counts->lost += take_word(&ring, tail + LOST_AT);
		} else if (header.type == PERF_RECORD_LOST_SAMPLES && header.size >= LOST_SAMPLES_AT + 8) {
			counts->lost += take_word(&ring, tail + LOST_SAMPLES_AT);
		} else if (header.type == PERF_RECORD_THROTTLE) {
			counts->throttled++;
		}
		tail += header.size;
	}
	return tail;
}
