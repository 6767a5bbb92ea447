#include "session/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/inside.h"
#include "session/payload.h"

enum { HELLO_MS = 5000, PASSED = 2 };

struct inside {
	int fd, memory, library;
	struct handover *handover; /* shared with the process; NULL before the first call */
	bool ended;                /* the call that was asked for last */
};

static int poll_for(int fd, int timeout_ms)
{
	struct pollfd wanted = { .fd = fd, .events = POLLIN };
	int count;

	do
		count = poll(&wanted, 1, timeout_ms);
	while (count < 0 && errno == EINTR);
	return count;
}

/* A message; *PASSED_FD is the descriptor that came with it, or -1. */
static int receive(int fd, struct inside_message *message, int *passed_fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { message, sizeof *message };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	ssize_t got = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	const struct cmsghdr *first = got < 0 ? NULL : CMSG_FIRSTHDR(&header);

	*passed_fd = -1;
	if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS && first->cmsg_len >= CMSG_LEN(sizeof(int)))
		memcpy(passed_fd, CMSG_DATA(first), sizeof *passed_fd);
	message->text[sizeof message->text - 1] = '\0';
	return got == sizeof *message ? 0 : -1;
}

static int send_with(int fd, const struct inside_message *message, const int passed[PASSED])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(PASSED * sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec part = { (void *)(uintptr_t)message, sizeof *message };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	struct cmsghdr *first = CMSG_FIRSTHDR(&header);

	first->cmsg_level = SOL_SOCKET;
	first->cmsg_type = SCM_RIGHTS;
	first->cmsg_len = CMSG_LEN(PASSED * sizeof(int));
	memcpy(CMSG_DATA(first), passed, PASSED * sizeof(int));
	return sendmsg(fd, &header, MSG_NOSIGNAL) == (ssize_t)sizeof *message ? 0 : -1;
}

/* It is what it is said to be: else we would take another process's memory for this one's. */
static bool is_memory_of(const struct procfs *procfs, int fd, pid_t pid)
{
	char link[PATH_MAX], wanted[PATH_MAX], found[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof link, "%s/self/fd/%d", procfs->root, fd);
	snprintf(wanted, sizeof wanted, "%s/%d/mem", procfs->root, (int)pid);
	length = readlink(link, found, sizeof found - 1);
	found[length > 0 ? length : 0] = '\0';
	return strcmp(found, wanted) == 0;
}

static int library_make(void)
{
	size_t size = (size_t)(payload_end - payload_begin), done = 0;
	int fd = memfd_create(COLLECTOR_MEMFD_NAME, MFD_CLOEXEC);

	while (fd >= 0 && done < size) {
		ssize_t put = write(fd, payload_begin + done, size - done);

		if (put <= 0) {
			close(fd);
			return -1;
		}
		done += (size_t)put;
	}
	return fd;
}

int inside_open(const struct procfs *procfs, int fd, pid_t pid, struct inside **out, struct error *err)
{
	struct inside *inside = calloc(1, sizeof *inside);
	struct inside_message hello = { 0 };

	if (!inside)
		return fail(err, ERR_MEMORY, "attaching to %d", (int)pid);
	*inside = (struct inside){ .fd = fd, .memory = -1, .library = -1 };
	if (poll_for(fd, HELLO_MS) != 1 || receive(fd, &hello, &inside->memory) < 0 || hello.kind != INSIDE_HELLO) {
		fail(err, ERR_INSIDE, "process %d was to open its memory by descriptor %d, and did not", (int)pid, fd);
		goto out;
	}
	if (!is_memory_of(procfs, inside->memory, pid)) {
		fail(err, ERR_INSIDE, "what process %d gave is not its memory", (int)pid);
		goto out;
	}
	*out = inside;
	return 0;
out:
	inside_close(inside);
	return -1;
}

void inside_close(struct inside *inside)
{
	if (!inside)
		return;
	if (inside->handover)
		munmap(inside->handover, INSIDE_PAGE_BYTES);
	if (inside->library >= 0)
		close(inside->library);
	if (inside->memory >= 0)
		close(inside->memory);
	free(inside);
}

int inside_memory(const struct inside *inside)
{
	return inside->memory;
}

/* A page that both see, of a size that neither can change. */
static int page_make(struct inside *inside, const struct handover *handover)
{
	int fd = memfd_create("inferscope-handover", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *page = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, INSIDE_PAGE_BYTES) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		page = mmap(NULL, INSIDE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (inside->handover)
		munmap(inside->handover, INSIDE_PAGE_BYTES);
	inside->handover = page;
	*inside->handover = *handover;
	return fd;
}

int inside_enter(struct inside *inside, const struct handover *handover, struct error *err)
{
	const struct inside_message message = { .kind = INSIDE_ENTER };
	int page, result;

	_Static_assert(sizeof *handover <= INSIDE_PAGE_BYTES, "the hand-over fits its page");
	if (inside->library < 0)
		inside->library = library_make();
	page = inside->library < 0 ? -1 : page_make(inside, handover);
	if (page < 0)
		return fail(err, ERR_MEMORY, "the collector needs memory: %s", strerror(errno));
	inside->ended = false;
	result = send_with(inside->fd, &message, (const int[PASSED]){ inside->library, page });
	if (result < 0)
		fail(err, ERR_INSIDE, "the process that measures itself cannot be asked to load the collector: %s", strerror(errno));
	close(page);
	return result;
}

struct handover *inside_handover(const struct inside *inside)
{
	return inside->handover;
}

int inside_ended(struct inside *inside, int timeout_ms, struct error *err)
{
	struct inside_message message = { 0 };
	int passed, count;

	if (inside->ended)
		return 1;
	count = poll_for(inside->fd, timeout_ms);
	if (count <= 0)
		return 0;
	if (receive(inside->fd, &message, &passed) < 0)
		return fail(err, ERR_EXITED, "the process that measures itself has left the conversation");
	if (passed >= 0)
		close(passed);
	if (message.kind != INSIDE_ENTERED)
		return fail(err, ERR_INSIDE, "the collector cannot be loaded: %.200s", message.text);
	inside->ended = true;
	return 1;
}
