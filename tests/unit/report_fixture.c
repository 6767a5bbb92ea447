/* The capture that report tests print. */
#include "report_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull

static const struct function FUNCTIONS[FIXTURE_FUNCTIONS] = {
	{ .id = 0, .kind = FUNCTION_PYTHON, .name = "Attention.forward", .file = "/srv/app/model/attention.py", .line = 41, .precision = PRECISION_EXACT, .coverage = 1, .seen_calls = 12000, .seen_self_ns = 9400 * MS, .seen_total_ns = 15200 * MS, .calls = 12000, .self_ns = 9400 * MS, .total_ns = 15200 * MS, .cpu_self_ns = 9100 * MS, .longest_ns = 4200000, .threads = 1 },
	{ .id = 1, .kind = FUNCTION_PYTHON, .name = "EventLoop.select", .file = "/usr/lib/python3.11/selectors.py", .line = 451, .precision = PRECISION_COUNTED, .coverage = 1, .seen_calls = 3100, .seen_self_ns = 7200 * MS, .seen_total_ns = 7200 * MS, .calls = 3100, .self_ns = 7200 * MS, .total_ns = 7200 * MS, .cpu_self_ns = 90 * MS, .longest_ns = 80000000, .threads = 1 },
	{ .id = 2, .kind = FUNCTION_C, .name = "numpy.matmul", .file = "numpy.core._multiarray_umath", .line = 0, .precision = PRECISION_EXACT, .coverage = 1, .seen_calls = 24000, .seen_self_ns = 5800 * MS, .seen_total_ns = 5800 * MS, .calls = 24000, .self_ns = 5800 * MS, .total_ns = 5800 * MS, .cpu_self_ns = 5790 * MS, .longest_ns = 900000, .threads = 1, .self_split = true, .native = "array_matmul", .native_file = "/srv/venv/_multiarray_umath.so" },
	{ .id = 3, .kind = FUNCTION_PYTHON, .name = "tokenize", .file = "/srv/app/text/tokenizer.py", .line = 12, .precision = PRECISION_ESTIMATED, .coverage = 0.37, .seen_calls = 444000, .seen_self_ns = 1110 * MS, .seen_total_ns = 1480 * MS, .calls = 1200000, .self_ns = 3000 * MS, .self_low_ns = 2840 * MS, .self_high_ns = 3170 * MS, .total_ns = 4000 * MS, .cpu_self_ns = 2950 * MS, .longest_ns = 250000, .exceptions = 3, .threads = 2 },
	{ .id = 4, .kind = FUNCTION_PYTHON, .name = "Worker.run.<locals>.<lambda>", .file = "/usr/lib/python3.11/concurrent/futures/thread.py", .line = 58, .precision = PRECISION_EXACT, .coverage = 1, .seen_calls = 400, .seen_self_ns = 2000 * MS, .seen_total_ns = 6400 * MS, .calls = 400, .self_ns = 2000 * MS, .total_ns = 6400 * MS, .cpu_self_ns = 100 * MS, .longest_ns = 60000000, .threads = 1 },
	{ .id = 5, .kind = FUNCTION_NATIVE, .name = "sgemm_kernel", .file = "libopenblas.so.0", .line = 0, .precision = PRECISION_SAMPLED, .coverage = 1, .self_ns = 1200 * MS, .self_low_ns = 1010 * MS, .self_high_ns = 1400 * MS, .total_ns = 1200 * MS, .cpu_self_ns = 1200 * MS, .samples_self = 120, .samples_total = 120, .threads = 1 },
	{ .id = 6, .kind = FUNCTION_PYTHON, .name = "load_plugin", .file = "/srv/app/plugins/__init__.py", .line = 9, .precision = PRECISION_EXACT, .coverage = 1, .seen_calls = 40, .seen_self_ns = 600 * MS, .seen_total_ns = 1400 * MS, .calls = 40, .self_ns = 600 * MS, .total_ns = 1400 * MS, .cpu_self_ns = 500 * MS, .longest_ns = 90000000, .threads = 1 },
	{ .id = 7, .kind = FUNCTION_PYTHON, .name = "handle", .file = "/srv/app/server.py", .line = 88, .precision = PRECISION_EXACT, .coverage = 1, .seen_calls = 3100, .seen_self_ns = 300 * MS, .seen_total_ns = 22000 * MS, .calls = 3100, .self_ns = 300 * MS, .total_ns = 22000 * MS, .cpu_self_ns = 280 * MS, .longest_ns = 99000000, .threads = 1 },
	{ .id = 8, .kind = FUNCTION_UNKNOWN, .name = "", .file = "", .precision = PRECISION_EXACT, .coverage = 1, .seen_calls = 1, .calls = 1, .self_ns = 999, .total_ns = 30000 * MS, .threads = 1 },
};

