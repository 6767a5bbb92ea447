/* The parts of entering that need no other process: maps, machine code, restart rules, filters, refusals from a folder that plays /proc. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mappings.h"
#include "inject/decode.h"
#include "inject/image.h"
#include "inject/inject.h"
#include "inject/memfd.h"
#include "inject/memory.h"
#include "inject/resume.h"
#include "inject/seccomp.h"
#include "inject/slot.h"
#include "inject/steps.h"
#include "inject/threads.h"

/* ---- maps ---- */

static struct maps maps_from(const char *text)
{
	struct maps maps;

	cr_assert_eq(maps_parse(text, strlen(text), &maps), 0);
	return maps;
}

Test(maps, reads_names_with_spaces_and_newlines_as_escaped_by_the_kernel)
{
	struct maps maps = maps_from("1000-2000 r-xp 00003000 08:01 77                         /a dir/lib\\012x.so (deleted)\n"
	                             "3000-4000 rw-p 00000000 00:00 0 \n");

	cr_assert_eq(maps.count, 2);
	cr_assert_str_eq(maps.list[0].path, "/a dir/lib\\012x.so (deleted)");
	cr_assert(maps.list[0].executable && !maps.list[0].writable && maps.list[0].offset == 0x3000 && maps.list[0].inode == 77);
	cr_assert_str_eq(maps.list[1].path, "");
	maps_done(&maps);
}

Test(maps, skips_lines_that_make_no_sense)
{
	struct maps maps = maps_from("zzz\n2000-1000 r-xp 0 0:0 0\n5000-6000 r-xp 00000000 00:00 0\n1000-2000 r-xp 00000000 00:00 0\n7000-8000 r\n\n");

	cr_assert_eq(maps.count, 1);
	cr_assert_eq(maps.list[0].start, 0x5000);
	maps_done(&maps);
}

Test(maps, finds_what_covers_an_address_and_nothing_between)
{
	struct maps maps = maps_from("1000-2000 r-xp 00000000 00:00 0\n3000-4000 r-xp 00000000 00:00 0\n");

	cr_assert_eq(maps_find(&maps, 0x1fff), &maps.list[0]);
	cr_assert_null(maps_find(&maps, 0x2000));
	cr_assert_eq(maps_find(&maps, 0x3000), &maps.list[1]);
	cr_assert_null(maps_find(&maps, 0x4000));
	maps_done(&maps);
}

Test(maps, gives_a_gap_that_is_free_and_away_from_its_neighbours)
{
	struct maps maps = maps_from("400000-500000 r-xp 00000000 00:00 0\n7f0000000000-7f0000001000 r-xp 00000000 00:00 0\n"
	                             "7fff00000000-7fff00001000 rw-p 00000000 00:00 0\n");

	for (uint64_t seed = 1; seed < 1ull << 60; seed = seed * 7 + 3) {
		uint64_t gap = maps_gap(&maps, 0x80000, seed);

		cr_assert(gap >= 0x7f0000001000 + 0x2000000 && gap + 0x80000 + 0x2000000 <= 0x7fff00000000, "%llx", (unsigned long long)gap);
		cr_assert(maps_free(&maps, gap, 0x80000));
		cr_assert_eq(gap & 0xfff, 0);
	}
	maps_done(&maps);
}

Test(maps, finds_no_gap_where_there_is_none)
{
	struct maps maps = maps_from("7f0000000000-7f0000001000 r-xp 00000000 00:00 0\n7f0000002000-7f0000003000 r-xp 00000000 00:00 0\n");

	cr_assert_eq(maps_gap(&maps, 0x80000, 5), 0);
	cr_assert(!maps_free(&maps, 0x7f0000001000, 0x2000));
	cr_assert(maps_free(&maps, 0x7f0000001000, 0x1000));
	cr_assert(!maps_free(&maps, UINT64_MAX - 10, 0x1000));
	maps_done(&maps);
}

/* ---- machine code ---- */

