/*
 * The code that runs in the target before the payload does: what stub_x86_64.S says of itself holds here, too.
 *
 *   borrowed thread   stub_entry … branch back: system calls only, no stack, no flag, registers restored by itself
 *   raw thread        own stack, own TLS image; waits until the attacher says GO, makes a real thread and ends
 *   real thread       an ordinary pthread, all signals blocked: loads the library and calls its entry
 *
 * x20 is what is called scratch: BIAS bytes into the control page. Up to the branch back no instruction may change a flag.
 */
#include "inject/stub_layout.h"

#define SCRATCH(word) [x20, #(word) - BIAS]

	.section .rodata.inferscope_stub, "a", @progbits
	.balign 32
	.globl stub_begin, stub_entry, stub_data, stub_end
	.hidden stub_begin, stub_entry, stub_data, stub_end

stub_begin:
	.ascii STUB_MAGIC

/* ---- the borrowed thread ---- */
stub_entry:
	ldr	x0, map_addr			/* mmap(address, size, rw, private anonymous fixed-noreplace noreserve) */
	ldr	x1, map_size
	mov	x2, #3
	mov	w3, #0x4022
	movk	w3, #0x10, lsl #16
	mov	x4, #-1
	mov	x5, #0
	mov	x8, #222
	svc	#0
	mov	x21, #0				/* != 0: the system call was interrupted */
	ldr	x9, map_negative		/* the address itself? old kernels take it as a hint */
	add	x9, x9, x0
	cbnz	x9, restore_mask
	ldr	x20, scratch
	ldr	x9, attach_id
	str	x9, SCRATCH(CONTROL_ATTACH_ID)
	ldr	x9, single_thread_flag		/* malloc must lock before our threads exist */
	strb	wzr, [x9]
	mov	x0, #2				/* rt_sigprocmask(SIG_SETMASK, all, NULL, 8): the raw thread inherits it */
	adr	x1, all_signals
	mov	x2, #0
	mov	x3, #8
	mov	x8, #135
	svc	#0
	cbz	x0, 2f
	str	x0, SCRATCH(CONTROL_CLONE_RESULT)
	b	leave_scratch
2:
	ldr	x0, clone_flags			/* clone(flags, stack, parent_tid, tls, child_tid) */
	ldr	x1, stack
	ldr	x2, child_tid
	ldr	x3, tcb
	ldr	x4, child_tid
	mov	x8, #220
	svc	#0
	cbz	x0, raw_thread
	str	x0, SCRATCH(CONTROL_CLONE_RESULT)
	sub	x0, x20, #BIAS - CONTROL_PENDING	/* rt_sigpending(&pending, 8) */
	mov	x1, #8
	mov	x8, #136
	svc	#0
	ldr	x21, SCRATCH(CONTROL_PENDING)
	ldr	x9, caught
	and	x21, x21, x9
	cbz	x21, leave_scratch
	ldr	x9, ask_restart
	cbz	x9, leave_scratch
	rbit	x0, x21
	clz	x0, x0
	add	x0, x0, #1
	mov	x1, #0				/* rt_sigaction(lowest signal, NULL, &action, 8) */
	sub	x2, x20, #BIAS - CONTROL_ACTION
	mov	x3, #8
	mov	x8, #134
	svc	#0
	ldr	x9, SCRATCH(CONTROL_ACTION + 8)
	tbz	x9, #28, leave_scratch		/* SA_RESTART */
	mov	x21, #0
leave_scratch:
	mov	x0, #2				/* rt_sigprocmask(SIG_SETMASK, own mask, NULL, 8) */
	adr	x1, mask
	mov	x2, #0
	mov	x3, #8
	mov	x8, #135
	svc	#0
	mov	x9, #1
	dmb	ish
	str	x9, SCRATCH(CONTROL_DONE)
	b	restore_registers
restore_mask:
	mov	x0, #2
	adr	x1, mask
	mov	x2, #0
	mov	x3, #8
	mov	x8, #135
	svc	#0