static const struct tree_node NODES[FIXTURE_NODES] = {
	{ .parent = UINT32_MAX, .function = UINT32_MAX, .thread = UINT32_MAX, .depth = 0, .total_ns = 38000 * MS },
	{ .parent = 0, .function = 8, .thread = 0, .depth = 1, .calls = 1, .self_ns = 999, .total_ns = 29500 * MS },
	{ .parent = 1, .function = 7, .thread = 0, .depth = 2, .calls = 3100, .self_ns = 300 * MS, .total_ns = 22000 * MS },
	{ .parent = 2, .function = 0, .thread = 0, .depth = 3, .calls = 12000, .self_ns = 9400 * MS, .total_ns = 15200 * MS },
	{ .parent = 3, .function = 2, .thread = 0, .depth = 4, .calls = 24000, .self_ns = 4600 * MS, .total_ns = 5800 * MS },
	{ .parent = 4, .function = 5, .thread = 0, .depth = 5, .self_ns = 1200 * MS, .total_ns = 1200 * MS, .estimated_self_ns = 1200 * MS, .cpu_self_ns = 1200 * MS, .samples = 120 },
	{ .parent = 2, .function = 3, .thread = 0, .depth = 3, .calls = 400000, .self_ns = 1000 * MS, .total_ns = 1400 * MS },
	{ .parent = 2, .function = 6, .thread = 0, .depth = 3, .calls = 40, .self_ns = 600 * MS, .total_ns = 1400 * MS },
	{ .parent = 7, .function = 3, .thread = 0, .depth = 4, .calls = 4000, .self_ns = 110 * MS, .total_ns = 110 * MS },
	{ .parent = 1, .function = 1, .thread = 0, .depth = 2, .calls = 3100, .self_ns = 7200 * MS, .total_ns = 7200 * MS },
	{ .parent = 0, .function = 4, .thread = 1, .depth = 1, .calls = 400, .self_ns = 2000 * MS, .total_ns = 6400 * MS },
	{ .parent = 10, .function = 3, .thread = 1, .depth = 2, .calls = 40000, .self_ns = 80 * MS, .total_ns = 80 * MS },
	{ .parent = 10, .function = 2, .thread = 1, .depth = 2, .calls = 900, .self_ns = 4300 * MS, .total_ns = 4300 * MS },
	{ .parent = 10, .function = 6, .thread = 1, .depth = 2, .calls = 1, .self_ns = 0, .total_ns = 0 },
	{ .parent = 6, .function = 3, .thread = 0, .depth = 4, .calls = 10, .self_ns = 40 * MS, .total_ns = 400 * MS },
	{ .parent = 14, .function = 3, .thread = 0, .depth = 5, .calls = 10, .self_ns = 360 * MS, .total_ns = 360 * MS },
};

