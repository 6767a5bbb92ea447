/*
 * Spends most of its time in one long restartable sequence. The kernel forgets the sequence when it sees the thread outside of it: then
 * the commit finds our descriptor gone though nobody aborted us ("dropped").
 */
#include <linux/rseq.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/rseq.h>
#include <time.h>
#include <unistd.h>

long rseq_spin(struct rseq *area, long rounds); /* 0 committed, 1 aborted, 2 dropped */

__asm__(
	".text\n.globl rseq_spin\n.type rseq_spin, @function\n"
	"rseq_spin:\n"
	"	lea rseq_section(%rip), %rax\n	mov %rax, 8(%rdi)\n"
	"1:	mov %rsi, %rcx\n"
	"3:	lea -1(%rcx), %rcx\n	jrcxz 4f\n	jmp 3b\n"
	"4:	mov 8(%rdi), %rdx\n	lea rseq_section(%rip), %rax\n	cmp %rdx, %rax\n"
	"2:	mov $0, %eax\n	jne 5f\n	movq $0, 8(%rdi)\n	ret\n"
	"5:	mov $2, %eax\n	ret\n"
	"	.byte 0x0f, 0xb9, 0x3d\n	.long 0x53053053\n"
	"6:	mov $1, %eax\n	ret\n"
	".pushsection rseq_sections, \"aw\"\n.balign 32\n"
	"rseq_section:	.long 0, 0\n	.quad 1b, 2b - 1b, 6b\n"
	".popsection\n");

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

int main(int argc, char **argv)
{
	struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	time_t until = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	long committed = 0, aborted = 0, dropped = 0;

	if (__rseq_size == 0) {
		printf("SKIP no rseq here\n");
		return 77;
	}
	signal(SIGTERM, end);
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	while (!ended && time(NULL) < until)
		for (int i = 0; i < 200; i++) {
			long how = rseq_spin(area, 2000);

			for (volatile int k = 0; k < 1500; k++)
				;
			committed += how == 0;
			aborted += how == 1;
			dropped += how == 2;
		}
	printf("%s rseq committed %ld aborted %ld dropped %ld\n", dropped || !committed ? "FAIL" : "OK", committed, aborted, dropped);
	return dropped != 0;
}
