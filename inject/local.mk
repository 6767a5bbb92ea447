noinst_LIBRARIES += libinject.a
libinject_a_SOURCES =
# launch: starting a program at its gate
libinject_a_SOURCES += inject/launch.c inject/launch.h inject/gate.c inject/gate.h inject/gate_code.S inject/remote_elf.c inject/remote_elf.h
