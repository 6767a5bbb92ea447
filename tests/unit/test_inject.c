/* The parts of entering that need no other process: maps, images, memory, restart rules, filters. Machine code is inject_code.c's, refusals are inject_refusal.c's. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <dlfcn.h>
#include <elf.h>
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

#include "base/clock.h"
#include "base/mappings.h"
#include "inject/got.h"
#include "inject/image.h"
#include "inject/inject.h"
#include "inject/memfd.h"
#include "inject/memory.h"
#include "inject/resume.h"
#include "inject/seccomp.h"
#include "inject/slot.h"
#include "inject/steps.h"
#include "inject/threads.h"
#include "tests/unit/folder.h"

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
	return image_open(&(struct memory){ .pid = getpid() }, maps, maps_find(maps, (uint64_t)(uintptr_t)info.dli_fbase), out);
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

/* ---- slots of our own libraries ---- */

Test(got, slots_lie_in_memory_that_may_be_written_and_lead_to_the_function_or_into_their_own_library)
{
	static const char *const names[] = { "free", "malloc" };
	const struct memory own = { .pid = getpid() };
	uint64_t libraries = 0;
	struct maps maps;

	cr_assert_eq(maps_read(&procfs_real, getpid(), &maps), 0);
	for (size_t i = 0; i < maps.count; i++) {
		struct got got = { 0 };
		struct image image;
		bool read_only = false;

		if (maps.list[i].offset || !maps.list[i].inode || !image_open(&own, &maps, &maps.list[i], &image))
			continue;
		cr_assert(got_read(&image, names, 2, &got, &read_only));
		libraries += got.slots.count || read_only;
		for (size_t s = 0; s < got.slots.count; s++) {
			const struct got_slot *slot = &got.slots.items[s];
			const struct mapping *holds = maps_find(&maps, slot->at), *leads = maps_find(&maps, slot->value);

			cr_assert(holds && holds->writable && image_has(&image, slot->at) && slot->at % 8 == 0);
			cr_assert(leads && leads->executable);
			cr_assert_eq(slot->bound, !image_has(&image, slot->value));
			cr_assert_lt(slot->name, 2);
		}
		got_done(&got);
	}
	cr_assert_gt(libraries, 0);
	maps_done(&maps);
}

/* What a file says of itself may be anything: nothing is read outside it, and nothing is found. */
Test(got, tables_that_lead_out_of_the_library_are_not_followed)
{
	static const char *const names[] = { "malloc" };
	struct image image;
	struct maps maps;
	struct got got = { 0 };
	bool read_only = false;

	cr_assert(open_own("gnu_get_libc_version", &image, &maps));
	image.jmprel = image.high - 8;
	image.jmprel_size = 1 << 20;
	image.rela = image.low - 4096;
	image.rela_size = UINT64_MAX;
	cr_assert(got_read(&image, names, 1, &got, &read_only));
	cr_assert_eq(got.slots.count, 0);
	image.rela = image.low;
	image.rela_size = 24 << 10;
	image.symtab = image.high - 1;
	cr_assert(got_read(&image, names, 1, &got, &read_only));
	cr_assert_eq(got.slots.count, 0);
	got_done(&got);
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

	cr_assert(!image_open(&(struct memory){ .pid = getpid() }, &maps, &maps.list[0], &image));
	maps_done(&maps);
}

/* A file of four pages, program headers in the last one; WHICH of them are mapped, bit by bit, at their places from *start on. */
static void map_far_headers(unsigned which, int protection, struct maps *maps, uint64_t *start)
{
	int fd = memfd_create("far.so", MFD_CLOEXEC);
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 }, .e_machine = EM_X86_64, .e_phoff = 3 * 4096, .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2 };
	Elf64_Phdr headers[2] = { { .p_type = PT_LOAD, .p_memsz = 4 * 4096, .p_filesz = 4 * 4096 }, { .p_type = PT_TLS, .p_memsz = 7777, .p_align = 64 } };
	char *room = mmap(NULL, 4 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(fd >= 0 && room != MAP_FAILED && ftruncate(fd, 4 * 4096) == 0);
	cr_assert(pwrite(fd, &header, sizeof header, 0) == sizeof header && pwrite(fd, headers, sizeof headers, 3 * 4096) == sizeof headers);
	for (unsigned page = 0; page < 4; page++)
		if (which & 1u << page)
			cr_assert_neq(mmap(room + page * 4096, 4096, page == 1 ? protection : PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, (off_t)page * 4096), MAP_FAILED);
	cr_assert_eq(maps_read(&procfs_real, getpid(), maps), 0);
	*start = (uint64_t)(uintptr_t)room;
}