/* _dl_allocate_tls of Debian's glibc 2.31 (one argument), 2.36 (1) and 2.41 (0), as they lie in ld.so. */
static const unsigned char allocate_231[] = "\x55\x53\x48\x83\xec\x08\x48\x85\xff\x74\x3d\x48\x89\xfd\x48\x8b\x3d\x9b\x92\x01\x00\xbe\x10\x00\x00\x00"
	"\x48\x8d\x5f\x0e\x48\x83\xc7\x10\xe8\x29\xe3\xfe\xff\x48\x85\xc0\x74\x32\x48\x89\x18\x48\x83\xc0\x10\x48\x89\x45\x08\x48\x83\xc4\x08"
	"\x48\x89\xef\x5b\x5d\xe9\x00\x01\x00\x00";
static const unsigned char allocate_236[] = "\x48\x83\xec\x08\x48\x85\xff\x74\x17\xe8\x72\xf5\xff\xff\xbe\x01\x00\x00\x00\x48\x83\xc4\x08\x48\x89\xc7\xe9\x41\xfd\xff\xff";
static const unsigned char allocate_241[] = "\x48\x83\xec\x08\x48\x85\xff\x74\x17\xe8\xc2\xf5\xff\xff\x31\xf6\x48\x83\xc4\x08\x48\x89\xc7\xe9\xc4\xfd\xff\xff";

static int tls_argument(const unsigned char *code, size_t size)
{
	/* The jump is the last instruction; its target is taken as the function. */
	int32_t jump;

	memcpy(&jump, code + size - 4, 4);
	return decode_tls_argument(code, size, 0x10000, 0x10000 + size + (uint64_t)(int64_t)jump);
}

Test(decode, tells_the_second_argument_of_the_tls_initialisation)
{
	cr_assert_eq(tls_argument(allocate_231, sizeof allocate_231 - 1), TLS_ARGUMENT_NONE);
	cr_assert_eq(tls_argument(allocate_236, sizeof allocate_236 - 1), 1);
	cr_assert_eq(tls_argument(allocate_241, sizeof allocate_241 - 1), 0);
}

Test(decode, does_not_guess_when_the_function_is_never_called)
{
	cr_assert_eq(decode_tls_argument(allocate_236, sizeof allocate_236 - 1, 0x10000, 0x777), TLS_ARGUMENT_UNKNOWN);
}

Test(decode, does_not_guess_when_the_argument_is_something_else)
{
	unsigned char code[sizeof allocate_236];

	memcpy(code, allocate_236, sizeof code);
	code[15] = 7; /* mov esi, 7 */
	cr_assert_eq(tls_argument(code, sizeof code - 1), TLS_ARGUMENT_UNKNOWN);
}

Test(decode, does_not_guess_between_two_calls_that_differ)
{
	unsigned char code[64] = { 0 };
	int32_t first = 100 - 7, second = 100 - 14; /* both to offset 100 */

	memcpy(code, "\x31\xf6\xe8", 3);
	memcpy(code + 3, &first, 4);
	memcpy(code + 7, "\x90\x90", 2);
	code[9] = 0xe8;
	memcpy(code + 10, &second, 4);
	cr_assert_eq(decode_tls_argument(code, sizeof code, 0, 100), 0); /* the first xor is seen from both */
	memcpy(code + 7, "\x31\xff", 2);
	memcpy(code + 0, "\xbe\x01\x00\x00\x00\x31\xf6\xe8", 8);
	first = 100 - 12;
	memcpy(code + 8, &first, 4);
	memcpy(code + 12, "\xbe\x01\x00\x00\x00\xe8", 6);
	second = 100 - 22;
	memcpy(code + 18, &second, 4);
	cr_assert_eq(decode_tls_argument(code, sizeof code, 0, 100), TLS_ARGUMENT_UNKNOWN);
}

Test(decode, reads_python_versions)
{
	int major, minor, micro;
	uint32_t hex;

	cr_assert(decode_python_version("3.8.18", &major, &minor, &micro, &hex));
	cr_assert(major == 3 && minor == 8 && micro == 18 && hex == 0x030812f0);
	cr_assert(decode_python_version("3.14.0rc2+", &major, &minor, &micro, &hex));
	cr_assert_eq(hex, 0x030e00c2);
	cr_assert(decode_python_version("3.13.0a4", &major, &minor, &micro, &hex));
	cr_assert_eq(hex, 0x030d00a4);
	cr_assert(decode_python_version("2.7.18", &major, &minor, &micro, &hex));
	cr_assert_eq(major, 2);
	cr_assert(!decode_python_version("python", &major, &minor, &micro, &hex));
	cr_assert(!decode_python_version("3.", &major, &minor, &micro, &hex));
}

