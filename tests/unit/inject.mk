include tests/live/inject/inject.mk
include tests/fault/fault.mk
