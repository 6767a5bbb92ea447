/*
 * The gate of a launched program: runs once, on its main thread, in place of the first instruction of Py_RunMain, and then goes there.
 * A function's entry is a clean place: whatever a call may change may be changed, and calling into the interpreter is safe.
 * It gives up the GIL, so that what enters the process meanwhile can take it, and sleeps 1 ms at a time until the word on its
 * stack is set. When the process that launched it is gone before that, it ends as if it had been killed with it.
 * Position-independent; the words behind the code are filled in by launch.c. The code page stays read-only.
 */
	.section .rodata
	.globl gate_code, gate_code_end, gate_words
	.hidden gate_code, gate_code_end, gate_words
	.type gate_code, @object
	.balign 16
gate_code:
	push	%rbx
	sub	$16, %rsp		/* aligned for calls; (%rsp) is the word that opens the gate */
	call	*save_thread(%rip)
	mov	%rax, %rbx
again:
	cmpl	$0, (%rsp)
	jne	open
	mov	$110, %eax		/* getppid */
	syscall
	cmp	parent(%rip), %eax
	jne	orphan
	mov	$35, %eax		/* nanosleep: the one call that every kernel restarts exactly */
	lea	interval(%rip), %rdi
	xor	%esi, %esi
	syscall
	jmp	again
orphan:
	mov	$39, %eax		/* getpid */
	syscall
	mov	%eax, %edi
	mov	$9, %esi
	mov	$62, %eax		/* kill: SIGKILL to the whole process, as PTRACE_O_EXITKILL does */
	syscall
	jmp	again
open:
	cmpl	$0, ignore_trap(%rip)
	je	enter
	mov	$13, %eax		/* rt_sigaction(SIGTRAP, ignored): a break point sets an ignored SIGTRAP to its default */
	mov	$5, %edi
	lea	trap_action(%rip), %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
enter:
	mov	%rbx, %rdi
	call	*restore_thread(%rip)
	add	$16, %rsp
	pop	%rbx
	jmp	*entry(%rip)
	.balign 8
#include "inject/launch_gate_words.inc"
gate_code_end:
	.size gate_code, . - gate_code

	.section .note.GNU-stack, "", @progbits
