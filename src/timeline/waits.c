/*
 * What a blocked thread waits for: told by the system call it is in and by its innermost functions. A futex alone may be a lock that
 * somebody holds, or a pool worker without work; only the Python frames tell them apart. Rows, not branches.
 */
#include "timeline/private.h"

/* What a system call means by itself. */
static const struct { const char *name; enum thread_state state; } calls[] = {
	{ "gil", THREAD_GIL_WAIT },
	{ "futex", THREAD_LOCK_WAIT }, { "futex_waitv", THREAD_LOCK_WAIT }, { "futex_wait", THREAD_LOCK_WAIT },
	{ "clock_nanosleep", THREAD_SLEEP }, { "nanosleep", THREAD_SLEEP },
	/* time.sleep() is a select() up to Python 3.10 */
	{ "select", THREAD_SLEEP }, { "pselect6", THREAD_SLEEP }, { "_newselect", THREAD_SLEEP },
	{ "epoll_wait", THREAD_IDLE }, { "epoll_pwait", THREAD_IDLE }, { "epoll_pwait2", THREAD_IDLE }, { "poll", THREAD_IDLE }, { "ppoll", THREAD_IDLE },
	{ "accept", THREAD_IDLE }, { "accept4", THREAD_IDLE }, { "pause", THREAD_IDLE }, { "rt_sigsuspend", THREAD_IDLE }, { "rt_sigtimedwait", THREAD_IDLE },
	{ "wait4", THREAD_IDLE }, { "waitid", THREAD_IDLE }, { "restart_syscall", THREAD_SLEEP },
	{ "io_uring_enter", THREAD_IO_WAIT }, { "io_getevents", THREAD_IO_WAIT },
};

#define BY_CALLER ((enum thread_state)THREAD_STATES)

/* Innermost Python frames that say more: of which file, which function ("" = any), and what the wait is then.
 * THREAD_UNKNOWN: the caller knows better; THREAD_IDLE if nobody does. BY_CALLER: if nobody does, it is what the system call says. */
static const struct { const char *file, *function; enum thread_state state; } frame_rules[] = {
	{ "queue.py", "get", THREAD_IDLE },
	{ "queue.py", "put", THREAD_LOCK_WAIT },
	{ "threading.py", "wait", THREAD_UNKNOWN },
	{ "threading.py", "wait_for", THREAD_UNKNOWN },
	{ "threading.py", "acquire", THREAD_LOCK_WAIT },
	{ "threading.py", "__enter__", THREAD_LOCK_WAIT },
	{ "threading.py", "_acquire_restore", THREAD_LOCK_WAIT },
	{ "threading.py", "", THREAD_IDLE }, /* join, shutdown */
	{ "concurrent/futures/thread.py", "", THREAD_IDLE },
	{ "concurrent/futures/_base.py", "", THREAD_IDLE },
	{ "concurrent/futures/process.py", "", THREAD_IDLE },
	{ "multiprocessing/pool.py", "", THREAD_IDLE },
	{ "multiprocessing/connection.py", "_send", THREAD_IO_WAIT }, /* into a pipe that nobody empties */
	{ "multiprocessing/connection.py", "", THREAD_IDLE },
	{ "multiprocessing/queues.py", "get", THREAD_IDLE },
	{ "multiprocessing/popen_fork.py", "", THREAD_IDLE },
	{ "selectors.py", "", THREAD_IDLE },
	{ "socket.py", "accept", THREAD_IDLE },
	{ "asyncio/base_events.py", "", THREAD_IDLE },
	{ "asyncio/unix_events.py", "", THREAD_IDLE },
	{ "socket.py", "readinto", BY_CALLER },
	{ "ssl.py", "recv_into", BY_CALLER }, { "ssl.py", "read", BY_CALLER },
	{ "socketserver.py", "serve_forever", THREAD_IDLE }, { "socketserver.py", "handle_request", THREAD_IDLE }, { "socketserver.py", "get_request", THREAD_IDLE },
	/* They read the next request of a connection that is kept alive; its headers, its body and the answer are others' to read and write. */
	{ "http/server.py", "handle_one_request", THREAD_IDLE },
	{ "wsgiref/simple_server.py", "handle", THREAD_IDLE },
};

