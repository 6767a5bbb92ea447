/* Foreign documents: JSON token by token, Chrome traces and event JSON as traces of ours, whatever is wrong with them. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/text.h"
#include "import/import.h"
#include "import/json.h"
#include "trace/dump.h"

static enum json_token tokens(const char *document, enum json_token *out, size_t room, struct json *json, struct input **input)
{
	size_t count = 0;

	*input = input_open_memory(document, strlen(document));
	cr_assert_eq(json_open(json, *input), 0);
	for (;;) {
		enum json_token token = json_next(json);

		if (token == JSON_END || token == JSON_BAD)
			return token;
		cr_assert_lt(count, room);
		out[count++] = token;
	}
}

static bool is_json(const char *document)
{
	enum json_token list[1000];
	struct input *input;
	struct json json;
	bool good = tokens(document, list, 1000, &json, &input) == JSON_END;

	cr_assert_eq(json_failure(&json) == NULL, good);
	json_close(&json);
	input_close(input);
	return good;
}

Test(json, tells_documents_from_others)
{
	static const char *const good[] = { "{}", "[]", " [1, -2.5e+3 ,\"a\"]\n", "{\"a\":{\"b\":[true,false,null]}}", "7", "\"\"", "[NaN,Infinity,-Infinity]", "[[[[]]]]", "[0.1,1E5,-0]" };
	static const char *const bad[] = { "", "{", "[1", "[1,]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "[1 2]", "{a:1}", "[01]", "[1.]", "[.5]", "[+1]", "[1e]", "[tru]", "\"a", "\"\\x\"", "\"\\u12\"", "[\"a\nb\"]", "[]]", "{]", "[}", "1 2", "[-]" };

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		cr_expect(is_json(good[i]), "%s", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		cr_expect(!is_json(bad[i]), "%s", bad[i]);
}

static char *string_of(const char *document)
{
	struct input *input = input_open_memory(document, strlen(document));
	struct json json;
	char *copy;

	cr_assert_eq(json_open(&json, input), 0);
	cr_assert_eq(json_next(&json), JSON_STRING, "%s", document);
	copy = strdup(json.text);
	json_close(&json);
	input_close(input);
	return copy;
}

Test(json, strings_without_their_escapes)
{
	static const char *const rows[][2] = {
		{ "\"a\\n\\t\\\"\\\\\\/b\"", "a\n\t\"\\/b" }, { "\"\\u00e4\\u20AC\"", "\xc3\xa4\xe2\x82\xac" }, { "\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80" }, { "\"\\ud83d!\"", "\xef\xbf\xbd!" },
		{ "\"\\ude00\"", "\xef\xbf\xbd" }, { "\"\\ud83d\\u0041\"", "\xef\xbf\xbd" "A" }, { "\"\xff\"", "\xff" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *text = string_of(rows[i][0]);

		cr_expect_str_eq(text, rows[i][1], "%s", rows[i][0]);
		free(text);
	}
}

Test(json, nothing_is_rounded_that_fits)
{
	static const struct { const char *text; bool good; int64_t ns; } rows[] = {
		{ "4458676522690.655", true, 4458676522690655 }, { "1695835542514261", true, 1695835542514261000 }, { "0.0005", true, 1 }, { "0.00049", true, 0 }, { "-1.5", true, -1500 },
		{ "1e3", true, 1000000 }, { "1.25E-2", true, 13 }, { "9223372036854775.807", true, INT64_MAX }, { "9223372036854775.808", false, 0 }, { "1e400", false, 0 }, { "68.0", true, 68000 },
		{ "123456789.123456789012345678901234567890", true, 123456789123 }, { "0e999", true, 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct input *input = input_open_memory(rows[i].text, strlen(rows[i].text));
		struct json json;
		int64_t ns = 0;

		cr_assert_eq(json_open(&json, input), 0);
		cr_assert_eq(json_next(&json), JSON_NUMBER);
		cr_expect_eq(json_thousandths(&json, &ns), rows[i].good, "%s", rows[i].text);
		cr_expect_eq(ns, rows[i].ns, "%s: %lld", rows[i].text, (long long)ns);
		json_close(&json);
		input_close(input);
	}
}

/* The object's keys, each with a space behind it; '!' at the end when the document broke. */
static void keys_of(const char *document, size_t length, bool quick, char *out)
{
	struct input *input = input_open_memory(document, length);
	struct json json;
	enum json_token token;

	cr_assert_eq(json_open(&json, input), 0);
	token = json_next(&json);
	while (token == JSON_OBJECT || token == JSON_KEY) {
		token = quick ? json_key(&json) : json_next(&json);
		if (token != JSON_KEY)
			break;
		out = stpcpy(stpcpy(out, json.text), " ");
		if (!(quick ? json_pass(&json) : json_skip(&json, json_next(&json))))
			token = JSON_BAD;
	}
	strcpy(out, token == JSON_OBJECT_END && json_next(&json) == JSON_END ? "" : "!");
	json_close(&json);
	input_close(input);
}

