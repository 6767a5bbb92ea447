/* Which of the target's mapped files are its executable, loader, libc and interpreter, and what versions they are. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/decode.h"
#include "inject/got.h"
#include "inject/machine.h"
#include "inject/memory.h"
#include "inject/target.h"

#define PROC_MAGIC 0x9fa0
#define OLDEST_PYTHON_MINOR 8
#define NEWEST_PYTHON_MINOR 15
#define READY_NS 1000000000ull
#define READY_NAP_NS 5000000l
#define BLOCK_MAX 3584 /* what scratch.c has room for */
#define MAX_TLS_MODULES 900    /* our DTV has room for 1000 */

static bool auxv_read(const struct target *target, uint64_t *loader, uint64_t *headers)
{
	uint64_t entries[128];
	ssize_t got = procfs_read(&target->procfs, target->pid, "auxv", (char *)entries, sizeof entries);

	*loader = *headers = 0;
	for (size_t i = 0; got > 0 && (i + 2) * 8 <= (size_t)got && entries[i] != AT_NULL; i += 2) {
		if (entries[i] == AT_BASE)
			*loader = entries[i + 1];
		else if (entries[i] == AT_PHDR)
			*headers = entries[i + 1];
	}
	return got >= 0 || errno == ENOENT;
}

static int check_architecture(struct target *target)
{
	unsigned char head[20];
	char path[512];
	uint16_t machine;
	int fd;

	snprintf(path, sizeof path, "%s/%d/exe", target->procfs.root, (int)target->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* its memory will tell */
	if (pread(fd, head, sizeof head, 0) != (ssize_t)sizeof head || memcmp(head, ELFMAG, SELFMAG) != 0)
		memset(head, 0, sizeof head);
	close(fd);
	memcpy(&machine, head + 18, sizeof machine);
	if (head[EI_CLASS] == ELFCLASS32)
		return target_refuse(target, ERR_ARCHITECTURE, "architecture", NULL, "it is a 32-bit program");
	if (head[EI_CLASS] == ELFCLASS64 && machine != MACHINE_ELF)
		return target_refuse(target, ERR_ARCHITECTURE, "architecture", NULL, "it is a program for another processor (ELF machine %u)", machine);
	if (sysconf(_SC_PAGESIZE) != MACHINE_PAGE)
		return target_refuse(target, ERR_ARCHITECTURE, "architecture", "a kernel with pages of 4 KiB will do", "this kernel has pages of %ld KiB, with which entering processes was never tried",
		                     sysconf(_SC_PAGESIZE) / 1024);
	target_note(target, "architecture", MACHINE_NAME);
	return 0;
}

/* A library that defines malloc instead of libc: its thread state lives in TLS that must then stay for ever. */
static void find_allocator(struct target *target, const struct image *image)
{
	static const char *const known[] = { "jemalloc", "tcmalloc", "mimalloc", "snmalloc", "rpmalloc", "hoard" };

	if (target->foreign_allocator || !image_symbol(image, "malloc", NULL))
		return;
	target->foreign_allocator = true;
	snprintf(target->facts.allocator, sizeof target->facts.allocator, "%s", "another than glibc's");
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strstr(image->path, known[i]))
			snprintf(target->facts.allocator, sizeof target->facts.allocator, "%s", known[i]);
}

static bool is_interpreter(const struct image *image)
{
	return image_symbol(image, "Py_GetVersion", NULL) && image_symbol(image, "Py_IsInitialized", NULL);
}

static void add_function(uint64_t *function, const struct image *image, const char *name)
{
	if (*function == 0)
		*function = image_symbol(image, name, NULL);
}

/* Until glibc 2.33, threads and dlopen are libraries of their own. */
static void add_functions(struct target *target, const struct image *image)
{
	struct remote_functions *f = &target->functions;

	add_function(&f->pthread_create, image, "pthread_create");
	add_function(&f->pthread_detach, image, "pthread_detach");
	add_function(&f->dlopen, image, "dlopen");
	add_function(&f->dlsym, image, "dlsym");
	add_function(&f->dlerror, image, "dlerror");
}

