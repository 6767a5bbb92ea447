/*
 * Ways to a mapped file. A path in /proc/PID/maps is what the reader of maps would call it: right for us when the process is chrooted, right
 * below /proc/PID/root when it has mounts of its own. So every way is tried, and what was found must be the file that is mapped.
 */
#include "unwind/module_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { COMPARED_BYTES = 4096 };

static const char deleted_mark[] = " (deleted)";

int module_owner_open(const struct procfs *procfs, pid_t pid, struct module_owner *out)
{
	char path[PATH_MAX], target[PATH_MAX];
	ssize_t length;

	*out = (struct module_owner){ .procfs = procfs, .pid = pid, .memory = -1 };
	snprintf(path, sizeof path, "%s/%d/root", procfs->root, (int)pid);
	length = readlink(path, target, sizeof target - 1);
	target[length > 0 ? length : 0] = '\0';
	out->root = strdup(strcmp(target, "/") == 0 ? "" : target);
	if (!out->root)
		return -1;
	snprintf(path, sizeof path, "%s/%d/mem", procfs->root, (int)pid);
	out->memory = open(path, O_RDONLY | O_CLOEXEC);
	return 0;
}

void module_owner_close(struct module_owner *owner)
{
	if (owner->memory >= 0)
		close(owner->memory);
	free(owner->root);
	*owner = (struct module_owner){ .memory = -1 };
}

int module_owner_read(const struct module_owner *owner, uint64_t addr, void *buffer, size_t size)
{
	if (owner->memory < 0 || addr > INT64_MAX - size)
		return -1;
	return pread(owner->memory, buffer, size, (off_t)addr) == (ssize_t)size ? 0 : -1;
}

const char *module_owner_path(const struct module_owner *owner, const char *shown)
{
	size_t length = strlen(owner->root);

	return length && strncmp(shown, owner->root, length) == 0 && shown[length] == '/' ? shown + length : shown;
}

bool module_file_is(const struct module_file *file, const struct mapping *mapping)
{
	return file->inode == mapping->inode && file->device_major == mapping->device_major && file->device_minor == mapping->device_minor;
}

/* The page that is mapped from the file is the file's. */
static bool same_bytes(const struct module_owner *owner, const struct module_file *file, int fd)
{
	unsigned char mapped[COMPARED_BYTES], stored[COMPARED_BYTES];
	ssize_t got = pread(fd, stored, sizeof stored, (off_t)file->map_offset);

	return got > 0 && module_owner_read(owner, file->map_start, mapped, (size_t)got) == 0 && memcmp(mapped, stored, (size_t)got) == 0;
}

/* Device numbers of maps and stat differ on btrfs and overlayfs; there even inodes may. */
static bool is_same(const struct module_owner *owner, const struct module_file *file, int fd)
{
	struct stat status;

	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return false;
	if (status.st_ino == file->inode && major(status.st_dev) == file->device_major && minor(status.st_dev) == file->device_minor)
		return true;
	return same_bytes(owner, file, fd);
}

/* Looks before it opens: opening a device or a pipe that stands there now may do something. */
static int open_if_same(const struct module_owner *owner, const struct module_file *file, const char *path)
{
	struct stat status;
	int fd;

	if (stat(path, &status) < 0)
		return -1;
	if (!S_ISREG(status.st_mode)) {
		errno = ENOENT;
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && !is_same(owner, file, fd)) {
		close(fd);
		errno = ENOENT;
		return -1;
	}
	return fd;
}

static int open_by_path(const struct module_owner *owner, const struct module_file *file)
{
	const char *inner = module_owner_path(owner, file->shown);
	char path[2 * PATH_MAX];
	int fd, denied = 0;

	if (file->shown[0] != '/') {
		errno = ENOENT;
		return -1;
	}
	for (int way = 0; way < 3; way++) {
		if (way == 1 && inner == file->shown)
			continue;
		if (way < 2)
			snprintf(path, sizeof path, "%s/%d/root%s", owner->procfs->root, (int)owner->pid, way ? file->shown : inner);
		else
			snprintf(path, sizeof path, "%s", file->shown);
		fd = open_if_same(owner, file, path);
		if (fd >= 0)
			return fd;
		if (errno == EACCES || errno == EPERM || errno == EMFILE || errno == ENFILE)
			denied = errno;
	}
	errno = denied ? denied : ENOENT;
	return -1;
}

