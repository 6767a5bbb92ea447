/*
 * Preloaded into inferscope: calls of one kind fail that are made from one place: its chain, which is a hash over the return addresses on the stack, those of libraries
 * among them, so that one chain is one way through the code. The first such call fails, of all processes that the attacher forks; or all of that chain, or all
 * calls of the kind from it on (FAILING_ON=chain, kind). FAILING_CHAINS names a file that gets a line for each chain that is seen: the hash, and the addresses in the program.
 *
 * Allocations fail for callers in the program alone, those that libc makes for it too: without memory libdw 0.188 asserts, reads NULL or ends the program, and
 * regcomp of glibc 2.36 frees twice. A call of stdio that fails leaves the stream's error behind, and what is said on stderr never fails.
 * The small processes that hold a thread call the kernel by themselves: of theirs the kernel makes one request of ptrace fail, by a filter (request; FAILING_CHAIN is its number).
 *
 *   FAILING_KIND=memory|map|thread|write|read|open|place|remote|trace|process|kernel|request   FAILING_CHAIN=HASH   FAILING_ERROR=28 (errno; memory: ENOMEM)   FAILING_SLOW=MICROSECONDS instead
 *   (place: a file gets its size, its name, or is on the disk; remote: memory of another process; process: a child, and descriptors other than files'; kernel: syscall())
 *   FAILING_OF=NAME: nothing fails in programs of other names, which one of that name starts
 *   FAILING_WHERE=FILE gets a byte for each call that failed
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* glibc's own, so that nothing has to be looked up, which would allocate. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

#define CALLER __builtin_return_address(0)

enum kind { NOTHING, MEMORY, MAP, THREAD, WRITE, READ, OPEN, PLACE, REMOTE, TRACE, PROCESS, KERNEL, REQUEST };
static const char *const kinds[] = { "", "memory", "map", "thread", "write", "read", "open", "place", "remote", "trace", "process", "kernel", "request" };

enum { DEPTH = 64, MODULES = 64, CHAINS = 1 << 14, ERROR_SEEN = 0x20 /* _IO_ERR_SEEN of glibc's libio.h */ };

/* What was mapped when we came: the program comes first. */
struct module {
	uintptr_t bias, start, end;
};

static struct module modules[MODULES];
static size_t module_count;
static enum kind chosen;
static int error_number;
static long slow_us;
static const char *chains_path, *where_path;
static uint64_t wanted, seen[CHAINS];
static enum { ONCE, CHAIN, FROM_THERE_ON } lasts;
static int *reached; /* a call of the wanted chain was; forked processes see it, too */
static __thread int looking __attribute__((tls_model("initial-exec")));

/* Of calls within a piece of code (failing_from). */
static int narrow;
static unsigned long count, fail_at;
static uintptr_t code_start, code_end;

static int remember_code(struct dl_phdr_info *object, size_t size, void *unused)
{
	struct module *module = &modules[module_count];

	module->bias = object->dlpi_addr;
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
			module->start = object->dlpi_addr + part->p_vaddr;
			module->end = module->start + part->p_memsz;
		}
	}
	return ++module_count == MODULES;
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

/* Looked up before there are other threads: a process that was forked in the middle of a lookup would wait for ever. */
static struct real {
#define FUNCTION(name) __typeof__(name) *name;
#define FUNCTIONS \
	FUNCTION(aligned_alloc) FUNCTION(strdup) FUNCTION(strndup) FUNCTION(vasprintf) FUNCTION(mmap) FUNCTION(pthread_create) FUNCTION(write) FUNCTION(pwrite) FUNCTION(fwrite) \
	FUNCTION(read) FUNCTION(pread) FUNCTION(fread) FUNCTION(fgets) FUNCTION(__getdelim) FUNCTION(readdir) FUNCTION(readlink) FUNCTION(readlinkat) FUNCTION(recvmsg) FUNCTION(sendmsg) \
	FUNCTION(fputs) FUNCTION(puts) FUNCTION(putc) FUNCTION(fflush) FUNCTION(fclose) FUNCTION(open) FUNCTION(openat) FUNCTION(fopen) FUNCTION(opendir) FUNCTION(fdopendir) \
	FUNCTION(mkostemp) FUNCTION(fsync) FUNCTION(ftruncate) FUNCTION(linkat) FUNCTION(rename) FUNCTION(renameat2) FUNCTION(realpath) FUNCTION(process_vm_readv) \
	FUNCTION(process_vm_writev) FUNCTION(ptrace) FUNCTION(fork) FUNCTION(posix_spawnp) FUNCTION(pipe2) FUNCTION(eventfd) FUNCTION(epoll_create1) FUNCTION(memfd_create) FUNCTION(syscall)
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

static void append(const char *path, const char *text, size_t length)
{
	int fd = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd >= 0 && REAL(write)(fd, text, length) >= 0)
		close(fd);
}