/* ---- images: our own libc ---- */

/* Not RTLD_DEFAULT: a sanitizer defines some of these itself. */
static void *own_libc(void)
{
	return dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
}

static bool open_own(const char *function, struct image *out, struct maps *maps)
{
	uint64_t addr = (uint64_t)(uintptr_t)dlsym(own_libc(), function);
	Dl_info info;

	cr_assert_eq(maps_read(&procfs_real, getpid(), maps), 0);
	cr_assert(dladdr((void *)(uintptr_t)addr, &info));
	return image_open(&(struct memory){ .pid = getpid() }, maps_find(maps, (uint64_t)(uintptr_t)info.dli_fbase), out);
}

Test(image, finds_the_symbols_that_the_loader_finds)
{
	static const char *const names[] = { "gnu_get_libc_version", "pthread_create", "dlopen", "memfd_create", "__libc_single_threaded" };
	struct image image;
	struct maps maps;

	cr_assert(open_own("gnu_get_libc_version", &image, &maps));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		cr_assert_eq(image_symbol(&image, names[i], NULL), (uint64_t)(uintptr_t)dlsym(own_libc(), names[i]), "%s", names[i]);
	cr_assert_eq(image_symbol(&image, "no_such_symbol_anywhere", NULL), 0);
	cr_assert_str_eq(image.soname, "libc.so.6");
	cr_assert(strlen(image.build_id) == 40);
	maps_done(&maps);
}

/* ---- memory ---- */

Test(memory, is_read_whole_or_not_at_all_by_either_way)
{
	const struct memory ways[] = { { .pid = getpid() }, { .pid = getpid(), .fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC) }, { .pid = getpid(), .fd = 900 /* not open */ } };
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), found[16];

	cr_assert_neq(pages, MAP_FAILED);
	strcpy(pages + 4090, "hello");
	munmap(pages + 4096, 4096);
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		cr_assert_eq(memory_read(&ways[i], (uint64_t)(uintptr_t)pages + 4090, found, 6), 0);
		cr_assert_str_eq(found, "hello");
		errno = 0;
		cr_assert_eq(memory_read(&ways[i], (uint64_t)(uintptr_t)pages + 4090, found, 7), -1);
		cr_assert_eq(errno, EFAULT);
		cr_assert_eq(memory_read(&ways[i], UINT64_MAX - 3, found, 6), -1);
	}
	close(ways[1].fd);
}

Test(image, is_not_fooled_by_memory_that_is_no_elf_file)
{
	struct maps maps = maps_from("1000-2000 r-xp 00000000 00:01 5 /x\n");
	struct image image;

	cr_assert(!image_open(&(struct memory){ .pid = getpid() }, &maps.list[0], &image));
	maps_done(&maps);
}

Test(image, reads_no_build_id_out_of_garbage)
{
	unsigned char bytes[256];
	char id[64];

	for (unsigned seed = 0; seed < 2000; seed++) {
		unsigned random = seed;

		for (size_t i = 0; i < sizeof bytes; i++)
			bytes[i] = (unsigned char)rand_r(&random);
		memcpy(bytes, "\177ELF\2\1\1", 7);
		bytes[54] = 56, bytes[55] = 0; /* the size of a program header, so that it looks further */
		image_build_id_of(bytes, seed % sizeof bytes, id, sizeof id);
		cr_assert(strlen(id) < sizeof id);
	}
}

/* ---- how a system call goes on ---- */

static struct resume plan(long nr, long result, int32_t timeout, int64_t watched)
{
	struct user_regs_struct regs = { .rip = 0x1002, .orig_rax = (unsigned long long)nr, .rax = (unsigned long long)result, .r10 = (uint32_t)timeout };
	struct resume resume;

	resume_plan(&regs, watched, &resume);
	return resume;
}

Test(resume, leaves_a_thread_alone_that_was_in_no_call)
{
	struct resume resume = plan(-1, -4, 0, 0);

	cr_assert(resume.rip == 0x1002 && resume.rax == (uint64_t)-4 && !resume.restarts && !resume.heeds_signals);
}

Test(resume, leaves_a_finished_call_alone)
{
	struct resume resume = plan(SYS_read, 17, 0, 0);

	cr_assert(resume.rip == 0x1002 && resume.rax == 17 && !resume.restarts);
}

