/* Every length is checked against what is there, though it is the kernel that wrote it. */
#include "unwind/perf_record.h"

#include <linux/perf_event.h>
#include <string.h>

#include "unwind/perf_ring.h"

/* sample_id_all is off: LOST is id and count, LOST_SAMPLES a count. */
enum { HEADER = 8, FIXED = 32 /* ids, time, period, abi */, REGISTERS = 17, RECORD_MAX = 1 << 16, LOST_AT = 16, LOST_SAMPLES_AT = 8 };

/* DWARF number of the Nth register in a sample. */
static const unsigned char dwarf_of[REGISTERS] = { DWARF_RAX, DWARF_RBX, DWARF_RCX, DWARF_RDX, DWARF_RSI, DWARF_RDI, DWARF_RBP, DWARF_RSP, DWARF_RIP, 8, 9, 10, 11, 12, 13, 14, 15 };

static uint64_t take_word(const struct perf_ring *ring, uint64_t at)
{
	uint64_t word;

	perf_ring_take(ring, at, &word, sizeof word);
	return word;
}

/* Layout: header, pid and tid, time, period, abi, registers, size of the stack, stack, how much of it is valid. False: not a sample we can use. */
static bool read_sample(const struct perf_ring *ring, uint64_t at, uint64_t size, struct thread_copy *copy)
{
	uint64_t registers = at + HEADER + FIXED, stack = registers + REGISTERS * 8, room, valid;
	uint32_t ids[2];

	if (size < HEADER + FIXED + REGISTERS * 8 + 8 || take_word(ring, at + HEADER + 24) != PERF_SAMPLE_REGS_ABI_64)
		return false;
	perf_ring_take(ring, at + HEADER, ids, sizeof ids);
	copy->tid = (pid_t)ids[1];
	copy->at_ns = take_word(ring, at + HEADER + 8);
	copy->known = (1u << DWARF_COUNT) - 1;
	for (unsigned i = 0; i < REGISTERS; i++)
		copy->regs[dwarf_of[i]] = take_word(ring, registers + i * 8);
	copy->stack_size = 0;
	room = take_word(ring, stack);
	if (room == 0)
		return true;
	if (room > THREAD_COPY_STACK_MAX || size < stack + 8 - at + room + 8)
		return false;
	valid = take_word(ring, stack + 8 + room);
	copy->stack_size = (uint32_t)(valid < room ? valid : room);
	perf_ring_take(ring, stack + 8, copy->stack, copy->stack_size);
	return true;
}

uint64_t perf_parse(const unsigned char *bytes, uint64_t size, uint64_t tail, uint64_t head, struct thread_copy *copy, perf_each *each, void *context,
                    struct perf_counts *counts)
{
	struct perf_ring ring = { bytes, size };
	struct perf_event_header header;

	while (perf_ring_next(&ring, &tail, head, &header, &counts->damaged)) {
		if (header.type == PERF_RECORD_SAMPLE && read_sample(&ring, tail, header.size, copy)) {
			counts->samples++;
			each(context, copy, take_word(&ring, tail + HEADER + 16));
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
