/* What threads did: parts that add up to the time they lived. */
#include "timeline_help.h"

#include <criterion/criterion.h>
#include <stdio.h>

static uint64_t sum_of_parts(const struct thread *thread)
{
	return thread->python_ns + thread->native_ns + thread->gil_wait_ns + thread->lock_wait_ns + thread->io_wait_ns + thread->gpu_wait_ns +
		thread->sleep_ns + thread->runnable_ns + thread->idle_ns + thread->unknown_ns;
}

Test(timeline_threads, split_time_by_the_kernels_clocks)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000000000) SESSION
		"0 thread_time ref=7 cpu_ns=5 run_wait_ns=0 state=82\n"
		"1000000000 thread_time ref=7 cpu_ns=600000005 run_wait_ns=100000000 voluntary=3 involuntary=2 state=83 wait=\"gil\"\n"
		THREAD(3, 7) "0 enter ref=1\n");
	const struct thread *thread = &t->threads[0];

	cr_assert_eq(thread->python_ns, 600000000);
	cr_assert_eq(thread->runnable_ns, 100000000);
	cr_assert_eq(thread->gil_wait_ns, 300000000);
	cr_assert_eq(thread->involuntary, 2);
	cr_assert_eq(sum_of_parts(thread), thread->wall_ns);
}

/* An attach that takes 2 s reads the clocks before and after them: what was done before the first window is no part of the capture, and neither is what came after the last. */
Test(timeline_threads, count_what_lies_within_the_capture)
{
	struct timeline *t = timeline_from_text(META NAMES ON(2000000000) OFF(3000000000) SESSION
		"0 process_time ref=7 user_ns=0 system_ns=0\n"
		"0 thread_time ref=7 cpu_ns=0 run_wait_ns=0 voluntary=0 involuntary=0 state=82\n"
		"2500000000 thread_time ref=7 cpu_ns=500000000 run_wait_ns=250000000 voluntary=25 involuntary=50 state=82\n"
		"3500000000 thread_time ref=7 cpu_ns=800000000 run_wait_ns=450000000 voluntary=35 involuntary=60 state=82\n"
		"4000000000 process_time ref=7 user_ns=800000000 system_ns=400000000\n"
		THREAD(3, 7) "2000000000 enter ref=1\n");
	const struct thread *thread = &t->threads[0];

	cr_assert_eq(t->duration_ns, 1000000000);
	cr_expect_eq(thread->cpu_ns, 100000000 + 150000000, "%llu", (unsigned long long)thread->cpu_ns);
	cr_expect_eq(thread->run_wait_ns, 50000000 + 100000000);
	cr_expect_eq(thread->voluntary, 5 + 5);
	cr_expect_eq(thread->python_ns, 250000000, "%llu", (unsigned long long)thread->python_ns);
	cr_expect_eq(sum_of_parts(thread), thread->wall_ns);
	cr_expect_eq(t->processes[0].user_ns, 200000000);
	cr_expect_eq(t->processes[0].system_ns, 100000000);
}

/* As a double the start is the last reading, and the largest clock more than fits an integer: all of it was before. */
Test(timeline_threads, count_nothing_of_clocks_that_were_all_before_the_capture)
{
	struct timeline *t = timeline_from_text(META NAMES ON(1152921504606846976) OFF(1152921504606846978) SESSION
		"0 thread_time ref=7 cpu_ns=0 run_wait_ns=0 state=82\n"
		"1152921504606846977 thread_time ref=7 cpu_ns=18446744073709551615 run_wait_ns=18446744073709551615 voluntary=18446744073709551615 state=82\n"
		THREAD(3, 7) "1152921504606846976 enter ref=1\n");
	const struct thread *thread = &t->threads[0];

	cr_assert_eq(t->duration_ns, 2);
	cr_expect_eq(thread->cpu_ns, 0, "%llu", (unsigned long long)thread->cpu_ns);
	cr_expect_eq(thread->run_wait_ns, 0, "%llu", (unsigned long long)thread->run_wait_ns);
	cr_expect_eq(thread->voluntary, 0, "%llu", (unsigned long long)thread->voluntary);
}

