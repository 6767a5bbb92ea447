/*
 * The code that runs in the target before the payload does. One block, position independent, copied into executable padding.
 *
 *   borrowed thread   stub_entry … jump back: system calls only, no stack, flags and registers restored by itself. It may have been
 *                     anywhere: inside malloc, inside ld.so, below its red zone. It reads the slot and stores into the control page.
 *   raw thread        own stack, own TLS image. Waits until the attacher says GO (or leaves, having changed nothing), then makes a
 *                     real thread and ends.
 *   real thread       an ordinary pthread, all signals blocked: loads the library and calls its entry.
 *
 * rcx, r12 and rbx point BIAS bytes into the control page, so that most of its words are one byte of displacement away.
 * Up to `lahf` no instruction may change a flag: mov, lea, jmp, jrcxz only.
 */
#include "inject/stub_layout.h"

	.intel_syntax noprefix
	.section .rodata.inferscope_stub, "a", @progbits
	.balign 32
	.globl stub_begin, stub_entry, stub_data, stub_end
	.hidden stub_begin, stub_entry, stub_data, stub_end

stub_begin:
	.ascii STUB_MAGIC

/* ---- the borrowed thread ---- */
stub_entry:
	mov	eax, 9				/* mmap(address, size, rw, private anonymous fixed-noreplace noreserve) */
	mov	rdi, [rip + map_addr]
	mov	rsi, [rip + map_size]
	mov	edx, 3
	mov	r10d, 0x104022
	mov	r8, -1
	mov	r9d, 0
	syscall
	mov	rcx, [rip + map_negative]	/* the address itself? old kernels take it as a hint */
	lea	rcx, [rcx + rax]
	jrcxz	1f
	jmp	restore_mask
1:
	mov	rcx, [rip + scratch]
	mov	rax, [rip + attach_id]
	mov	[rcx + CONTROL_ATTACH_ID - BIAS], rax
	mov	rcx, [rip + single_thread_flag]	/* both flags: malloc must lock before our threads exist */
	mov	byte ptr [rcx], 0
	mov	dword ptr fs:[0x18], 1
	mov	eax, 14				/* rt_sigprocmask(SIG_SETMASK, all, NULL, 8): the raw thread inherits it */
	mov	edi, 2
	lea	rsi, [rip + all_signals]
	mov	edx, 0
	mov	r10d, 8
	syscall
	mov	rcx, rax
	jrcxz	2f
	mov	rcx, [rip + scratch]
	mov	[rcx + CONTROL_CLONE_RESULT - BIAS], rax
	mov	ebp, 0
	jmp	leave_scratch
2:
	mov	eax, 56				/* clone(flags, stack, parent_tid, child_tid, tls) */
	mov	rdi, [rip + clone_flags]
	mov	rsi, [rip + stack]
	mov	rdx, [rip + child_tid]
	mov	r10, [rip + child_tid]
	mov	r8, [rip + tcb]
	syscall
	mov	rcx, rax
	jrcxz	3f
	jmp	4f
3:
	jmp	raw_thread
4:
	mov	rcx, [rip + scratch]
	mov	[rcx + CONTROL_CLONE_RESULT - BIAS], rax
	mov	eax, 127			/* rt_sigpending(&pending, 8) */
	lea	rdi, [rcx + CONTROL_PENDING - BIAS]
	mov	esi, 8
	syscall
	lahf
	seto	al
	mov	rbx, rax
	mov	rcx, [rip + scratch]
	mov	rdx, [rcx + CONTROL_PENDING - BIAS]
	and	rdx, [rip + caught]
	mov	rbp, rdx			/* rbp != 0: the system call was interrupted */
	test	rdx, rdx
	jz	5f
	cmp	qword ptr [rip + ask_restart], 0
	je	5f
	bsf	rdi, rdx
	inc	edi
	mov	eax, 13				/* rt_sigaction(lowest signal, NULL, &action, 8) */
	xor	esi, esi
	lea	rdx, [rcx + CONTROL_ACTION - BIAS]
	mov	r10d, 8
	syscall
	mov	rcx, [rip + scratch]
	test	dword ptr [rcx + CONTROL_ACTION + 8 - BIAS], 0x10000000 /* SA_RESTART */
	jz	5f
	xor	ebp, ebp
5:
	mov	rax, rbx
	add	al, 0x7f			/* OF from al */
	sahf
leave_scratch:
	mov	eax, 14				/* rt_sigprocmask(SIG_SETMASK, own mask, NULL, 8) */
	mov	edi, 2
	lea	rsi, [rip + mask]
	mov	edx, 0
	mov	r10d, 8
	syscall
	mov	rcx, [rip + part_done]
	jrcxz	6f
	mov	rcx, rbp
	jrcxz	restore_registers		/* not done: the rest of its call comes, here */
6:
	mov	rcx, [rip + scratch]
	mov	qword ptr [rcx + CONTROL_DONE - BIAS], 1
	jmp	restore_registers
