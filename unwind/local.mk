noinst_LIBRARIES += libunwinding.a
libunwinding_a_SOURCES = \
	unwind/elf_file.c unwind/elf_file.h \
	unwind/join.c unwind/join.h \
	unwind/module_file.c unwind/module_file.h \
	unwind/module_list.c unwind/module_list.h \
	unwind/modules.c unwind/modules.h \
	unwind/pages.c unwind/pages.h \
	unwind/perf.h \
	unwind/pycode.c \
	unwind/pyframes.c unwind/pyframes.h \
	unwind/pyglance.c unwind/pyglance.h \
	unwind/pyline.c \
	unwind/pyreader.h \
	unwind/pystack.c unwind/pystack.h \
	unwind/symbols.h \
	unwind/walk.h
