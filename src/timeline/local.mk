noinst_LIBRARIES += libtimeline.a
libtimeline_a_SOURCES =