static const struct thread THREADS[FIXTURE_THREADS] = {
	{ .tid = 4121, .name = "MainThread", .python = true, .last_ns = 30000 * MS, .wall_ns = 30000 * MS, .cpu_ns = 21400 * MS, .run_wait_ns = 300 * MS, .voluntary = 3200, .involuntary = 410, .python_ns = 14100 * MS, .native_ns = 7000 * MS, .gil_wait_ns = 900 * MS, .io_wait_ns = 0, .runnable_ns = 300 * MS, .idle_ns = 7200 * MS, .unknown_ns = 500 * MS, .events = 920000, .covered_ns = 30000 * MS, .deepest = 18, .counters = { [COUNTER_TASK_CLOCK] = 21400 * MS, [COUNTER_SWITCHES] = 3610, [COUNTER_MIGRATIONS] = 12, [COUNTER_MINOR_FAULTS] = 1750, [COUNTER_CYCLES] = 64200000000, [COUNTER_INSTRUCTIONS] = 96300000000, [COUNTER_CACHE_MISSES] = 192600000 }, .counters_known = (1u << THREAD_COUNTERS) - 1, .counters_scaled = 1u << COUNTER_CYCLES },
	{ .tid = 4130, .name = "pool_0", .python = true, .last_ns = 30000 * MS, .wall_ns = 30000 * MS, .cpu_ns = 5200 * MS, .voluntary = 800, .python_ns = 300 * MS, .native_ns = 4900 * MS, .gil_wait_ns = 1200 * MS, .lock_wait_ns = 2600 * MS, .idle_ns = 21000 * MS, .events = 81000, .lost = 12, .covered_ns = 29900 * MS, .deepest = 6, .counters = { [COUNTER_SWITCHES] = 800, [COUNTER_MINOR_FAULTS] = 50 }, .counters_known = 1u << COUNTER_SWITCHES | 1u << COUNTER_MINOR_FAULTS },
	{ .tid = 4131, .name = "grpc-poll", .unhooked = "a debugger's trace function was there", .first_ns = 100 * MS, .last_ns = 30000 * MS, .wall_ns = 29900 * MS, .cpu_ns = 20 * MS, .io_wait_ns = 29880 * MS, .native_ns = 20 * MS },
	{ .tid = 4140, .name = "metrics", .python = true, .first_ns = 29000 * MS, .last_ns = 29500 * MS, .wall_ns = 500 * MS, .cpu_ns = 1 * MS, .sleep_ns = 499 * MS, .python_ns = 1 * MS, .covered_ns = 500 * MS },
};

static const struct counter_site COUNTER_SITES[] = { { 3, { 1300, 2, 1000000000, 2500000000, 5000000 } }, { UINT32_MAX, { 400, 0, 2000000, 1000000, 9000 } } };

static const struct gil_wait GIL_WAITS[] = { { 0, 1, 1200 * MS, 118 }, { UINT32_MAX, 0, 300 * MS, 31 }, { 1, 0, 1 * MS, 1 } };

static const struct counter COUNTERS[] = {
	{ .name = "hold_max_ns", .first = 32100, .last = 41800, .max = 41800, .count = 3 },
	{ .name = "overhead_ppm", .first = 900, .last = 21500, .max = 34000, .count = 30 },
};

static const struct window WINDOWS[12] = {
	{ 0, 900000000, WINDOW_BUDGET }, { 1000000000, 1100000000, WINDOW_BUDGET }, { 2000000000, 2100000000, WINDOW_BUDGET }, { 3000000000, 3100000000, WINDOW_BUDGET },
	{ 4000000000, 4100000000, WINDOW_BUDGET }, { 5000000000, 5100000000, WINDOW_BUDGET }, { 6000000000, 6100000000, WINDOW_BUDGET }, { 7000000000, 7100000000, WINDOW_STACK },
	{ 8000000000, 8100000000, WINDOW_BUDGET }, { 8200000000, 8300000000, WINDOW_BUDGET }, { 8400000000, 8500000000, WINDOW_BUDGET }, { 8600000000, 8700000000, WINDOW_ARM },
};

static const struct throttle_change THROTTLES[] = { { 250000000, THROTTLE_COUNTED, 0, 1.5 }, { 260000000, THROTTLE_C_CALLS_OFF, UINT32_MAX, 3 } };

static const struct capture_value CAPTURES[] = {
	{ "backend", "evaluator" },
	{ "command_line", "inferscope attach 4121 --duration 30s" },
	{ "host", "inference-7" },
	{ "max_overhead", "5%" },
	{ "mode", "attach" },
	{ "warning.1", "perf_event_open is not permitted: samples come from ptrace" },
};

