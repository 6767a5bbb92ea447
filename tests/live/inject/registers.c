/*
 * Fills all general registers, the flags (direction flag too), the red zone and xmm0-15 with random values, spins without touching
 * them, and compares: whoever borrows this thread must put everything back. With a second argument, an interval timer of that many
 * microseconds delivers signals meanwhile, whose handler uses 20 KiB of stack. Ends after so many seconds, or at SIGTERM.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct state {
	uint64_t general[15];
	uint64_t flags;
	uint64_t red_zone[16];
	unsigned char vector[16][16];
};

uint64_t registers_hold(const struct state *in, struct state *out, uint64_t rounds);

/* Returns how far the stack pointer is off. Between popfq and pushfq only mov, lea, jrcxz, jmp. */
__asm__(
	".intel_syntax noprefix\n"
	".text\n.globl registers_hold\n.type registers_hold, @function\n"
	"registers_hold:\n"
	"	push rbx\n	push rbp\n	push r12\n	push r13\n	push r14\n	push r15\n	push rsi\n	sub rsp, 1024\n"
	"	mov [rip + hold_sp], rsp\n	mov [rip + hold_rounds], rdx\n"
#define LOAD(i) "	movdqu xmm" #i ", [rdi + 256 + " #i " * 16]\n"
	LOAD(0) LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) LOAD(6) LOAD(7)
	LOAD(8) LOAD(9) LOAD(10) LOAD(11) LOAD(12) LOAD(13) LOAD(14) LOAD(15)
	"	push qword ptr [rdi + 120]\n	popfq\n"
	"	mov rax, [rdi + 128]\n	mov [rsp - 8], rax\n	mov rax, [rdi + 136]\n	mov [rsp - 64], rax\n"
	"	mov rax, [rdi + 144]\n	mov [rsp - 128], rax\n"
	"	mov rbx, [rdi + 8]\n	mov rcx, [rdi + 16]\n	mov rdx, [rdi + 24]\n	mov rsi, [rdi + 32]\n"
	"	mov rbp, [rdi + 48]\n	mov r8, [rdi + 56]\n	mov r9, [rdi + 64]\n	mov r10, [rdi + 72]\n"
	"	mov r11, [rdi + 80]\n	mov r12, [rdi + 88]\n	mov r13, [rdi + 96]\n	mov r14, [rdi + 104]\n"
	"	mov r15, [rdi + 112]\n	mov rax, [rdi]\n	mov rdi, [rdi + 40]\n"
	"1:	mov [rip + hold_rcx], rcx\n	mov rcx, [rip + hold_rounds]\n	lea rcx, [rcx - 1]\n"
	"	mov [rip + hold_rounds], rcx\n	jrcxz 2f\n	mov rcx, [rip + hold_rcx]\n	jmp 1b\n"
	"2:	mov rcx, [rip + hold_rcx]\n	mov [rip + hold_rdi], rdi\n	mov rdi, [rsp + 1024]\n"
	"	mov [rdi], rax\n	mov rax, [rsp - 8]\n	mov [rdi + 128], rax\n	mov rax, [rsp - 64]\n	mov [rdi + 136], rax\n"
	"	mov rax, [rsp - 128]\n	mov [rdi + 144], rax\n	pushfq\n	pop qword ptr [rdi + 120]\n"
	"	mov [rdi + 8], rbx\n	mov [rdi + 16], rcx\n	mov [rdi + 24], rdx\n	mov [rdi + 32], rsi\n"
	"	mov [rdi + 48], rbp\n	mov [rdi + 56], r8\n	mov [rdi + 64], r9\n	mov [rdi + 72], r10\n"
	"	mov [rdi + 80], r11\n	mov [rdi + 88], r12\n	mov [rdi + 96], r13\n	mov [rdi + 104], r14\n"
	"	mov [rdi + 112], r15\n	mov rax, [rip + hold_rdi]\n	mov [rdi + 40], rax\n"
#define STORE(i) "	movdqu [rdi + 256 + " #i " * 16], xmm" #i "\n"
	STORE(0) STORE(1) STORE(2) STORE(3) STORE(4) STORE(5) STORE(6) STORE(7)
	STORE(8) STORE(9) STORE(10) STORE(11) STORE(12) STORE(13) STORE(14) STORE(15)
	"	mov rax, rsp\n	sub rax, [rip + hold_sp]\n	cld\n	add rsp, 1024\n"
	"	pop rsi\n	pop r15\n	pop r14\n	pop r13\n	pop r12\n	pop rbp\n	pop rbx\n	ret\n"
	".att_syntax\n.lcomm hold_sp, 8\n.lcomm hold_rounds, 8\n.lcomm hold_rcx, 8\n.lcomm hold_rdi, 8\n");

static volatile long signals;

static void on_alarm(int signal)
{
	volatile char stack[20000];

	for (size_t i = 0; i < sizeof stack; i += 64)
		stack[i] = (char)i;
	signals++;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void timer_start(long us)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval timer = { { 0, us }, { 0, us } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

int main(int argc, char **argv)
{
	static const uint64_t flags[] = { 0x202, 0x203, 0x246, 0x282, 0xa02, 0xa97, 0x606, 0xed7 };
	double until = now() + (argc > 1 ? atof(argv[1]) : 1);
	long checks = 0, bad = 0;
	struct state in, out;
	unsigned seed = 1;

	if (argc > 2)
		timer_start(atol(argv[2]));
	signal(SIGTERM, end);
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	for (; !ended && now() < until; checks++) {
		uint64_t off;

		for (size_t i = 0; i < sizeof in; i++)
			((unsigned char *)&in)[i] = (unsigned char)rand_r(&seed);
		in.flags = flags[checks & 7];
		memset(&out, 0, sizeof out);
		off = registers_hold(&in, &out, 20000);
		memcpy(&out.red_zone[3], &in.red_zone[3], sizeof in.red_zone - 24);
		if (off == 0 && memcmp(&in, &out, sizeof in) == 0)
			continue;
		bad++;
		for (int i = 0; i < 15 && bad < 5; i++)
			if (in.general[i] != out.general[i])
				printf("register %d\n", i);
		if (bad < 5)
			printf("flags %llx %llx vector %d stack %lld\n", (unsigned long long)in.flags, (unsigned long long)out.flags,
			       memcmp(in.vector, out.vector, sizeof in.vector), (long long)off);
	}
	printf("%s registers %ld bad %ld signals %ld\n", bad || !checks ? "FAIL" : "OK", checks, bad, signals);
	return bad != 0;
}