Test(resume, restarts_as_the_kernel_does)
{
	struct resume resume = plan(SYS_read, -512, 0, 0);

	cr_assert(resume.rip == 0x1000 && resume.rax == SYS_read && resume.heeds_signals && resume.ask_restart && !resume.repaired);
	resume = plan(SYS_futex, -513, 0, 0);
	cr_assert(resume.rip == 0x1000 && resume.rax == SYS_futex && !resume.heeds_signals);
	resume = plan(SYS_ppoll, -514, 0, 0);
	cr_assert(resume.rip == 0x1000 && resume.rax == SYS_ppoll && resume.heeds_signals && !resume.ask_restart);
	resume = plan(SYS_nanosleep, -516, 0, 0);
	cr_assert(resume.rip == 0x1000 && resume.rax == SYS_restart_syscall && resume.heeds_signals && !resume.ask_restart);
}

Test(resume, makes_a_call_again_that_says_eintr_to_a_stop)
{
	struct resume resume = plan(SYS_epoll_wait, -EINTR, -1, 0);

	cr_assert(resume.rip == 0x1000 && resume.rax == SYS_epoll_wait && resume.repaired && resume.heeds_signals && (int32_t)resume.r10 == -1);
	cr_assert(plan(SYS_rt_sigtimedwait, -EINTR, 0, 0).repaired);
	cr_assert(plan(SYS_ppoll, -EINTR, 0, 0).repaired, "its limit could not be written back");
	cr_assert(plan(SYS_read, -EINTR, 0, 0).repaired, "a socket with SO_RCVTIMEO");
	cr_assert(!plan(SYS_close, -EINTR, 0, 0).repaired);
}

Test(resume, goes_on_behind_the_part_that_was_done)
{
	struct user_regs_struct regs = { .rip = 0x1002, .orig_rax = SYS_write, .rax = 4096, .rdi = 1, .rsi = 0x2000, .rdx = 10000 };
	struct resume resume;

	resume_plan(&regs, 0, &resume);
	cr_assert(resume.part_done == 4096 && resume.interrupted_rax == 4096 && resume.rip == 0x1002 && resume.heeds_signals);
	regs.rax = 10000;
	cr_assert(!resume_is_part(&regs), "all of it");
	regs.rax = (unsigned long long)-EPIPE;
	cr_assert(!resume_is_part(&regs));
	regs.rax = 4096;
	regs.orig_rax = SYS_read;
	cr_assert(!resume_is_part(&regs), "a short read is a whole one");
	regs.orig_rax = SYS_recvfrom;
	cr_assert(!resume_is_part(&regs));
	regs.r10 = MSG_WAITALL;
	cr_assert(resume_is_part(&regs));
	regs.r10 = MSG_WAITALL | MSG_PEEK;
	cr_assert(!resume_is_part(&regs), "it would be given the same bytes again");
}

Test(resume, takes_what_was_watched_off_a_time_limit_and_never_all_of_it)
{
	cr_assert_eq(plan(SYS_epoll_wait, -EINTR, 1000, 300).r10, 700);
	cr_assert_eq(plan(SYS_epoll_pwait, -EINTR, 1000, 0).r10, 1000);
	cr_assert_eq(plan(SYS_epoll_wait, -EINTR, 1000, 5000).r10, 1);
	cr_assert_eq((int32_t)plan(SYS_epoll_wait, -EINTR, -1, 300).r10, -1);
	cr_assert_eq(plan(SYS_epoll_wait, -EINTR, 0, 300).r10, 0);
	cr_assert_eq(plan(SYS_semtimedop, -EINTR, 1000, 300).r10, 1000, "r10 is a pointer there");
}