restore_mask:
	mov	rbp, [rip + part_done]		/* no page to say that we are done: without the rest */
	mov	eax, 14
	mov	edi, 2
	lea	rsi, [rip + mask]
	mov	edx, 0
	mov	r10d, 8
	syscall
restore_registers:
	mov	rcx, rbp
	mov	r15, [rip + saved]
	mov	r14, [rip + saved + 8]
	mov	r13, [rip + saved + 16]
	mov	r12, [rip + saved + 24]
	mov	rbp, [rip + saved + 32]
	mov	rbx, [rip + saved + 40]
	mov	r11, [rip + saved + 48]
	mov	r10, [rip + saved + 56]
	mov	r9, [rip + saved + 64]
	mov	r8, [rip + saved + 72]
	mov	rdx, [rip + saved + 96]
	mov	rsi, [rip + saved + 104]
	mov	rdi, [rip + saved + 112]
	jrcxz	6f
	mov	rax, [rip + interrupted_rax]
	mov	rcx, [rip + saved + 88]
	.byte	0x3e				/* notrack: the place we return to has no endbr */
	jmp	qword ptr [rip + interrupted_rip]
6:
	mov	rcx, [rip + part_done]
	jrcxz	7f
	mov	rax, [rip + rest_call]		/* our stop cut the call short: here is its rest, however long it takes */
	mov	rsi, [rip + rest_address]
	mov	rdx, [rip + rest_count]
	syscall
	mov	rcx, rax
	lahf
	seto	al
	mov	r11, rax
	test	rcx, rcx
	jns	8f
	xor	ecx, ecx			/* an error after a part was done is said by the next call */
8:
	add	rcx, [rip + part_done]
	mov	rax, r11
	add	al, 0x7f
	sahf
	mov	rax, rcx
	mov	rcx, [rip + scratch]
	mov	qword ptr [rcx + CONTROL_DONE - BIAS], 1
	mov	rcx, [rip + saved + 88]
	mov	r11, [rip + saved + 48]
	mov	rdx, [rip + saved + 96]
	mov	rsi, [rip + saved + 104]
	.byte	0x3e
	jmp	qword ptr [rip + saved + 120]
7:
	mov	rax, [rip + saved + 80]
	mov	rcx, [rip + saved + 88]
	.byte	0x3e
	jmp	qword ptr [rip + saved + 120]

/* ---- the raw thread ---- */
raw_thread:
	push	0x202				/* direction flag and FPU state are the borrowed thread's: a set DF killed malloc */
	popfq
	fninit
	ldmxcsr	[rip + constant]
	mov	r12, [rip + scratch]
	mov	rax, -1
	cmp	qword ptr [rip + want_memfd], 0
	je	2f
	mov	eax, 319			/* memfd_create(name, MFD_CLOEXEC) */
	lea	rdi, [rip + memfd_name]
	mov	esi, 1
	syscall
	cmp	rax, 3				/* never 0, 1, 2 (errors are big numbers here) */
	jae	2f
	mov	r13, rax
	mov	edi, eax
	mov	eax, 72				/* fcntl(fd, F_DUPFD_CLOEXEC, 3) */
	mov	esi, 1030
	mov	edx, 3
	syscall
	mov	r14, rax
	mov	edi, r13d
	mov	eax, 3				/* close */
	syscall
	mov	rax, r14
2:
	mov	[r12 + CONTROL_MEMFD - BIAS], rax
	mov	qword ptr [r12 + CONTROL_STATE - BIAS], RAW_WAITS
	mov	r13, [rip + wait_loops]
3:
	cmp	dword ptr [r12 + CONTROL_GO - BIAS], 1
	je	go
	mov	eax, 35				/* nanosleep */
	lea	rdi, [rip + nap]
	xor	esi, esi
	syscall
	dec	r13
	jnz	3b
	xor	eax, eax
	mov	ecx, 2
	lock cmpxchg [r12 + CONTROL_GO - BIAS], ecx	/* a late attacher cannot start anything */
	jne	go
	mov	qword ptr [r12 + CONTROL_STATE - BIAS], RAW_GAVE_UP
	mov	rdi, [r12 + CONTROL_MEMFD - BIAS]
	test	rdi, rdi
	js	4f
	mov	eax, 3
	syscall
4:
	cmp	qword ptr [r12 + CONTROL_DONE - BIAS], 1
	jne	5f				/* the borrowed thread still stores there: leave it mapped */
	lea	rdi, [r12 + CONTROL_SIZE - BIAS]
	mov	rsi, [rip + map_addr]
	add	rsi, [rip + map_size]
	sub	rsi, rdi
	mov	eax, 11				/* munmap all but the control page: it is the evidence for the next attacher */
	syscall
5:
	mov	eax, 60				/* exit, of this thread */
	xor	edi, edi
	syscall
	ud2
go:
	mov	qword ptr [r12 + CONTROL_PHASE - BIAS], PHASE_RAW
	mov	r13, [r12 + CONTROL_TLS_REPEAT - BIAS]
