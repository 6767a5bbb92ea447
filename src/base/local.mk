noinst_LIBRARIES += libbase.a
libbase_a_SOURCES =