/* Of a thread that ended, and of another one that has its number now. */
Test(timeline_threads, add_up_clocks_of_all_that_had_a_number)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000000000) SESSION
		"0 thread_time ref=7 cpu_ns=100 run_wait_ns=50 voluntary=10 involuntary=9 state=82\n"
		"500000000 thread_time ref=7 cpu_ns=300000000 run_wait_ns=60 voluntary=500 involuntary=20 state=82\n"
		"1000000000 thread_time ref=7 cpu_ns=200000000 run_wait_ns=40 voluntary=3 involuntary=2 state=82\n");
	const struct thread *thread = &t->threads[0];

	cr_expect_eq(thread->voluntary, 490 + 3, "%llu", (unsigned long long)thread->voluntary);
	cr_expect_eq(thread->involuntary, 11 + 2);
	cr_expect_eq(thread->cpu_ns, 299999900 + 200000000);
	cr_expect_eq(thread->run_wait_ns, 10 + 40);
}

#define WAITS(wait) \
	"0 thread_time ref=7 cpu_ns=0 state=83 wait=\"" wait "\"\n1000000000 thread_time ref=7 cpu_ns=0 voluntary=9 state=83 wait=\"" wait "\"\n"
#define LIBRARY \
	"0 code ref=10 line=1 name=\"get\" qualname=\"Queue.get\" file=\"/usr/lib/python3.11/queue.py\"\n" \
	"0 code ref=11 line=2 name=\"wait\" qualname=\"Condition.wait\" file=\"/usr/lib/python3.11/threading.py\"\n" \
	"0 code ref=12 line=3 name=\"acquire\" qualname=\"Semaphore.acquire\" file=\"/usr/lib/python3.11/threading.py\"\n"

Test(timeline_threads, tell_a_lock_from_an_idle_worker_by_the_frames)
{
	struct timeline *lock = timeline_from_text(META NAMES LIBRARY ON(0) OFF(1000000000) SESSION WAITS("futex") THREAD(3, 7) "0 enter ref=1\n");
	struct timeline *worker = timeline_from_text(META NAMES LIBRARY ON(0) OFF(1000000000) SESSION WAITS("futex") THREAD(3, 7) "0 enter ref=1\n0 enter ref=10\n0 enter ref=11\n");
	struct timeline *semaphore = timeline_from_text(META NAMES LIBRARY ON(0) OFF(1000000000) SESSION WAITS("futex") THREAD(3, 7) "0 enter ref=1\n0 enter ref=12\n0 enter ref=11\n");

	cr_assert_eq(lock->threads[0].lock_wait_ns, 1000000000);
	cr_assert_eq(worker->threads[0].idle_ns, 1000000000);
	cr_assert_eq(semaphore->threads[0].lock_wait_ns, 1000000000);
}

/* Innermost last, by what they are called in the standard library. */
static const struct thread *waiting_in(const char *wait, const char *const frames[][2], size_t count)
{
	char text[4096], *at = text, *end = text + sizeof text;

	at += snprintf(at, (size_t)(end - at), "%s", META NAMES ON(0) OFF(1000000000));
	for (size_t i = 0; i < count; i++)
		at += snprintf(at, (size_t)(end - at), "0 code ref=%zu line=1 name=\"%s\" qualname=\"A.%s\" file=\"/usr/lib/python3.11/%s\"\n", 20 + i, frames[i][1], frames[i][1], frames[i][0]);
	at += snprintf(at, (size_t)(end - at), SESSION "0 thread_time ref=7 cpu_ns=0 state=83 wait=\"%s\"\n1000000000 thread_time ref=7 cpu_ns=0 voluntary=9 state=83 wait=\"%s\"\n" THREAD(3, 7) "0 enter ref=1\n",
		wait, wait);
	for (size_t i = 0; i < count; i++)
		at += snprintf(at, (size_t)(end - at), "0 enter ref=%zu\n", 20 + i);
	cr_assert_lt(at - text, (ptrdiff_t)sizeof text);
	return timeline_from_text(text)->threads;
}

#define WAITING_IN(wait, ...) waiting_in(wait, (const char *const[][2]){ __VA_ARGS__ }, sizeof((const char *const[][2]){ __VA_ARGS__ }) / sizeof(const char *[2]))
#define HANDLE { "http/server.py", "handle" }, { "http/server.py", "handle_one_request" }
#define NEXT_REQUEST HANDLE, { "socket.py", "readinto" }