Test(threads, are_told_apart_by_their_system_call)
{
	static const struct {
		const char *line;
		enum thread_kind kind;
		int64_t timeout_ms;
	} rows[] = {
		{ "running", THREAD_RUNNING, -1 },
		{ "-1 0x7ffd 0x7f00", THREAD_RUNNING, -1 },
		{ "202 0x1 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f00", THREAD_BLOCKED, -1 },
		{ "232 0x5 0x7ff 0x40 0xffffffff 0x0 0x8 0x7ffd 0x7f00", THREAD_PRONE_INFINITE, -1 },
		{ "232 0x5 0x7ff 0x40 0x3e8 0x0 0x8 0x7ffd 0x7f00", THREAD_PRONE_FINITE, 1000 },
		{ "281 0x5 0x7ff 0x40 0x3e8 0x0 0x8 0x7ffd 0x7f00", THREAD_PRONE_FINITE, 1000 },
		{ "128 0x5 0x0 0x0 0x8 0x0 0x0 0x7ffd 0x7f00", THREAD_PRONE_INFINITE, -1 },
		{ "128 0x5 0x0 0x7ff0 0x8 0x0 0x0 0x7ffd 0x7f00", THREAD_PRONE_FINITE, -1 },
		{ "42 0x5 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f00", THREAD_UNFIT, -1 },
		{ "999 0x5 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f00", THREAD_UNKNOWN, -1 },
		{ "232 0x5", THREAD_UNKNOWN, -1 },
		{ "1 0x1 0x7ff0 0x100000 0x0 0x0 0x0 0x7ffd 0x7f00", THREAD_PRONE_INFINITE, -1 },
		{ "20 0x1 0x7ff0 0x2 0x0 0x0 0x0 0x7ffd 0x7f00", THREAD_UNKNOWN, -1 },
		{ "47 0x5 0x7ff0 0x100 0x0 0x0 0x0 0x7ffd 0x7f00", THREAD_UNKNOWN, -1 },
		{ "47 0x5 0x7ff0 0x0 0x0 0x0 0x0 0x7ffd 0x7f00", THREAD_PRONE_FINITE, -1 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct candidate candidate = { 0 };

		thread_classify(rows[i].line, &candidate);
		cr_assert_eq(candidate.kind, rows[i].kind, "%s", rows[i].line);
		cr_assert_eq(candidate.timeout_ms, rows[i].timeout_ms, "%s", rows[i].line);
	}
}

/* ---- seccomp ---- */

#define DENY(nr, action) \
	{ { BPF_LD | BPF_W | BPF_ABS, 0, 0, 0 }, { BPF_JMP | BPF_JEQ | BPF_K, 0, 1, nr }, { BPF_RET | BPF_K, 0, 0, action }, { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } }

Test(seccomp, judges_what_our_calls_would_meet)
{
	static const struct {
		struct sock_filter filter[4];
		enum seccomp_verdict verdict;
		int nr;
	} rows[] = {
		{ DENY(SYS_ptrace, SECCOMP_RET_KILL_PROCESS), SECCOMP_FINE, 0 },
		{ DENY(SYS_clone, SECCOMP_RET_KILL_PROCESS), SECCOMP_KILLS, SYS_clone },
		{ DENY(SYS_clone, SECCOMP_RET_KILL_THREAD), SECCOMP_KILLS, SYS_clone },
		{ DENY(SYS_rt_sigpending, SECCOMP_RET_TRAP), SECCOMP_KILLS, SYS_rt_sigpending },
		{ DENY(SYS_madvise, SECCOMP_RET_USER_NOTIF), SECCOMP_KILLS, SYS_madvise },
		{ DENY(SYS_memfd_create, SECCOMP_RET_ERRNO | 1), SECCOMP_FORBIDS, SYS_memfd_create },
		{ DENY(SYS_clone3, SECCOMP_RET_ERRNO | 38), SECCOMP_FINE, 0 },
		{ DENY(SYS_clone, SECCOMP_RET_LOG), SECCOMP_FINE, 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int nr = 0;

		cr_assert_eq(seccomp_judge(rows[i].filter, 4, 0x1000, 0x3d0f00, &nr), rows[i].verdict, "row %zu", i);
		cr_assert_eq(nr, rows[i].nr, "row %zu", i);
	}
}

Test(seccomp, sees_arguments)
{
	/* mprotect or mmap with PROT_EXEC kills: args[2] & 4 */
	struct sock_filter filter[] = {
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, 0 },
		{ BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SYS_mmap },
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, args[2]) },
		{ BPF_JMP | BPF_JSET | BPF_K, 0, 1, 4 },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW },
	};
	int nr;

	cr_assert_eq(seccomp_judge(filter, 6, 0x1000, 0, &nr), SECCOMP_KILLS);
	cr_assert_eq(nr, SYS_mmap);
}

