include tests/live/inject/inject.mk