static void walk_images(struct target *target, uint64_t loader, uint64_t headers)
{
	struct image image, best_python = { 0 };

	for (size_t i = 0; i < target->maps.count; i++) {
		const struct mapping *mapping = &target->maps.list[i];

		if (mapping->offset != 0 || !mapping->readable || mapping->inode == 0)
			continue;
		if (!image_open(&target->memory, &target->maps, mapping, &image)) {
			if (!target->riddle && image_is_riddle(&target->memory, &target->maps, mapping))
				target->riddle = mapping->path;
			continue;
		}
		if (image.tls_size) {
			target->tls_modules++;
			target->tls_bytes += image.tls_size + (image.tls_align < (1u << 20) ? image.tls_align : 0);
		}
		if (loader && image_has(&image, loader) && !target->loader.base) {
			target->loader = image;
			continue;
		}
		if (headers && image_has(&image, headers) && !target->executable.base)
			target->executable = image;
		if (!target->libc.base && image_symbol(&image, "gnu_get_libc_version", NULL)) {
			target->libc = image;
			continue;
		}
		if (strcmp(image.soname, "libpthread.so.0") == 0 || strcmp(image.soname, "libdl.so.2") == 0) {
			add_functions(target, &image);
			continue;
		}
		find_allocator(target, &image);
		if (is_interpreter(&image) && (!best_python.base || image.base == target->executable.base))
			best_python = image;
	}
	target->python = best_python;
}

static int read_python_version(struct target *target)
{
	struct target_facts *facts = &target->facts;
	uint64_t symbol = image_symbol(&target->python, "Py_Version", NULL), hex = 0;
	char text[64];

	if (symbol && memory_read(&target->memory, symbol, &hex, sizeof hex) == 0 && hex >> 24 == 3 && hex >> 32 == 0) {
		facts->python_hex = (uint32_t)hex;
		facts->python_major = 3;
		facts->python_minor = (int)(hex >> 16 & 0xff);
		facts->python_micro = (int)(hex >> 8 & 0xff);
		return 0;
	}
	if (decode_version(&target->memory, image_symbol(&target->python, "Py_GetVersion", NULL), text, sizeof text) &&
	    decode_python_version(text, &facts->python_major, &facts->python_minor, &facts->python_micro, &facts->python_hex))
		return 0;
	/* Last: the library's name, "libpython3.9.so.1.0". */
	if (sscanf(target->python.soname, "libpython%d.%d", &facts->python_major, &facts->python_minor) == 2) {
		facts->python_micro = -1;
		facts->python_hex = (uint32_t)facts->python_major << 24 | (uint32_t)facts->python_minor << 16;
		return 0;
	}
	facts->python_major = facts->python_minor = -1;
	return -1;
}

/* 3.13 and later say so themselves, at the head of _PyRuntime. */
static bool is_free_threaded(const struct target *target)
{
	uint64_t runtime = image_symbol(&target->python, "_PyRuntime", NULL), words[3];

	if (!runtime || memory_read(&target->memory, runtime, words, sizeof words) < 0 || memcmp(words, "xdebugpy", 8) != 0)
		return image_symbol(&target->python, "_Py_MergeZeroLocalRefcount", NULL) != 0;
	return words[2] != 0;
}

/* Not yet, or not any more: what has just begun is ready soon, what ends has ended soon. */
static bool is_initialized(const struct target *target)
{
	uint64_t function = image_symbol(&target->python, "Py_IsInitialized", NULL), until_ns = clock_monotonic_ns() + READY_NS;
	int said = decode_initialized(&target->memory, function);

	while (said == 0 && target_alive(target) && clock_monotonic_ns() < until_ns) {
		nanosleep(&(struct timespec){ 0, READY_NAP_NS }, NULL);
		said = decode_initialized(&target->memory, function);
	}
	return said != 0;
}

