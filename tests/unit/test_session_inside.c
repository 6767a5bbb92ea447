/* A process that measures itself, played by the test: what it may give, what it is asked, what it may answer. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/inside.h"
#include "session/inside.h"
#include "session/payload.h"

enum { OURS = 0, ITS = 1, PASSED = 2 };

static int ends[2];
static struct error err;

static void begin(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static void end(void)
{
	close(ends[OURS]);
	close(ends[ITS]);
}

TestSuite(inside, .init = begin, .fini = end, .timeout = 60);

/* The process says KIND, with the file PATH unless that is NULL. */
static void say(uint32_t kind, const char *text, const char *path)
{
	struct inside_message message = { .kind = kind };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec part = { &message, sizeof message };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	strcpy(message.text, text);
	if (fd >= 0) {
		header.msg_control = &control;
		header.msg_controllen = sizeof control;
		*CMSG_FIRSTHDR(&header) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd) };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&header)), &fd, sizeof fd);
	}
	cr_assert_eq(sendmsg(ends[ITS], &header, 0), (ssize_t)sizeof message);
	if (fd >= 0)
		close(fd);
}

/* What it is asked, and the descriptors that come with that. */
static uint32_t asked(int passed[PASSED])
{
	struct inside_message message;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(PASSED * sizeof(int))];
	} control;
	struct iovec part = { &message, sizeof message };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };

	cr_assert_eq(recvmsg(ends[ITS], &header, MSG_DONTWAIT), (ssize_t)sizeof message);
	cr_assert_eq(CMSG_FIRSTHDR(&header)->cmsg_len, CMSG_LEN(PASSED * sizeof(int)));
	memcpy(passed, CMSG_DATA(CMSG_FIRSTHDR(&header)), PASSED * sizeof(int));
	return message.kind;
}

static struct inside *opened(void)
{
	struct inside *inside;

	say(INSIDE_HELLO, "", "/proc/self/mem");
	cr_assert_eq(inside_open(&procfs_real, ends[OURS], getpid(), &inside, &err), 0, "%s", err.text);
	return inside;
}

Test(inside, has_the_memory_that_the_process_opened)
{
	static const char text[] = "here it lies";
	struct inside *inside = opened();
	char found[sizeof text];

	cr_assert_eq(pread(inside_memory(inside), found, sizeof found, (off_t)(uintptr_t)text), (ssize_t)sizeof found);
	cr_assert_str_eq(found, text);
	inside_close(inside);
}

Test(inside, takes_nothing_else_for_it)
{
	static const struct { uint32_t kind; const char *path, *why; } rows[] = {
		{ INSIDE_HELLO, "/dev/zero", "is not its memory" }, { INSIDE_HELLO, "/proc/1/mem", "is not its memory" }, { INSIDE_HELLO, NULL, "is not its memory" },
		{ INSIDE_ENTERED, "/proc/self/mem", "did not" },
	};
	struct inside *inside = NULL;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		say(rows[i].kind, "", rows[i].path);
		cr_assert_eq(inside_open(&procfs_real, ends[OURS], getpid(), &inside, &err), -1);
		cr_assert_eq(err.code, ERR_INSIDE);
		cr_assert(strstr(err.text, rows[i].why), "%s", err.text);
	}
	close(ends[ITS]);
	cr_assert_eq(inside_open(&procfs_real, ends[OURS], getpid(), &inside, &err), -1);
	cr_assert(strstr(err.text, "did not"), "%s", err.text);
	cr_assert_null(inside);
}

Test(inside, asks_with_the_library_and_a_page_that_keeps_its_size)
{
	const struct handover wanted = { .magic = HANDOVER_MAGIC, .command = HANDOVER_ARM };
	struct inside *inside = opened();
	struct handover *page;
	struct stat status;
	int passed[PASSED];

	cr_assert_eq(inside_enter(inside, &wanted, &err), 0, "%s", err.text);
	cr_assert_eq(inside_ended(inside, 0, &err), 0);
	cr_assert_eq(asked(passed), INSIDE_ENTER);
	cr_assert_eq(fstat(passed[0], &status), 0);
	cr_assert_eq(status.st_size, payload_end - payload_begin);
	cr_assert_lt(ftruncate(passed[1], 0), 0);
	page = mmap(NULL, INSIDE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, passed[1], 0);
	cr_assert_neq(page, MAP_FAILED);
	cr_assert_arr_eq(page, &wanted, sizeof wanted);
	page->said = SAID_DONE;
	cr_assert_eq(inside_handover(inside)->said, SAID_DONE);
	say(INSIDE_ENTERED, "", NULL);
	cr_assert_eq(inside_ended(inside, 1000, &err), 1);
	cr_assert_eq(inside_ended(inside, 0, &err), 1);
	munmap(page, INSIDE_PAGE_BYTES);
	close(passed[0]);
	close(passed[1]);
	inside_close(inside);
}

Test(inside, says_why_the_process_could_not)
{
	const struct handover wanted = { .magic = HANDOVER_MAGIC, .command = HANDOVER_DISARM };
	struct inside *inside = opened();

	cr_assert_eq(inside_enter(inside, &wanted, &err), 0, "%s", err.text);
	say(INSIDE_FAILED, "no room for it", "/dev/null");
	cr_assert_eq(inside_ended(inside, 1000, &err), -1);
	cr_assert_eq(err.code, ERR_INSIDE);
	cr_assert(strstr(err.text, "no room for it"), "%s", err.text);
	close(ends[ITS]);
	cr_assert_eq(inside_ended(inside, 1000, &err), -1);
	cr_assert_eq(err.code, ERR_EXITED);
	cr_assert_eq(inside_enter(inside, &wanted, &err), -1);
	cr_assert_eq(err.code, ERR_INSIDE);
	inside_close(inside);
}
