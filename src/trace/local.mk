noinst_LIBRARIES += libtrace.a
libtrace_a_SOURCES =