static void tell_chain(uint64_t chain, const uintptr_t *places, size_t number)
{
	char line[32 + 20 * DEPTH];
	int length = snprintf(line, sizeof line, "%016llx", (unsigned long long)chain);

	for (size_t i = 0; i < number; i++)
		length += snprintf(line + length, sizeof line - length, " %#lx", (unsigned long)places[i]);
	line[length++] = '\n';
	append(chains_path, line, length);
}

static const struct module *module_of(uintptr_t address)
{
	for (size_t i = 0; i < module_count; i++)
		if (address >= modules[i].start && address < modules[i].end)
			return &modules[i];
	return NULL;
}

/* A function that calls itself is one place, however deep it is. */
static uint64_t chain_here(void)
{
	void *frames[DEPTH];
	uintptr_t places[DEPTH], last = 0;
	size_t number = 0;
	uint64_t chain = 14695981039346656037u;
	const struct module *ours = module_of((uintptr_t)chain_here);
	int depth = backtrace(frames, DEPTH);

	for (int i = 0; i < depth; i++) {
		const struct module *module = module_of((uintptr_t)frames[i]);
		uintptr_t place = (uintptr_t)frames[i];

		if (!module || module == ours || place == last)
			continue;
		last = place;
		place -= module->bias;
		chain = (chain ^ (place + ((uint64_t)(module - modules) << 48))) * 1099511628211u;
		chain ^= chain >> 29;
		if (module == modules)
			places[number++] = place;
	}
	if (chains_path)
		for (size_t i = chain % CHAINS;; i = (i + 1) % CHAINS) {
			uint64_t none = 0;

			if (__atomic_compare_exchange_n(&seen[i], &none, chain, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
				tell_chain(chain, places, number);
			if (!none || none == chain)
				break;
		}
	return chain;
}

static int chain_fails(void)
{
	uint64_t chain;
	int before = errno;

	if (looking)
		return 0;
	looking = 1;
	chain = chain_here();
	looking = 0;
	errno = before;
	if (!wanted || (chain != wanted && !(lasts == FROM_THERE_ON && __atomic_load_n(reached, __ATOMIC_RELAXED))))
		return 0;
	if (__atomic_exchange_n(reached, 1, __ATOMIC_RELAXED) && lasts == ONCE)
		return 0;
	if (where_path)
		append(where_path, ".", 1);
	return 1;
}

static int number_fails(uintptr_t caller)
{
	return caller >= code_start && caller < code_end && __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) == fail_at;
}

static int fails(enum kind kind, const void *address)
{
	uintptr_t caller = (uintptr_t)address;

	if (kind != chosen || (kind == MEMORY && !narrow && module_of(caller) != modules))
		return 0;
	if (slow_us) {
		nanosleep(&(struct timespec){ slow_us / 1000000, slow_us % 1000000 * 1000 }, NULL);
		return 0;
	}
	if (!(narrow ? number_fails(caller) : chain_fails()))
		return 0;
	errno = error_number;
	return 1;
}

static int stream_fails(enum kind kind, FILE *stream, const void *caller)
{
	if (stream == stderr || !fails(kind, caller))
		return 0;
	if (stream)
		stream->_flags |= ERROR_SEEN;
	return 1;
}

static void refuse_request(unsigned request)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, request, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error_number),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof steps / sizeof *steps, steps };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		abort();
}