static int check_python(struct target *target)
{
	struct target_facts *facts = &target->facts;
	char version[32];

	if (!target->python.base)
		return target_refuse(target, ERR_NOT_PYTHON, "interpreter", NULL, "no Python interpreter is mapped in it");
	snprintf(facts->python_file, sizeof facts->python_file, "%s", target->python.path);
	facts->python_base = target->python.bias;
	facts->static_python = target->python.base == target->executable.base;
	if (read_python_version(target) < 0)
		return target_refuse(target, ERR_PYTHON_VERSION, "interpreter", NULL, "its Python does not tell its version");
	if (facts->python_micro >= 0)
		snprintf(version, sizeof version, "%d.%d.%d", facts->python_major, facts->python_minor, facts->python_micro);
	else
		snprintf(version, sizeof version, "%d.%d", facts->python_major, facts->python_minor);
	if (facts->python_major != 3 || facts->python_minor < OLDEST_PYTHON_MINOR)
		return target_refuse(target, ERR_PYTHON_VERSION, "interpreter", NULL, "it runs Python %s", version);
	if (facts->python_minor > NEWEST_PYTHON_MINOR && !target->unverified)
		return target_refuse(target, ERR_PYTHON_VERSION, "interpreter", NULL, "it runs Python %s, which is newer than this version knows", version);
	facts->free_threaded = is_free_threaded(target);
	if (facts->free_threaded && !target->unverified)
		return target_refuse(target, ERR_FREE_THREADED, "interpreter", NULL, "it runs a free-threaded build of Python %s", version);
	if (!is_initialized(target))
		return target_refuse(target, ERR_NOT_PYTHON, "interpreter", "try again once its Python has started",
		                     "Python %s is mapped in it but not initialised (not yet, or not any more)", version);
	target_note(target, "interpreter", "CPython %s (%s)%s", version, facts->static_python ? "in the executable" : "shared library",
	            facts->free_threaded ? ", free-threaded: unverified" : "");
	return 0;
}

static int check_libc(struct target *target)
{
	struct target_facts *facts = &target->facts;
	char version[32], libc_hint[96];
	int major = 0, minor = 0;

	snprintf(libc_hint, sizeof libc_hint, "glibc 2.%d to 2.%d is supported; a later one may be tried with --unverified", MACHINE_OLDEST_LIBC, MACHINE_NEWEST_LIBC);
	if (!target->loader.base)
		return target_refuse(target, ERR_LIBC, "libc", "static programs cannot load the collector", "it is linked statically");
	if (!target->libc.base)
		return target_refuse(target, ERR_LIBC, "libc", NULL,
		                     image_symbol(&target->loader, "__libc_start_main", NULL) ? "its libc is musl" : "its libc is not glibc");
	if (!decode_version(&target->memory, image_symbol(&target->libc, "gnu_get_libc_version", NULL), version, sizeof version) ||
	    sscanf(version, "%d.%d", &major, &minor) != 2)
		return target_refuse(target, ERR_LIBC, "libc", NULL, "its glibc does not tell its version");
	snprintf(facts->libc, sizeof facts->libc, "glibc %s", version);
	if ((major != 2 || minor < MACHINE_OLDEST_LIBC || minor > MACHINE_NEWEST_LIBC) && !target->unverified)
		return target_refuse(target, ERR_LIBC, "libc", libc_hint,
		                     "it runs glibc %s", version);
	target_note(target, "libc", "%s", facts->libc);
	return 0;
}

/* How much of a thread's control block lies below the thread pointer. */
static bool read_block_size(struct target *target)
{
	uint64_t size = MACHINE_BLOCK_BYTES ? image_symbol(&target->libc, "_thread_db_sizeof_pthread", NULL) : 0;

	target->block_below = MACHINE_BLOCK_BYTES;
	return !MACHINE_BLOCK_BYTES || (size && memory_read(&target->memory, size, &target->block_below, sizeof target->block_below) == 0 && target->block_below <= BLOCK_MAX);
}

/* One argument was all there is until glibc 2.34; from 2.35 on, not having found the second means not having understood the code. */
#define LAST_LIBC_WITH_ONE 34