static const char *last_part(const char *qualified)
{
	const char *dot = strrchr(qualified, '.');

	return dot ? dot + 1 : qualified;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && (length == end_length || text[length - end_length - 1] == '/') && strcmp(text + length - end_length, end) == 0;
}

/* A user's own queue.py is not the library's. torch.profiler names files from the folder in sys.path on: "threading.py". */
static bool is_library(const char *file)
{
	return strstr(file, "/python3") || strstr(file, ".zip/") || *file != '/';
}

static int find_rule(const struct timeline_private *p, const struct name *frame)
{
	const char *file = strings_get(p->strings, frame->file), *function = last_part(strings_get(p->strings, frame->name));

	if (frame->kind != FUNCTION_PYTHON || !is_library(file))
		return -1;
	for (size_t i = 0; i < sizeof frame_rules / sizeof *frame_rules; i++)
		if (ends_with(file, frame_rules[i].file) && (!*frame_rules[i].function || strcmp(frame_rules[i].function, function) == 0))
			return (int)i;
	return -1;
}

/* Of the library's functions that wait, those that do nothing else. */
static bool is_library_wait(const struct timeline_private *p, const struct name *function)
{
	static const char *const names[] = { "wait", "acquire", "join", "_wait_for_tstate_lock", "get", "put", "select", "accept", "poll" };
	const char *name = last_part(strings_get(p->strings, function->name));

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return find_rule(p, function) >= 0;
	return false;
}

/* DIRECT when no frame says otherwise. */
static enum thread_state by_frames(const struct timeline_private *p, const struct wait_frames *frames, enum thread_state direct)
{
	bool passed = false;

	for (uint32_t i = 0; i < frames->count; i++) {
		const struct name *frame = frames->frames[i];
		int rule;

		if (frame->kind != FUNCTION_PYTHON) {
			if (frame->kind == FUNCTION_C && strcmp(last_part(strings_get(p->strings, frame->name)), "get") == 0)
				return THREAD_IDLE; /* SimpleQueue.get() */
			continue;
		}
		rule = find_rule(p, frame);
		if (rule < 0)
			break;
		if (frame_rules[rule].state != THREAD_UNKNOWN && frame_rules[rule].state != BY_CALLER)
			return frame_rules[rule].state;
		passed |= frame_rules[rule].state == THREAD_UNKNOWN;
	}
	return passed ? THREAD_IDLE : direct;
}

struct name *wait_owner(struct timeline_private *p, const struct wait_frames *frames)
{
	for (uint32_t i = 0; i < frames->count; i++)
		if (frames->frames[i]->kind == FUNCTION_PYTHON && find_rule(p, frames->frames[i]) < 0)
			return &p->names.list.items[frames->frames[i] - p->names.list.items];
	return NULL;
}

enum thread_state wait_refine(const struct timeline_private *p, enum thread_state state, const struct wait_frames *frames)
{
	switch (state) {
	case THREAD_LOCK_WAIT:
	case THREAD_IO_WAIT:
	case THREAD_SLEEP:
		return by_frames(p, frames, state);
	case THREAD_NATIVE: /* woken where it waited: it does not run yet */
		return frames->count && is_library_wait(p, frames->frames[0]) ? THREAD_RUNNABLE : state;
	default:
		return state;
	}
}

enum thread_state wait_classify(const struct timeline_private *p, const char *wait, uint32_t letter, const struct wait_frames *frames, bool python)
{
	enum thread_state state = THREAD_IO_WAIT; /* read, recvfrom, sendto, fsync, … */

	if (letter == 'D')
		return THREAD_IO_WAIT;
	if (!*wait)
		return THREAD_UNKNOWN;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (strcmp(calls[i].name, wait) == 0)
			state = calls[i].state;
	/* A thread that never runs Python and waits belongs to some library's pool. */
	if (!python && state != THREAD_IO_WAIT && state != THREAD_SLEEP)
		return THREAD_IDLE;
	/* A wait on a futex by a thread whose stack nobody saw: may be either, so it is no finding. */
	if (state == THREAD_LOCK_WAIT && !frames->count)
		return THREAD_UNKNOWN;
	return wait_refine(p, state, frames);
}

