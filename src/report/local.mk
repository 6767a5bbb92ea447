noinst_LIBRARIES += libreport.a
libreport_a_SOURCES =