Test(seccomp, takes_a_filter_that_makes_no_sense_for_deadly)
{
	struct sock_filter endless[] = { { BPF_JMP | BPF_JA, 0, 0, 0xffffffff } };
	struct sock_filter beyond[] = { { BPF_LD | BPF_W | BPF_ABS, 0, 0, 4000 }, { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } };
	struct sock_filter memory[] = { { BPF_ST, 0, 0, 16 }, { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } };
	struct seccomp_data data = { .nr = 1, .arch = AUDIT_ARCH_X86_64 };

	cr_assert_eq(seccomp_run(endless, 1, &data), SECCOMP_RET_KILL_PROCESS);
	cr_assert_eq(seccomp_run(beyond, 2, &data), SECCOMP_RET_KILL_PROCESS);
	cr_assert_eq(seccomp_run(memory, 2, &data), SECCOMP_RET_KILL_PROCESS);
	cr_assert_eq(seccomp_run(memory, 0, &data), SECCOMP_RET_KILL_PROCESS);
}

/* ---- the stub ---- */

Test(stub, has_the_data_that_c_believes_in)
{
	struct stub_data data;

	cr_assert_eq((size_t)(stub_end - stub_data), sizeof(struct stub_data));
	slot_data_init(&data);
	cr_assert(data.all_signals == UINT64_MAX && data.mxcsr == 0x1f80 && data.nap[1] == 100000 && data.clone_flags == 0x3d0f00);
	cr_assert(data.saved.rip == 0 && data.memfd_name[0] == 0, "an unused slot must look free");
}

Test(stub, leaves_room_for_two_in_a_page)
{
	cr_assert(STUB_SIZE <= 1900, "%zu bytes", STUB_SIZE);
}

Test(stub, changes_no_flag_before_it_has_saved_them)
{
	/* From the entry to lahf (0x9f) only mov, lea, jmp, jrcxz and syscall: none of the one-byte arithmetic opcodes at an instruction's
	 * start. The encoder's choices are few enough to walk. */
	const unsigned char *code = stub_entry;

	while (*code != 0x9f) {
		const unsigned char *at = code;
		bool segment = *at == 0x64, wide;

		at += segment;
		wide = (*at & 0xf8) == 0x48;
		if (wide || (*at & 0xf0) == 0x40)
			at++;
		if (at[0] == 0x0f && at[1] == 0x05) /* syscall */
			code = at + 2;
		else if (at[0] >= 0xb8 && at[0] <= 0xbf) /* mov r, imm */
			code = at + (wide && (code[segment] & 8) ? 9 : 5);
		else if (at[0] == 0xe3 || at[0] == 0xeb) /* jrcxz, jmp short */
			code = at + 2;
		else if (at[0] == 0xe9) /* jmp */
			code = at + 5;
		else if (at[0] == 0x89 || at[0] == 0x8b || at[0] == 0x8d || at[0] == 0xc6 || at[0] == 0xc7) { /* mov, lea */
			unsigned mod = at[1] >> 6, rm = at[1] & 7;
			size_t length = 2;

			length += mod != 3 && rm == 4; /* SIB */
			length += mod == 1 ? 1 : mod == 2 || (mod == 0 && rm == 5) ? 4 : 0;
			if (mod == 0 && rm == 4 && (at[2] & 7) == 5)
				length += 4;
			length += at[0] == 0xc6 ? 1 : at[0] == 0xc7 ? 4 : 0;
			code = at + length;
		} else {
			cr_assert_fail("opcode %02x at %zd", at[0], at - stub_begin);
		}
	}
}

Test(steps, are_all_in_the_table_in_order)
{
	size_t count;
	const struct inject_step *table = inject_steps(&count);

	cr_assert_eq(count, STEP_COUNT - 1);
	for (size_t i = 0; i < count; i++)
		cr_assert(table[i].number == (int)i + 1 && table[i].name[0] && table[i].undo[0]);
}

/* ---- refusals, from a folder that plays /proc ---- */