/* C functions by name, when only calls are known. */
static const struct { const char *name; enum thread_state state; const char *type; /* NULL: of any */ } leaves[] = {
	{ "get", THREAD_IDLE, "_queue.SimpleQueue" }, /* in which the workers of concurrent.futures and asyncio wait for work */
	{ "sleep", THREAD_SLEEP },
	{ "select", THREAD_IDLE }, { "poll", THREAD_IDLE }, { "epoll", THREAD_IDLE }, { "accept", THREAD_IDLE }, { "_accept", THREAD_IDLE },
	{ "acquire", THREAD_LOCK_WAIT },
	{ "recv", THREAD_IO_WAIT }, { "recv_into", THREAD_IO_WAIT }, { "send", THREAD_IO_WAIT }, { "sendall", THREAD_IO_WAIT }, { "connect", THREAD_IO_WAIT },
	{ "read", THREAD_IO_WAIT }, { "readinto", THREAD_IO_WAIT }, { "write", THREAD_IO_WAIT }, { "fsync", THREAD_IO_WAIT },
};

static enum thread_state leaf_state(const struct timeline_private *p, const struct name *leaf)
{
	const char *name = last_part(strings_get(p->strings, leaf->name));

	if (leaf->kind == FUNCTION_C)
		for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++)
			if (strcmp(leaves[i].name, name) == 0 && (!leaves[i].type || strcmp(leaves[i].type, strings_get(p->strings, leaf->file)) == 0))
				return leaves[i].state;
	if (leaf->kind == FUNCTION_PYTHON) {
		int rule = find_rule(p, leaf);

		if (rule >= 0 && frame_rules[rule].state != THREAD_UNKNOWN && (strcmp(name, "get") == 0 || strcmp(name, "select") == 0))
			return THREAD_IDLE;
		return THREAD_PYTHON;
	}
	return leaf->kind == FUNCTION_UNKNOWN ? THREAD_PYTHON : THREAD_NATIVE;
}

enum thread_state wait_of_leaf(const struct timeline_private *p, struct name *leaf)
{
	if (!leaf->leaf)
		leaf->leaf = (uint8_t)(1 + leaf_state(p, leaf));
	return (enum thread_state)(leaf->leaf - 1);
}

enum { WAITER_TIMES = 9, WAITER_LEAST = 10 }; /* samples in which a native or C function waits to those in which it runs; and how many tell it of a C function */

bool wait_is_waiter(const struct timeline_private *p, struct name *function)
{
	enum thread_state state = wait_of_leaf(p, function);

	if (function->kind == FUNCTION_NATIVE)
		return function->waited > WAITER_TIMES * function->ran;
	if (function->kind == FUNCTION_C && function->waited >= WAITER_LEAST && function->waited > WAITER_TIMES * function->ran)
		return true;
	return (state != THREAD_PYTHON && state != THREAD_NATIVE) || is_library_wait(p, function);
}

struct wait_frames wait_frames_of_node(const struct timeline_private *p, uint32_t node)
{
	struct wait_frames frames = { 0 };

	for (; node != NONE && frames.count < WAIT_FRAMES; node = p->nodes.items[node].parent) {
		uint32_t function = p->nodes.items[node].function;

		if (function == NONE)
			break;
		frames.frames[frames.count++] = &p->names.list.items[function];
	}
	return frames;
}

struct wait_frames wait_frames_of_stack(const struct timeline_private *p, uint32_t stack)
{
	struct wait_frames frames = { 0 };

	for (; stack != NONE && frames.count < WAIT_FRAMES; stack = p->stacks.items[stack].parent) {
		const struct stack_entry *entry = &p->stacks.items[stack];

		/* Native frames lie between the wait and the Python code that waits: only the latter tells. */
		if (entry->kind == 0)
			frames.frames[frames.count++] = &p->names.list.items[names_find(p, entry->process, entry->ref)];
	}
	return frames;
}
