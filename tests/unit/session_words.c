/* Words of other processes: what an environment says of a rank, and what of a command line is not told on; why hooks stay; how sampling of allocations ended. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/text.h"
#include "session/capture.h"
#include "session/environment.h"
#include "session/handshake.h"
#include "session/redact.h"

enum { PAGE = 4096 };

#define PLACE(words) environment_place(words, sizeof words - 1, &place)

static struct place place;

Test(environment, tells_the_rank_of_torchrun_before_that_of_srun)
{
	PLACE("SLURM_PROCID=1\0RANK=7\0LOCAL_RANK=3\0WORLD_SIZE=16\0");
	cr_assert_eq(place.rank, 7);
	cr_assert_eq(place.local_rank, 3);
	cr_assert_eq(place.world, 16);
}

struct launch { char environment[96]; long rank, local_rank, world; };

/* | stands for the end of a variable. */
ParameterizedTestParameters(environment, knows_who_launches_ranks)
{
	static struct launch rows[] = {
		{ "RANK=7|LOCAL_RANK=3|WORLD_SIZE=16|", 7, 3, 16 },
		{ "OMPI_COMM_WORLD_RANK=2|OMPI_COMM_WORLD_LOCAL_RANK=1|OMPI_COMM_WORLD_SIZE=4|", 2, 1, 4 },
		{ "PMI_RANK=3|MPI_LOCALRANKID=0|PMI_SIZE=8|", 3, 0, 8 },
		{ "SLURM_PROCID=5|SLURM_LOCALID=1|SLURM_NTASKS=6", 5, 1, 6 },
		{ "LOCAL_RANK=0|", -1, 0, -1 },
		{ "OMPI_COMM_WORLD_RANK=1|RANK=9|", 9, -1, -1 },
	};

	return cr_make_param_array(struct launch, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(struct launch *row, environment, knows_who_launches_ranks)
{
	size_t length = strlen(row->environment);

	for (size_t i = 0; i < length; i++)
		if (row->environment[i] == '|')
			row->environment[i] = '\0';
	environment_place(row->environment, length, &place);
	cr_assert(place.rank == row->rank && place.local_rank == row->local_rank && place.world == row->world, "%ld %ld %ld", place.rank, place.local_rank, place.world);
}

Test(environment, takes_no_number_that_is_none)
{
	PLACE("RANK=\0LOCAL_RANK=3x\0WORLD_SIZE=99999999999999999999\0XRANK=4\0RANK");
	cr_assert(place.rank == -1 && place.local_rank == -1 && place.world == -1);
}

/* What it has may end with a digit, and with the page. */
Test(environment, reads_a_number_to_its_end_and_no_further)
{
	static const char words[] = "OMP_NUM_THREADS=16";
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *at = pages + PAGE - (sizeof words - 1);

	cr_assert(pages != MAP_FAILED && mprotect(pages + PAGE, PAGE, PROT_NONE) == 0);
	memcpy(at, words, sizeof words - 1);
	cr_assert_eq(environment_number(at, sizeof words - 1, "OMP_NUM_THREADS"), 16);
	cr_assert_eq(environment_number("OMP_NUM_THREADS=8,4", sizeof "OMP_NUM_THREADS=8,4", "OMP_NUM_THREADS"), 8);
	munmap(pages, 2 * PAGE);
}

Test(environment, names_a_pod_only_where_one_is)
{
	PLACE("HOSTNAME=web-0\0");
	cr_assert_str_eq(place.pod, "");
	PLACE("KUBERNETES_SERVICE_HOST=10.0.0.1\0HOSTNAME=web-0\0");
	cr_assert_str_eq(place.pod, "web-0");
	PLACE("POD_NAME=engine-1.a\0HOSTNAME=web-0\0");
	cr_assert_str_eq(place.pod, "engine-1.a");
	PLACE("POD_NAME=\x1b[31m\0");
	cr_assert_str_eq(place.pod, "");
}

Test(redact, keeps_words_apart)
{
	static const char words[] = "run\0--api-key\0s k\0x y\0";
	struct text out;

	text_init(&out);
	redact_words(words, sizeof words - 1, &out);
	cr_assert_eq(out.length, sizeof "run\0--api-key\0***\0x y");
	cr_assert_arr_eq(out.data, "run\0--api-key\0***\0x y", out.length);
	text_done(&out);
}

struct line { char words[160], told[160]; };

/* | stands for the end of an argument. */
ParameterizedTestParameters(redact, leaves_out_what_names_call_secret)
{
	static struct line rows[] = {
		{ "python3|serve.py|--port|80|", "python3 serve.py --port 80" },
		{ "serve|--api-key|sk-123|--port|80|", "serve --api-key *** --port 80" },
		{ "serve|--hf-token=hf_123|x|", "serve --hf-token=*** x" },
		{ "env|HF_TOKEN=hf_123|MODE=a|serve|", "env HF_TOKEN=*** MODE=a serve" },
		{ "serve|--max-num-batched-tokens|8192|--tokenizer|a/b|--keyframes=3|", "serve --max-num-batched-tokens 8192 --tokenizer a/b --keyframes=3" },
		{ "serve|--password|--verbose|", "serve --password --verbose" },
		{ "serve|postgres://me:pw@db/x?a=@|", "serve postgres://***@db/x?a=@" },
		{ "serve|--db=redis://:pw@host:1/|http://host/a@b|", "serve --db=redis://***@host:1/ http://host/a@b" },
		{ "serve|--brokers|amqp://u:first@a:5672;amqp://u:second@b:5672|", "serve --brokers amqp://***@a:5672;amqp://***@b:5672" },
		{ "serve|http://a/x@y,redis://u:p@ss@b,c://d|", "serve http://a/x@y,redis://***@b,c://d" },
		{ "curl|-H|Authorization: Bearer abc|-H|Accept: a=b|auth-host:80|", "curl -H Authorization:*** -H Accept: a=b auth-host:80" },
		{ "serve|--header|X: token=abc|--cfg|{\"n\": 1, \"u\": \"h?api_key=SK\"}|", "serve --header X: token=*** --cfg {\"n\": 1, \"u\": \"h?api_key=***" },
		{ "serve|--secret", "serve --secret" },
		{ "serve|--token||after|", "serve --token *** after" },
	};

	return cr_make_param_array(struct line, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(struct line *row, redact, leaves_out_what_names_call_secret)
{
	size_t length = strlen(row->words);
	struct text out;

	for (size_t i = 0; i < length; i++)
		if (row->words[i] == '|')
			row->words[i] = '\0';
	text_init(&out);
	redact_arguments(row->words, length, &out);
	cr_assert_str_eq(out.data, row->told);
	text_done(&out);
}

static const char *told(const char *state, uint64_t given_up_ns)
{
	static struct event_builder builder;
	static char value[128];
	struct event_cursor cursor;
	const char *text;
	size_t length;

	event_builder_clear(&builder);
	capture_sampling(&builder, 5, "memory", state, given_up_ns);
	cursor = event_cursor(builder.bytes, builder.size);
	cr_assert(event_next(&cursor));
	text = event_str(&cursor, 1, &length);
	snprintf(value, sizeof value, "%.*s", (int)length, text);
	return value;
}

Test(capture, says_since_when_allocations_were_not_sampled)
{
	cr_expect_str_eq(told("not sampled: the allocators were changed too often", 3210000000), "given up after 3.2 s: the allocators were changed too often");
	cr_expect_str_eq(told("given up: too dear", 1), "given up after 0.0 s: too dear");
	cr_expect_str_eq(told("not sampled: no memory for the table", 0), "not sampled: no memory for the table");
	cr_expect_str_eq(told("sampled", 77), "sampled", "the program may write into the page");
}

Test(stay, tells_an_interpreter_that_ends_from_one_without_memory)
{
	static struct page page = { .arm = ARM_ARMED };

	cr_assert(strstr(handshake_stay(&page), "shutting down"));
	page.reason = REASON_MEMORY;
	cr_assert(strstr(handshake_stay(&page), "no memory"));
	page.arm = ARM_DISARMED;
	cr_assert_null(handshake_stay(&page));
}
