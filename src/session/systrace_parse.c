/* Records of the two tracepoints: linux/perf_event.h (PERF_SAMPLE_TID, TIME, RAW in this order), and what events/raw_syscalls has in its format files since Linux 2.6.31. */
#include <linux/perf_event.h>
#include <string.h>

#include "abi/syscall.h"
#include "session/systrace.h"
#include "unwind/perf_ring.h"

/* header, pid and tid, time, size of the raw part; in that: type at 0, number at 8, arguments or result at 16 */
enum { HEADER = 8, TIDS_AT = 8, TIME_AT = 16, SIZE_AT = 24, RAW_AT = 28, NUMBER_AT = 8, FIRST_AT = 16, RAW_LEAST = 24, LOST_AT = 16, RECORD_MOST = 512 };

static uint64_t word_at(const unsigned char *record, size_t at)
{
	uint64_t word;

	memcpy(&word, record + at, sizeof word);
	return word;
}

/* RECORD: a whole sample of SIZE bytes. False: not one of ours. */
static bool take_sample(const unsigned char *record, uint64_t size, struct systrace_ids ids, struct systrace_open_call *open, systrace_each *each, void *context, struct systrace_counts *counts)
{
	uint32_t raw_size, tids[2];
	uint64_t at_ns, number;
	uint16_t type;

	if (size < RAW_AT + RAW_LEAST)
		return false;
	memcpy(&raw_size, record + SIZE_AT, sizeof raw_size);
	memcpy(tids, record + TIDS_AT, sizeof tids);
	memcpy(&type, record + RAW_AT, sizeof type);
	at_ns = word_at(record, TIME_AT);
	number = syscall_in_traces(word_at(record, RAW_AT + NUMBER_AT));
	if (raw_size < RAW_LEAST || raw_size > size - RAW_AT)
		return false;
	if (type == ids.enter) {
		*open = (struct systrace_open_call){ true, at_ns, number, word_at(record, RAW_AT + FIRST_AT) };
		return true;
	}
	if (type != ids.leave)
		return false;
	/* The kernel says -1 for a call that a signal's frame hides. */
	if (open->open && open->number == number && at_ns >= open->start_ns) {
		const struct systrace_call call = { (pid_t)tids[1], open->start_ns, at_ns - open->start_ns, number, open->first, (int64_t)word_at(record, RAW_AT + FIRST_AT) };

		counts->calls++;
		each(context, &call);
	}
	open->open = false;
	return true;
}

uint64_t systrace_parse(const unsigned char *bytes, uint64_t size, uint64_t tail, uint64_t head, struct systrace_ids ids, struct systrace_open_call *open, systrace_each *each, void *context,
                        struct systrace_counts *counts)
{
	struct perf_ring ring = { bytes, size };
	struct perf_event_header header;
	unsigned char record[RECORD_MOST];

	while (perf_ring_next(&ring, &tail, head, &header, &counts->damaged)) {
		perf_ring_take(&ring, tail, record, header.size < sizeof record ? header.size : sizeof record);
		if (header.type == PERF_RECORD_LOST && header.size >= LOST_AT + 8) {
			counts->lost += word_at(record, LOST_AT);
			open->open = false;
		} else if (header.type == PERF_RECORD_SAMPLE && (header.size > sizeof record || !take_sample(record, header.size, ids, open, each, context, counts))) {
			counts->damaged++;
		}
		tail += header.size;
	}
	return tail;
}
