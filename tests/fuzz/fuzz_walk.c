/* Any bytes as an ELF file that a process has mapped and that only its memory still holds: its headers, notes, call-frame tables, through
 * modules, our evaluator and libunwind; and the same as a vDSO, beside code of nobody's. The first bytes say where a thread is in it; its stack is the file's end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/tree.h"
#include "unwind/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OF_PROCESS "77"
enum { PID = 77, BASE = 0x100000, LONGEST = 0x20000, VDSO = 0x130000, VDSO_SIZE = 0x2000, GENERATED = 0x140000, HEAD = 4, WALKS = 8 };

struct image {
	const uint8_t *bytes;
	size_t size;
};

/* The folder that plays /proc; its "mem" stays open for writing. */
static int play_proc(void)
{
	static const char maps[] = "100000-120000 r-xp 00000000 08:01 99 /gone (deleted)\n130000-132000 r-xp 00000000 00:00 0 [vdso]\n140000-141000 r-xp 00000000 00:00 0 \n"
		"7ffc00000000-7ffc00100000 rw-p 00000000 00:00 0 [stack]\nffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";

	tree_make((const char *const[]){ OF_PROCESS }, 1);
	tree_write(OF_PROCESS "/maps", maps, sizeof maps - 1);
	return openat(tree_fd, OF_PROCESS "/mem", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
}

static int read_image(void *context, uint64_t addr, void *buffer, size_t size)
{
	const struct image *image = context;
	uint64_t offset = addr - (addr >= VDSO ? VDSO : BASE);
	size_t have;

	if (addr < BASE || offset >= image->size)
		return -1;
	have = size < image->size - offset ? size : image->size - (size_t)offset;
	memset(buffer, 0, size);
	memcpy(buffer, image->bytes + offset, have);
	return 0;
}

static void walk(struct walker *walker, const struct image *image, uint64_t ip, struct thread_copy *copy)
{
	static struct native_stack stack;

	for (int i = 0; i < DWARF_COUNT; i++)
		copy->regs[i] = BASE + (uint64_t)i * 64;
	copy->regs[DWARF_RIP] = ip;
	copy->regs[DWARF_RSP] = 0x7ffc00001000;
	copy->known = ip & 1 ? 1u << DWARF_RSP | 1u << DWARF_RIP : (1u << DWARF_COUNT) - 1;
	copy->stack_size = image->size < 4096 ? (uint32_t)image->size : 4096;
	memcpy(copy->stack, image->bytes + image->size - copy->stack_size, copy->stack_size);
	if (thread_copy_reach(copy) >= THREAD_COPY_STACK_MAX)
		abort();
	walker_walk(walker, copy, &stack);
	if (stack.count < 1 || stack.count > WALK_FRAMES_MAX || stack.frames[0].ip != ip)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct thread_copy copy;
	static int memory = -1;
	struct image image = { data + HEAD, size - HEAD };
	struct remote_memory remote = { read_image, &image };
	struct procfs procfs = { tree_root };
	struct modules *modules;
	struct walker *walker;
	uint32_t where;
	struct error err;

	if (size < HEAD + 64 || size > LONGEST)
		return 0;
	if (memory < 0)
		memory = play_proc();
	memcpy(&where, data, sizeof where);
	if (ftruncate(memory, 0) < 0 || pwrite(memory, image.bytes, image.size, BASE) != (ssize_t)image.size
	    || pwrite(memory, image.bytes, image.size < VDSO_SIZE ? image.size : VDSO_SIZE, VDSO) < 0 || ftruncate(memory, VDSO + VDSO_SIZE) < 0)
		abort();
	if (modules_open(&procfs, PID, &modules, &err) < 0)
		return 0;
	if (walker_open(modules, &remote, &walker, &err) == 0) {
		for (uint32_t i = 0; i < WALKS; i++)
			walk(walker, &image, BASE + (where + i * 37) % LONGEST, &copy);
		walker_forget(walker);
		walk(walker, &image, VDSO + where % VDSO_SIZE, &copy);
		walk(walker, &image, GENERATED + where % 256, &copy);
		walker_close(walker);
	}
	modules_close(modules);
	return 0;
}