Test(timeline_threads, know_a_server_that_waits_for_a_request_from_one_that_answers_it)
{
	cr_expect_eq(WAITING_IN("recvfrom", NEXT_REQUEST)->idle_ns, 1000000000, "the next request of a connection that is kept alive");
	cr_expect_eq(WAITING_IN("read", NEXT_REQUEST, { "ssl.py", "recv_into" }, { "ssl.py", "read" })->idle_ns, 1000000000);
	cr_expect_eq(WAITING_IN("recvfrom", { "wsgiref/simple_server.py", "handle" }, { "socket.py", "readinto" })->idle_ns, 1000000000);
	cr_expect_eq(WAITING_IN("recvfrom", HANDLE, { "http/client.py", "_read_headers" }, { "socket.py", "readinto" })->io_wait_ns, 1000000000, "it has begun, and the rest is slow to come");
	cr_expect_eq(WAITING_IN("recvfrom", { "http/client.py", "begin" }, { "http/client.py", "_read_status" }, { "socket.py", "readinto" })->io_wait_ns, 1000000000, "the answer of another server");
	cr_expect_eq(WAITING_IN("sendto", HANDLE, { "http/server.py", "flush_headers" }, { "socketserver.py", "write" })->io_wait_ns, 1000000000, "a client that is slow to read");
	cr_expect_eq(WAITING_IN("write", HANDLE, { "http/server.py", "log_message" })->io_wait_ns, 1000000000, "a log that nobody empties");
	cr_expect_eq(WAITING_IN("recvfrom", { "socketserver.py", "serve_forever" }, { "socketserver.py", "get_request" })->idle_ns, 1000000000, "a datagram");
	cr_expect_eq(WAITING_IN("read", { "multiprocessing/connection.py", "recv" }, { "multiprocessing/connection.py", "_recv" })->idle_ns, 1000000000);
	cr_expect_eq(WAITING_IN("write", { "multiprocessing/connection.py", "send" }, { "multiprocessing/connection.py", "_send" })->io_wait_ns, 1000000000);
}

Test(timeline_threads, know_sleep_io_and_idle_by_the_system_call)
{
	struct timeline *sleeper = timeline_from_text(META NAMES ON(0) OFF(1000000000) SESSION WAITS("clock_nanosleep") THREAD(3, 7) "0 enter ref=1\n");
	struct timeline *reader = timeline_from_text(META NAMES ON(0) OFF(1000000000) SESSION WAITS("recvfrom") THREAD(3, 7) "0 enter ref=1\n");
	struct timeline *server = timeline_from_text(META NAMES ON(0) OFF(1000000000) SESSION WAITS("epoll_wait") THREAD(3, 7) "0 enter ref=1\n");

	cr_assert_eq(sleeper->threads[0].sleep_ns, 1000000000);
	cr_assert_eq(reader->threads[0].io_wait_ns, 1000000000);
	cr_assert_eq(server->threads[0].idle_ns, 1000000000);
}

Test(timeline_threads, believe_a_futex_of_an_unknown_stack_to_be_nothing)
{
	struct timeline *pool = timeline_from_text(META ON(0) OFF(1000000000) SESSION WAITS("futex"));

	cr_assert_eq(pool->threads[0].idle_ns, 1000000000, "a thread without Python that waits is some library's pool");
}

Test(timeline_threads, charge_a_thread_that_came_late_only_for_its_life)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(4000000000) SESSION
		"0 thread_time ref=7 cpu_ns=0 state=82\n4000000000 thread_time ref=7 cpu_ns=4000000000 state=82\n"
		"2000000000 thread_time ref=8 cpu_ns=0 state=82\n3000000000 thread_time ref=8 cpu_ns=500000000 state=83 wait=\"read\"\n"
		THREAD(3, 7) "0 enter ref=1\n" THREAD(4, 8) "2000000000 enter ref=2\n3000000000 leave ref=2\n");

	cr_assert_eq(t->threads[1].wall_ns, 1000000000);
	cr_assert_eq(t->threads[1].io_wait_ns, 500000000);
	cr_assert_eq(function_named(t, "work")->precision, PRECISION_EXACT, "seen all its life");
}

Test(timeline_threads, judge_by_calls_when_nobody_read_the_clocks)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) THREAD(3, 7) "0 enter ref=1\n200 c_enter ref=4\n900 c_leave ref=4\n1000 leave ref=1\n");

	cr_assert_eq(t->threads[0].python_ns, 300);
	cr_assert_eq(t->threads[0].sleep_ns, 700);
}

