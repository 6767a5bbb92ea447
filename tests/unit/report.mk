if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_report tests/unit/test_report_exports tests/unit/test_report_source
TESTS += tests/unit/test_report tests/unit/test_report_exports tests/unit/test_report_source
endif
tests_unit_test_report_SOURCES = tests/unit/test_report.c tests/unit/report_fixture.h tests/unit/report_fixture.c
tests_unit_test_report_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit -DTOP_SRCDIR='"$(abs_top_srcdir)"'
tests_unit_test_report_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_report_LDADD = libreport.a libanalyze.a libtimeline.a libtrace.a libbase.a $(CRITERION_LIBS) $(PCRE2_LIBS) $(CJSON_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) -lm
tests_unit_test_report_source_SOURCES = tests/unit/report_source.c tests/unit/report_fixture.h tests/unit/report_fixture.c
tests_unit_test_report_source_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit
tests_unit_test_report_source_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_report_source_LDADD = $(tests_unit_test_report_LDADD)
tests_unit_test_report_exports_SOURCES = tests/unit/report_exports.c tests/unit/timeline_help.c tests/unit/timeline_help.h
tests_unit_test_report_exports_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit
tests_unit_test_report_exports_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_report_exports_LDADD = $(tests_unit_test_report_LDADD)
REPORT_CHECKS = tests/golden/report_strict.test tests/golden/report_schema.test tests/golden/report_markdown.test tests/golden/exports.test
TESTS += $(REPORT_CHECKS)
dist_noinst_SCRIPTS += $(REPORT_CHECKS)
EXTRA_DIST += tests/golden/report/plain.txt tests/golden/report/plain.summary.txt tests/golden/report/plain.md tests/golden/report/plain.html \
	tests/golden/report/plain.json tests/golden/report/plain.events.json tests/golden/report/hostile.txt tests/golden/report/hostile.summary.txt \
	tests/golden/report/hostile.md tests/golden/report/hostile.html tests/golden/report/hostile.json tests/golden/report/hostile.events.json
EXTRA_DIST += tests/golden/exports/formats.py tests/golden/exports/plain.trace tests/golden/exports/device.trace tests/golden/exports/hostile.trace tests/golden/exports/sampled.trace tests/golden/exports/processes.trace