restore_registers:
	ldr	x1, saved_x + 8
	ldr	x2, saved_x + 16
	ldr	x4, saved_x + 32
	ldr	x5, saved_x + 40
	ldr	x6, saved_x + 48
	ldr	x7, saved_x + 56
	ldr	x9, saved_x + 72
	ldr	x10, saved_x + 80
	ldr	x11, saved_x + 88
	ldr	x12, saved_x + 96
	ldr	x13, saved_x + 104
	ldr	x14, saved_x + 112
	ldr	x15, saved_x + 120
	ldr	x16, saved_x + 128
	ldr	x17, saved_x + 136
	ldr	x18, saved_x + 144
	ldr	x19, saved_x + 152
	ldr	x20, saved_x + 160
	ldr	x22, saved_x + 176
	ldr	x23, saved_x + 184
	ldr	x24, saved_x + 192
	ldr	x25, saved_x + 200
	ldr	x26, saved_x + 208
	ldr	x27, saved_x + 216
	ldr	x28, saved_x + 224
	ldr	x29, saved_x + 232
	ldr	x30, saved_x + 240
	cbnz	x21, 6f
	ldr	x0, on_x0
	ldr	x3, on_x3
	ldr	x8, on_x8
	ldr	x21, saved_x + 168
	b	go_on
6:
	ldr	x0, interrupted_x0
	ldr	x3, saved_x + 24
	ldr	x8, saved_x + 64
	ldr	x21, saved_x + 168
	b	go_interrupted

/* ---- the raw thread ---- */
raw_thread:
	msr	fpcr, xzr			/* the borrowed thread's */
	msr	fpsr, xzr
	mov	x29, #0
	mov	x30, #0
	ldr	x20, scratch
	mov	x0, #-1
	ldr	x9, want_memfd
	cbz	x9, 2f
	adr	x0, memfd_name			/* memfd_create(name, MFD_CLOEXEC) */
	mov	x1, #1
	mov	x8, #279
	svc	#0
	cmp	x0, #3				/* never 0, 1, 2 (errors are big numbers here) */
	b.hs	2f
	mov	x21, x0
	mov	x1, #1030			/* fcntl(fd, F_DUPFD_CLOEXEC, 3) */
	mov	x2, #3
	mov	x8, #25
	svc	#0
	mov	x22, x0
	mov	x0, x21
	mov	x8, #57				/* close */
	svc	#0
	mov	x0, x22
2:
	str	x0, SCRATCH(CONTROL_MEMFD)
	mov	x9, #RAW_WAITS
	dmb	ish
	str	x9, SCRATCH(CONTROL_STATE)
	ldr	x21, wait_loops
	sub	x23, x20, #BIAS - CONTROL_GO
3:
	ldar	w9, [x23]
	cmp	w9, #1
	b.eq	go
	adr	x0, nap				/* nanosleep */
	mov	x1, #0
	mov	x8, #101
	svc	#0
	subs	x21, x21, #1
	b.ne	3b
	mov	w10, #2
4:
	ldaxr	w9, [x23]			/* a late attacher cannot start anything */
	cbnz	w9, go
	stlxr	w11, w10, [x23]
	cbnz	w11, 4b
	mov	x9, #RAW_GAVE_UP
	str	x9, SCRATCH(CONTROL_STATE)
	ldr	x0, SCRATCH(CONTROL_MEMFD)
	tbnz	x0, #63, 4f
	mov	x8, #57
	svc	#0
4:
	ldr	x9, SCRATCH(CONTROL_DONE)
	cmp	x9, #1
	b.ne	5f				/* the borrowed thread still stores there: leave it mapped */
	add	x0, x20, #CONTROL_SIZE - BIAS
	ldr	x1, map_addr
	ldr	x9, map_size
	add	x1, x1, x9
	sub	x1, x1, x0
	mov	x8, #215			/* munmap all but the control page: it is the evidence for the next attacher */
	svc	#0
5:
	mov	x0, #0
	mov	x8, #93				/* exit, of this thread */
	svc	#0
	brk	#0
go:
	mov	x9, #PHASE_RAW
	str	x9, SCRATCH(CONTROL_PHASE)
	ldr	x21, SCRATCH(CONTROL_TLS_REPEAT)
6:
	ldr	x0, SCRATCH(CONTROL_TLS_BLOCK)
	ldr	x1, SCRATCH(CONTROL_TLS_ARGUMENT)
	ldr	x9, SCRATCH(CONTROL_TLS_INIT)
	blr	x9
	subs	x21, x21, #1
	b.gt	6b
	add	x0, x20, #CONTROL_PTHREAD - BIAS
	mov	x1, #0
	adr	x2, real_thread
	mov	x3, x20
	ldr	x9, SCRATCH(CONTROL_PTHREAD_CREATE)
	blr	x9
	cbz	w0, 5b
	sxtw	x0, w0
	str	x0, SCRATCH(CONTROL_ERROR)
	ldr	x0, SCRATCH(CONTROL_MEMFD)
	tbnz	x0, #63, 7f
	mov	x8, #57
	svc	#0