Test(timeline_threads, fill_slots_with_what_all_threads_did)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000000000) SESSION
		"0 thread_time ref=7 cpu_ns=0 state=82\n500000000 thread_time ref=7 cpu_ns=500000000 state=82\n1000000000 thread_time ref=7 cpu_ns=500000000 state=83 wait=\"epoll_wait\"\n"
		THREAD(3, 7) "0 enter ref=1\n");

	cr_assert_eq(t->slot_count, 10);
	cr_assert_eq(t->slots[0].state_ns[THREAD_PYTHON], 100000000);
	cr_assert_eq(t->slots[9].state_ns[THREAD_IDLE], 100000000);
}

Test(timeline_threads, say_why_a_thread_is_not_hooked)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) "1 unhooked ref=7 reason=\"a debugger has its hook\"\n" OFF(1000));

	cr_assert_str_eq(t->threads[0].unhooked, "a debugger has its hook");
}

Test(timeline_threads, count_overlapping_kernels_of_two_streams_once)
{
	struct timeline *t = timeline_from_text(META ON(0) OFF(1000)
		"chunk process=0 lane=5 tid=0 kind=gpu sequence=1 lost=0 depth=0 refs=" CLOCK
		"100 gpu_kernel duration_ns=300 device=0 stream=7 name=\"a\"\n200 gpu_kernel duration_ns=300 device=0 stream=8 name=\"b\"\n"
		"450 h2d_copy duration_ns=150 device=0 stream=9 bytes=64\n");

	cr_assert_eq(t->devices[0].kernel_ns, 400);
	cr_assert_eq(t->devices[0].busy_ns, 500);
	cr_assert_eq(t->devices[0].copy_exposed_ns, 100);
	cr_assert_eq(t->devices[0].h2d_bytes, 64);
}

Test(timeline_threads, give_cpu_time_to_who_ran_not_to_who_waited)
{
	struct timeline *t = timeline_from_text(META NAMES LIBRARY ON(0) OFF(1000000000) SESSION
		"0 thread_time ref=7 cpu_ns=0 state=83 wait=\"futex\"\n1000000000 thread_time ref=7 cpu_ns=300000000 state=83 wait=\"futex\"\n"
		THREAD(3, 7) "0 enter ref=2\n400000000 leave ref=2\n400000000 enter ref=10\n400000000 enter ref=11\n1000000000 leave ref=11\n");

	cr_assert_float_eq((double)function_named(t, "work")->cpu_self_ns, 296e6, 1e6);
	cr_assert_lt(function_named(t, "Condition.wait")->cpu_self_ns, 10000000);
}

Test(timeline_threads, end_one_that_came_and_went_between_two_readings_with_its_last_call)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000000000) SESSION
		"0 thread_time ref=7 cpu_ns=0 state=82\n1000000000 thread_time ref=7 cpu_ns=1000000000 state=82\n"
		THREAD(3, 7) "0 enter ref=1\n" THREAD(4, 8) "500000000 enter ref=2\n520000000 leave ref=2\n");

	cr_assert_eq(t->threads[1].wall_ns, 20000000);
	cr_assert_eq(t->threads[1].python_ns, 20000000);
}

Test(timeline_threads, keep_two_with_the_same_tid_apart)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000) THREAD(3, 7) "0 enter ref=1\n" THREAD(4, 7) "600 enter ref=2\n");

	cr_assert_eq(function_named(t, "main")->self_ns, 600, "the first ended when the second began");
	cr_assert_eq(function_named(t, "work")->self_ns, 400);
	cr_assert_eq(function_named(t, "work")->precision, PRECISION_EXACT);
}

Test(timeline_threads, call_a_read_that_lasts_all_of_a_short_capture_idle)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1500000000) SESSION
		"0 thread_time ref=7 cpu_ns=5 voluntary=1 state=83 wait=\"read\"\n700000000 thread_time ref=7 cpu_ns=5 voluntary=1 state=83 wait=\"read\"\n"
		"1500000000 thread_time ref=7 cpu_ns=5 voluntary=1 state=83 wait=\"read\"\n" THREAD(3, 7) "0 enter ref=1\n");

	cr_assert_eq(t->threads[0].idle_ns, 1500000000);
}

