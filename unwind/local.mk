noinst_LIBRARIES += libunwinding.a
libunwinding_a_SOURCES = \
	unwind/call_site.h unwind/code.h unwind/machine.h \
	unwind/cfi.c unwind/cfi.h unwind/cfi_expression.c unwind/cfi_number.c \
	unwind/debug_sections.c unwind/debug_sections.h \
	unwind/debugfile.c unwind/debugfile.h \
	unwind/debuginfo.c unwind/debuginfo.h \
	unwind/debuginfo_look.c \
	unwind/debuginfod.c \
	unwind/demangle.c unwind/demangle.h \
	unwind/elf_bytes.c unwind/elf_bytes.h \
	unwind/elf_file.c unwind/elf_file.h \
	unwind/functions.c unwind/functions.h \
	unwind/ifunc.c \
	unwind/jitfiles.c unwind/jitfiles.h \
	unwind/jitnames.c unwind/jitnames.h \
	unwind/join.c unwind/join.h \
	unwind/module_file.c unwind/module_file.h \
	unwind/module_list.c unwind/module_list.h \
	unwind/modules.c unwind/modules.h \
	unwind/pages.c unwind/pages.h \
	unwind/perf.c unwind/perf.h \
	unwind/perf_cost.c \
	unwind/perf_event.c unwind/perf_event.h \
	unwind/perf_record.c unwind/perf_record.h unwind/perf_ring.h \
	unwind/plt.c \
	unwind/pybytecode.c unwind/pybytecode.h \
	unwind/pycode.c \
	unwind/pydict.c unwind/pydict.h \
	unwind/pyframes.c unwind/pyframes.h \
	unwind/pyglance.c unwind/pyglance.h \
	unwind/pyline.c \
	unwind/pylocals.c \
	unwind/pymoment.c unwind/pymoment.h \
	unwind/pynames.c \
	unwind/pyreader.h \
	unwind/pystack.c unwind/pystack.h \
	unwind/pytasks.c \
	unwind/pyvalue.c unwind/pyvalue.h \
	unwind/symbols.c unwind/symbols.h \
	unwind/symfile.c unwind/symfile.h \
	unwind/symtab.c unwind/symtab.h \
	unwind/table_file.c unwind/table_file.h unwind/table_pages.c \
	unwind/tables.c unwind/tables.h \
	unwind/unwinder.c unwind/unwinder.h \
	unwind/walk.c unwind/walk.h unwind/walk_search.c unwind/walk_state.h
EXTRA_DIST += unwind/code_x86_64.c unwind/code_aarch64.c
if X86_64
libunwinding_a_SOURCES += unwind/code_x86_64.c
else
libunwinding_a_SOURCES += unwind/code_aarch64.c
endif
