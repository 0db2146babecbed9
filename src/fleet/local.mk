noinst_LIBRARIES += src/libflfleet.a
src_libflfleet_a_SOURCES = \
	src/fleet/commit.c src/fleet/commit.h \
	src/fleet/coverage.c src/fleet/coverage.h \
	src/fleet/fleet.h \
	src/fleet/manifest.c src/fleet/manifest.h \
	src/fleet/manifest_read.c \
	src/fleet/options.c src/fleet/options.h \
	src/fleet/rotate.c src/fleet/rotate.h \
	src/fleet/visibility.c src/fleet/visibility.h
FLEET_LIBS = src/libflfleet.a $(TRAIN_LIBS)
