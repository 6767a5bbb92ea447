noinst_LIBRARIES += libunwinding.a
libunwinding_a_SOURCES = \
	unwind/join.h \
	unwind/modules.h \
	unwind/pages.c unwind/pages.h \
	unwind/perf.h \
	unwind/pycode.c \
	unwind/pyreader.h \
	unwind/pystack.c unwind/pystack.h \
	unwind/symbols.h \
	unwind/walk.h
