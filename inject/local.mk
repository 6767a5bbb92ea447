noinst_LIBRARIES += libinject.a
libinject_a_SOURCES =
