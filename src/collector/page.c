/* How the shared page and the lanes behind it come in: a memfd, which the attacher makes large and fills from outside. */
#include "collector/page.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/libc.h"
#include "collector/mapping.h"

/* The attacher fills the memfd through /proc/PID/fd. 0 = go on. */
static int wait_for_answer(struct handover *handover)
{
	uint64_t end = monotonic_ns() + (uint64_t)handover->wait_ms * 1000000;
	struct timespec pause = {0, 100000};

	for (;;) {
		uint32_t answer = __atomic_load_n(&handover->answer, __ATOMIC_ACQUIRE);

		if (answer == ANSWER_GO)
			return 0;
		if (answer == ANSWER_GIVE_UP || monotonic_ns() > end)
			return -1;
		nanosleep(&pause, NULL);
	}
}

/* Never one of 0-2: a target that closed them may use these numbers for a protocol. */
static int make_memfd(void)
{
	int fd = (int)syscall(SYS_memfd_create, LANES_MEMFD_NAME, 3u /* MFD_CLOEXEC | MFD_ALLOW_SEALING */), higher;

	if (fd < 0 || fd > 2)
		return fd;
	higher = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	close(fd);
	return higher;
}

static struct page *map_page(struct handover *handover, int fd)
{
	const struct page *settings = &the.settings;
	uint64_t bytes = handover->lanes_bytes;
	struct page *page;

	if (bytes < PAGE_BYTES + SUBBUF_BYTES || (uint64_t)lseek(fd, 0, SEEK_END) != bytes) {
		errno = EINVAL;
		return NULL;
	}
	page = mapping_make(bytes, fd);
	if (!page)
		return NULL;
	the.settings.mapping_bytes = bytes;
	the.mapped = page; /* a child that is forked now must not keep it */
	memcpy(&the.settings, page, offsetof(struct page, deadline_ticks));
	if (settings->magic == PAGE_MAGIC && settings->version == PAGE_VERSION && settings->page_bytes == PAGE_BYTES && settings->mapping_bytes == bytes &&
	    settings->subbuf_count && settings->subbuf_count <= (bytes - PAGE_BYTES) / SUBBUF_BYTES && settings->ticks_per_second)
		return page;
	the.mapped = NULL;
	munmap(page, bytes);
	errno = EPROTO;
	return NULL;
}

struct page *page_take(struct handover *handover)
{
	struct page *page = NULL;
	int fd = make_memfd();

	if (fd < 0) {
		handover_fail(handover, errno, "memfd_create");
		return NULL;
	}
	handover->lanes_fd = the.lanes_fd = fd;
	handover_say(handover, SAID_HAVE_FD);
	if (wait_for_answer(handover)) {
		handover_say(handover, SAID_GAVE_UP);
	} else {
		page = map_page(handover, fd);
		if (!page)
			handover_fail(handover, errno, "mapping the lanes");
	}
	the.lanes_fd = 0;
	close(fd);
	return page;
}
