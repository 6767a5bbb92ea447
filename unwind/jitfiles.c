/* Files that name generated code. They belong to somebody: one is believed when it is a plain file of the process's user, or of root. */
#include "unwind/jitfiles.h"

#include "unwind/debugfile.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILES_MAX = 8, READ_BYTES = 1 << 21, READ_MAX = 1 << 30, SOURCE_MAX = 1024 };
static const uint64_t LOOK_NS = 20000000;
enum { LOOK_SHARE = 100 }; /* looks take at most one part in so many of the time */

struct jitfile {
	char path[MODULE_PATH_MAX];
	bool dump;
	uint32_t module;  /* mapped as; 0 = by path alone */
	dev_t device;
	ino_t inode;
	uint64_t at;      /* read up to here */
};

struct jitfiles {
	const struct procfs *procfs;
	const struct modules *modules;
	pid_t pid;
	int process_root;
	struct jitnames names;
	struct jitfile files[FILES_MAX];
	size_t count;
	uint64_t next_look_ns;
	char source[SOURCE_MAX];
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void add_file(struct jitfiles *files, const char *path, bool dump, uint32_t module)
{
	for (size_t i = 0; i < files->count; i++)
		if (strcmp(files->files[i].path, path) == 0)
			return;
	if (files->count == FILES_MAX)
		return;
	files->files[files->count] = (struct jitfile){ .dump = dump, .module = module };
	snprintf(files->files[files->count++].path, MODULE_PATH_MAX, "%s", path);
}

struct jitfiles *jitfiles_open(const struct procfs *procfs, pid_t pid, int process_root, const struct modules *modules, struct strings *names)
{
	struct jitfiles *files = calloc(1, sizeof *files);
	struct proc_status status;
	char path[64];
	pid_t inner;

	if (!files)
		return NULL;
	files->procfs = procfs;
	files->modules = modules;
	files->pid = pid;
	files->process_root = process_root;
	files->names.names = names;
	/* Writers know the number that they have in their own namespace. */
	inner = procfs_status(procfs, pid, 0, &status) == 0 && status.inner_pid > 0 ? status.inner_pid : pid;
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)inner);
	add_file(files, path, false, 0);
	snprintf(path, sizeof path, "/tmp/jit-%d.dump", (int)inner);
	add_file(files, path, true, 0);
	return files;
}

void jitfiles_close(struct jitfiles *files)
{
	if (!files)
		return;
	jitnames_done(&files->names);
	free(files);
}

/* Whoever writes a JIT dump maps its first page executable, so that profilers find it. */
static void find_dumps(struct jitfiles *files)
{
	for (size_t i = 0; i < modules_count(files->modules); i++) {
		const struct module *module = modules_at(files->modules, i);
		const char *slash = strrchr(module->path, '/');
		const char *name = slash ? slash + 1 : module->path;

		if (module->kind != MODULE_JIT && (fnmatch("jit-*.dump", name, 0) == 0 || fnmatch("perf-*.dump", name, 0) == 0))
			add_file(files, module->path, true, module->id);
	}
}

static const struct module *module_by_id(const struct modules *modules, uint32_t id)
{
	for (size_t i = 0; i < modules_count(modules); i++)
		if (modules_at(modules, i)->id == id)
			return modules_at(modules, i);
	return NULL;
}

static int open_file(struct jitfiles *files, const struct jitfile *file)
{
	const struct module *module = file->module ? module_by_id(files->modules, file->module) : NULL;
	int fd = module ? modules_file(files->modules, module) : -1;

	return fd >= 0 ? fd : debugfile_open_in(files->process_root, file->path);
}

static bool believed(struct jitfiles *files, const struct stat *st)
{
	struct proc_status status;

	return S_ISREG(st->st_mode)
		&& (st->st_uid == 0 || (procfs_status(files->procfs, files->pid, 0, &status) == 0 && (st->st_uid == status.uid_effective || st->st_uid == status.uid_real)));
}

static void read_more(struct jitfiles *files, struct jitfile *file, int fd, uint64_t size)
{
	unsigned char *bytes = malloc(READ_BYTES);
	ssize_t got;

	if (file->dump && file->at == 0 && bytes && (got = pread(fd, bytes, READ_BYTES, 0)) > 0)
		file->at = jitdump_header(bytes, (size_t)got);
	while (bytes && file->at < size && file->at < READ_MAX && (!file->dump || file->at > 0)) {
		uint64_t taken;

		got = pread(fd, bytes, READ_BYTES, (off_t)file->at);
		if (got <= 0)
			break;
		taken = file->dump ? jitnames_add_dump(&files->names, bytes, (size_t)got) : jitnames_add_map(&files->names, (const char *)bytes, (size_t)got);
		if (taken == 0 && got == READ_BYTES) { /* no end of a row in all of it */
			files->names.rejected++;
			taken = (uint64_t)got;
		}
		file->at += taken;
		if (taken == 0)
			break;
	}
	free(bytes);
}

/* Reads what was added to the files since the last look. */
static void look(struct jitfiles *files)
{
	find_dumps(files);
	for (size_t i = 0; i < files->count; i++) {
		struct jitfile *file = &files->files[i];
		int fd = open_file(files, file);
		struct stat st;

		if (fd < 0)
			continue;
		if (fstat(fd, &st) == 0 && believed(files, &st)) {
			if (st.st_dev != file->device || st.st_ino != file->inode || (uint64_t)st.st_size < file->at)
				file->at = 0; /* another file: what it says is later than what is known */
			file->device = st.st_dev;
			file->inode = st.st_ino;
			if ((uint64_t)st.st_size > file->at)
				read_more(files, file, fd, (uint64_t)st.st_size);
		}
		close(fd);
	}
}

bool jitfiles_find(struct jitfiles *files, uint64_t addr, const char **name, const char **file, uint32_t *line)
{
	uint64_t began_ns, took_ns;
	bool found = jitnames_find(&files->names, addr, name, file, line);

	if (found)
		return true;
	began_ns = now_ns();
	if (began_ns < files->next_look_ns)
		return false;
	look(files);
	found = jitnames_find(&files->names, addr, name, file, line); /* sorts what was added */
	took_ns = now_ns() - began_ns;
	files->next_look_ns = began_ns + (took_ns > LOOK_NS / LOOK_SHARE ? took_ns * LOOK_SHARE : LOOK_NS);
	return found;
}

const char *jitfiles_source(struct jitfiles *files)
{
	char rejected[64] = "";

	if (files->names.rejected)
		snprintf(rejected, sizeof rejected, ", %llu rows not understood", (unsigned long long)files->names.rejected);
	for (size_t i = 0; i < files->count; i++)
		if (files->files[i].at > 0) {
			snprintf(files->source, sizeof files->source, "%s %s%s", files->files[i].dump ? "JIT dump" : "perf map", files->files[i].path, rejected);
			return files->source;
		}
	snprintf(files->source, sizeof files->source, "none: generated code, and no %s of its user", files->files[0].path);
	return files->source;
}