Test(json, the_quick_way_through_an_object_is_the_same_way)
{
	static const char *const documents[] = {
		"{}", "{\"a\":1,\"b\":[1,{\"c\":2}],\"d\":\"x\\\"y\" , \"e\" : -2.5e+3,\n\"f\":true,\"\\u0041\":null}", "{\"a\":01}", "{\"a\":1.}", "{\"a\":-}", "{\"a\":1x,\"b\":2}", "{\"a\":1,}", "{\"a\" 1}", "{\"a\":}",
		"{\"a\":1\"b\":2}", "{,\"a\":1}", "{\"a\":1,,\"b\":2}", "{\"a\":1]", "{\"a\":nul}", "{\"a\":\"\n\"}", "{\"a\":123456789012345678901234567890,\"b\":1}",
	};
	char quick[400], slow[400];

	for (size_t i = 0; i < sizeof documents / sizeof *documents; i++)
		for (size_t length = 1; length <= strlen(documents[i]); length++) {
			keys_of(documents[i], length, true, quick);
			keys_of(documents[i], length, false, slow);
			cr_expect_str_eq(quick, slow, "%.*s", (int)length, documents[i]);
		}
}

Test(json, a_number_taken_quickly_is_the_same_number)
{
	static const char *const numbers[] = { "0", "-0", "7", "-12", "12.5", "12.345", "1695835542514261", "4458676584392.51", "12.3456", "-0.001", "999999999999999999", "9999999999999999999", "9223372036854775807", "9223372036854775.807", "9223372036854775808", "1695835585860862.001", "12345678901234567890", "1234567890123456789.1", "1e3", "00", "1.", ".5", "-", "0x1", "1 ", "12.0" };
	char document[64];

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		for (int thousandths = 0; thousandths < 2; thousandths++) {
			struct number taken = { 0, false }, slow = { 0, false };
			struct input *input;
			struct json json;
			bool quick;

			snprintf(document, sizeof document, "{\"a\":%s,\"b\":0}", numbers[i]);
			input = input_open_memory(document, strlen(document));
			cr_assert_eq(json_open(&json, input), 0);
			cr_assert(json_next(&json) == JSON_OBJECT && json_key(&json) == JSON_KEY);
			quick = json_take_number(&json, thousandths, &taken);
			cr_expect(!quick || (json_key(&json) == JSON_KEY && json_is(&json, "b")), "%s", numbers[i]);
			json_close(&json);
			input_close(input);
			input = input_open_memory(document, strlen(document));
			cr_assert_eq(json_open(&json, input), 0);
			cr_assert(json_next(&json) == JSON_OBJECT && json_key(&json) == JSON_KEY);
			if (json_next(&json) == JSON_NUMBER)
				slow = json_number(&json, thousandths);
			cr_expect(!quick || (slow.known && slow.value == taken.value), "%s: %lld, not %lld", numbers[i], (long long)taken.value, (long long)slow.value);
			cr_expect(quick || i > 3, "%s is not taken quickly", numbers[i]);
			json_close(&json);
			input_close(input);
		}
}

/* Into the object under "a", and out of it without a look; whether that was done. */
static bool leaves(const char *document, size_t length, struct json *json, struct input **input)
{
	*input = input_open_memory(document, length);
	cr_assert_eq(json_open(json, *input), 0);
	cr_assert(json_next(json) == JSON_OBJECT && json_key(json) == JSON_KEY && json_next(json) == JSON_OBJECT);
	return json_leave(json);
}

Test(json, an_object_that_nobody_wants_is_left_where_it_ends)
{
	static const char *const whole[] = { "{}", "{\"b\":1}", "{\"b\":[[1,{}],[]],\"c\":{\"d\":\"}]\\\"{\\\\\"}}", "{\"long key that fills more than a register\":\"and a long text with {brackets} and [more] of them\" }" };
	static const char *const broken[] = { "{\"b\":\"}", "{\"b\":[1}", "{\"b\":1]", "{\"b\":\"\n\"}", "{" };
	char document[400];
	struct input *input;
	struct json json;

	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		snprintf(document, sizeof document, "{\"a\":%s,\"z\":1}", whole[i]);
		cr_expect(leaves(document, strlen(document), &json, &input), "%s", document);
		cr_expect(json_key(&json) == JSON_KEY && json_is(&json, "z") && json_next(&json) == JSON_NUMBER && json_next(&json) == JSON_OBJECT_END && json_next(&json) == JSON_END, "%s", document);
		json_close(&json);
		input_close(input);
		for (size_t length = strlen("{\"a\":{"); length < strlen("{\"a\":") + strlen(whole[i]); length++) {
			cr_expect(!leaves(document, length, &json, &input), "%.*s", (int)length, document);
			cr_expect(json_failure(&json) == NULL && !json_skip(&json, JSON_OBJECT));
			json_close(&json);
			input_close(input);
		}
	}
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		snprintf(document, sizeof document, "{\"a\":%s", broken[i]);
		cr_expect(!leaves(document, strlen(document), &json, &input), "%s", document);
		json_close(&json);
		input_close(input);
	}
}