6:
	mov	rdi, [r12 + CONTROL_TLS_BLOCK - BIAS]
	mov	rsi, [r12 + CONTROL_TLS_ARGUMENT - BIAS]
	call	[r12 + CONTROL_TLS_INIT - BIAS]
	dec	r13
	jg	6b
	lea	rdi, [r12 + CONTROL_PTHREAD - BIAS]
	xor	esi, esi
	lea	rdx, [rip + real_thread]
	mov	rcx, r12
	call	[r12 + CONTROL_PTHREAD_CREATE - BIAS]
	test	eax, eax
	jz	5b
	movsxd	rax, eax
	mov	[r12 + CONTROL_ERROR - BIAS], rax
	mov	rdi, [r12 + CONTROL_MEMFD - BIAS]
	test	rdi, rdi
	js	7f
	mov	eax, 3
	syscall
7:
	mov	qword ptr [r12 + CONTROL_PHASE - BIAS], PHASE_NO_THREAD
	jmp	5b

/* ---- the real thread: void *real_thread(struct control *) ---- */
real_thread:
	push	rbx
	push	r12
	push	r13				/* aligned to 16 from here */
	mov	rbx, rdi
	mov	eax, 186			/* gettid */
	syscall
	mov	[rbx + CONTROL_THREAD - BIAS], rax
	mov	qword ptr [rbx + CONTROL_PHASE - BIAS], PHASE_THREAD
	mov	rdi, fs:[0x10]			/* pthread_self() */
	call	[rbx + CONTROL_PTHREAD_DETACH - BIAS]
	mov	r12, [rbx + CONTROL_ENTRY - BIAS]
	test	r12, r12
	jnz	2f
	lea	rdi, [rbx + CONTROL_PATH - BIAS]
	mov	esi, 0x1002			/* RTLD_NOW | RTLD_NODELETE */
	call	[rbx + CONTROL_DLOPEN - BIAS]
	mov	r13, rax
	mov	rdi, [rbx + CONTROL_MEMFD - BIAS]
	mov	eax, 3				/* close: the mapping keeps the file */
	syscall
	mov	r12d, PHASE_NO_LIBRARY
	test	r13, r13
	jz	message
	mov	rdi, r13
	lea	rsi, [rbx + CONTROL_SYMBOL - BIAS]
	call	[rbx + CONTROL_DLSYM - BIAS]
	mov	r12d, PHASE_NO_ENTRY
	test	rax, rax
	jz	message
	mov	r12, rax
	mov	[rbx + CONTROL_ENTRY - BIAS], rax
	mov	qword ptr [rbx + CONTROL_PHASE - BIAS], PHASE_LOADED
2:
	mov	eax, PHASE_CALLING		/* say so, then look: the attacher cancels, then looks. One of us sees the other */
	xchg	[rbx + CONTROL_PHASE - BIAS], rax
	cmp	qword ptr [rbx + CONTROL_CANCEL - BIAS], 0
	mov	eax, PHASE_CANCELLED
	jne	3f
	lea	rdi, [rbx + CONTROL_ARGUMENT - BIAS]
	call	r12
	mov	eax, PHASE_RETURNED
3:
	mov	[rbx + CONTROL_PHASE - BIAS], rax
	jmp	5f
message:
	mov	rax, [rbx + CONTROL_DLERROR - BIAS]
	test	rax, rax
	jz	8f
	call	rax
	test	rax, rax
	jz	8f
	xor	ecx, ecx
7:
	mov	dl, [rax + rcx]
	mov	[rbx + rcx + CONTROL_MESSAGE - BIAS], dl
	test	dl, dl
	jz	8f
	inc	ecx
	cmp	ecx, CONTROL_MESSAGE_SIZE - 1
	jb	7b
8:
	mov	[rbx + CONTROL_PHASE - BIAS], r12
5:
	mov	r12d, 20000			/* its stack may go once the raw thread has: 2 s at most */
6:
	cmp	dword ptr [rbx + CONTROL_CHILD - BIAS], 0
	je	7f
	mov	eax, 35
	lea	rdi, [rip + nap]
	xor	esi, esi
	syscall
	dec	r12d
	jnz	6b
	jmp	9f
7:
	mov	rdi, [rbx + CONTROL_GIVE_BACK - BIAS]
	mov	rsi, [rbx + CONTROL_GIVE_BACK_SIZE - BIAS]
	test	rsi, rsi
	jz	9f
	mov	eax, 11
	syscall
9:
	mov	qword ptr [rbx + CONTROL_ENDED - BIAS], 1
	xor	eax, eax
	pop	r13
	pop	r12
	pop	rbx
	ret

/* ---- struct stub_data ---- */
	.balign 8
stub_data:
saved:			.fill 16, 8, 0
interrupted_rip:	.quad 0
interrupted_rax:	.quad 0
part_done:		.quad 0
rest_call:		.quad 0
rest_address:		.quad 0
rest_count:		.quad 0
#define CONSTANT 0x1f80
#include "inject/stub_words.inc"
	.balign 8
stub_end:

	.section .note.GNU-stack, "", @progbits
