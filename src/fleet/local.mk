# fleet: the folder on disk; knows nobody who reads or trains it.
noinst_LIBRARIES += src/libflfleet.a
src_libflfleet_a_SOURCES = \
	src/fleet/commit.c src/fleet/commit.h \
	src/fleet/control_socket.c src/fleet/control_socket.h \
	src/fleet/coverage.c src/fleet/coverage.h \
	src/fleet/fleet.c src/fleet/fleet.h \
	src/fleet/fleet_dir.c src/fleet/fleet_dir.h \
	src/fleet/hooks.h \
	src/fleet/manifest.c src/fleet/manifest.h \
	src/fleet/manifest_read.c \
	src/fleet/open.c \
	src/fleet/reconcile.c src/fleet/reconcile.h \
	src/fleet/run_event.c \
	src/fleet/state.h \
	src/fleet/text_cache.c src/fleet/text_cache.h \
	src/fleet/train_flags.def \
	src/fleet/train_options.c src/fleet/train_options.h
FLEET_LIBS = src/libflfleet.a $(SOURCES_LIBS) $(TRAIN_LIBS)
