/* Finding the interpreter of a program that is just starting, and the gate at its entry (launch_gate_code.S). What starts, what is refused and
 * who waits for whom is launch.c's. */
#include "inject/launch_gate.h"

#include "inject/remote_elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

/* launch_gate_code.S */
extern const unsigned char gate_code[], gate_code_end[], gate_words[];

struct gate_data {
	uint64_t save_thread, restore_thread, entry, parent, interval[2];
	uint64_t ignore_trap;
	uint64_t trap_action[4]; /* the kernel's struct sigaction */
};

enum { GATE_BYTES_MAX = 512, RED_ZONE_WORD = 24 /* launch_gate_code.S: push, sub $16 */ };

struct mapping {
	remote_addr start, end;
	bool executable, writable, from_start; /* of a file */
	char path[256];
};

static bool mapping_parse(const char *line, struct mapping *out)
{
	unsigned long long start, end, offset;
	char access[8], path[256] = "";

	if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %255[^\n]", &start, &end, access, &offset, path) < 4)
		return false;
	*out = (struct mapping){ .start = start, .end = end, .executable = access[2] == 'x', .writable = access[1] == 'w',
		.from_start = offset == 0 && path[0] == '/' };
	memcpy(out->path, path, sizeof path);
	return true;
}

/* Calls EACH for every mapping until one returns non-zero; that is the result. */
static int for_each_mapping(pid_t pid, int (*each)(void *context, const struct mapping *), void *context)
{
	char path[64], *line = NULL;
	size_t capacity = 0;
	struct mapping mapping;
	int result = 0;
	FILE *maps;

	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		return 0;
	while (result == 0 && getline(&line, &capacity, maps) > 0)
		if (mapping_parse(line, &mapping))
			result = each(context, &mapping);
	free(line);
	fclose(maps);
	return result;
}

struct python_search {
	pid_t pid;
	struct gate_python found;
	bool old;
};

static int look_for_python(void *context, const struct mapping *mapping)
{
	struct python_search *search = context;
	struct remote_elf elf;
	struct gate_python python;

	if (!mapping->from_start || remote_elf_open(search->pid, mapping->start, &elf) < 0)
		return 0;
	python.run_main = remote_elf_symbol(&elf, "Py_RunMain");
	python.save_thread = remote_elf_symbol(&elf, "PyEval_SaveThread");
	python.restore_thread = remote_elf_symbol(&elf, "PyEval_RestoreThread");
	if (!python.run_main && python.save_thread)
		search->old = true;
	if (!python.run_main || !python.save_thread || !python.restore_thread)
		return 0;
	search->found = python;
	return 1;
}

int gate_find_python(pid_t pid, struct gate_python *out, bool *old)
{
	struct python_search search = { .pid = pid };
	int found = for_each_mapping(pid, look_for_python, &search);

	*old = search.old;
	if (!found)
		return -1;
	*out = search.found;
	return 0;
}

remote_addr gate_program_entry(pid_t pid)
{
	char path[64];
	Elf64_auxv_t vector[128];
	ssize_t size;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	size = read(fd, vector, sizeof vector);
	close(fd);
	for (ssize_t i = 0; size > 0 && i < size / (ssize_t)sizeof vector[0] && vector[i].a_type != AT_NULL; i++)
		if (vector[i].a_type == AT_ENTRY)
			return vector[i].a_un.a_val;
	return 0;
}

static int debug_register_set(pid_t pid, size_t number, uint64_t value)
{
	return ptrace(PTRACE_POKEUSER, pid, (void *)(offsetof(struct user, u_debugreg) + number * sizeof(long)), (void *)value) < 0 ? -1 : 0;
}

int gate_break_at(pid_t pid, remote_addr addr)
{
	/* Register 7, bit 0: stop at the address in register 0 when it is about to be executed. */
	if (debug_register_set(pid, 7, 0) < 0 || debug_register_set(pid, 0, addr) < 0)
		return -1;
	return addr ? debug_register_set(pid, 7, 1) : 0;
}

bool gate_reached(pid_t pid, remote_addr addr)
{
	siginfo_t info;
	struct user_regs_struct registers;

	return ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) == 0 && info.si_signo == SIGTRAP && info.si_code == TRAP_HWBKPT
		&& ptrace(PTRACE_GETREGS, pid, NULL, &registers) == 0 && registers.rip == addr;
}

