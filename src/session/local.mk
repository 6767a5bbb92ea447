noinst_LIBRARIES += libsession.a
libsession_a_SOURCES =
