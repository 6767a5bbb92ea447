/* Finding the interpreter of a program that is just starting, and the gate at its entry (launch_gate_*.S). What starts, what is refused and
 * who waits for whom is launch.c's. */
#include "inject/launch_gate.h"

#include "base/mappings.h"
#include "inject/image.h"
#include "inject/memory.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

/* launch_gate_*.S */
extern const unsigned char gate_code[], gate_code_end[], gate_words[];

struct gate_data {
	uint64_t save_thread, restore_thread, entry, parent, interval[2];
	uint64_t ignore_trap;
	uint64_t trap_action[4]; /* the kernel's struct sigaction */
};

enum { GATE_BYTES_MAX = 512 };

int gate_find_python(pid_t pid, struct gate_python *out, bool *old, int *trouble)
{
	struct maps maps;
	int result = -1;

	*old = false;
	*trouble = 0;
	if (maps_read(&procfs_real, pid, &maps) < 0) {
		*trouble = errno;
		return -1;
	}
	for (size_t i = 0; i < maps.count && result < 0; i++) {
		struct image image;
		struct gate_python python;

		if (maps.list[i].offset != 0 || maps.list[i].path[0] != '/' || !image_open(&(struct memory){ .pid = pid, .trouble = trouble }, &maps, &maps.list[i], &image))
			continue;
		python.run_main = image_symbol(&image, "Py_RunMain", NULL);
		python.save_thread = image_symbol(&image, "PyEval_SaveThread", NULL);
		python.restore_thread = image_symbol(&image, "PyEval_RestoreThread", NULL);
		if (!python.run_main && python.save_thread)
			*old = true;
		if (!python.run_main || !python.save_thread || !python.restore_thread)
			continue;
		*out = python;
		result = 0;
	}
	maps_done(&maps);
	return result;
}

remote_addr gate_program_entry(pid_t pid)
{
	char path[64];
	Elf64_auxv_t vector[128];
	ssize_t size;
	int fd, error;

	snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	size = read(fd, vector, sizeof vector);
	error = size < 0 ? errno : 0;
	close(fd);
	errno = error;
	for (ssize_t i = 0; size > 0 && i < size / (ssize_t)sizeof vector[0] && vector[i].a_type != AT_NULL; i++)
		if (vector[i].a_type == AT_ENTRY)
			return vector[i].a_un.a_val;
	return 0;
}

/* ---- room for the gate ---- */

/* Zero bytes of SIZE at the very end of the pages of the segment, behind what the file defines. 0 = none. */
static remote_addr room_behind(const struct maps *maps, const struct image *image, const struct image_segment *segment, size_t size)
{
	const struct mapping *mapping = maps_find(maps, segment->end - 1);
	unsigned char bytes[GATE_BYTES_MAX];
	remote_addr room;

	if (!segment->executable || segment->writable || !mapping || !mapping->executable || mapping->writable)
		return 0;
	room = (mapping->end - size) & ~(remote_addr)15;
	if (room < segment->end || room < mapping->start || memory_read(&image->memory, room, bytes, size) < 0)
		return 0;
	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			return 0;
	return room;
}

/* An attach keeps its entry code behind the code of libc, ld.so, the interpreter and the executable: leave that room to it. */
static bool room_is_wanted(const struct image *image, const char *executable)
{
	return image_symbol(image, "__libc_start_main", NULL) || image_symbol(image, "_dl_allocate_tls", NULL)
		|| image_symbol(image, "Py_RunMain", NULL) || strcmp(executable, image->path) == 0;
}

static remote_addr find_room(pid_t pid, size_t size, int *trouble)
{
	char link[64], executable[512];
	remote_addr found = 0, second_best = 0;
	struct maps maps;
	ssize_t length;

	snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
	length = readlink(link, executable, sizeof executable - 1);
	executable[length > 0 ? length : 0] = '\0';
	*trouble = 0;
	if (maps_read(&procfs_real, pid, &maps) < 0) {
		*trouble = errno;
		return 0;
	}
	for (size_t i = 0; i < maps.count && !found; i++) {
		struct image image;

		if (maps.list[i].offset != 0 || maps.list[i].path[0] != '/' || !image_open(&(struct memory){ .pid = pid, .trouble = trouble }, &maps, &maps.list[i], &image))
			continue;
		for (uint32_t j = 0; j < image.segment_count && !found; j++) {
			remote_addr room = room_behind(&maps, &image, &image.segments[j], size);

			if (room && !room_is_wanted(&image, executable))
				found = room;
			else if (room)
				second_best = room;
		}
	}
	maps_done(&maps);
	return found ? found : second_best;
}

static int poke(pid_t pid, remote_addr addr, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += sizeof(long)) {
		long word;

		memcpy(&word, (const char *)bytes + i, sizeof word);
		if (ptrace(PTRACE_POKEDATA, pid, (void *)(addr + i), (void *)word) < 0)
			return -1;
	}
	return 0;
}

int gate_install(pid_t pid, const struct gate_python *python, pid_t parent, bool ignore_trap, remote_addr *word, struct error *err)
{
	const size_t size = (size_t)(gate_code_end - gate_code), data_at = (size_t)(gate_words - gate_code);
	const struct gate_data data = { .save_thread = python->save_thread, .restore_thread = python->restore_thread, .entry = python->run_main,
		.parent = (uint64_t)parent, .interval = { 0, 1000000 }, .ignore_trap = ignore_trap, .trap_action = { (uint64_t)(uintptr_t)SIG_IGN } };
	unsigned char image[GATE_BYTES_MAX] = { 0 };
	remote_addr room;
	int trouble;

	_Static_assert(sizeof data % sizeof(long) == 0, "written word by word");
	if (size > sizeof image || size - data_at != sizeof data)
		return fail(err, ERR_INTERNAL, "the gate has %zu bytes", size);
	memcpy(image, gate_code, size);
	memcpy(image + data_at, &data, sizeof data);
	room = find_room(pid, size, &trouble);
	if (!room && trouble)
		return fail(err, ERR_LAUNCH_REFUSED, "room for the gate cannot be looked for in the program's memory: %s", strerror(trouble));
	if (!room)
		return fail(err, ERR_LAUNCH_REFUSED, "no room for the %zu bytes of the gate in the program's mappings", size);
	if (poke(pid, room, image, (size + 7) & ~(size_t)7) < 0)
		return fail(err, ERR_LAUNCH_REFUSED, "writing the gate: %s", strerror(errno));
	*word = gate_word(pid);
	if (!*word)
		return fail(err, ERR_LAUNCH, "reading registers: %s", strerror(errno));
	/* Set before the thread runs: it may be opened before it is reached. */
	if (ptrace(PTRACE_POKEDATA, pid, (void *)*word, NULL) < 0)
		return fail(err, ERR_LAUNCH, "writing to the stack: %s", strerror(errno));
	if (gate_go_to(pid, room) < 0 || ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0)
		return fail(err, ERR_LAUNCH, "leaving the program at its gate: %s", strerror(errno));
	return 0;
}

int gate_open(pid_t pid, remote_addr word)
{
	uint64_t one = 1;

	return memory_write(pid, word, &one, sizeof one);
}
