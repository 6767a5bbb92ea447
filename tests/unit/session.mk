if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_session
TESTS += tests/unit/test_session
endif
tests_unit_test_session_SOURCES = tests/unit/test_session_drain.c tests/unit/test_session_spool.c tests/unit/test_session_digest.c tests/unit/test_session_around.c tests/unit/test_session_counts.c tests/unit/test_session_syscalls.c tests/unit/test_session_observe.c tests/unit/session_loops.c tests/unit/session_rearm.c tests/unit/test_session_pace.c tests/unit/test_session_perf_turns.c tests/unit/test_session_sights.c tests/unit/session_find.c tests/unit/session_switching.c tests/unit/session_words.c
tests_unit_test_session_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_session_SOURCES += tests/unit/test_session_inside.c
tests_unit_test_session_SOURCES += tests/unit/unwind_fake.c tests/unit/unwind_fake.h
tests_unit_test_session_LDADD = libsession.a libinject.a libunwinding.a libtrace.a libbase.a $(CRITERION_LIBS) $(PCRE2_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) $(NATIVE_LIBS)
tests_unit_test_session_SOURCES += tests/unit/test_session_gpu.c tests/unit/test_session_nvml.c tests/unit/test_session_tally.c
tests_unit_test_session_CPPFLAGS = $(AM_CPPFLAGS) -DFAKE_NVML='"$(abs_builddir)/tests/unit/fake_nvml.so"'
check_DATA += tests/unit/fake_nvml.so
EXTRA_DIST += tests/unit/fake_nvml.c
CLEANFILES += tests/unit/fake_nvml.so
tests/unit/fake_nvml.so: $(srcdir)/tests/unit/fake_nvml.c
	@$(MKDIR_P) tests/unit
	$(AM_V_CCLD)$(CC) $(WARN_CFLAGS) -g -O2 -fPIC -shared -o $@ $(srcdir)/tests/unit/fake_nvml.c
include tests/live/top/top.mk
