if HAVE_CRITERION
check_PROGRAMS += tests/unit/test_cli
TESTS += tests/unit/test_cli
endif
tests_unit_test_cli_SOURCES = tests/unit/test_cli_values.c tests/unit/test_cli_parse.c tests/unit/test_cli_settings.c tests/unit/test_cli_outputs.c tests/unit/test_cli_status.c
if ATTACHES
tests_unit_test_cli_SOURCES += tests/unit/test_cli_top.c tests/unit/cli_rounds.c tests/unit/cli_ship.c
endif
tests_unit_test_cli_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_cli_LDADD = libcli.a $(ATTACH_LIBS) libreport.a libanalyze.a libtimeline.a libimport.a libtrace.a libbase.a \
	$(CRITERION_LIBS) $(CJSON_LIBS) $(YAML_LIBS) $(PCRE2_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) $(SQLITE_LIBS) $(NATIVE_LIBS) $(CURSES_LIBS) -lm