/* As its libc calls the function, where the loader itself does not. */
static int read_caller(struct target *target)
{
	unsigned char code[8192];
	uint64_t size = 0, create = image_symbol(&target->libc, "pthread_create", &size);
	remote_addr slot = 0;

	if (size > sizeof code)
		size = sizeof code;
	if (create && !got_slot_find(&target->libc, "_dl_allocate_tls_init", &slot))
		return target_refuse(target, ERR_MEMORY, "thread storage", NULL, "out of memory");
	if (slot && memory_read(&target->memory, create, code, size) == 0)
		target->facts.tls_init_argument = decode_tls_argument_of_caller(&target->memory, code, size, create, slot);
	return 0;
}

static int check_tls(struct target *target)
{
	unsigned char code[256];
	uint64_t size = 0, allocate = image_symbol(&target->loader, "_dl_allocate_tls", &size);
	uint64_t tid = image_symbol(&target->libc, "_thread_db_pthread_tid", NULL);
	uint32_t row[3];
	int minor = 0;

	target->functions.tls_init = image_symbol(&target->loader, "_dl_allocate_tls_init", NULL);
	if (size > sizeof code)
		size = sizeof code;
	target->facts.tls_init_argument = TLS_ARGUMENT_UNKNOWN;
	if (allocate && target->functions.tls_init && memory_read(&target->memory, allocate, code, size) == 0)
		target->facts.tls_init_argument = decode_tls_argument(code, size, allocate, target->functions.tls_init);
	if (target->functions.tls_init && target->facts.tls_init_argument == TLS_ARGUMENT_UNKNOWN && read_caller(target) < 0)
		return -1;
	if (sscanf(target->facts.libc, "glibc 2.%d", &minor) == 1 && minor > LAST_LIBC_WITH_ONE && target->facts.tls_init_argument == TLS_ARGUMENT_NONE)
		target->facts.tls_init_argument = TLS_ARGUMENT_UNKNOWN;
	if (target->facts.tls_init_argument == TLS_ARGUMENT_UNKNOWN)
		return target_refuse(target, ERR_LIBC, "thread storage", "please report this with `ldd --version` and the distribution's name",
		                     "how its loader (%s) sets up thread storage could not be decoded", target->facts.libc);
	target->facts.tid_offset = MACHINE_TID_OFFSET;
	if (!read_block_size(target))
		return target_refuse(target, ERR_LIBC, "thread storage", NULL, "%s does not tell how large a thread's control block is", target->facts.libc);
	if (tid && memory_read(&target->memory, tid, row, sizeof row) == 0 && row[0] == 32 && row[2] < 4000)
		target->facts.tid_offset = row[2];
	if (target->riddle && !target->look_only) /* ours would be too small: the loader writes to it (seen: SIGSEGV in the target) */
		return target_refuse(target, ERR_LIBC, "thread storage", "start it without that library, or with it as its maker built it",
		                     "where %s says how much thread storage it has could not be found", target->riddle);
	if (target->tls_modules > MAX_TLS_MODULES || target->tls_bytes > (64u << 20))
		return target_refuse(target, ERR_LIBC, "thread storage", NULL, "it has %llu libraries with thread storage, %llu KiB: more than foreseen",
		                     (unsigned long long)target->tls_modules, (unsigned long long)target->tls_bytes / 1024);
	target_note(target, "thread storage", "init argument %d, %llu modules, %llu bytes", target->facts.tls_init_argument,
	            (unsigned long long)target->tls_modules, (unsigned long long)target->tls_bytes);
	return 0;
}

static int check_functions(struct target *target)
{
	struct remote_functions *f = &target->functions;

	add_functions(target, &target->libc);
	/* A C program on glibc <= 2.33 need not have libdl; libc itself can load all the same. */
	add_function(&f->dlopen, &target->libc, "__libc_dlopen_mode");
	add_function(&f->dlsym, &target->libc, "__libc_dlsym");
	if (!f->pthread_create || !f->pthread_detach || !f->dlopen || !f->dlsym)
		return target_refuse(target, ERR_LIBC, "libc", NULL, "%s is not mapped in it (glibc before 2.34 has it in a library of its own)",
		                     f->pthread_create ? "libdl" : "libpthread");
	target->single_thread_flag = image_symbol(&target->libc, "__libc_single_threaded", NULL);
	return 0;
}