Test(image, finds_program_headers_that_a_tool_has_moved_to_the_end_of_the_file)
{
	const struct memory own = { .pid = getpid() };
	const struct mapping *mapping;
	struct image image;
	struct maps maps;
	uint64_t start;

	map_far_headers(0xf, PROT_READ | PROT_EXEC, &maps, &start);
	mapping = maps_find(&maps, start);
	cr_assert(image_open(&own, &maps, mapping, &image));
	cr_assert_eq(image.tls_size, 7777);
	cr_assert_eq(image.high, start + 4 * 4096);
	cr_assert_not(image_is_riddle(&own, &maps, mapping));
	maps_done(&maps);
}

Test(image, is_a_riddle_where_its_program_headers_are_not_mapped_and_its_code_is)
{
	const struct memory own = { .pid = getpid() };
	struct image image;
	struct maps maps;
	uint64_t start;

	map_far_headers(3, PROT_READ | PROT_EXEC, &maps, &start);
	cr_assert_not(image_open(&own, &maps, maps_find(&maps, start), &image));
	cr_assert(image_is_riddle(&own, &maps, maps_find(&maps, start)));
	maps_done(&maps);
	map_far_headers(3, PROT_READ, &maps, &start);
	cr_assert_not(image_is_riddle(&own, &maps, maps_find(&maps, start)), "a file that is only read");
	maps_done(&maps);
}

/* An image by hand with both tables of hashes, each one chain through all symbols, in order and without an end. */
enum { CHAINED = 3000 };
struct chained {
	struct { uint32_t count, first, blooms, shift, bucket, chain[CHAINED]; } gnu;
	struct { uint32_t count, symbols, bucket, chain[CHAINED]; } sysv;
	Elf64_Sym symbols[CHAINED];
	char names[16];
};

static uint64_t find_chained(struct chained *chained, uint32_t place, bool gnu)
{
	static const char name[] = "wanted";
	uint64_t low = (uint64_t)(uintptr_t)chained;
	struct image image = { .memory = { .pid = getpid() }, .bias = low, .low = low, .high = low + sizeof *chained, .symtab = low + offsetof(struct chained, symbols),
		.strtab = low + offsetof(struct chained, names), .strtab_size = sizeof chained->names };
	uint32_t hash = 5381;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	memset(chained, 0, sizeof *chained);
	chained->gnu.count = chained->gnu.bucket = chained->sysv.count = chained->sysv.bucket = 1;
	for (uint32_t i = 0; i < CHAINED; i++) {
		chained->gnu.chain[i] = hash & ~1u; /* an odd one would be the last */
		chained->sysv.chain[i] = i + 1 < CHAINED ? i + 1 : 1;
	}
	strcpy(chained->names + 1, name);
	chained->symbols[place] = (Elf64_Sym){ .st_name = 1, .st_shndx = 1, .st_value = 8 };
	*(gnu ? &image.gnu_hash : &image.hash) = low + (gnu ? offsetof(struct chained, gnu) : offsetof(struct chained, sysv));
	return image_symbol(&image, name, NULL);
}

