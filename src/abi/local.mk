EXTRA_DIST += src/abi/cupti.def src/abi/cupti.h src/abi/event.def src/abi/event.h src/abi/lane.h src/abi/memory.def src/abi/page.h src/abi/handover.h src/abi/cpython.def src/abi/cpython.h
