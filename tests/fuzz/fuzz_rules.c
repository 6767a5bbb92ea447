/* Any text as a rules file; what is taken judges a small trace. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "analyze/analysis.h"
#include "trace/dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char trace_text[] =
	"chunk process=0 lane=1 tid=0 kind=meta sequence=1 lost=0 depth=0 refs= clock=1000000/0/0\n"
	"0 code ref=1 line=1 name=\"main\" qualname=\"main\" file=\"/srv/app.py\"\n0 code ref=2 line=9 name=\"f\" qualname=\"A.f\" file=\"/srv/app.py\"\n0 window_on reason=1\n2000000 window_off reason=1\n"
	"chunk process=0 lane=2 tid=0 kind=session sequence=1 lost=0 depth=0 refs= clock=1000000/0/0\n"
	"0 capture key=\"cpus\" value=\"4\"\n0 thread_time ref=7 cpu_ns=0 state=82\n2000000 thread_time ref=7 cpu_ns=1000000000 state=82\n"
	"chunk process=0 lane=3 tid=7 kind=thread sequence=1 lost=0 depth=0 refs= clock=1000000/0/0\n"
	"0 enter ref=1\n10 enter ref=2\n900000 leave ref=2\n1000000 enter ref=2\n1900000 leave ref=2\n"
	"chunk process=0 lane=4 tid=0 kind=gpu sequence=1 lost=0 depth=0 refs= clock=1000000/0/0\n"
	"20 gpu_api duration_ns=9000 correlation=1 tid=7 name=\"cudaLaunchKernel\"\n40 gpu_kernel duration_ns=500000 correlation=1 device=0 stream=7 grid_x=8 name=\"gemm\"\n"
	"700 h2d_copy duration_ns=5000 correlation=2 device=0 stream=7 bytes=100 memory_kinds=0x301\n";

static const struct timeline *small_timeline(void)
{
	static struct timeline *timeline;
	static const char *const scopes[] = { "A.f" };
	struct error err = { 0 };
	struct trace *trace;
	void *bytes;
	size_t length;

	if (timeline)
		return timeline;
	if (trace_assemble_memory(trace_text, &bytes, &length, &err) < 0 || trace_open_memory(bytes, length, &trace, &err) < 0 ||
	    timeline_build_scoped(trace, &(struct scope_patterns){ scopes, 1 }, &timeline, &err) < 0)
		abort();
	trace_close(trace);
	free(bytes);
	return timeline;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ruleset *rules;
	struct analysis *analysis;
	struct error err = { 0 };
	struct text text;

	if (ruleset_parse((const char *)data, size, "fuzz", &rules, &err) < 0) {
		if (err.code != ERR_RULES && err.code != ERR_MEMORY)
			abort();
		return 0;
	}
	if (analysis_build_with(small_timeline(), rules, NULL, 0, &analysis, &err) == 0) {
		text_init(&text);
		for (size_t i = 0; i < analysis->finding_count; i++) {
			const struct finding_report *finding = &analysis->findings[i];

			if (!isfinite(finding->confidence) || finding->confidence < 0 || finding->confidence > 1 || finding->recoverable_pct > 100.001 || !finding->title)
				abort();
			ruleset_explain(rules, finding->rule, analysis, &text, &err);
		}
		text_done(&text);
		analysis_free(analysis);
	}
	ruleset_free(rules);
	return 0;
}
