# Single threads held again and again, on programs that notice: tests/live/hold/run
noinst_PROGRAMS += tests/live/hold/hold_driver
tests_live_hold_hold_driver_SOURCES = tests/live/hold/hold_driver.c
tests_live_hold_hold_driver_LDADD = libinject.a libbase.a
dist_noinst_SCRIPTS += tests/live/hold/run
