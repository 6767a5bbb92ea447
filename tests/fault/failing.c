/*
 * Preloaded into inferscope: one call of one kind fails, the FAILING_AT-th (or all from it on, with FAILING_ON), or is slow. A process that the
 * attacher forks goes on counting from where it was. FAILING_COUNT names a file to which each process adds the number of calls that it saw.
 *
 * Allocations fail for callers in the program alone, those that libc makes for it too: without memory libdw 0.188 asserts, reads NULL or ends the program, and
 * regcomp of glibc 2.36 frees twice.
 *
 *   FAILING_KIND=memory|map|thread|write|read|open|place|remote|process|kernel   FAILING_ERROR=28 (errno; memory: ENOMEM)   FAILING_SLOW=MICROSECONDS instead
 *   (place: a file gets its size, its name, or is on the disk; remote: memory of another process; process: a child, and descriptors other than files'; kernel: syscall())
 *   FAILING_OF=NAME: nothing fails in programs of other names, which one of that name starts
 *   FAILING_WHERE=FILE gets the address in the program to which the first call that failed returns, for addr2line
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* glibc's own, so that nothing has to be looked up, which would allocate. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

#define CALLER __builtin_return_address(0)

enum kind { NOTHING, MEMORY, MAP, THREAD, WRITE, READ, OPEN, PLACE, REMOTE, PROCESS, KERNEL };
static const char *const kinds[] = { "", "memory", "map", "thread", "write", "read", "open", "place", "remote", "process", "kernel" };

static enum kind chosen;
static unsigned long fail_at;
static int error_number, goes_on;
static long slow_us;
static unsigned long count;
static uintptr_t load_bias, code_start, code_end;
static int narrow; /* to calls from there, of every kind */

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

static enum kind kind_of(const char *name)
{
	for (size_t i = 1; name && i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(name, kinds[i]) == 0)
			return i;
	return NOTHING;
}

/* From now on, of calls from START to END. Returns how many there were of what failed until now. */
__attribute__((visibility("default"))) unsigned long failing_from(const char *kind, unsigned long at, int error, uintptr_t start, uintptr_t end)
{
	unsigned long before = count;

	chosen = NOTHING;
	code_start = start;
	code_end = end;
	narrow = 1;
	count = 0;
	fail_at = at;
	error_number = error;
	chosen = kind_of(kind);
	return before;
}

__attribute__((constructor)) static void read_wish(void)
{
	const char *kind = getenv("FAILING_KIND"), *of = getenv("FAILING_OF");

	if (of && strcmp(of, program_invocation_short_name) != 0)
		return;
	dl_iterate_phdr(remember_code, NULL);
	fail_at = (unsigned long)number_of("FAILING_AT", 0);
	error_number = (int)number_of("FAILING_ERROR", ENOMEM);
	goes_on = (int)number_of("FAILING_ON", 0);
	slow_us = number_of("FAILING_SLOW", 0);
	chosen = kind_of(kind);
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

/* Looked up before there are other threads: a process that was forked in the middle of a lookup would wait for ever. */
static struct real {
#define FUNCTION(name) __typeof__(name) *name;
#define FUNCTIONS \
	FUNCTION(aligned_alloc) FUNCTION(strdup) FUNCTION(strndup) FUNCTION(vasprintf) FUNCTION(mmap) FUNCTION(pthread_create) FUNCTION(write) FUNCTION(pwrite) FUNCTION(fwrite) \
	FUNCTION(read) FUNCTION(pread) FUNCTION(fread) FUNCTION(fgets) FUNCTION(open) FUNCTION(openat) FUNCTION(fopen) FUNCTION(opendir) FUNCTION(fdopendir) \
	FUNCTION(mkostemp) FUNCTION(fsync) FUNCTION(ftruncate) FUNCTION(linkat) FUNCTION(rename) FUNCTION(renameat2) FUNCTION(realpath) FUNCTION(process_vm_readv) \
	FUNCTION(process_vm_writev) FUNCTION(fork) FUNCTION(posix_spawnp) FUNCTION(pipe2) FUNCTION(eventfd) FUNCTION(epoll_create1) FUNCTION(memfd_create) FUNCTION(syscall)
	FUNCTIONS
#undef FUNCTION
} real;

static __attribute__((constructor(101))) void find_functions(void)
{
#define FUNCTION(name) real.name = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);
	FUNCTIONS
#undef FUNCTION
}

/* A library's constructor may come before ours. */
#define REAL(name) (real.name ? real.name : (__typeof__(name) *)dlsym(RTLD_NEXT, #name))

static void tell_where(uintptr_t caller)
{
	static int told;
	const char *path = getenv("FAILING_WHERE");
	int fd = path && !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED) ? REAL(open)(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "%#lx\n", (unsigned long)(caller - load_bias));
	close(fd);
}

static int fails(enum kind kind, const void *caller)
{
	unsigned long at;

	if (kind != chosen || ((kind == MEMORY || narrow) && ((uintptr_t)caller < code_start || (uintptr_t)caller >= code_end)))
		return 0;
	at = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
	if (slow_us) {
		nanosleep(&(struct timespec){ slow_us / 1000000, slow_us % 1000000 * 1000 }, NULL);
		return 0;
	}
	if (!fail_at || (goes_on ? at < fail_at : at != fail_at))
		return 0;
	tell_where((uintptr_t)caller);
	errno = error_number;
	return 1;
}

static int memory_fails(const void *caller) { return fails(MEMORY, caller); }

void *malloc(size_t size) { return memory_fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size); }
void *calloc(size_t number, size_t size) { return memory_fails(__builtin_return_address(0)) ? NULL : __libc_calloc(number, size); }
void *realloc(void *memory, size_t size) { return size && memory_fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, size); }