Test(image, a_chain_that_does_not_end_is_left)
{
	struct chained *chained = malloc(sizeof *chained);

	for (int gnu = 0; gnu < 2; gnu++) {
		cr_expect_eq(find_chained(chained, 1024, gnu), (uint64_t)(uintptr_t)chained + 8, "%d: the last step", gnu);
		cr_expect_eq(find_chained(chained, 1025, gnu), 0, "%d", gnu);
		cr_expect_eq(find_chained(chained, 0, gnu), 0, "%d: no symbol of the chain", gnu);
	}
	free(chained);
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

static const char waiting_thread[] = "Name:\tpython\nState:\tS (sleeping)\nUid:\t0\t0\t0\t0\n";

/* A process of one thread, 71, that waits for a futex, in a folder that plays /proc. */
static struct target play_waiting(char folder[FOLDER_BYTES])
{
	struct target target = { .pid = 71 };

	folder_make(folder);
	target.procfs.root = folder;
	folder_write(folder, "71/task/71/status", waiting_thread);
	folder_write(folder, "71/task/71/syscall", "202 0x1 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f00\n");
	return target;
}

/* As far as whoever borrows goes: chosen again while it is not fit at a second look. */
static enum error_code choose(const struct target *target, uint64_t deadline_ns, const char *unreadable)
{
	struct choice choice = { 0 };
	struct candidate thread;
	struct error err = { 0 };
	char command[256];

	snprintf(command, sizeof command, "cd '%s/71/task/71' && rm %s && mkdir %s", target->procfs.root, unreadable, unreadable);
	cr_assert_eq(threads_choose(target, &choice, deadline_ns, &thread, &err), 0, "%s", err.text);
	cr_assert_eq(system(command), 0);
	while (!thread_still_fit(target, &choice, &thread))
		if (threads_choose_again(target, &choice, deadline_ns, &err) < 0)
			return err.code;
	return 0;
}

Test(threads, that_cannot_be_read_any_more_are_told_as_that_and_not_chosen_for_ever, .timeout = 10)
{
	static const char *const files[] = { "status", "syscall" }; /* folders instead: EISDIR */
	struct choice choice = { 0 };
	struct candidate thread;
	struct error err = { 0 };
	char folder[FOLDER_BYTES];

	for (size_t i = 0; i < 2; i++) {
		struct target target = play_waiting(folder);

		cr_assert_eq(choose(&target, UINT64_MAX, files[i]), ERR_INJECT, "chosen, then not to be read: %s", files[i]);
		cr_assert_eq(threads_choose(&target, &choice, UINT64_MAX, &thread, &err), -1);
		cr_assert_eq(err.code, ERR_INJECT, "%s", err.text);
		cr_assert(strstr(err.text, strerror(EISDIR)), "%s", err.text);
		folder_remove(folder);
	}
}

Test(threads, that_do_something_else_whenever_they_are_looked_at_are_given_up_in_time, .timeout = 10)
{
	struct choice choice = { 0 };
	struct candidate thread;
	struct error err = { 0 };
	char folder[FOLDER_BYTES];
	struct target target = play_waiting(folder);
	uint64_t deadline_ns = clock_monotonic_ns() + 50000000;

	cr_assert_eq(threads_choose(&target, &choice, deadline_ns, &thread, &err), 0, "%s", err.text);
	folder_write(folder, "71/task/71/syscall", "999 0x1 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f00\n");
	while (!thread_still_fit(&target, &choice, &thread) && threads_choose_again(&target, &choice, deadline_ns, &err) == 0)
		;
	cr_assert_eq(err.code, ERR_NO_THREAD, "%s", err.text);
	folder_remove(folder);
}

enum { OUTER_FIRST = 10000 };

/* Thread N of a process in a pid namespace of its own, in which it counts from 1. */
static void put_inner(const char *folder, int n, char state)
{
	char file[64], text[128];

	snprintf(file, sizeof file, "%d/task/%d/status", OUTER_FIRST, OUTER_FIRST + n - 1);
	snprintf(text, sizeof text, "Name:\tpython\nState:\t%c (any)\nUid:\t0\t0\t0\t0\nNSpid:\t%d\t%d\n", state, OUTER_FIRST + n - 1, n);
	folder_write(folder, file, text);
}

static struct target play_namespace(char folder[FOLDER_BYTES], int threads)
{
	struct target target = { .pid = OUTER_FIRST, .status.ns_depth = 2 };

	folder_make(folder);
	target.procfs.root = folder;
	for (int n = 1; n <= threads; n++)
		put_inner(folder, n, 'S');
	return target;
}

Test(slot, a_thread_in_a_namespace_is_found_however_many_others_there_are)
{
	enum { THREADS = 4300 };
	static const int places[] = { 0, 1000, 4095, 4096, THREADS - 1 }; /* of the list, in whichever order the folder has it */
	static pid_t tids[THREADS];
	char folder[FOLDER_BYTES];
	struct target target = play_namespace(folder, THREADS);

	cr_assert_eq(procfs_threads(&target.procfs, target.pid, tids, THREADS), THREADS);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		pid_t tid = tids[places[i]], inner = tid - OUTER_FIRST + 1;

		cr_assert(slot_thread_lives(&target, inner), "the one at %d of the list is taken for gone", places[i]);
		cr_assert_eq(target_outer_tid(&target, inner), tid);
	}
	cr_assert(!slot_thread_lives(&target, THREADS + 1));
	cr_assert_eq(target_outer_tid(&target, THREADS + 1), 0);
	folder_remove(folder);
}