static void put(const char *folder, const char *name, const void *bytes, size_t size)
{
	char path[512], *slash;
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	for (slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(path, 0755);
	}
	file = fopen(path, "w");
	cr_assert(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static void put_status(const char *folder, int pid, char state, int tracer, unsigned caps, int flags)
{
	char text[1024], name[64];

	snprintf(text, sizeof text, "Name:\tpython\nState:\t%c (x)\nTgid:\t%d\nPid:\t%d\nPPid:\t1\nTracerPid:\t%d\nUid:\t%d\t%d\t%d\t%d\nGid:\t%d\t%d\t%d\t%d\n"
	         "Threads:\t1\nNSpid:\t%d\nVmSize:\t1000 kB\nSigBlk:\t0\nCapPrm:\t0\nCapEff:\t%x\nSeccomp:\t0\n", state, pid, pid, tracer, getuid(), getuid(), getuid(), getuid(),
	         getgid(), getgid(), getgid(), getgid(), pid, caps);
	snprintf(name, sizeof name, "%d/status", pid);
	put(folder, name, text, strlen(text));
	snprintf(text, sizeof text, "%d (python) %c 1 1 1 0 -1 %d 0 0 0 0 0 0 0 0 20 0 1 0 100 1000000 100 0\n", pid, state, flags);
	snprintf(name, sizeof name, "%d/stat", pid);
	put(folder, name, text, strlen(text));
}

static enum error_code refusal(const char *folder, pid_t pid, char *text, size_t size)
{
	struct procfs procfs = { folder };
	struct inject_options options = { .procfs = &procfs };
	struct target *target = NULL;
	struct error err = { 0 };

	cr_assert_eq(target_open(pid, &options, &target, &err), -1);
	snprintf(text, size, "%s", err.text);
	cr_assert(err.hint[0], "every refusal says what to do");
	target_close(target);
	return err.code;
}

static const char *play_proc(void)
{
	static char folder[64];

	snprintf(folder, sizeof folder, "/tmp/inferscope-proc-XXXXXX");
	cr_assert(mkdtemp(folder));
	put_status(folder, getpid(), 'R', 0, 0x80000, 0); /* ours: CAP_SYS_PTRACE */
	return folder;
}

static void remove_proc(const char *folder)
{
	char command[128];

	snprintf(command, sizeof command, "rm -r %s", folder);
	cr_assert_eq(system(command), 0);
}

Test(refusal, names_the_state)
{
	const char *folder = play_proc();
	char text[1024];

	put_status(folder, 71, 'Z', 0, 0, 0);
	put_status(folder, 72, 'T', 0, 0, 0);
	put_status(folder, 73, 'S', 71, 0, 0);
	put_status(folder, 74, 'S', 0, 0, 0x00200000);
	put(folder, "71/comm", "gdb\n", 4);
	cr_assert_eq(refusal(folder, 70, text, sizeof text), ERR_NO_PROCESS);
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_ZOMBIE);
	cr_assert_eq(refusal(folder, 72, text, sizeof text), ERR_STOPPED);
	cr_assert_eq(refusal(folder, 73, text, sizeof text), ERR_ALREADY_TRACED);
	cr_assert_str_eq(text, "cannot attach to 73: already traced by 71 (gdb)");
	cr_assert_eq(refusal(folder, 74, text, sizeof text), ERR_KERNEL_THREAD);
	cr_assert_eq(refusal(folder, getpid(), text, sizeof text), ERR_OWN_PROCESS);
	remove_proc(folder);
}

Test(refusal, names_yama_and_its_value)
{
	const char *folder = play_proc();
	char text[1024];

	put_status(folder, 71, 'S', 0, 0, 0);
	put(folder, "sys/kernel/yama/ptrace_scope", "3\n", 2);
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_YAMA);
	put_status(folder, getpid(), 'R', 0, 0, 0); /* no capability */
	put(folder, "sys/kernel/yama/ptrace_scope", "1\n", 2);
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_YAMA);
	cr_assert(strstr(text, "ptrace_scope is 1"), "%s", text);
	put(folder, "sys/kernel/yama/ptrace_scope", "2\n", 2);
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_YAMA);
	remove_proc(folder);
}

