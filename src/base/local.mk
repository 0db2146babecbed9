noinst_LIBRARIES += src/libflbase.a
src_libflbase_a_CFLAGS = $(AM_CFLAGS) $(CJSON_CFLAGS) $(XXHASH_CFLAGS)
src_libflbase_a_SOURCES = \
	src/base/buf.c src/base/buf.h \
	src/base/clock.c src/base/clock.h \
	src/base/cond.c src/base/cond.h \
	src/base/err.c src/base/err.h \
	src/base/events.c src/base/events.h \
	src/base/events_file.c src/base/events_file.h \
	src/base/fs.c src/base/fs.h src/base/fs_sink.c \
	src/base/spillable.c src/base/spillable.h \
	src/base/hash.c src/base/hash.h \
	src/base/json.c src/base/json.h src/base/json_check.c src/base/json_check.h \
	src/base/json_writer.c src/base/json_writer.h \
	src/base/log.c src/base/log.h \
	src/base/mem.c src/base/mem.h \
	src/base/rng.c src/base/rng.h \
	src/base/sort.c src/base/sort.h \
	src/base/units.c src/base/units.h \
	src/base/utf8.c src/base/utf8.h \
	src/base/worker.c src/base/worker.h
BASE_LIBS = src/libflbase.a $(CJSON_LIBS) $(XXHASH_LIBS)