Test(slot, a_thread_that_nobody_can_be_sure_of_lives)
{
	char folder[FOLDER_BYTES], path[256];
	struct target target = play_namespace(folder, 3);

	put_inner(folder, 3, 'Z');
	cr_assert(!slot_thread_lives(&target, 3), "it has ended, and waits for nothing any more");
	snprintf(path, sizeof path, "%s/%d/task/%d/status", folder, OUTER_FIRST, OUTER_FIRST + 1);
	cr_assert_eq(unlink(path), 0);
	cr_assert(!slot_thread_lives(&target, 2), "it ended after it was listed");
	cr_assert_eq(mkdir(path, 0700), 0); /* EISDIR */
	cr_assert(slot_thread_lives(&target, 2), "it may be the one that cannot be read");
	cr_assert(slot_thread_lives(&target, 1), "another one that cannot be read does not matter");
	cr_assert_eq(target_outer_tid(&target, 1), OUTER_FIRST);
	cr_assert_eq(target_outer_tid(&target, 2), -1);
	folder_remove(folder);
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
		{ DENY(SYS_munlock, SECCOMP_RET_KILL_PROCESS), SECCOMP_KILLS, SYS_munlock },
		{ DENY(SYS_munlock, SECCOMP_RET_ERRNO | 1), SECCOMP_FINE, 0 },
		{ DENY(SYS_memfd_create, SECCOMP_RET_ERRNO | 1), SECCOMP_FORBIDS, SYS_memfd_create },
		{ DENY(SYS_clone3, SECCOMP_RET_ERRNO | 38), SECCOMP_FINE, 0 },
		{ DENY(SYS_clone, SECCOMP_RET_LOG), SECCOMP_FINE, 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int nr = 0;

		cr_assert_eq(seccomp_judge(rows[i].filter, 4, 0x1000, 0x3d0f00, true, &nr), rows[i].verdict, "row %zu", i);
		cr_assert_eq(nr, rows[i].nr, "row %zu", i);
		if (nr == SYS_munlock)
			cr_assert_eq(seccomp_judge(rows[i].filter, 4, 0x1000, 0x3d0f00, false, &nr), SECCOMP_FINE, "it is not called where no memory is locked");
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

	cr_assert_eq(seccomp_judge(filter, 6, 0x1000, 0, false, &nr), SECCOMP_KILLS);
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

/* ---- the steps ---- */

Test(steps, are_all_in_the_table_in_order)
{
	size_t count;
	const struct inject_step *table = inject_steps(&count);

	cr_assert_eq(count, STEP_COUNT - 1);
	for (size_t i = 0; i < count; i++)
		cr_assert(table[i].number == (int)i + 1 && table[i].name[0] && table[i].undo[0]);
}

/* ---- the collector's memfd ---- */

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
	char folder[FOLDER_BYTES], file[FOLDER_BYTES + 8], pipe[FOLDER_BYTES + 8];
	struct error err;
	int others[5];

	folder_make(folder);
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
	folder_remove(folder);
}
