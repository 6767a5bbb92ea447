noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	src/base/a64.h \
	src/base/arena.c src/base/arena.h \
	src/base/cgroups.c src/base/cgroups.h \
	src/base/clock.c src/base/clock.h \
	src/base/error.c src/base/error.h src/base/error.def \
	src/base/limits.c src/base/limits.h \
	src/base/list.c src/base/list.h \
	src/base/map.c src/base/map.h \
	src/base/mappings.c src/base/mappings.h \
	src/base/marks.c \
	src/base/pattern.c src/base/pattern.h \
	src/base/procfs.c src/base/procfs.h \
	src/base/sink.c src/base/sink.h \
	src/base/smallfile.c src/base/smallfile.h \
	src/base/thread.c src/base/thread.h \
	src/base/tidmap.c src/base/tidmap.h \
	src/base/search.h \
	src/base/sort.h \
	src/base/strings.c \
	src/base/text.c src/base/text.h \
	src/base/words.c src/base/words.h
