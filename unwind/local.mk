noinst_LIBRARIES += libunwindpy.a
libunwindpy_a_SOURCES =