Test(refusal, warns_of_what_surrounds_it)
{
	const char *folder = play_proc();
	char proc[128], said[4096] = "";
	struct procfs procfs = { proc };
	struct inject_options options = { .procfs = &procfs };
	struct target *target = NULL;
	struct error err = { 0 };

	snprintf(proc, sizeof proc, "%s/proc", folder);
	put(folder, "proc/self/timens_offsets", "monotonic 0 0\nboottime 0 0\n", 28);
	put_status(proc, getpid(), 'R', 0, 0x80000, 0);
	put_status(proc, 71, 'S', 0, 0, 0);
	put(proc, "71/timens_offsets", "monotonic 86400 500000000\nboottime 0 0\n", 40);
	put(proc, "71/cgroup", "0::/box\n", 8);
	put(folder, "sys/fs/cgroup/box/memory.max", "104857600\n", 10);
	put(folder, "sys/fs/cgroup/box/memory.current", "103809024\n", 10);
	cr_assert_eq(target_open(71, &options, &target, &err), -1); /* there is no interpreter */
	for (size_t i = 0; i < target_finding_count(target); i++)
		snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", target_finding(target, i)->text);
	cr_assert(strstr(said, "86400.500 s"), "%s", said);
	cr_assert(strstr(said, "1 MiB left of 100"), "%s", said);
	cr_assert_eq(target_facts(target)->clock_ahead_ns, 86400500000000);
	target_close(target);
	put(proc, "sys/vm/memfd_noexec", "2\n", 2);
	cr_assert_eq(target_open(71, &options, &target, &err), -1);
	cr_assert_eq(err.code, ERR_INJECT);
	target_close(target);
	remove_proc(folder);
}

Test(refusal, names_a_program_of_another_architecture)
{
	unsigned char elf[64] = "\177ELF\1\1\1";
	const char *folder = play_proc();
	char text[1024];

	put_status(folder, 71, 'S', 0, 0, 0);
	put(folder, "71/exe", elf, sizeof elf);
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_ARCHITECTURE);
	cr_assert(strstr(text, "32-bit"), "%s", text);
	elf[4] = 2;
	elf[18] = 183; /* AArch64 */
	put(folder, "71/exe", elf, sizeof elf);
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_ARCHITECTURE);
	remove_proc(folder);
}

Test(refusal, names_a_process_without_an_interpreter)
{
	const char *folder = play_proc();
	char text[1024];

	put_status(folder, 71, 'S', 0, 0, 0);
	put(folder, "71/maps", "", 0);
	put(folder, "71/auxv", "", 0);
	cr_assert_eq(refusal(folder, 71, text, sizeof text), ERR_NOT_PYTHON);
	remove_proc(folder);
}

static int memfd_try(int fd, int flags, struct error *err)
{
	memset(err, 0, sizeof *err);
	return memfd_open(&procfs_real, getpid(), fd, "some-library", flags, err);
}

Test(memfd, opens_the_one_that_was_made)
{
	struct error err;
	int made = memfd_create("some-library", MFD_CLOEXEC), own = memfd_try(made, O_WRONLY, &err);

	cr_assert_geq(own, 0, "%s", err.text);
	cr_assert_eq(write(own, "x", 1), 1);
	cr_assert_eq(lseek(made, 0, SEEK_END), 1);
	cr_assert_eq(memfd_try(made, O_WRONLY, &err), -1, "it is not empty any more");
	close(own);
	close(made);
}

/* We may be root where the target is not: what it can only read must not be opened for writing, and a pipe must not keep us waiting. */
Test(memfd, opens_nothing_else_that_stands_there)
{
	char folder[] = "/tmp/inferscope-memfd-XXXXXX", file[64], pipe[64];
	struct error err;
	int others[5];

	cr_assert(mkdtemp(folder));
	snprintf(file, sizeof file, "%s/file", folder);
	snprintf(pipe, sizeof pipe, "%s/pipe", folder);
	cr_assert_eq(mkfifo(pipe, 0600), 0);
	others[0] = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	others[1] = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	others[2] = memfd_create("another", MFD_CLOEXEC);
	others[3] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	others[4] = open(folder, O_PATH | O_CLOEXEC);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		cr_assert_geq(others[i], 0);
		cr_assert_eq(memfd_try(others[i], O_WRONLY, &err), -1);
		cr_assert_eq(err.code, ERR_INJECT);
		cr_assert(strstr(err.text, "is not the memfd"), "%s", err.text);
	}
	cr_assert_eq(unlink(file), 0);
	cr_assert_eq(memfd_try(others[0], O_WRONLY, &err), -1, "a file without a name");
	close(others[4]);
	cr_assert_eq(memfd_try(others[4], O_WRONLY, &err), -1, "no descriptor at all");
	for (int i = 0; i < 4; i++)
		close(others[i]);
	unlink(pipe);
	rmdir(folder);
}
