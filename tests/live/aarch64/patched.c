/*
 * Code that is changed while another processor runs it: after the store, the cleaning of caches and a word to it, that one must run the new. Linux switches its
 * hooks on and off in this way. qemu before 8.1 does not keep it where each emulated processor has a thread of its own: what is translated after a store has
 * looked for old translations, and before it stores, stays for good. Where the hook at the end of a thread's turn stays off, the kernel (6.1) takes the thread's
 * events for running ones, and whoever takes a break point or a sample's event off it waits in the kernel for ever.
 *
 * patched COUNT: the changes of which the other saw none; 0, or 1 where there are any.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RETURN = 0xd65f03c0, MOVE_TO_W0 = 0x52800000, LATE_US = 20000 };

static uint32_t *code;
static atomic_uint wanted, seen, found, ended;

static void *run(void *unused)
{
	unsigned (*function)(void) = (unsigned (*)(void))(uintptr_t)code;

	while (!atomic_load(&ended)) {
		unsigned now = atomic_load(&wanted);

		__asm__ volatile("isb");
		atomic_store(&found, function());
		atomic_store(&seen, now);
	}
	return NULL;
}

static void put(uint32_t number)
{
	__atomic_store_n(code, MOVE_TO_W0 | number << 5, __ATOMIC_RELEASE);
	__builtin___clear_cache((char *)code, (char *)(code + 1));
	atomic_store(&wanted, number);
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 0, old = 0;
	pthread_t other;

	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED || count == 0 || count > UINT16_MAX)
		return 2;
	code[1] = RETURN;
	put(0);
	if (pthread_create(&other, NULL, run, NULL))
		return 2;
	for (unsigned number = 1; number <= count; number++) {
		put(number);
		while (atomic_load(&seen) != number)
			;
		if (atomic_load(&found) != number) {
			usleep(LATE_US);
			old += atomic_load(&found) != number;
		}
	}
	atomic_store(&ended, 1);
	pthread_join(other, NULL);
	printf("%u of %u\n", old, count);
	return old != 0;
}