/* ---- room for the gate ---- */

struct room_search {
	pid_t pid;
	size_t size;
	int pass;               /* 0: objects that an attach does not use for its entry code; 1: any */
	struct remote_elf elf;  /* of the mappings that follow its header */
	bool have_elf;
	remote_addr room;
};

/* An attach keeps its entry code behind the code of libc, ld.so, the interpreter and the executable: leave that room to it. */
static bool left_alone(const struct room_search *search, const struct mapping *mapping)
{
	char link[64], executable[256];
	ssize_t length;

	snprintf(link, sizeof link, "/proc/%d/exe", (int)search->pid);
	length = readlink(link, executable, sizeof executable - 1);
	executable[length > 0 ? length : 0] = '\0';
	return remote_elf_symbol(&search->elf, "__libc_start_main") || remote_elf_symbol(&search->elf, "_dl_allocate_tls")
		|| remote_elf_symbol(&search->elf, "Py_RunMain") || strcmp(executable, mapping->path) == 0;
}

static int look_for_room(void *context, const struct mapping *mapping)
{
	struct room_search *search = context;
	unsigned char bytes[GATE_BYTES_MAX];
	remote_addr room;

	if (mapping->from_start)
		search->have_elf = remote_elf_open(search->pid, mapping->start, &search->elf) == 0;
	if (!search->have_elf || !mapping->executable || mapping->writable || search->elf.code_end <= mapping->start || search->elf.code_end > mapping->end)
		return 0;
	room = (mapping->end - search->size) & ~(remote_addr)15;
	if (room < search->elf.code_end || remote_read(search->pid, room, bytes, search->size) < 0)
		return 0;
	for (size_t i = 0; i < search->size; i++)
		if (bytes[i])
			return 0;
	if (search->pass == 0 && left_alone(search, mapping))
		return 0;
	search->room = room;
	return 1;
}

/* Zero bytes behind the code of some mapped object, as far from its start as possible. 0 = none. */
static remote_addr find_room(pid_t pid, size_t size)
{
	for (int pass = 0; pass < 2; pass++) {
		struct room_search search = { .pid = pid, .size = size, .pass = pass };

		if (for_each_mapping(pid, look_for_room, &search))
			return search.room;
	}
	return 0;
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
	struct user_regs_struct registers;
	remote_addr room;

	_Static_assert(sizeof data % sizeof(long) == 0, "written word by word");
	if (size > sizeof image || size - data_at != sizeof data)
		return fail(err, ERR_INTERNAL, "the gate has %zu bytes", size);
	memcpy(image, gate_code, size);
	memcpy(image + data_at, &data, sizeof data);
	room = find_room(pid, size);
	if (!room)
		return fail(err, ERR_LAUNCH_REFUSED, "no room for the %zu bytes of the gate in the program's mappings", size);
	if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) < 0)
		return fail(err, ERR_LAUNCH, "reading registers: %s", strerror(errno));
	if (poke(pid, room, image, (size + 7) & ~(size_t)7) < 0)
		return fail(err, ERR_LAUNCH_REFUSED, "writing the gate: %s", strerror(errno));
	/* Set before the thread runs: it may be opened before it is reached. Below the stack pointer, but inside the red zone, which no signal handler touches. */
	*word = registers.rsp - RED_ZONE_WORD;
	if (ptrace(PTRACE_POKEDATA, pid, (void *)*word, NULL) < 0)
		return fail(err, ERR_LAUNCH, "writing to the stack: %s", strerror(errno));
	registers.rip = room;
	registers.orig_rax = ~0ull;
	if (ptrace(PTRACE_SETREGS, pid, NULL, &registers) < 0 || ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0)
		return fail(err, ERR_LAUNCH, "leaving the program at its gate: %s", strerror(errno));
	return 0;
}

int gate_open(pid_t pid, remote_addr word)
{
	uint64_t one = 1;
	struct iovec here = { &one, sizeof one };
	struct iovec there = { (void *)(uintptr_t)word, sizeof one };

	return process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof one ? 0 : -1;
}