Test(json, depth_and_length_have_bounds)
{
	char deep[2 * JSON_DEPTH_MAX + 3], *longer = malloc(JSON_STRING_MAX * 2 + 3), *text;

	memset(deep, '[', sizeof deep);
	deep[JSON_DEPTH_MAX + 1] = '\0';
	cr_expect(!is_json(deep));
	memset(longer, 'x', JSON_STRING_MAX * 2 + 2);
	longer[0] = longer[JSON_STRING_MAX * 2 + 1] = '"';
	longer[JSON_STRING_MAX * 2 + 2] = '\0';
	text = string_of(longer);
	cr_expect_eq(strlen(text), JSON_STRING_MAX);
	free(text);
	free(longer);
}

/* ---- bytes ---- */

enum { PLAIN = 3 << 20 };

/* Bytes that pack badly, so that they are many when packed as well; free() them. */
static unsigned char *packed_bytes(unsigned char *plain, size_t *size)
{
	unsigned char *packed = malloc(2 * PLAIN);
	z_stream stream = { .next_in = plain, .avail_in = PLAIN, .next_out = packed, .avail_out = 2 * PLAIN };
	uint32_t random = 1;

	for (size_t i = 0; i < PLAIN; i++)
		plain[i] = (unsigned char)((random = random * 1664525 + 1013904223) >> 24);
	cr_assert_eq(deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	cr_assert_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
	*size = stream.total_out;
	deflateEnd(&stream);
	return packed;
}

/* How many bytes INPUT gives that are those of PLAIN. */
static size_t read_all(struct input *input, const unsigned char *plain)
{
	size_t at = 0, length;

	while (input_more(input)) {
		const unsigned char *window = input_window(input, &length);

		cr_assert_leq(at + length, PLAIN);
		cr_assert_eq(memcmp(window, plain + at, length), 0, "at %zu", at);
		input_skip(input, length);
		at += length;
	}
	return at;
}

Test(input, much_is_unpacked_ahead_whole_cut_or_left_alone)
{
	unsigned char *plain = malloc(PLAIN), *packed;
	struct input *input;
	size_t size;

	packed = packed_bytes(plain, &size);
	input = input_open_memory(packed, size);
	cr_expect_eq(read_all(input, plain), PLAIN);
	cr_expect_null(input_failure(input));
	input_close(input);
	input = input_open_memory(packed, size / 2);
	cr_expect_gt(read_all(input, plain), PLAIN / 3);
	cr_assert_not_null(input_failure(input));
	cr_expect_str_eq(input_failure(input), "its gzip data end in the middle");
	input_close(input);
	input = input_open_memory(packed, size);
	cr_assert(input_more(input) && input_more(input));
	input_close(input);
	free(packed);
	free(plain);
}

/* ---- without memory ---- */

/* Stands before zlib's own: inflate() asks for its window at its first use. */
static bool inflate_without_memory;

int inflate(z_streamp stream, int flush)
{
	int (*next)(z_streamp, int);

	if (inflate_without_memory)
		return Z_MEM_ERROR;
	*(void **)&next = dlsym(RTLD_NEXT, "inflate");
	return next(stream, flush);
}

Test(import, without_memory_to_unpack_is_not_damaged)
{
	unsigned char *plain = malloc(PLAIN), *packed;
	struct trace *trace;
	struct input *input;
	struct error err;
	size_t size;

	inflate_without_memory = true;
	packed = packed_bytes(plain, &size);
	input = input_open_memory(packed, size);
	cr_expect_eq(read_all(input, plain), 0);
	cr_expect(input_out_of_memory(input));
	input_close(input);
	cr_assert_eq(import_open_memory(packed, size, &trace, &err), -1);
	cr_expect_eq(err.code, ERR_MEMORY, "%s", err.text);
	cr_expect_not_null(strstr(err.text, "importing"), "%s", err.text);
	free(packed);
	free(plain);
}

/* ---- documents ---- */

/* The lines of the dump that tell what happened, without lanes and offsets. */
static char *imported(const char *document, struct error *err)
{
	struct trace *trace;
	struct text text;
	struct sink *sink;

	if (import_open_memory(document, strlen(document), &trace, err) < 0)
		return NULL;
	text_init(&text);
	cr_assert_eq(sink_open_text(&text, &sink, err), 0);
	cr_assert_eq(trace_dump(trace, sink, err), 0, "%s", err->text);
	cr_assert_eq(sink_commit(sink, err), 0);
	trace_close(trace);
	return text.data;
}

static void expect_in_order(const char *dump, const char *const *parts, size_t count)
{
	const char *at = dump;

	for (size_t i = 0; i < count; i++) {
		const char *found = strstr(at, parts[i]);

		cr_assert_not_null(found, "no '%s' after '%.60s' in\n%s", parts[i], at, dump);
		at = found + strlen(parts[i]);
	}
}

Test(import, a_chrome_trace_with_calls_and_kernels)
{
	static const char document[] = "{\"schemaVersion\":1,\"traceEvents\":["
		"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":10,\"tid\":11,\"args\":{\"name\":\"main\"}},"
		"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"serve.py(12): handle\",\"pid\":10,\"tid\":11,\"ts\":100.5,\"dur\":50},"
		"{\"args\":{\"correlation\":7},\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":10,\"tid\":11,\"ts\":110,\"dur\":5},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":3,\"ts\":120,\"dur\":20.25,\"args\":{\"device\":1,\"stream\":3,\"correlation\":7,\"grid\":[4,5,6],\"block\":[32,1,1]}},"
		"{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy DtoH (Device -> Pinned)\",\"pid\":0,\"tid\":3,\"ts\":141,\"dur\":1,\"args\":{\"device\":1,\"stream\":3,\"correlation\":8,\"bytes\":64}},"
		"{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"all\",\"pid\":\"Spans\",\"tid\":\"x\",\"ts\":0,\"dur\":1000}]}";
	static const char *const parts[] = { "process", "code", "handle", "c_function", "cudaLaunchKernel", "enter", "c_enter", "c_leave", "leave", "thread", "main" };
	struct error err;
	char *dump = imported(document, &err);

	cr_assert_not_null(dump, "%s", err.text);
	expect_in_order(dump, parts, sizeof parts / sizeof *parts);
	cr_expect_not_null(strstr(dump, "20250"), "duration of the kernel in\n%s", dump);
	cr_expect_not_null(strstr(dump, "d2h_copy"));
	cr_expect_not_null(strstr(dump, "gpu_api"));
	free(dump);
}

Test(import, what_nobody_asks_for_hides_nothing)
{
	static const char document[] = "[{\"ph\":\"s\",\"id\":3,\"name\":\"}{\",\"args\":{\"a\":\"\\\"]\"},\"ts\":1},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":2,\"args\":{\"Input Dims\":[[1,2],[]],\"note\":\"}]\\\"{\",\"stream\":9},\"ts\":5,\"dur\":7},"
		"{\"args\":{\"stream\":7,\"device\":0},\"ph\":\"X\",\"ts\":20,\"dur\":1,\"name\":\"before its category\",\"cat\":\"kernel\"},"
		"{\"ph\":\"X\",\"args\":{\"stream\":7,\"device\":0},\"ts\":30,\"dur\":1,\"name\":\"behind its phase\",\"cat\":\"kernel\"},"
		"{\"ph\":\"f\",\"bp\":\"e\"},{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":2,\"ts\":50,\"dur\":2}]";
	static const char *const parts[] = { "c_enter", "c_leave", "c_enter", "c_leave", "before its category", "behind its phase", "name=\"import.ignored\" value=2" };
	struct error err;
	char *dump = imported(document, &err), *again;

	cr_assert_not_null(dump, "%s", err.text);
	expect_in_order(dump, parts, sizeof parts / sizeof *parts);
	again = strstr(strstr(dump, "c_function") + 1, "c_function");
	cr_expect_null(again, "one function, called twice:\n%s", dump);
	free(dump);
}

Test(import, begins_meet_their_ends_and_overlaps_are_cut)
{
	static const char document[] = "[{\"ph\":\"B\",\"name\":\"outer\",\"pid\":1,\"tid\":1,\"ts\":10},{\"ph\":\"X\",\"name\":\"late\",\"pid\":1,\"tid\":1,\"ts\":15,\"dur\":10},"
		"{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":20},{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":30}]";
	static const char *const parts[] = { "10000 c_enter", "15000 c_enter", "20000 c_leave", "20000 c_leave", "\"import.cut\" value=1" };
	struct error err;
	char *dump = imported(document, &err);

	cr_assert_not_null(dump, "%s", err.text);
	expect_in_order(dump, parts, sizeof parts / sizeof *parts);
	cr_expect_not_null(strstr(dump, "\"import.bad\" value=1"), "the second E has no B:\n%s", dump);
	free(dump);
}

/* Two requests of concurrent tasks, and a call that the first one's end falls into; and the call is no longer than it was where it overlaps another. */
Test(import, scopes_overlap_each_other_and_calls)
{
	static const char document[] = "[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"first\",\"pid\":1,\"tid\":1,\"ts\":10,\"dur\":100},"
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"second\",\"pid\":1,\"tid\":1,\"ts\":50,\"dur\":100},"
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"moment\",\"pid\":1,\"tid\":1,\"ts\":110,\"dur\":0},"
		"{\"ph\":\"X\",\"name\":\"call\",\"pid\":1,\"tid\":1,\"ts\":90,\"dur\":50},{\"ph\":\"X\",\"name\":\"late\",\"pid\":1,\"tid\":1,\"ts\":130,\"dur\":20}]";
	static const char *const parts[] = { "\n10000 scope_enter scope=0 name=\"first\"", "\n50000 scope_enter scope=1 name=\"second\"", "\n90000 c_enter", "\n110000 scope_exit scope=0", "\n110000 scope_enter scope=2 name=\"moment\"",
		"\n110000 scope_exit scope=2", "\n130000 c_enter", "\n140000 c_leave", "\n140000 c_leave", "\n150000 scope_exit scope=1", "\"import.cut\" value=1\n", "\"import.cut_ns\" value=10000\n" };
	struct error err;
	char *dump = imported(document, &err);

	cr_assert_not_null(dump, "%s", err.text);
	expect_in_order(dump, parts, sizeof parts / sizeof *parts);
	free(dump);
}

#define SCOPE(what, name, at, metadata) "{\"event_type\":\"scope_" what "\",\"name\":\"" name "\",\"time\":" at ",\"thread_id\":5" metadata "}"
#define ID(id) ",\"metadata\":\"" id "\""

/* By name and metadata, else by name; the oldest first. */
Test(import, event_json_finds_the_scope_that_ends)
{
	static const char document[] = "[" SCOPE("enter", "a", "10", ID("1")) "," SCOPE("enter", "a", "20", ID("2")) "," SCOPE("enter", "b", "30", "") "," SCOPE("exit", "a", "40", ID("2")) ","
		SCOPE("exit", "a", "50", ID("?")) "," SCOPE("exit", "c", "60", "") "," SCOPE("enter", "b", "70", "") "," SCOPE("exit", "a", "75", ID("1")) "," SCOPE("exit", "b", "80", "") ","
		"{\"event_type\":\"scope_exit\",\"name\":\"b\",\"time\":85,\"thread_id\":6}," SCOPE("enter", "d", "90", "") "]";
	static const char *const parts[] = { "\n10000 scope_enter scope=0", "\n20000 scope_enter scope=1", "\n30000 scope_enter scope=2", "\n40000 scope_exit scope=1", "\n50000 scope_exit scope=0", "\n70000 scope_enter scope=3",
		"\n80000 scope_exit scope=2", "\n90000 scope_enter scope=4", "\"import.bad\" value=3\n" };
	struct error err;
	char *dump = imported(document, &err);

	cr_assert_not_null(dump, "%s", err.text);
	expect_in_order(dump, parts, sizeof parts / sizeof *parts);
	cr_expect_null(strstr(dump, "scope_exit scope=3"), "nobody says when the second b ends:\n%s", dump);
	cr_expect_null(strstr(dump, "scope_exit scope=4"), "nor d:\n%s", dump);
	free(dump);
}

Test(import, processes_may_call_their_threads_the_same)
{
	static const char document[] = "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":10,\"dur\":10},{\"ph\":\"X\",\"name\":\"b\",\"pid\":2,\"tid\":1,\"ts\":15,\"dur\":10},"
		"{\"ph\":\"X\",\"name\":\"c\",\"pid\":1,\"tid\":4294967297,\"ts\":10,\"dur\":10}]";
	static const char *const parts[] = { "tid=1 kind=thread", "tid=4294967294 kind=thread", "tid=4294967293 kind=thread", "thread 4294967297 of 1", "thread 1 of 2" };
	struct error err;
	char *dump = imported(document, &err);

	cr_assert_not_null(dump, "%s", err.text);
	expect_in_order(dump, parts, sizeof parts / sizeof *parts);
	free(dump);
}

/* ---- several processes ---- */

#define ROW(category, name, pid, tid, ts, args) "{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"" name "\",\"pid\":" pid ",\"tid\":" tid ",\"ts\":" ts ",\"dur\":1,\"args\":{" args "}}"
#define CALL(pid, ts, correlation) ROW("cuda_runtime", "cudaLaunchKernel", pid, "1", ts, "\"correlation\":" correlation)
#define KERNEL(name, pid, ts, device, correlation) ROW("kernel", name, pid, "7", ts, "\"device\":" device ",\"stream\":7,\"correlation\":" correlation)
#define ARROW(phase, id, pid, tid, ts) "{\"ph\":\"" phase "\",\"id\":" id ",\"pid\":" pid ",\"tid\":" tid ",\"ts\":" ts ",\"cat\":\"ac2g\",\"name\":\"ac2g\"}"
/* Process 100 calls, and then 200, by one number. */
#define BOTH_CALL CALL("100", "10", "5") "," CALL("200", "11", "5")

/* What the dump says of KERNEL: the pid of its process, its device, and its correlation; all 0 when there is no such. */
struct told { unsigned process, device, correlation; };

static struct told told_of(const char *dump, const char *kernel)
{
	const char *name = strstr(dump, kernel), *line = name, *chunk = name, *pid = dump;
	struct told told = { 0, 0, 0 };
	unsigned index = 0;

	if (!name)
		return told;
	while (line > dump && line[-1] != '\n')
		line--;
	while (chunk > dump && strncmp(chunk, "\nchunk process=", 15) != 0)
		chunk--;
	cr_assert_eq(sscanf(chunk, "\nchunk process=%u", &index), 1, "%s", dump);
	cr_assert_eq(sscanf(strstr(line, "correlation="), "correlation=%u device=%u", &told.correlation, &told.device), 2, "%.200s", line);
	for (unsigned i = 0; i <= index; i++) {
		pid = strstr(pid, " process ref=");
		cr_assert_not_null(pid, "%s", dump);
		pid += strlen(" process ref=");
	}
	told.process = (unsigned)strtoul(pid, NULL, 10);
	return told;
}

struct merged { const char *what, *document; struct told first, second; unsigned unowned; };

static void expect_told(const struct merged *merged)
{
	struct error err;
	char *dump = imported(merged->document, &err), unowned[64];
	struct told first, second;

	cr_assert_not_null(dump, "%s: %s", merged->what, err.text);
	first = told_of(dump, "\"first\"");
	second = told_of(dump, "\"second\"");
	snprintf(unowned, sizeof unowned, "name=\"import.unowned\" value=%u", merged->unowned);
	cr_expect(memcmp(&first, &merged->first, sizeof first) == 0, "%s: the first is of %u, on device %u, by %u", merged->what, first.process, first.device, first.correlation);
	cr_expect(memcmp(&second, &merged->second, sizeof second) == 0, "%s: the second is of %u, on device %u, by %u", merged->what, second.process, second.device, second.correlation);
	cr_expect_not_null(strstr(dump, unowned), "%s:\n%s", merged->what, dump);
	free(dump);
}

Test(import, work_of_several_processes_is_that_of_the_process_that_is_told)
{
	static const struct merged rows[] = {
		{ "one process after the other", "[" CALL("100", "10", "5") "," KERNEL("first", "0", "20", "0", "5") "," CALL("200", "11", "5") "," KERNEL("second", "0", "30", "0", "5") "]", { 100, 0, 5 }, { 200, 0, 5 }, 0 },
		{ "a call before the trace", "[" CALL("100", "10", "5") "," KERNEL("first", "0", "20", "0", "5") "," CALL("200", "11", "6") "," KERNEL("second", "0", "12", "0", "5") "," KERNEL("third", "0", "30", "0", "6") "]",
		  { 100, 0, 5 }, { 200, 0, 5 }, 0 },
		{ "mixed", "[" BOTH_CALL "," KERNEL("first", "0", "20", "0", "5") "," KERNEL("second", "1", "30", "1", "5") "]", { 100, 0, 0 }, { 100, 1, 0 }, 2 },
		{ "a number that one of them has", "[" BOTH_CALL "," CALL("200", "12", "6") "," KERNEL("first", "0", "20", "0", "6") "," KERNEL("second", "1", "30", "1", "7") "]", { 200, 0, 6 }, { 100, 1, 7 }, 0 },
		{ "pids of their own", "[" BOTH_CALL "," KERNEL("first", "200", "20", "0", "5") "," KERNEL("second", "100", "30", "0", "5") "]", { 200, 0, 5 }, { 100, 1, 5 }, 0 },
		{ "words", "[" CALL("\"[TP00] 100\"", "10", "5") "," KERNEL("first", "\"[TP00] 0\"", "20", "0", "5") ",{\"ph\":\"i\",\"pid\":\"[TP00] Spans\",\"tid\":1,\"ts\":1,\"name\":\"x\"}," CALL("\"[TP01] 100\"", "11", "5") ","
		  KERNEL("second", "\"[TP01] 0\"", "30", "0", "5") "]", { 100, 0, 5 }, { 100, 1, 5 }, 0 },
		{ "one process", "[" CALL("100", "10", "5") "," KERNEL("first", "0", "20", "0", "5") "," KERNEL("second", "3", "30", "3", "6") "]", { 100, 0, 5 }, { 100, 3, 6 }, 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		expect_told(&rows[i]);
}

#define NAMED(pid) "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" pid ",\"args\":{\"name\":\"python\"}},{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":" pid ",\"tid\":7,\"args\":{\"name\":\"stream 7\"}}"

Test(import, a_device_is_no_process)
{
	struct error err;
	char *dump = imported("[" NAMED("0") "," NAMED("1") "," CALL("100", "10", "5") "," KERNEL("k", "0", "20", "0", "5") ",{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":100,\"args\":{\"name\":\"python\"}}]", &err), *process;

	cr_assert_not_null(dump, "%s", err.text);
	process = strstr(dump, " process ref=100 ");
	cr_assert_not_null(process, "%s", dump);
	cr_expect_not_null(strstr(process, "command=\"python\""), "%s", dump);
	cr_expect(!strstr(strchr(process, '\n'), " process ") && !strstr(dump, "process=1"), "one process:\n%s", dump);
	cr_expect_null(strstr(dump, "stream 7"), "no thread:\n%s", dump);
	free(dump);
}

#define WORKS KERNEL("first", "0", "20", "0", "5") "," KERNEL("second", "0", "30.5", "0", "5")
#define BEGINS ARROW("s", "1", "100", "1", "10") "," ARROW("s", "2", "200", "1", "11")
#define ENDS ARROW("f", "2", "0", "7", "20") "," ARROW("f", "1", "0", "7", "30.5")

Test(import, arrows_tell_whose_the_work_is)
{
	static const struct merged rows[] = {
		{ "in any order", "[" ENDS "," BEGINS "," WORKS "," BOTH_CALL "]", { 200, 0, 5 }, { 100, 0, 5 }, 0 },
		{ "behind their work", "[" BOTH_CALL "," BEGINS "," KERNEL("first", "0", "20", "0", "5") "," ARROW("f", "2", "0", "7", "20") "," KERNEL("second", "0", "30.5", "0", "5") "," ARROW("f", "1", "0", "7", "30.5") "]",
		  { 200, 0, 5 }, { 100, 0, 5 }, 0 },
		{ "told twice", "[" BOTH_CALL "," BEGINS "," BEGINS "," WORKS "," ENDS "," ENDS "]", { 200, 0, 5 }, { 100, 0, 5 }, 0 },
		{ "words for numbers", "[" BOTH_CALL "," ARROW("s", "\"a1\"", "100", "1", "10") "," ARROW("s", "\"0x2\"", "200", "1", "11") "," WORKS "," ARROW("f", "2", "0", "7", "20") "," ARROW("f", "\"a1\"", "0", "7", "30.5") "]",
		  { 200, 0, 5 }, { 100, 0, 5 }, 0 },
		{ "without begins", "[" BOTH_CALL "," WORKS "," ENDS "]", { 100, 0, 0 }, { 100, 0, 0 }, 2 },
		{ "without one end", "[" BOTH_CALL "," BEGINS "," WORKS "," ARROW("f", "2", "0", "7", "20") "]", { 200, 0, 5 }, { 100, 0, 0 }, 1 },
		{ "elsewhere", "[" BOTH_CALL "," BEGINS "," WORKS "," ARROW("f", "2", "0", "8", "20") "," ARROW("f", "1", "0", "7", "30") "]", { 100, 0, 0 }, { 100, 0, 0 }, 2 },
		{ "two at one work", "[" BOTH_CALL "," BEGINS "," WORKS "," ENDS "," ARROW("f", "1", "0", "7", "20") "]", { 100, 0, 0 }, { 100, 0, 5 }, 1 },
		{ "numbered alike", "[" BOTH_CALL "," ARROW("s", "2", "100", "1", "10") "," BEGINS "," WORKS "," ENDS "]", { 100, 0, 0 }, { 100, 0, 0 }, 2 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		expect_told(&rows[i]);
}

Test(import, devices_that_stand_at_pids_of_their_own_have_names)
{
	struct error err;
	char *dump = imported("[" KERNEL("first", "0", "20", "0", "5") "," KERNEL("second", "\"rank1 0\"", "30", "0", "5") "," KERNEL("third", "1001", "40", "1", "6") "]", &err);

	cr_assert_not_null(dump, "%s", err.text);
	cr_expect_not_null(strstr(dump, "gpu_device ref=1 memory_bytes=0 bandwidth_kb=0 multiprocessors=0 compute=0 name=\"rank1 0\""), "%s", dump);
	cr_expect_not_null(strstr(dump, "gpu_device ref=2 memory_bytes=0 bandwidth_kb=0 multiprocessors=0 compute=0 name=\"device 1 of 1001\""), "%s", dump);
	cr_expect_null(strstr(dump, "gpu_device memory_bytes"), "nobody moved it:\n%s", dump);
	free(dump);
}

Test(import, devices_have_the_names_that_the_document_gives_them)
{
	static const char document[] = "{\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA H200\",\"totalGlobalMem\":1024,\"computeMajor\":9,\"computeMinor\":0,\"numSms\":132},{\"id\":1,\"name\":\"A\"},{\"id\":1,\"name\":\"B\"},"
		"{\"id\":2,\"name\":\"GPU 2\"},{\"name\":\"none\"},7],\"distributedInfo\":{\"rank\":3},\"traceEvents\":["
		KERNEL("a", "0", "20", "0", "5") "," KERNEL("b", "1", "30", "1", "5") "," KERNEL("c", "2", "40", "2", "6") "," KERNEL("d", "100", "50", "0", "6") "]}";
	static const char *const parts[] = { "gpu_device memory_bytes=1024 bandwidth_kb=0 multiprocessors=132 compute=90 name=\"NVIDIA H200\" uuid",
		"gpu_device ref=3 memory_bytes=1024 bandwidth_kb=0 multiprocessors=132 compute=90 name=\"NVIDIA H200, device 0 of 100\" uuid", "key=\"rank\" value=\"3\"", "key=\"gpu.multiprocessors\" value=\"132\"" };
	struct error err;
	char *dump = imported(document, &err);

	cr_assert_not_null(dump, "%s", err.text);
	expect_in_order(dump, parts, sizeof parts / sizeof *parts);
	cr_expect_null(strstr(dump, "gpu_device ref=1"), "two cards have that number:\n%s", dump);
	cr_expect_null(strstr(dump, "gpu_device ref=2"), "its name says no more than its number:\n%s", dump);
	free(dump);
}

Test(import, event_json_as_object_and_as_array)
{
	static const char rows[] = "[{\"event_type\":\"scope_enter\",\"name\":\"inference\",\"time\":1,\"thread_id\":5,\"metadata\":{\"a\":[1,{}]}},"
		"{\"event_type\":\"cpu_call\",\"name\":\"forward\",\"start_us\":2,\"end_us\":4,\"thread_id\":5,\"cpu_id\":0},"
		"{\"event_type\":\"gpu_kernel\",\"name\":\"k\",\"start_us\":3,\"end_us\":5,\"device_id\":0,\"grid_dim\":[1,1,1],\"block_dim\":[32,1,1]},"
		"{\"event_type\":\"scope_exit\",\"name\":\"inference\",\"time\":6,\"thread_id\":5}]";
	static const char *const parts[] = { "forward", "scope_enter", "inference", "c_enter", "c_leave", "scope_exit" };
	char object[sizeof rows + 40];
	struct error err;

	snprintf(object, sizeof object, "{\"schema\":\"x\",\"events\":%s}", rows);
	for (int i = 0; i < 2; i++) {
		char *dump = imported(i ? object : rows, &err);

		cr_assert_not_null(dump, "%s", err.text);
		expect_in_order(dump, parts, sizeof parts / sizeof *parts);
		free(dump);
	}
}

Test(import, event_json_keeps_metadata)
{
	static const char *const rows[][2] = {
		{ "{\"batch\":8,\"ids\":[1,\"a\\\"b\",null,{}],\"on\":true}", "metadata=\"{\\\"batch\\\":8,\\\"ids\\\":[1,\\\"a\\\\\\\"b\\\",null,{}],\\\"on\\\":true}\"" },
		{ "\"seven\"", "metadata=\"seven\"" },
		{ "null", "metadata=\"\"" },
		{ "[1.50,-2e3]", "metadata=\"[1.50,-2e3]\"" },
	};
	char document[512];
	struct error err;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *dump;

		snprintf(document, sizeof document, "[{\"event_type\":\"instant\",\"name\":\"m\",\"time\":1,\"metadata\":%s,\"thread_id\":5},"
			"{\"event_type\":\"instant\",\"name\":\"none\",\"time\":2,\"thread_id\":5}]", rows[i][0]);
		dump = imported(document, &err);
		cr_assert_not_null(dump, "%s", err.text);
		cr_expect_not_null(strstr(dump, rows[i][1]), "%s in\n%s", rows[i][1], dump);
		cr_expect_not_null(strstr(dump, "name=\"none\" metadata=\"\""), "the next one has none:\n%s", dump);
		free(dump);
	}
}

Test(import, what_breaks_off_gives_what_came_before)
{
	static const char document[] = "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":10,\"dur\":1},{\"ph\":\"X\",\"name\":\"b\",\"pid\":1,\"ti";
	struct error err;
	char *dump = imported(document, &err);

	cr_assert_not_null(dump, "%s", err.text);
	cr_expect_not_null(strstr(dump, "import.broken"));
	cr_expect_not_null(strstr(dump, "at byte"));
	free(dump);
}

Test(import, other_documents_are_refused)
{
	static const char *const documents[] = { "{}", "[]", "{\"traceEvents\":[]}", "[1,2]", "{\"a\":1}", "{\"traceEvents\":{}}", "hello", "[{\"ph\":\"X\"}]" };
	struct error err;

	for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
		char *dump = imported(documents[i], &err);

		cr_expect_null(dump, "%s was taken", documents[i]);
		cr_expect_eq(err.code, ERR_TRACE_FOREIGN, "%s: %s", documents[i], err.text);
		free(dump);
	}
}
