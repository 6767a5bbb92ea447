/*
 * The gate of a launched program: what launch_gate_x86_64.S says of itself holds here, too. The thread comes here with 32 bytes of its stack made free (there
 * is no red zone): the word that opens the gate, then what a call may change and the function that it replaces may not.
 */
	.section .rodata
	.globl gate_code, gate_code_end, gate_words
	.hidden gate_code, gate_code_end, gate_words
	.type gate_code, %object
	.balign 16
gate_code:
	stp	x30, x19, [sp, #16]
	ldr	x9, save_thread
	blr	x9
	mov	x19, x0
again:
	mov	x9, sp
	ldar	w9, [x9]
	cbnz	w9, open
	mov	x8, #173		/* getppid */
	svc	#0
	ldr	w9, parent
	cmp	w0, w9
	b.ne	orphan
	adr	x0, interval		/* nanosleep: the one call that every kernel restarts exactly */
	mov	x1, #0
	mov	x8, #101
	svc	#0
	b	again
orphan:
	mov	x8, #172		/* getpid */
	svc	#0
	mov	x1, #9
	mov	x8, #129		/* kill: SIGKILL to the whole process, as PTRACE_O_EXITKILL does */
	svc	#0
	b	again
open:
	ldr	w9, ignore_trap
	cbz	w9, enter
	mov	x0, #5			/* rt_sigaction(SIGTRAP, ignored): a break point sets an ignored SIGTRAP to its default */
	adr	x1, trap_action
	mov	x2, #0
	mov	x3, #8
	mov	x8, #134
	svc	#0
enter:
	mov	x0, x19
	ldr	x9, restore_thread
	blr	x9
	ldp	x30, x19, [sp, #16]
	add	sp, sp, #32
	ldr	x16, entry
	br	x16
	.balign 8
#include "inject/launch_gate_words.inc"
gate_code_end:
	.size gate_code, . - gate_code

	.section .note.GNU-stack, "", @progbits
