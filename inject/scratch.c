/* Lays out our memory in the target and fabricates a thread control block for the raw thread. */
#include "inject/scratch.h"

#include <string.h>

#include "inject/memory.h"

#define PAGE 4096ull
#define STACK_BYTES (256ull << 10)
#define TCB_BYTES PAGE           /* struct pthread is 2 368 bytes on glibc 2.36 to 2.43 */
#define DTV_SLOTS 1000ull
#define DTV_BYTES (5 * PAGE)     /* 16 bytes each, one before the first */
#define TLS_EXTRA (16ull << 10)  /* glibc's own blocks below the TCB: rseq area, rounding */

bool scratch_plan(const struct target *target, uint64_t again, uint64_t seed, struct scratch *out)
{
	uint64_t tls = (target->tls_bytes + TLS_EXTRA + PAGE - 1) & ~(PAGE - 1), rest;

	memset(out, 0, sizeof *out);
	rest = STACK_BYTES + tls + TCB_BYTES + DTV_BYTES;
	out->size = CONTROL_SIZE + rest;
	out->control_mapped = again && maps_free(&target->maps, again + CONTROL_SIZE, rest);
	out->control = out->control_mapped ? again : maps_gap(&target->maps, out->size, seed);
	if (out->control == 0)
		return false;
	out->stack_top = out->control + CONTROL_SIZE + STACK_BYTES;
	out->tcb = out->stack_top + tls;
	out->dtv = out->tcb + TCB_BYTES;
	out->give_back = out->control + CONTROL_SIZE;
	out->give_back_size = target->foreign_allocator ? STACK_BYTES : rest;
	return true;
}

int scratch_write_thread(const struct target *target, const struct scratch *scratch, const struct window *window, uint32_t tid)
{
	unsigned char block[TCB_BYTES] = { 0 };
	uint64_t dtv = scratch->dtv + 16, slots = DTV_SLOTS;
	uint32_t one = 1;
	int32_t no_cpu = -1;

	memcpy(block, &scratch->tcb, 8);
	memcpy(block + 0x08, &dtv, 8);
	memcpy(block + 0x10, &scratch->tcb, 8);
	memcpy(block + 0x18, &one, 4);
	memcpy(block + 0x28, window->tcb + 0x28, 16); /* stack guard, pointer guard: the same in all threads */
	memcpy(block + 0x48, window->tcb + 0x48, 4);  /* feature_1 */
	memcpy(block + target->facts.tid_offset, &tid, sizeof tid);
	if (target_write(target, scratch->tcb, block, sizeof block) < 0 ||
	    target_write(target, scratch->dtv, &slots, sizeof slots) < 0)
		return -1;
	/* Zero would say "on CPU 0"; the raw thread has registered no rseq area. The offset may be below the TCB (glibc >= 2.41). */
	if (window->rseq_known && window->rseq_offset + (TLS_EXTRA / 2) < TLS_EXTRA / 2 + TCB_BYTES - 8)
		return target_write(target, scratch->tcb + window->rseq_offset + 4, &no_cpu, sizeof no_cpu);
	return 0;
}