static const struct evidence IMPORT_EVIDENCE[] = {
	{ "py.import_in_request_pct", 4.7, "pct", 1, ">" },
	{ "py.import_in_request_ns", 1.4e9, "ns", NAN, "" },
};
static const struct location IMPORT_PLACES[] = { { "/srv/app/plugins/__init__.py", 9, "load_plugin", FUNCTION_PYTHON } };
static const struct evidence CORE_EVIDENCE[] = { { "cpu.busiest_thread_pct", 71.3, "pct", 70, ">" } };
static const struct location CORE_PLACES[] = { { "/srv/app/model/attention.py", 41, "Attention.forward", FUNCTION_PYTHON }, { "/srv/app/server.py", 88, "handle", FUNCTION_PYTHON } };

static const struct finding_report FINDINGS[] = {
	{ .id = "py.import_in_request-5a31c2", .rule = "py.import_in_request", .rule_version = 1, .title = "Modules are imported while requests are served", .severity = SEVERITY_HIGH, .confidence = 0.9, .class_ = VERDICT_CPU_BOUND, .recoverable_ns = 1400 * MS, .recoverable_pct = 4.7, .throughput_pct = 12.5, .scope = "inference", .evidence_count = 2, .location_count = 1, .evidence = IMPORT_EVIDENCE, .locations = IMPORT_PLACES, .suggestion = "Import at start-up: move the import to the top of the module, or call load_plugin() once before the server accepts requests" },
	{ .id = "cpu.one_core-77b0e1", .rule = "cpu.one_core", .rule_version = 2, .title = "One thread keeps one core busy while the others wait", .severity = SEVERITY_MEDIUM, .confidence = 0.75, .class_ = VERDICT_CPU_BOUND, .evidence_count = 1, .location_count = 2, .evidence = CORE_EVIDENCE, .locations = CORE_PLACES, .suggestion = "Spread requests over several processes, or move the work of Attention.forward to code that releases the GIL" },
};

static const struct metric METRICS[] = {
	{ "cpu.busy_cores", "cores", 0.89, NULL },
	{ "events.per_second", "per_second", 33366.7, NULL },
	{ "gpu.busy_pct", "pct", NAN, "no CUDA library is loaded" },
	{ "memory.rss_max", "bytes", 1610612736, NULL },
};

static const struct not_evaluated NOT_EVALUATED[] = { { "gpu.launch_bound", "no GPU data: no CUDA library is loaded" }, { "mem.numa_remote", "one NUMA node" } };

