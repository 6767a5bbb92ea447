noinst_LIBRARIES += libinject.a
libinject_a_SOURCES = \
	inject/inject.h inject/stub.S inject/stub_layout.h \
	inject/attempt.h \
	inject/borrow.c \
	inject/critical.c inject/critical.h \
	inject/decode.c inject/decode.h \
	inject/enter.c \
	inject/gate.c \
	inject/got.c inject/got.h \
	inject/guest.c \
	inject/hold.c inject/hold.h \
	inject/holder.c inject/holder.h \
	inject/image.c inject/image.h \
	inject/images.c \
	inject/memfd.c inject/memfd.h \
	inject/memory.c inject/memory.h \
	inject/preflight.c \
	inject/prepare.c \
	inject/resume.c inject/resume.h \
	inject/scratch.c inject/scratch.h \
	inject/seccomp.c inject/seccomp.h \
	inject/slot.c inject/slot.h \
	inject/surroundings.c \
	inject/steps.c inject/steps.h \
	inject/target.c inject/target.h \
	inject/threads.c inject/threads.h \
	inject/tracee.c inject/tracee.h \
	inject/window.c
# launch: starting a program at its gate
libinject_a_SOURCES += inject/launch.c inject/launch.h inject/launch_gate.c inject/launch_gate.h inject/launch_gate_code.S
