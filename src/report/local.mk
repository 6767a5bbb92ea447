noinst_LIBRARIES += libreport.a
libreport_a_SOURCES = src/report/around.c src/report/counter_rows.h src/report/counter_rows.c src/report/counter_tables.c src/report/syscall_rows.c src/report/tasks.h src/report/tasks.c src/report/html_tasks.c src/report/report.h src/report/formats.c src/report/memory.c src/report/model.h src/report/model.c src/report/parts.def \
	src/report/glossary.def src/report/quality.c src/report/tree.c src/report/quantity.h src/report/quantity.c src/report/source.h src/report/source.c src/report/name.h \
	src/report/name.c src/report/terminal.h src/report/terminal.c src/report/summary.c src/report/text_gpu.c src/report/write_text.c src/report/md.h src/report/md_gpu.c src/report/write_md.c \
	src/report/html.h src/report/html_pack.h src/report/html_pack.c src/report/html_slices.c \
	src/report/html_model.c src/report/html_diff.c src/report/html_diff_tree.c src/report/html_findings.c src/report/html_gpu.c src/report/html_gpu_tables.c src/report/gpu_tables.h src/report/gpu_tables.c src/report/durations.h src/report/durations.c src/report/html_syscalls.c src/report/html_tables.c src/report/html_tree.c src/report/html_environment.c src/report/write_html.c src/report/write_json.c \
	src/report/job.h src/report/job.c src/report/job_json.c src/report/diff.h src/report/diff.c src/report/document.h src/report/document.c src/report/write_json_program.c src/report/write_json_gpu.c src/report/write_json_counters.c src/report/write_json_memory.c src/report/text_memory.c \
	src/report/write_events.c src/report/export.h src/report/export.c src/report/export_counters.h src/report/export_counters.c src/report/nesting.h src/report/nesting.c src/report/rows.h src/report/rows.c src/report/proto.h \
	src/report/write_perfetto.c src/report/write_chrome.c src/report/write_speedscope.c src/report/write_collapsed.c \
	src/report/gzip.h src/report/gzip.c src/report/write_otlp.c src/report/write_pprof.c src/report/stack_paths.h src/report/stack_paths.c src/report/write_profile.c src/report/write_stacks.c src/report/write_csv.c
# Programs that read the reports find their schemas beside the tool.
schemadir = $(pkgdatadir)/schema
dist_schema_DATA = docs/schema/inferscope-diff-1.schema.json docs/schema/inferscope-dump-1.schema.json docs/schema/inferscope-error-1.schema.json docs/schema/inferscope-events-1.schema.json \
	docs/schema/inferscope-job-1.schema.json docs/schema/inferscope-report-1.schema.json docs/schema/inferscope-rules-1.schema.json docs/schema/inferscope-top-1.schema.json
EXTRA_DIST += docs/report.md docs/exports.md

# The page's style and script, as strings of the program.
HTML_JS_FILES = src/report/html/format.js src/report/html/data.js src/report/html/stacks.js src/report/html/selection.js src/report/html/scene.js src/report/html/tables.js \
	src/report/html/timeline.js src/report/html/flame.js src/report/html/difference.js src/report/html/requests.js src/report/html/selected.js src/report/html/page.js
nodist_libreport_a_SOURCES = src/report/html_assets.c
CLEANFILES += src/report/html_assets.c
EXTRA_DIST += src/report/html/embed src/report/html/report.css $(HTML_JS_FILES)
src/report/html_assets.c: src/report/html/embed src/report/html/report.css $(HTML_JS_FILES)
	$(AM_V_GEN)$(MKDIR_P) src/report && (cd $(srcdir) && sh src/report/html/embed HTML_CSS src/report/html/report.css && sh src/report/html/embed HTML_JS $(HTML_JS_FILES)) > $@.new && mv $@.new $@
