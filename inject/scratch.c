/* Lays out our memory in the target and fabricates a thread control block for the raw thread. */
#include "inject/scratch.h"

#include <string.h>

#include "inject/machine.h"
#include "inject/memory.h"

#define PAGE 4096ull
#define STACK_BYTES (256ull << 10)
#define TCB_BYTES PAGE           /* struct pthread is 2 368 bytes on glibc 2.36 to 2.43 (x86-64), 1 856 (2.36, aarch64) */
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
	/* Where the control block lies below the thread pointer, libraries' own storage lies above it, and the other way round. */
	out->tcb = out->stack_top + (MACHINE_BLOCK_BYTES ? TCB_BYTES : tls);
	out->dtv = out->tcb + (MACHINE_BLOCK_BYTES ? tls : TCB_BYTES);
	out->give_back = out->control + CONTROL_SIZE;
	out->give_back_size = target->foreign_allocator ? STACK_BYTES : rest;
	return true;
}

int scratch_write_thread(const struct target *target, const struct scratch *scratch, const struct window *window, uint32_t tid)
{
	unsigned char block[TCB_BYTES] = { 0 };
	uint64_t dtv = scratch->dtv + 16, slots = DTV_SLOTS, addr = scratch->tcb - target->block_below, no_cpu_at = scratch->tcb + window->rseq_offset + 4;
	size_t size = target->block_below ? target->block_below + MACHINE_HEAD_BYTES : sizeof block;
	int32_t no_cpu = -1;

	block_fill(block, addr, target->block_below, dtv, window->tcb);
	memcpy(block + target->facts.tid_offset, &tid, sizeof tid);
	if (target_write(target, addr, block, size) < 0 || target_write(target, scratch->dtv, &slots, sizeof slots) < 0)
		return -1;
	/* Zero would say "on CPU 0"; the raw thread has registered no rseq area. The offset may be below the thread pointer. */
	if (window->rseq_known && no_cpu_at >= scratch->stack_top && no_cpu_at < scratch->dtv - sizeof no_cpu)
		return target_write(target, no_cpu_at, &no_cpu, sizeof no_cpu);
	return 0;
}
