noinst_LIBRARIES += libanalyze.a
libanalyze_a_SOURCES =
