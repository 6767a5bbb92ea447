noinst_LIBRARIES += libunwindpy.a
libunwindpy_a_SOURCES = unwind/pystack.c unwind/pystack.h unwind/pycode.c unwind/pyreader.h unwind/pages.c unwind/pages.h
