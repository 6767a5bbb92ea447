dist_noinst_SCRIPTS += contrib/autogen contrib/roots