__attribute__((constructor)) static void read_wish(void)
{
	const char *kind = getenv("FAILING_KIND"), *of = getenv("FAILING_OF"), *error = getenv("FAILING_ERROR"), *slow = getenv("FAILING_SLOW"), *chain = getenv("FAILING_CHAIN"),
		   *on = getenv("FAILING_ON");
	void *first[1];

	if (of && strcmp(of, program_invocation_short_name) != 0)
		return;
	if (!kind_of(kind))
		return;
	backtrace(first, 1); /* loads what it needs */
	dl_iterate_phdr(remember_code, NULL);
	error_number = error ? atoi(error) : ENOMEM;
	slow_us = slow ? atol(slow) : 0;
	wanted = chain ? strtoull(chain, NULL, 16) : 0;
	if (kind_of(kind) == REQUEST) {
		if (chain)
			refuse_request((unsigned)strtoul(chain, NULL, 0));
		return;
	}
	lasts = !on ? ONCE : strcmp(on, "chain") == 0 ? CHAIN : FROM_THERE_ON;
	chains_path = getenv("FAILING_CHAINS");
	where_path = getenv("FAILING_WHERE");
	reached = REAL(mmap)(NULL, sizeof *reached, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	chosen = reached == MAP_FAILED ? NOTHING : kind_of(kind);
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
size_t fwrite(const void *items, size_t size, size_t number, FILE *file) { return stream_fails(WRITE, file, CALLER) ? 0 : REAL(fwrite)(items, size, number, file); }
int fputs(const char *text, FILE *file) { return stream_fails(WRITE, file, CALLER) ? EOF : REAL(fputs)(text, file); }
int puts(const char *text) { return stream_fails(WRITE, stdout, CALLER) ? EOF : REAL(puts)(text); }
int putc(int byte, FILE *file) { return stream_fails(WRITE, file, CALLER) ? EOF : REAL(putc)(byte, file); }
int fflush(FILE *file) { return stream_fails(WRITE, file, CALLER) ? EOF : REAL(fflush)(file); }
int fclose(FILE *file)
{
	int failed = stream_fails(WRITE, file, CALLER), error = errno, result = REAL(fclose)(file);

	if (!failed)
		return result;
	errno = error;
	return EOF;
}
int fprintf(FILE *file, const char *format, ...)
{
	va_list arguments;
	int result = -1;

	va_start(arguments, format);
	if (!stream_fails(WRITE, file, CALLER))
		result = vfprintf(file, format, arguments);
	va_end(arguments);
	return result;
}
int printf(const char *format, ...)
{
	va_list arguments;
	int result = -1;

	va_start(arguments, format);
	if (!stream_fails(WRITE, stdout, CALLER))
		result = vfprintf(stdout, format, arguments);
	va_end(arguments);
	return result;
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) { return fails(WRITE, CALLER) ? -1 : REAL(sendmsg)(fd, message, flags); }
ssize_t read(int fd, void *bytes, size_t length) { return fails(READ, CALLER) ? -1 : REAL(read)(fd, bytes, length); }
ssize_t pread(int fd, void *bytes, size_t length, off_t offset) { return fails(READ, CALLER) ? -1 : REAL(pread)(fd, bytes, length, offset); }
size_t fread(void *items, size_t size, size_t number, FILE *file) { return stream_fails(READ, file, CALLER) ? 0 : REAL(fread)(items, size, number, file); }
char *fgets(char *line, int size, FILE *file) { return stream_fails(READ, file, CALLER) ? NULL : REAL(fgets)(line, size, file); }
ssize_t __getdelim(char **line, size_t *size, int end, FILE *file) { return stream_fails(READ, file, CALLER) ? -1 : REAL(__getdelim)(line, size, end, file); }
struct dirent *readdir(DIR *folder) { return fails(READ, CALLER) ? NULL : REAL(readdir)(folder); }
ssize_t readlink(const char *path, char *out, size_t size) { return fails(READ, CALLER) ? -1 : REAL(readlink)(path, out, size); }
ssize_t readlinkat(int folder, const char *path, char *out, size_t size) { return fails(READ, CALLER) ? -1 : REAL(readlinkat)(folder, path, out, size); }
ssize_t recvmsg(int fd, struct msghdr *message, int flags) { return fails(READ, CALLER) ? -1 : REAL(recvmsg)(fd, message, flags); }

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

long ptrace(enum __ptrace_request request, ...)
{
	va_list arguments;
	long pid, address, data;

	va_start(arguments, request);
	pid = va_arg(arguments, long);
	address = va_arg(arguments, long);
	data = va_arg(arguments, long);
	va_end(arguments);
	return fails(TRACE, CALLER) ? -1 : REAL(ptrace)(request, (pid_t)pid, address, data);
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