7:
	mov	x9, #PHASE_NO_THREAD
	dmb	ish
	str	x9, SCRATCH(CONTROL_PHASE)
	b	5b

/* ---- the real thread: void *real_thread(struct control *) ---- */
real_thread:
	hint	#34				/* bti c */
	stp	x29, x30, [sp, #-48]!
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	stp	x21, x22, [sp, #32]
	mov	x20, x0
	mov	x8, #178			/* gettid */
	svc	#0
	str	x0, SCRATCH(CONTROL_THREAD)
	mov	x9, #PHASE_THREAD
	str	x9, SCRATCH(CONTROL_PHASE)
	mrs	x0, tpidr_el0			/* pthread_self(): the control block lies below the thread pointer */
	ldr	x9, constant
	sub	x0, x0, x9
	ldr	x9, SCRATCH(CONTROL_PTHREAD_DETACH)
	blr	x9
	ldr	x21, SCRATCH(CONTROL_ENTRY)
	cbnz	x21, 2f
	add	x0, x20, #CONTROL_PATH - BIAS
	mov	w1, #0x1002			/* RTLD_NOW | RTLD_NODELETE */
	ldr	x9, SCRATCH(CONTROL_DLOPEN)
	blr	x9
	mov	x22, x0
	ldr	x0, SCRATCH(CONTROL_MEMFD)
	mov	x8, #57				/* close: the mapping keeps the file */
	svc	#0
	mov	x21, #PHASE_NO_LIBRARY
	cbz	x22, message
	mov	x0, x22
	add	x1, x20, #CONTROL_SYMBOL - BIAS
	ldr	x9, SCRATCH(CONTROL_DLSYM)
	blr	x9
	mov	x21, #PHASE_NO_ENTRY
	cbz	x0, message
	mov	x21, x0
	str	x0, SCRATCH(CONTROL_ENTRY)
	mov	x9, #PHASE_LOADED
	str	x9, SCRATCH(CONTROL_PHASE)
2:
	mov	x9, #PHASE_CALLING		/* say so, then look: the attacher cancels, then looks. One of us sees the other */
	str	x9, SCRATCH(CONTROL_PHASE)
	dmb	ish
	ldr	x9, SCRATCH(CONTROL_CANCEL)
	mov	x22, #PHASE_CANCELLED
	cbnz	x9, 3f
	add	x0, x20, #CONTROL_ARGUMENT - BIAS
	blr	x21
	mov	x22, #PHASE_RETURNED
3:
	dmb	ish
	str	x22, SCRATCH(CONTROL_PHASE)
	b	5f
message:
	ldr	x9, SCRATCH(CONTROL_DLERROR)
	cbz	x9, 8f
	blr	x9
	cbz	x0, 8f
	add	x10, x20, #CONTROL_MESSAGE - BIAS
	mov	w11, #CONTROL_MESSAGE_SIZE - 1
7:
	ldrb	w9, [x0], #1
	strb	w9, [x10], #1
	cbz	w9, 8f
	subs	w11, w11, #1
	b.ne	7b
8:
	dmb	ish
	str	x21, SCRATCH(CONTROL_PHASE)
5:
	mov	w21, #20000			/* its stack may go once the raw thread has: 2 s at most */
	sub	x22, x20, #BIAS - CONTROL_CHILD
6:
	ldar	w9, [x22]
	cbz	w9, 7f
	adr	x0, nap
	mov	x1, #0
	mov	x8, #101
	svc	#0
	subs	w21, w21, #1
	b.ne	6b
	b	9f
7:
	ldr	x0, SCRATCH(CONTROL_GIVE_BACK)
	ldr	x1, SCRATCH(CONTROL_GIVE_BACK_SIZE)
	cbz	x1, 9f
	mov	x8, #215
	svc	#0
9:
	mov	x9, #1
	dmb	ish
	str	x9, SCRATCH(CONTROL_ENDED)
	mov	x0, #0
	ldp	x21, x22, [sp, #32]
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #48
	ret

/* ---- struct stub_data ---- */
	.balign 8
stub_data:
go_on:			.word 0
go_interrupted:		.word 0
saved_x:		.fill 31, 8, 0
saved_pc:		.quad 0
on_x0:			.quad 0
on_x3:			.quad 0
on_x8:			.quad 0
interrupted_x0:		.quad 0
#define CONSTANT 0					/* bytes of a thread's control block below its thread pointer */
#include "inject/stub_words.inc"
	.balign 8
stub_end:

	.section .note.GNU-stack, "", @progbits
