# `make check` replays the corpus; `make check-fuzz` looks for more (clang, FUZZ_SECONDS each).
check_PROGRAMS += tests/fuzz/replay_trace tests/fuzz/replay_assemble
TESTS += tests/fuzz/corpus.test
dist_noinst_SCRIPTS += tests/fuzz/run tests/fuzz/corpus.test
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/ring.h tests/fuzz/rules.h tests/fuzz/tree.h

FUZZ_LDADD = libtrace.a libbase.a $(ZSTD_LIBS) $(ZLIB_LIBS)
tests_fuzz_replay_trace_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_trace.c
tests_fuzz_replay_trace_LDADD = $(FUZZ_LDADD)
tests_fuzz_replay_assemble_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_assemble.c
tests_fuzz_replay_assemble_LDADD = $(FUZZ_LDADD)

check-fuzz:
	$(srcdir)/tests/fuzz/run $${FUZZ_SECONDS:-30}
.PHONY: check-fuzz

check_PROGRAMS += tests/fuzz/replay_timeline
tests_fuzz_replay_timeline_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_timeline.c
tests_fuzz_replay_timeline_LDADD = libanalyze.a libtimeline.a $(FUZZ_LDADD) $(PCRE2_LIBS) -lm

check_PROGRAMS += tests/fuzz/replay_report
tests_fuzz_replay_report_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_report.c
tests_fuzz_replay_report_LDADD = libreport.a libanalyze.a libtimeline.a $(FUZZ_LDADD) $(PCRE2_LIBS) $(CJSON_LIBS) -lm

check_PROGRAMS += tests/fuzz/replay_source
tests_fuzz_replay_source_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_source.c
tests_fuzz_replay_source_LDADD = libreport.a libbase.a

check_PROGRAMS += tests/fuzz/replay_settings tests/fuzz/replay_options
tests_fuzz_replay_settings_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_settings.c
tests_fuzz_replay_settings_LDADD = libcli.a libbase.a $(YAML_LIBS)
tests_fuzz_replay_options_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_options.c
tests_fuzz_replay_options_LDADD = libcli.a libbase.a $(YAML_LIBS)

check_PROGRAMS += tests/fuzz/replay_rules
tests_fuzz_replay_rules_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_rules.c
tests_fuzz_replay_rules_LDADD = libanalyze.a libtimeline.a $(FUZZ_LDADD) $(YAML_LIBS) $(PCRE2_LIBS) -lm

check_PROGRAMS += tests/fuzz/replay_expression
tests_fuzz_replay_expression_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_expression.c
tests_fuzz_replay_expression_LDADD = libanalyze.a libbase.a $(PCRE2_LIBS) -lm

if ENTERING_TESTS
check_PROGRAMS += tests/fuzz/replay_drain
tests_fuzz_replay_drain_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_drain.c
tests_fuzz_replay_drain_LDADD = libsession.a $(FUZZ_LDADD)

check_PROGRAMS += tests/fuzz/replay_inject
tests_fuzz_replay_inject_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_inject.c
tests_fuzz_replay_inject_LDADD = libinject.a libbase.a

check_PROGRAMS += tests/fuzz/replay_preflight
tests_fuzz_replay_preflight_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_preflight.c
tests_fuzz_replay_preflight_LDADD = libinject.a libbase.a

check_PROGRAMS += tests/fuzz/replay_jitnames tests/fuzz/replay_symfile
tests_fuzz_replay_jitnames_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_jitnames.c
tests_fuzz_replay_jitnames_LDADD = libunwinding.a libbase.a
tests_fuzz_replay_symfile_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_symfile.c
tests_fuzz_replay_symfile_LDADD = libunwinding.a libbase.a $(ZLIB_LIBS) $(NATIVE_LIBS)

check_PROGRAMS += tests/fuzz/replay_perf
tests_fuzz_replay_perf_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_perf.c
tests_fuzz_replay_perf_LDADD = libunwinding.a libbase.a

check_PROGRAMS += tests/fuzz/replay_systrace
tests_fuzz_replay_systrace_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_systrace.c
tests_fuzz_replay_systrace_LDADD = libsession.a $(FUZZ_LDADD)

check_PROGRAMS += tests/fuzz/replay_relay
tests_fuzz_replay_relay_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_relay.c
tests_fuzz_replay_relay_LDADD = libsession.a libunwinding.a $(FUZZ_LDADD) $(NATIVE_LIBS)

check_PROGRAMS += tests/fuzz/replay_cupti
tests_fuzz_replay_cupti_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_cupti.c src/collector/gpu_names.c src/collector/gpu_records.c
tests_fuzz_replay_cupti_CPPFLAGS = $(AM_CPPFLAGS) -DCOLLECTOR_PLAIN_LIBC

check_PROGRAMS += tests/fuzz/replay_image tests/fuzz/replay_procfs
tests_fuzz_replay_image_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_image.c
tests_fuzz_replay_image_LDADD = libinject.a libbase.a
tests_fuzz_replay_procfs_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_procfs.c
tests_fuzz_replay_procfs_LDADD = libsession.a $(FUZZ_LDADD) $(PCRE2_LIBS)
endif