bool module_file_in_place(const struct module_owner *owner, const struct module_file *file)
{
	int fd = open_by_path(owner, file);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* The vdso is one page or few, all of it mapped. */
static int copy_of_memory(const struct module_owner *owner, const struct module_file *file)
{
	enum { LONGEST = 1 << 20 };
	uint64_t size = file->map_end - file->map_start;
	void *bytes = size <= LONGEST ? malloc((size_t)size) : NULL;
	int fd;

	if (!bytes || module_owner_read(owner, file->map_start, bytes, (size_t)size) < 0) {
		free(bytes);
		errno = EIO;
		return -1;
	}
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 && pwrite(fd, bytes, (size_t)size, 0) != (ssize_t)size) {
		close(fd);
		fd = -1;
	}
	free(bytes);
	return fd;
}

int module_file_open(const struct module_owner *owner, const struct module_file *file)
{
	char path[PATH_MAX];
	int fd;

	if (file->inode == 0)
		return copy_of_memory(owner, file);
	snprintf(path, sizeof path, "%s/%d/map_files/%" PRIx64 "-%" PRIx64, owner->procfs->root, (int)owner->pid, file->map_start, file->map_end);
	fd = open_if_same(owner, file, path);
	return fd >= 0 ? fd : open_by_path(owner, file);
}

struct memory_view {
	const struct module_owner *owner;
	uint64_t start, offset;
};

static int read_memory(void *context, uint64_t offset, void *buffer, size_t size)
{
	const struct memory_view *view = context;

	return offset < view->offset ? -1 : module_owner_read(view->owner, view->start + (offset - view->offset), buffer, size);
}

static void read_headers(const struct module_owner *owner, struct module_file *file, const struct mapping *head)
{
	int fd = file->inode ? module_file_open(owner, file) : -1;
	const char *reason = fd < 0 && file->inode ? strerror(errno) : NULL, *why;
	struct memory_view view = { owner, head ? head->start : 0, 0 };
	struct elf_source source = fd >= 0 ? elf_source_fd(&fd) : (struct elf_source){ read_memory, &view };

	why = fd >= 0 || head ? elf_file_read(&source, &file->elf) : "its first page is not mapped";
	file->is_elf = why == NULL;
	file->from_memory = fd < 0;
	if (reason && why)
		snprintf(file->why, sizeof file->why, "cannot be opened: %.100s", reason);
	else if (reason)
		snprintf(file->why, sizeof file->why, "cannot be opened: %.60s; its headers were read from memory", reason);
	else if (why)
		snprintf(file->why, sizeof file->why, "%s", why);
	if (fd >= 0)
		close(fd);
}

/* "\012" in maps is a newline in the name. */
static void undo_escapes(char *path)
{
	char *to = path;

	for (const char *from = path; *from; from++) {
		if (strncmp(from, "\\012", 4) == 0) {
			*to++ = '\n';
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
}

/* A name may really end like the mark: then the path is still the file's. */
static int take_path(const struct module_owner *owner, struct module_file *file, const char *path)
{
	size_t length = strlen(path), mark = sizeof deleted_mark - 1;

	file->shown = strdup(path);
	if (!file->shown)
		return -1;
	undo_escapes(file->shown);
	if (file->inode == 0)
		return 0;
	file->deleted = !module_file_in_place(owner, file);
	if (file->deleted && length > mark && strcmp(path + length - mark, deleted_mark) == 0)
		file->shown[strlen(file->shown) - mark] = '\0';
	return 0;
}

void module_file_moved(struct module_file *file, const struct mapping *mapping)
{
	file->map_start = mapping->start;
	file->map_end = mapping->end;
	file->map_offset = mapping->offset;
}

struct module_file *module_file_new(const struct module_owner *owner, const struct mapping *mapping, const struct mapping *head)
{
	struct module_file *file = calloc(1, sizeof *file);

	if (!file)
		return NULL;
	file->users = 1;
	file->device_major = mapping->device_major;
	file->device_minor = mapping->device_minor;
	file->inode = mapping->inode;
	module_file_moved(file, head ? head : mapping);
	if (take_path(owner, file, mapping->path) < 0) {
		module_file_release(file);
		return NULL;
	}
	read_headers(owner, file, head);
	return file;
}

void module_file_release(struct module_file *file)
{
	if (!file || --file->users)
		return;
	free(file->shown);
	free(file);
}
