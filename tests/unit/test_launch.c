/* Starting programs, without a Python: what is refused, what is followed, how ends are told. With Pythons: tests/live/launch/run. */
#include "inject/launch.h"

#include "inject/remote_elf.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int start(const char *first, const char *second, const char *third, struct launch **out, struct error *err)
{
	char *argv[] = { (char *)first, (char *)second, (char *)third, NULL };

	return launch_start(argv, NULL, out, err);
}

static int shell_status(const char *script)
{
	struct launch *launch = NULL;
	struct error err = { 0 };
	int status = -1;

	cr_assert_eq(start("sh", "-c", script, &launch, &err), 0, "%s", err.text);
	cr_assert(!launch_at_gate(launch));
	cr_assert_eq(launch_wait(launch, -1, &status, &err), 1);
	launch_close(launch);
	return status;
}

Test(launch, names_a_program_that_does_not_exist)
{
	struct launch *launch = NULL;
	struct error err = { 0 };

	cr_assert_eq(start("/nonexistent/python3", NULL, NULL, &launch, &err), -1);
	cr_assert_eq(err.code, ERR_LAUNCH);
	cr_assert_not_null(strstr(err.text, "/nonexistent/python3"));
	cr_assert_null(launch);
}

Test(launch, refuses_a_program_that_is_no_python_before_it_does_anything)
{
	struct launch *launch = NULL;
	struct error err = { 0 };
	char path[] = "/tmp/launch-unit-XXXXXX";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(start("rm", path, NULL, &launch, &err), -1);
	cr_assert_eq(err.code, ERR_LAUNCH_REFUSED);
	cr_assert_eq(access(path, F_OK), 0, "rm has run");
	unlink(path);
	errno = 0;
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
}

Test(launch, tells_the_status_of_a_wrapper_that_never_becomes_python)
{
	int status = shell_status("exit 3");

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

Test(launch, tells_the_signal_that_ended_a_wrapper)
{
	int status = shell_status("kill -TERM $$");

	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

Test(launch, follows_exec_to_a_program_that_is_refused)
{
	struct launch *launch = NULL;
	struct error err = { 0 };

	cr_assert_eq(start("sh", "-c", "exec sleep 60", &launch, &err), -1);
	cr_assert_eq(err.code, ERR_LAUNCH_REFUSED);
	cr_assert_not_null(strstr(err.text, "sleep"), "%s", err.text);
}

Test(launch, passes_a_stop_signal_on_and_a_continue_too, .timeout = 20)
{
	int status = shell_status("(sleep 0.2; kill -CONT $$) & kill -STOP $$; exit 5");

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static void count_tick(void *context, pid_t pid)
{
	int *ticks = context;

	cr_assert_gt(pid, 0);
	++*ticks;
}

Test(launch, gives_the_caller_time_while_a_wrapper_runs)
{
	char *argv[] = { "sh", "-c", "sleep 0.3", NULL };
	struct launch *launch = NULL;
	struct error err = { 0 };
	int ticks = 0;

	cr_assert_eq(launch_start_watched(argv, NULL, count_tick, &ticks, &launch, &err), 0, "%s", err.text);
	cr_assert_geq(ticks, 5);
	launch_close(launch);
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *context)
{
	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	*(remote_addr *)context = info->dlpi_addr;
	return 1;
}

Test(remote_elf, finds_what_dlsym_finds_in_libc)
{
	remote_addr base = 0;
	struct remote_elf elf;

	dl_iterate_phdr(find_libc, &base);
	cr_assert_eq(remote_elf_open(getpid(), base, &elf), 0);
	cr_assert_eq(remote_elf_symbol(&elf, "getpid"), (remote_addr)(uintptr_t)dlsym(RTLD_DEFAULT, "getpid"));
	cr_assert_eq(remote_elf_symbol(&elf, "no_such_symbol_here"), 0);
	cr_assert_gt(elf.code_end, elf.code_start);
}

/* An object whose hash table loops, and whose numbers point anywhere. */
static void hostile_object(unsigned char *page, uint32_t buckets, uint32_t chain_word)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)page;
	Elf64_Phdr *segments = (Elf64_Phdr *)(page + 64);
	Elf64_Dyn *dynamic = (Elf64_Dyn *)(page + 256);
	uint32_t *hash = (uint32_t *)(page + 1024);

	memcpy(header->e_ident, ELFMAG, SELFMAG);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_machine = EM_X86_64;
	header->e_phentsize = sizeof *segments;
	header->e_phoff = 64;
	header->e_phnum = 2;
	segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = 4096, .p_filesz = 4096 };
	segments[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC, .p_vaddr = 256, .p_memsz = 7 * sizeof *dynamic };
	dynamic[0] = (Elf64_Dyn){ DT_SYMTAB, { 2048 } };
	dynamic[1] = (Elf64_Dyn){ DT_STRTAB, { 3000 } };
	dynamic[2] = (Elf64_Dyn){ DT_STRSZ, { ~0ull } };
	dynamic[3] = (Elf64_Dyn){ DT_GNU_HASH, { 1024 } };
	hash[0] = buckets;
	hash[2] = 0;
	for (int i = 4; i < 200; i++)
		hash[i] = chain_word;
}

Test(remote_elf, survives_hostile_tables, .timeout = 20)
{
	static const uint32_t bucket_counts[] = { 0, 1, 0xffffffff };
	static const uint32_t words[] = { 0, 1, 2, 0x7ffffffe, 0xffffffff };

	for (size_t i = 0; i < 3; i++)
		for (size_t j = 0; j < 5; j++) {
			unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			struct remote_elf elf;

			hostile_object(page, bucket_counts[i], words[j]);
			cr_assert_eq(remote_elf_open(getpid(), (remote_addr)(uintptr_t)page, &elf), 0);
			cr_assert_eq(remote_elf_symbol(&elf, "Py_RunMain"), 0);
			munmap(page, 4096);
		}
}

Test(remote_elf, refuses_what_is_no_object)
{
	static const char text[4096] = "#!/bin/sh\n";
	struct remote_elf elf;

	cr_assert_eq(remote_elf_open(getpid(), (remote_addr)(uintptr_t)text, &elf), -1);
	cr_assert_eq(remote_elf_open(getpid(), 0x10, &elf), -1);
}
