noinst_LIBRARIES += libcli.a
libcli_a_SOURCES = \
	src/cli/analyze.c \
	src/cli/command.c src/cli/command.h \
	src/cli/completion.c \
	src/cli/config_command.c \
	src/cli/diff.c \
	src/cli/failure.c src/cli/failure.h \
	src/cli/gates.c src/cli/gates.h \
	src/cli/help.c src/cli/help.h \
	src/cli/job.c src/cli/job.h \
	src/cli/options.c src/cli/options.def src/cli/options.h \
	src/cli/outputs.c src/cli/outputs.h \
	src/cli/parse.c src/cli/parse.h \
	src/cli/present.c src/cli/present.h \
	src/cli/ranks.c src/cli/ranks.h \
	src/cli/schema.c src/cli/schema_files.S \
	src/cli/settings.c src/cli/settings.h \
	src/cli/status.c src/cli/status.h \
	src/cli/trace_commands.c \
	src/cli/value.c src/cli/value.h
if ATTACHES
libcli_a_SOURCES += \
	src/cli/at.c src/cli/at.h \
	src/cli/attach.c \
	src/cli/doctor.c \
	src/cli/dump.c \
	src/cli/fleet.c src/cli/fleet.h src/cli/fleet_query.c src/cli/fleet_report.c src/cli/fleet_watch.c \
	src/cli/http.c src/cli/http.h \
	src/cli/launcher.c src/cli/launcher.h \
	src/cli/measure.c src/cli/measure.h \
	src/cli/member.c src/cli/member.h \
	src/cli/nsys_run.c src/cli/nsys_run.h \
	src/cli/process.c src/cli/process.h \
	src/cli/recorder.c src/cli/recorder.h src/cli/recorder_state.h src/cli/recorder_work.c \
	src/cli/retell.c src/cli/retell.h \
	src/cli/rounds.c src/cli/rounds.h \
	src/cli/run.c \
	src/cli/ship.c src/cli/ship.h src/cli/ship_body.c src/cli/ship_body.h \
	src/cli/signals.c src/cli/signals.h \
	src/cli/top.c src/cli/top.h src/cli/top_json.c src/cli/top_page.c src/cli/top_rows.c \
	src/cli/top_screen.c src/cli/top_screen.h
else
libcli_a_SOURCES += src/cli/no_attach.c
endif

libcli_a_CCASFLAGS = -Wa,-I$(srcdir)/docs/schema
src/cli/libcli_a-schema_files.$(OBJEXT): $(dist_schema_DATA)

bin_PROGRAMS += inferscope
inferscope_SOURCES = src/cli/main.c
inferscope_LDADD = libcli.a $(ATTACH_LIBS) libreport.a libanalyze.a libtimeline.a libimport.a libtrace.a libbase.a \
	$(CJSON_LIBS) $(YAML_LIBS) $(PCRE2_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) $(SQLITE_LIBS) $(NATIVE_LIBS) $(CURSES_LIBS) -lm

# Printed by the program itself; docs/generate keeps them, tests/lint/docs.test says when they are stale.
dist_man_MANS += docs/man/inferscope.1
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
fishcompletiondir = $(datadir)/fish/vendor_completions.d
dist_bashcompletion_DATA = contrib/completions/inferscope.bash
dist_zshcompletion_DATA = contrib/completions/_inferscope
dist_fishcompletion_DATA = contrib/completions/inferscope.fish
dist_noinst_SCRIPTS += tests/live/cli/run
EXTRA_DIST += tests/live/cli/commands.py tests/live/cli/mishaps.py tests/live/cli/refused.py
