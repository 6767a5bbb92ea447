noinst_LIBRARIES += libinject.a
libinject_a_SOURCES = \
	inject/inject.h inject/stub_layout.h inject/calls.h inject/machine.h \
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
libinject_a_SOURCES += inject/launch.c inject/launch.h inject/launch_gate.c inject/launch_gate.h
# What tells machines apart, one set of files for each.
X86_64_SOURCES = inject/code_x86_64.c inject/machine_x86_64.c inject/machine_x86_64.h inject/resume_x86_64.c inject/stub_x86_64.S inject/launch_x86_64.c inject/launch_gate_x86_64.S
AARCH64_SOURCES = inject/code_aarch64.c inject/machine_aarch64.c inject/machine_aarch64.h inject/resume_aarch64.c inject/stub_aarch64.S inject/launch_aarch64.c inject/launch_gate_aarch64.S
EXTRA_DIST += $(X86_64_SOURCES) $(AARCH64_SOURCES) inject/stub_words.inc inject/launch_gate_words.inc
if X86_64
libinject_a_SOURCES += $(X86_64_SOURCES)
else
libinject_a_SOURCES += $(AARCH64_SOURCES)
endif
