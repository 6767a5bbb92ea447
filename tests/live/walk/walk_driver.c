/* `walk_driver PID [ROUNDS]` holds each thread of a stopped process for a copy, walks the copies, and prints one JSON line per thread:
 * {"tid":1,"end":"complete","frames":[[ip,sp,cfa,"file",address in the file],…],"blocked":{"end":…,"count":…,"same":…}}, where "blocked" walks
 * with sp and ip alone and "same" counts how many of its frames are those above; then {"modules":…,"open_us":…,"first_us":…,"warm_us":…,…}. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "base/procfs.h"
#include "base/text.h"
#include "inject/memory.h"
#include "unwind/walk.h"

enum { THREADS_MAX = 256, PAGE = 4096 };

static double now_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int read_memory(void *context, uint64_t addr, void *buffer, size_t size)
{
	return memory_read(&(struct memory){ .pid = *(pid_t *)context }, addr, buffer, size);
}

static void take_registers(const struct user_regs_struct *from, struct thread_copy *copy)
{
	const uint64_t regs[DWARF_COUNT] = { from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi, from->rbp, from->rsp, from->r8, from->r9,
	                                   from->r10, from->r11, from->r12, from->r13, from->r14, from->r15, from->rip };

	memcpy(copy->regs, regs, sizeof regs);
	copy->known = (1u << DWARF_COUNT) - 1;
}

static void take_stack(pid_t pid, struct thread_copy *copy)
{
	uint64_t addr = copy->regs[DWARF_RSP], part = PAGE - addr % PAGE;

	while (copy->stack_size + part <= THREAD_COPY_STACK_MAX && memory_read(&(struct memory){ .pid = pid }, addr, copy->stack + copy->stack_size, part) == 0) {
		copy->stack_size += (uint32_t)part;
		addr += part;
		part = PAGE;
	}
}

static int take_thread(pid_t pid, pid_t tid, struct thread_copy *copy)
{
	struct user_regs_struct regs;
	int status;

	memset(copy, 0, sizeof *copy);
	copy->tid = tid;
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0 || ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status)
	    || ptrace(PTRACE_GETREGS, tid, 0, &regs) < 0) {
		fprintf(stderr, "walk_driver: thread %d: %s\n", (int)tid, strerror(errno));
		return -1;
	}
	take_registers(&regs, copy);
	take_stack(pid, copy);
	ptrace(PTRACE_DETACH, tid, 0, 0);
	return 0;
}

static void print_frames(const struct modules *modules, const struct native_stack *stack, struct text *text)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		const struct native_frame *frame = &stack->frames[i];
		const struct module *module = modules_find(modules, frame->ip - (i > 0));

		text_printf(text, "%s[%llu,%llu,%llu,\"", i ? "," : "", (unsigned long long)frame->ip, (unsigned long long)frame->sp, (unsigned long long)frame->cfa);
		if (module)
			text_add_json(text, module->path, strlen(module->path));
		text_printf(text, "\",%llu]", (unsigned long long)(frame->ip - (module ? module->bias : 0)));
	}
}

static void print_thread(struct walker *walker, const struct modules *modules, struct thread_copy *copy)
{
	static struct native_stack whole, blocked;
	struct text text;
	uint32_t same = 0;

	walker_walk(walker, copy, &whole);
	copy->known = 1u << DWARF_RSP | 1u << DWARF_RIP;
	copy->stack_size = 0;
	walker_walk(walker, copy, &blocked);
	while (same < whole.count && same < blocked.count && whole.frames[same].ip == blocked.frames[same].ip && whole.frames[same].sp == blocked.frames[same].sp)
		same++;
	text_init(&text);
	text_printf(&text, "{\"tid\":%d,\"end\":\"%s\",\"frames\":[", (int)copy->tid, walk_end_name(whole.end));
	print_frames(modules, &whole, &text);
	text_printf(&text, "],\"blocked\":{\"end\":\"%s\",\"count\":%u,\"same\":%u}}", walk_end_name(blocked.end), blocked.count, same);
	puts(text.failed ? "{}" : text.data);
	text_done(&text);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int print_costs(struct walker *walker, const struct thread_copy *copy, long rounds, size_t modules, double open_us, double first_us)
{
	static struct native_stack stack;
	double *costs = calloc((size_t)rounds, sizeof *costs);
	struct rusage usage;

	if (!costs)
		return -1;
	for (long i = 0; i < rounds; i++) {
		double begun = now_us();

		walker_walk(walker, copy, &stack);
		costs[i] = now_us() - begun;
	}
	qsort(costs, (size_t)rounds, sizeof *costs, by_value);
	getrusage(RUSAGE_SELF, &usage);
	printf("{\"modules\":%zu,\"open_us\":%.0f,\"first_us\":%.0f,\"warm_us\":%.2f,\"frames\":%u,\"rss_kb\":%ld}\n", modules, open_us, first_us,
	       costs[rounds / 2], stack.count, usage.ru_maxrss);
	free(costs);
	return 0;
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 1 ? (pid_t)atoi(argv[1]) : 0, tids[THREADS_MAX];
	long rounds = argc > 2 ? atol(argv[2]) : 1;
	struct remote_memory memory = { read_memory, &pid };
	struct thread_copy *copies = calloc(THREADS_MAX, sizeof *copies);
	static struct native_stack stack;
	ssize_t threads = pid > 0 ? procfs_threads(&procfs_real, pid, tids, THREADS_MAX) : -1;
	struct modules *modules;
	struct walker *walker;
	double begun, opened;
	struct error err;

	if (threads < 1 || threads > THREADS_MAX || rounds < 1 || !copies) {
		fprintf(stderr, "usage: walk_driver PID [ROUNDS]\n");
		return 2;
	}
	for (ssize_t i = 0; i < threads; i++)
		if (take_thread(pid, tids[i], &copies[i]) < 0)
			return 1;
	begun = now_us();
	if (modules_open(&procfs_real, pid, &modules, &err) < 0 || walker_open(modules, &memory, &walker, &err) < 0) {
		fprintf(stderr, "walk_driver: %s\n", err.text);
		return 1;
	}
	opened = now_us();
	walker_walk(walker, &copies[0], &stack);
	if (print_costs(walker, &copies[0], rounds, modules_count(modules), opened - begun, now_us() - opened) < 0) {
		fprintf(stderr, "walk_driver: no memory for %ld rounds\n", rounds);
		return 1;
	}
	for (ssize_t i = 0; i < threads; i++)
		print_thread(walker, modules, &copies[i]);
	walker_close(walker);
	modules_close(modules);
	free(copies);
	return 0;
}