/* libc allocates for the program; asprintf leaves its result undefined, and so must what is here. */
void *aligned_alloc(size_t alignment, size_t size) { return memory_fails(CALLER) ? NULL : REAL(aligned_alloc)(alignment, size); }
char *strdup(const char *text) { return memory_fails(CALLER) ? NULL : REAL(strdup)(text); }
char *strndup(const char *text, size_t length) { return memory_fails(CALLER) ? NULL : REAL(strndup)(text, length); }
int vasprintf(char **out, const char *format, va_list arguments)
{
	if (memory_fails(CALLER)) {
		*out = (char *)1;
		return -1;
	}
	return REAL(vasprintf)(out, format, arguments);
}
int asprintf(char **out, const char *format, ...)
{
	va_list arguments;
	int length;

	if (memory_fails(CALLER)) {
		*out = (char *)1;
		return -1;
	}
	va_start(arguments, format);
	length = REAL(vasprintf)(out, format, arguments);
	va_end(arguments);
	return length;
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	return fails(MAP, CALLER) ? MAP_FAILED : REAL(mmap)(address, length, protection, flags, fd, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
	return fails(THREAD, CALLER) ? error_number : REAL(pthread_create)(thread, attributes, start, argument);
}

ssize_t write(int fd, const void *bytes, size_t length) { return fails(WRITE, CALLER) ? -1 : REAL(write)(fd, bytes, length); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) { return fails(WRITE, CALLER) ? -1 : REAL(pwrite)(fd, bytes, length, offset); }
size_t fwrite(const void *items, size_t size, size_t number, FILE *file) { return fails(WRITE, CALLER) ? 0 : REAL(fwrite)(items, size, number, file); }
ssize_t read(int fd, void *bytes, size_t length) { return fails(READ, CALLER) ? -1 : REAL(read)(fd, bytes, length); }
ssize_t pread(int fd, void *bytes, size_t length, off_t offset) { return fails(READ, CALLER) ? -1 : REAL(pread)(fd, bytes, length, offset); }
size_t fread(void *items, size_t size, size_t number, FILE *file) { return fails(READ, CALLER) ? 0 : REAL(fread)(items, size, number, file); }
char *fgets(char *line, int size, FILE *file) { return fails(READ, CALLER) ? NULL : REAL(fgets)(line, size, file); }

static int mode_of(int flags, va_list arguments)
{
	return (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(arguments, int) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list arguments;
	int mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return fails(OPEN, CALLER) ? -1 : REAL(open)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
	va_list arguments;
	int mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return fails(OPEN, CALLER) ? -1 : REAL(openat)(folder, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode) { return memory_fails(CALLER) || fails(OPEN, CALLER) ? NULL : REAL(fopen)(path, mode); }
DIR *opendir(const char *path) { return memory_fails(CALLER) || fails(OPEN, CALLER) ? NULL : REAL(opendir)(path); }
DIR *fdopendir(int fd) { return memory_fails(CALLER) || fails(OPEN, CALLER) ? NULL : REAL(fdopendir)(fd); }
int mkostemp(char *path, int flags) { return fails(OPEN, CALLER) ? -1 : REAL(mkostemp)(path, flags); }
char *realpath(const char *path, char *out) { return memory_fails(CALLER) || fails(PLACE, CALLER) ? NULL : REAL(realpath)(path, out); }

int fsync(int fd) { return fails(PLACE, CALLER) ? -1 : REAL(fsync)(fd); }
int ftruncate(int fd, off_t size) { return fails(PLACE, CALLER) ? -1 : REAL(ftruncate)(fd, size); }
int linkat(int from, const char *old, int to, const char *name, int flags) { return fails(PLACE, CALLER) ? -1 : REAL(linkat)(from, old, to, name, flags); }
int rename(const char *old, const char *name) { return fails(PLACE, CALLER) ? -1 : REAL(rename)(old, name); }
int renameat2(int from, const char *old, int to, const char *name, unsigned flags) { return fails(PLACE, CALLER) ? -1 : REAL(renameat2)(from, old, to, name, flags); }

ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long pieces, const struct iovec *there, unsigned long parts, unsigned long flags)
{
	return fails(REMOTE, CALLER) ? -1 : REAL(process_vm_readv)(pid, here, pieces, there, parts, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *here, unsigned long pieces, const struct iovec *there, unsigned long parts, unsigned long flags)
{
	return fails(REMOTE, CALLER) ? -1 : REAL(process_vm_writev)(pid, here, pieces, there, parts, flags);
}

pid_t fork(void) { return fails(PROCESS, CALLER) ? -1 : REAL(fork)(); }
int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes, char *const words[], char *const environment[])
{
	return fails(PROCESS, CALLER) ? error_number : REAL(posix_spawnp)(pid, file, actions, attributes, words, environment);
}
int pipe2(int fds[2], int flags) { return fails(PROCESS, CALLER) ? -1 : REAL(pipe2)(fds, flags); }
int eventfd(unsigned initial, int flags) { return fails(PROCESS, CALLER) ? -1 : REAL(eventfd)(initial, flags); }
int epoll_create1(int flags) { return fails(PROCESS, CALLER) ? -1 : REAL(epoll_create1)(flags); }
int memfd_create(const char *name, unsigned flags) { return fails(PROCESS, CALLER) ? -1 : REAL(memfd_create)(name, flags); }

long syscall(long number, ...)
{
	va_list arguments;
	long words[6];

	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		words[i] = va_arg(arguments, long);
	va_end(arguments);
	return fails(KERNEL, CALLER) ? -1 : REAL(syscall)(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
