noinst_LIBRARIES += libinject.a
libinject_a_SOURCES =
# launch: starting a program at its gate
libinject_a_SOURCES += inject/launch.c inject/launch.h inject/launch_gate.c inject/launch_gate.h inject/launch_gate_code.S inject/remote_elf.c inject/remote_elf.h