void fixture_init(struct fixture *fixture)
{
	memset(fixture, 0, sizeof *fixture);
	memcpy(fixture->functions, FUNCTIONS, sizeof FUNCTIONS);
	memcpy(fixture->nodes, NODES, sizeof NODES);
	memcpy(fixture->threads, THREADS, sizeof THREADS);
	memcpy(fixture->findings, FINDINGS, sizeof FINDINGS);
	fixture->process = (struct process){ .pid = 4121, .parent = 1, .command = "python server.py --port 8080", .executable = "/usr/bin/python3.11", .python = "3.11.7", .start_unix_ns = 1795824000000000000, .timed = true, .user_ns = 25600 * MS, .system_ns = 1100 * MS, .rss_first_bytes = 1503238553, .rss_last_bytes = 1556925644, .rss_max_bytes = 1610612736, .minor_faults = 1800, .threads_max = 4 };
	fixture->timeline = (struct timeline){
		.start_ns = 5000000000, .duration_ns = 30000 * MS, .start_unix_ns = 1795824643250000000,
		.function_count = FIXTURE_FUNCTIONS, .functions = fixture->functions, .node_count = FIXTURE_NODES, .nodes = fixture->nodes,
		.thread_count = FIXTURE_THREADS, .threads = fixture->threads, .process_count = 1, .processes = &fixture->process, .window_count = sizeof WINDOWS / sizeof *WINDOWS, .windows = WINDOWS,
		.throttle_count = sizeof THROTTLES / sizeof *THROTTLES, .throttles = THROTTLES,
		.counter_count = sizeof COUNTERS / sizeof *COUNTERS, .counters = COUNTERS, .capture_count = sizeof CAPTURES / sizeof *CAPTURES, .captures = CAPTURES,
		.counter_site_count = sizeof COUNTER_SITES / sizeof *COUNTER_SITES, .counter_sites = COUNTER_SITES, .counters_known = (1u << THREAD_COUNTERS) - 1,
		.gil_wait_count = sizeof GIL_WAITS / sizeof *GIL_WAITS, .gil_waits = GIL_WAITS, .coverage = 0.91, .turns = { .work = WORK_ITEMS, .item = "predict", .pairs = 148, .work_on = 3380, .work_off = 3480, .cpu_on_ns = 11830e6, .cpu_off_ns = 11832e6, .ratio = 0.971, .ratio_low = 0.958, .ratio_high = 0.984, .ledger_pct = 2.75 }, .native_split = true, .quality = { .events = 1001000, .lost_events = 12, .unmatched = 2, .skipped_calls = 5400, .samples = 120 },
	};
	fixture->analysis = (struct analysis){
		.verdict = { .class_ = VERDICT_CPU_BOUND, .reason = "one_core_saturated", .confidence = 0.6, .gpu = "no CUDA library is loaded",
			     .sentence = "One thread ran Python for 47 % of the time and native code for 23 %; the others mostly waited for it.",
			     .breakdown = { .python_pct = 47.0, .native_pct = 23.3, .gil_wait_pct = 7.0, .lock_wait_pct = 2.9, .io_wait_pct = 0.4, .runnable_pct = 1.0, .idle_pct = 18.4 } },
		.metric_count = sizeof METRICS / sizeof *METRICS, .metrics = METRICS, .finding_count = 2, .findings = fixture->findings,
		.not_evaluated_count = 2, .not_evaluated = NOT_EVALUATED,
	};
	fixture->options.unicode = true;
}

const char *const HOSTILE_NAMES[] = {
	"</script><script>document.title='pwned'</script>", "<img src=x onerror=alert(1)>", "q\"uo'te\\back", "semi;colon 12", "new\nline\ttab", "ctl\x01\x1b[31mred",
	"caf\xc3\xa9_\xe6\xbc\xa2\xe5\xad\x97", "emoji_\xf0\x9f\x94\xa5", "lone_\xed\xb2\x80_surrogate", ("rtl_\xe2\x80\xae" "abc"), "amp&amp;&lt;", "", "| pipe | table \\| |",
	"`code` **bold** [x](javascript:alert(1)) ``", " ", "-->", "@everyone #1", "\xff\xfe\x80", "u\xe2\x80\xa8line\xe2\x80\xa9para", "x\n\n    # InferScope report\n",
};
const unsigned HOSTILE_COUNT = sizeof HOSTILE_NAMES / sizeof *HOSTILE_NAMES;

void fixture_make_hostile(struct fixture *fixture)
{
	for (unsigned i = 0; i < FIXTURE_FUNCTIONS; i++) {
		fixture->functions[i].name = HOSTILE_NAMES[i % HOSTILE_COUNT];
		fixture->functions[i].file = HOSTILE_NAMES[(i + 9) % HOSTILE_COUNT];
	}
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		fixture->threads[i].name = HOSTILE_NAMES[(i + 3) % HOSTILE_COUNT];
	fixture->threads[2].unhooked = HOSTILE_NAMES[12];
	fixture->process.command = HOSTILE_NAMES[13];
	fixture->timeline.turns.item = HOSTILE_NAMES[0];
	fixture->process.executable = HOSTILE_NAMES[0];
	fixture->findings[0].title = HOSTILE_NAMES[0];
	fixture->findings[0].suggestion = HOSTILE_NAMES[19];
	fixture->findings[1].title = HOSTILE_NAMES[13];
	fixture->analysis.verdict.sentence = HOSTILE_NAMES[13];
	fixture->analysis.verdict.gpu = HOSTILE_NAMES[1];
}
