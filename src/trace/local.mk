noinst_LIBRARIES += libtrace.a
libtrace_a_SOURCES = \
	src/trace/assemble.c \
	src/trace/builder.c \
	src/trace/codec.c src/trace/codec.h \
	src/trace/dump.c src/trace/dump.h \
	src/trace/events.c src/trace/event_info.h \
	src/trace/format.c src/trace/format.h \
	src/trace/grammar.h \
	src/trace/reader.c src/trace/reader.h \
	src/trace/scan.c src/trace/scan.h \
	src/trace/source.c src/trace/source.h \
	src/trace/writer.c src/trace/writer.h