Test(timeline_threads, moments_are_what_samples_saw_and_end_where_the_next_begins)
{
	struct timeline *timeline = timeline_from_text(META ON(0) NAMES "90 window_off reason=3\n" SESSION
		"0 thread ref=7 start_ticks=0 name=\"main\"\n0 thread ref=8 start_ticks=0 name=\"pool\"\n"
		"10 sample ref=0 tid=7 state=1 weight_ns=10\n20 sample ref=0 tid=7 state=1 weight_ns=10\n30 sample ref=0 tid=7 state=5 weight_ns=20\n"
		"40 gil ref=8 holder=7\n40 sample ref=0 tid=8 state=3 weight_ns=10\n");

	cr_assert_eq(timeline->moment_count, 3);
	cr_assert_eq(timeline->moments[0].start_ns, 10);
	cr_assert_eq(timeline->moments[0].end_ns, 30);
	cr_assert_eq(timeline->moments[0].state, THREAD_PYTHON);
	cr_assert_eq(timeline->moments[1].end_ns, 50);
	cr_assert_eq(timeline->moments[2].thread, 1);
	cr_assert_eq(timeline->moments[2].holder, 0);
	cr_assert_eq(timeline->moments[0].holder, UINT32_MAX);
}

/* 12 samples, all of them in the second call: blocked. */
#define C_CALL(definition) \
	timeline_from_text(META NAMES definition ON(0) OFF(1000000000) SESSION "0 stack ref=1 parent=0 frame=2 kind=0\n" \
		"0 thread_time ref=7 cpu_ns=0 state=83 wait=\"\"\n" \
		"450000000 sample ref=1 tid=7 state=4 weight_ns=10\n500000000 sample ref=1 tid=7 state=4 weight_ns=10\n550000000 sample ref=1 tid=7 state=4 weight_ns=10\n" \
		"600000000 sample ref=1 tid=7 state=4 weight_ns=10\n650000000 sample ref=1 tid=7 state=4 weight_ns=10\n700000000 sample ref=1 tid=7 state=4 weight_ns=10\n" \
		"750000000 sample ref=1 tid=7 state=4 weight_ns=10\n800000000 sample ref=1 tid=7 state=4 weight_ns=10\n850000000 sample ref=1 tid=7 state=4 weight_ns=10\n" \
		"900000000 sample ref=1 tid=7 state=4 weight_ns=10\n940000000 sample ref=1 tid=7 state=4 weight_ns=10\n980000000 sample ref=1 tid=7 state=4 weight_ns=10\n" \
		"1000000000 thread_time ref=7 cpu_ns=300000000 state=83 wait=\"\"\n" \
		THREAD(3, 7) "0 enter ref=2\n0 c_enter ref=21\n400000000 c_leave ref=21\n400000000 c_enter ref=20\n1000000000 c_leave ref=20\n")

Test(timeline_threads, give_no_cpu_time_to_c_functions_that_wait)
{
	static const char *const waits[] = { "get", "next_message" };
	struct timeline *t[] = {
		C_CALL("0 c_function ref=20 name=\"get\" module=\"_queue.SimpleQueue\"\n0 c_function ref=21 name=\"run\" module=\"onnxruntime\"\n"),
		C_CALL("0 c_function ref=20 name=\"next_message\" module=\"broker\"\n0 c_function ref=21 name=\"run\" module=\"onnxruntime\"\n"),
	};

	for (int i = 0; i < 2; i++) {
		cr_expect_float_eq((double)function_named(t[i], "run")->cpu_self_ns, 296e6, 2e6, "%s: %lu", waits[i], (unsigned long)function_named(t[i], "run")->cpu_self_ns);
		cr_expect_lt(function_named(t[i], waits[i])->cpu_self_ns, 10000000, "%s", waits[i]);
		cr_expect(function_named(t[i], waits[i])->waiter);
	}
}

/* Servers that give each request a thread have hundreds of these: one sample of a wait in such a thread must not stand for all the time before it. */
Test(timeline_threads, that_come_and_go_between_two_readings_live_from_their_first_call_on)
{
	struct timeline *t = timeline_from_text(META NAMES ON(0) OFF(1000000000) SESSION
		"0 thread_time ref=7 cpu_ns=0 run_wait_ns=0 state=82\n1000000000 thread_time ref=7 cpu_ns=500000000 run_wait_ns=0 state=83 wait=\"\"\n"
		THREAD(3, 7) "0 enter ref=1\n"
		THREAD(4, 8) "500000000 stack_begin omitted=0\n500000000 enter ref=2\n501000000 leave ref=2\n");
	const struct thread *thread = &t->threads[1];

	cr_assert_eq(thread->tid, 8);
	cr_assert_eq(thread->first_ns, 500000000, "%lu", (unsigned long)thread->first_ns);
	cr_assert_eq(thread->wall_ns, 1000000);
}
