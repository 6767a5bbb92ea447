/*
 * Preloaded into inferscope: one call of one kind fails, the FAILING_AT-th (or all from it on, with FAILING_ON), or is slow. A process that the
 * attacher forks goes on counting from where it was. FAILING_COUNT names a file to which each process adds the number of calls that it saw.
 *
 * Allocations fail for callers in the program alone: without memory libdw 0.188 asserts, reads NULL or ends the program, and regcomp of glibc 2.36 frees twice.
 *
 *   FAILING_KIND=memory|map|thread|write|read   FAILING_ERROR=28 (errno; memory: ENOMEM)   FAILING_SLOW=MICROSECONDS instead
 *   FAILING_WHERE=FILE gets the address in the program to which the first allocation that failed returns, for addr2line
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* glibc's own, so that nothing has to be looked up, which would allocate. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

enum kind { NOTHING, MEMORY, MAP, THREAD, WRITE, READ };
static const char *const kinds[] = { "", "memory", "map", "thread", "write", "read" };

static enum kind chosen;
static unsigned long fail_at;
static int error_number, goes_on;
static long slow_us;
static unsigned long count;
static uintptr_t load_bias, code_start, code_end;

static long number_of(const char *name, long otherwise)
{
	const char *value = getenv(name);

	return value ? strtol(value, NULL, 10) : otherwise;
}

/* The program itself comes first. */
static int remember_code(struct dl_phdr_info *object, size_t size, void *unused)
{
	load_bias = object->dlpi_addr;
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
			code_start = object->dlpi_addr + part->p_vaddr;
			code_end = code_start + part->p_memsz;
		}
	}
	return 1;
}

__attribute__((constructor)) static void read_wish(void)
{
	const char *kind = getenv("FAILING_KIND");

	dl_iterate_phdr(remember_code, NULL);
	fail_at = (unsigned long)number_of("FAILING_AT", 0);
	error_number = (int)number_of("FAILING_ERROR", ENOMEM);
	goes_on = (int)number_of("FAILING_ON", 0);
	slow_us = number_of("FAILING_SLOW", 0);
	for (size_t i = 1; kind && i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kind, kinds[i]) == 0)
			chosen = i;
}

__attribute__((destructor)) static void tell_count(void)
{
	const char *path = getenv("FAILING_COUNT");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	chosen = NOTHING;
	if (fd >= 0) {
		dprintf(fd, "%lu\n", count);
		close(fd);
	}
}

static int fails(enum kind kind)
{
	unsigned long at;

	if (kind != chosen)
		return 0;
	at = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
	if (slow_us) {
		nanosleep(&(struct timespec){ slow_us / 1000000, slow_us % 1000000 * 1000 }, NULL);
		return 0;
	}
	if (!fail_at || (goes_on ? at < fail_at : at != fail_at))
		return 0;
	errno = error_number;
	return 1;
}

static void tell_where(uintptr_t caller)
{
	static int told;
	const char *path = getenv("FAILING_WHERE");
	int fd = path && !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED) ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "%#lx\n", (unsigned long)(caller - load_bias));
	close(fd);
}

static int memory_fails(const void *caller)
{
	if ((uintptr_t)caller < code_start || (uintptr_t)caller >= code_end || !fails(MEMORY))
		return 0;
	tell_where((uintptr_t)caller);
	errno = error_number;
	return 1;
}

void *malloc(size_t size) { return memory_fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size); }
void *calloc(size_t number, size_t size) { return memory_fails(__builtin_return_address(0)) ? NULL : __libc_calloc(number, size); }
void *realloc(void *memory, size_t size) { return size && memory_fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, size); }

#define REAL(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	return fails(MAP) ? MAP_FAILED : REAL(mmap)(address, length, protection, flags, fd, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
	return fails(THREAD) ? error_number : REAL(pthread_create)(thread, attributes, start, argument);
}

ssize_t write(int fd, const void *bytes, size_t length) { return fails(WRITE) ? -1 : REAL(write)(fd, bytes, length); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) { return fails(WRITE) ? -1 : REAL(pwrite)(fd, bytes, length, offset); }
ssize_t read(int fd, void *bytes, size_t length) { return fails(READ) ? -1 : REAL(read)(fd, bytes, length); }
ssize_t pread(int fd, void *bytes, size_t length, off_t offset) { return fails(READ) ? -1 : REAL(pread)(fd, bytes, length, offset); }
