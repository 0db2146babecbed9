noinst_LIBRARIES += src/libflfleet.a
src_libflfleet_a_SOURCES = \
	src/fleet/ahead.c src/fleet/ahead.h \
	src/fleet/answer.h \
	src/fleet/ask.c \
	src/fleet/birth.c \
	src/fleet/cache.c src/fleet/chat.c \
	src/fleet/commit.c src/fleet/commit.h \
	src/fleet/control.c src/fleet/control.h \
	src/fleet/conv_json.c src/fleet/conv_json.h \
	src/fleet/coverage.c src/fleet/coverage.h \
	src/fleet/evaluate.c \
	src/fleet/fleet.c src/fleet/fleet.h \
	src/fleet/follow.c \
	src/fleet/given.c src/fleet/given.h \
	src/fleet/heldout.c src/fleet/heldout.h \
	src/fleet/index.c \
	src/fleet/initial.c src/fleet/initial.h \
	src/fleet/kept.c src/fleet/kept.h \
	src/fleet/manifest.c src/fleet/manifest.h \
	src/fleet/manifest_read.c \
	src/fleet/open.c \
	src/fleet/options.c src/fleet/options.h \
	src/fleet/plan.c src/fleet/plan.h \
	src/fleet/reconcile.c src/fleet/reconcile.h \
	src/fleet/residency.c src/fleet/residency.h \
	src/fleet/retrieval.c src/fleet/retrieval.h \
	src/fleet/rotate.c src/fleet/rotate.h \
	src/fleet/round.c \
	src/fleet/state.h \
	src/fleet/supply.c src/fleet/supply.h \
	src/fleet/texts.c src/fleet/texts.h \
	src/fleet/together.c src/fleet/together.h \
	src/fleet/train_control.c \
	src/fleet/train_events.c \
	src/fleet/train_loop.c \
	src/fleet/trainer.h \
	src/fleet/visibility.c src/fleet/visibility.h
FLEET_LIBS = src/libflfleet.a $(SOURCES_LIBS) $(TRAIN_LIBS)
