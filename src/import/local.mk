noinst_LIBRARIES += libimport.a
libimport_a_SOURCES = \
	src/import/ahead.c src/import/ahead.h \
	src/import/chrome.c src/import/chrome.h src/import/chrome_names.c src/import/chrome_names.h \
	src/import/event_json.c src/import/event_json.h \
	src/import/gather.c src/import/gather.h src/import/gather_private.h src/import/gather_write.c \
	src/import/import.c src/import/import.h \
	src/import/input.c src/import/input.h \
	src/import/json.c src/import/json.h src/import/json_number.c src/import/json_string.c \
	src/import/nsys.c src/import/nsys.h \
	src/import/owners.c \
	src/import/pairs.c src/import/pairs.h \
	src/import/sixteen.h