static void look_for_proc(struct target *target)
{
	struct statfs info;
	char path[512];

	snprintf(path, sizeof path, "%s/%d/root/proc", target->procfs.root, (int)target->pid);
	target->no_proc = statfs(path, &info) == 0 ? (unsigned long)info.f_type != PROC_MAGIC : errno == ENOENT;
}

int target_refresh_maps(struct target *target)
{
	struct maps fresh;

	if (maps_read(&target->procfs, target->pid, &fresh) < 0)
		return -1;
	maps_done(&target->maps);
	target->maps = fresh;
	/* The images keep their addresses; their paths lay in the old text. */
	target->python.path = target->libc.path = target->loader.path = target->executable.path = "";
	return 0;
}

uint64_t target_dormant(const struct target *target, const char *name, const char *build_id, bool other, const char *entry, unsigned *loaded,
                        char *found_build_id, size_t size)
{
	uint64_t found = 0;
	char path[128];
	struct image image;

	*loaded = 0;
	snprintf(path, sizeof path, "/memfd:%s", name);
	for (size_t i = 0; i < target->maps.count; i++) {
		const struct mapping *mapping = &target->maps.list[i];

		if (mapping->offset != 0 || strncmp(mapping->path, path, strlen(path)) != 0 ||
		    (mapping->path[strlen(path)] != '\0' && mapping->path[strlen(path)] != ' ') || !image_open(&target->memory, &target->maps, mapping, &image))
			continue;
		++*loaded;
		if (build_id && (image.build_id[0] == '\0' || (strcmp(build_id, image.build_id) == 0) == other))
			continue;
		found = image_symbol(&image, entry, NULL);
		if (found_build_id)
			snprintf(found_build_id, size, "%s", image.build_id);
	}
	return found;
}

/* What could not be read looks like what is not there. */
static int check_images(struct target *target)
{
	size_t before = target->finding_count;
	int trouble;

	if (check_python(target) == 0 && check_libc(target) == 0 && check_functions(target) == 0 && check_tls(target) == 0)
		return 0;
	trouble = target->memory_trouble;
	if (!trouble)
		return -1;
	target->finding_count = before;
	return target_refuse(target, error_of(trouble, ERR_INJECT), "memory", NULL, "its memory could not be read (%s)", strerror(trouble));
}

/* Users and capabilities have been looked at before: what still forbids it is none of them. */
static const char *forbidden(int error)
{
	return error == EACCES || error == EPERM ? "user and capabilities would permit it: a security module (AppArmor, SELinux) or another user namespace does not" : NULL;
}

int preflight_images(struct target *target)
{
	uint64_t loader, headers;

	if (check_architecture(target) < 0)
		return -1;
	if (maps_read(&target->procfs, target->pid, &target->maps) < 0) {
		if (errno == ESRCH || errno == ENOENT)
			return target_refuse(target, ERR_EXITED, "memory", NULL, "it has ended");
		return target_refuse(target, error_of(errno, ERR_PERMISSION), "memory", forbidden(errno), "its memory map cannot be read (%s)", strerror(errno));
	}
	target->facts.mappings = target->maps.count;
	if (!auxv_read(target, &loader, &headers))
		return target_refuse(target, error_of(errno, ERR_PERMISSION), "memory", forbidden(errno), "its auxiliary vector cannot be read (%s)", strerror(errno));
	snprintf(target->facts.allocator, sizeof target->facts.allocator, "glibc");
	walk_images(target, loader, headers);
	if (check_images(target) < 0)
		return -1;
	if (target->foreign_allocator)
		target_note(target, "allocator", "%s: thread storage of each attach stays mapped", target->facts.allocator);
	else
		target_note(target, "allocator", "glibc");
	look_for_proc(target);
	return 0;
}
