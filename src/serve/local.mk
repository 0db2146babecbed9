# serve: conversations at once, in one batch; no HTTP here.
noinst_LIBRARIES += src/libflserve.a
src_libflserve_a_SOURCES = \
	src/serve/admit.c \
	src/serve/deliver.c src/serve/deliver.h \
	src/serve/engine.c src/serve/engine.h \
	src/serve/engine_state.h \
	src/serve/job.c \
	src/serve/loader.c src/serve/loader.h \
	src/serve/needs.c \
	src/serve/prefix.c src/serve/prefix.h \
	src/serve/recall.c \
	src/serve/render.c src/serve/render.h \
	src/serve/select.c src/serve/select.h \
	src/serve/slots.c src/serve/slots.h \
	src/serve/speculate.c src/serve/speculate.h \
	src/serve/spill.c src/serve/spill.h \
	src/serve/spill_disk.c src/serve/spill_disk.h \
	src/serve/spill_io.c src/serve/spill_io.h \
	src/serve/step.c
SERVE_LIBS = src/libflserve.a $(FLEET_LIBS)
