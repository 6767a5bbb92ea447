/* Prints where the fields of the shared structs lie, for harness.py: "struct.field offset size". */
#include <stddef.h>
#include <stdio.h>

#include "abi/event.h"
#include "abi/handover.h"
#include "abi/page.h"

#define FIELD(type, field) printf(#type "." #field " %zu %zu\n", offsetof(struct type, field), sizeof((struct type *)0)->field)
#define EVENT_NAME(number, id, name, ref, fields, doc) printf("event." name " %d 0\n", number);

int main(void)
{
	FIELD(handover, magic);
	FIELD(handover, command);
	FIELD(handover, wait_ms);
	FIELD(handover, lanes_bytes);
	FIELD(handover, answer);
	FIELD(handover, said);
	FIELD(handover, lanes_fd);
	FIELD(handover, error);
	FIELD(handover, page_addr);
	FIELD(handover, text);
	FIELD(page, magic);
	FIELD(page, version);
	FIELD(page, page_bytes);
	FIELD(page, mapping_bytes);
	FIELD(page, subbuf_count);
	FIELD(page, clock);
	FIELD(page, ticks_per_second);
	FIELD(page, backend);
	FIELD(page, c_calls);
	FIELD(page, max_overhead_ppm);
	FIELD(page, lines);
	FIELD(page, seed);
	FIELD(page, skip_default);
	FIELD(page, skip_presets);
	FIELD(page, may_start_thread);
	FIELD(page, thread_tid_offset);
	FIELD(page, skip_patterns);
	FIELD(page, deadline_ticks);
	FIELD(page, stop);
	FIELD(page, pool_count);
	FIELD(page, arm);
	FIELD(page, free_head);
	FIELD(page, state);
	FIELD(page, reason);
	FIELD(page, reason_text);
	FIELD(page, backend_used);
	FIELD(page, hooks_on);
	FIELD(page, arm_ns);
	FIELD(page, cost_ps_py);
	FIELD(page, cost_ps_c);
	FIELD(page, cost_ticks);
	FIELD(page, on_ticks);
	FIELD(page, window_count);
	FIELD(page, brake_count);
	FIELD(page, events);
	FIELD(page, code_count);
	FIELD(page, code_overflow);
	FIELD(page, lane_overflow);
	FIELD(page, unmatched);
	FIELD(page, unhooked_threads);
	FIELD(page, fork_children);
	FIELD(page, switch_word);
	FIELD(page, switch_tid);
	FIELD(page, holder_ns_max);
	FIELD(page, rearm_wanted);
	FIELD(page, alternate_ms);
	FIELD(page, alternate_off);
	FIELD(page, samples_ppm);
	FIELD(page, gc);
	FIELD(page, gc_state);
	FIELD(page, memory_interval);
	FIELD(page, memory_state);
	FIELD(page, memory_calls);
	FIELD(page, memory_samples);
	FIELD(page, memory_missed);
	FIELD(page, memory_full);
	FIELD(page, memory_cost_ns);
	FIELD(page, memory_interval_now);
	FIELD(page, memory_pauses);
	FIELD(page, memory_ended_ticks);
	FIELD(page, heap_slot_count);
	FIELD(page, heap_unbound);
	FIELD(page, heap_functions);
	FIELD(page, heap_slots);
	FIELD(page, heap_state);
	FIELD(page, heap_slots_used);
	FIELD(page, heap_foreign);
	FIELD(page, heap_refused);
	FIELD(page, heap_left);
	FIELD(page, heap_calls);
	FIELD(page, heap_samples);
	FIELD(page, heap_late);
	FIELD(page, heap_full);
	FIELD(page, heap_ends_missed);
	FIELD(page, counted_calls);
	FIELD(page, counted_count);
	FIELD(page, counted);
	FIELD(page, lanes);
	FIELD(lane_slot, kind);
	FIELD(lane_slot, tid);
	FIELD(lane_slot, gone);
	FIELD(lane_slot, lost);
	FIELD(lane_slot, events);
	FIELD(lane_slot, skipped);
	FIELD(subbuf, state);
	FIELD(subbuf, used);
	FIELD(subbuf, next_free);
	FIELD(subbuf, lane);
	FIELD(subbuf, tid);
	FIELD(subbuf, kind);
	FIELD(subbuf, sequence);
	FIELD(subbuf, depth);
	FIELD(subbuf, ref_count);
	FIELD(subbuf, refs);
	printf("size.handover %zu 0\nsize.lane_slot %zu 0\n", sizeof(struct handover), sizeof(struct lane_slot));
	printf("magic.page %llu 0\nmagic.handover %llu 0\n", (unsigned long long)PAGE_MAGIC, (unsigned long long)HANDOVER_MAGIC);
	printf("version.page %d 0\nsize.counted %zu 0\n", PAGE_VERSION, sizeof(struct counted));
	printf("bytes.page %d 0\nbytes.subbuf %d 0\nbytes.head %d 0\n", PAGE_BYTES, SUBBUF_BYTES, SUBBUF_HEAD);
#define EVENT EVENT_NAME
#include "abi/event.def"
#undef EVENT
	return 0;
}
