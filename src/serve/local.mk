# serve: conversations at once, in one batch; no HTTP here.
noinst_LIBRARIES += src/libflserve.a
src_libflserve_a_SOURCES = \
	src/serve/chat_request.c src/serve/chat_request.h \
	src/serve/detokenize.c src/serve/detokenize.h \
	src/serve/doc_select.c src/serve/doc_select.h \
	src/serve/engine.c src/serve/engine.h \
	src/serve/engine_state.h \
	src/serve/fleet_reader.c src/serve/fleet_reader.h \
	src/serve/io_wait.c \
	src/serve/job.c src/serve/job.h \
	src/serve/job_event.c src/serve/job_event.h \
	src/serve/prefix_cache.c src/serve/prefix_cache.h \
	src/serve/prompt.c src/serve/prompt.h \
	src/serve/scheduler.c \
	src/serve/slots.c src/serve/slots.h \
	src/serve/speculate.c src/serve/speculate.h \
	src/serve/spill.c src/serve/spill.h \
	src/serve/spill_disk.c src/serve/spill_disk.h \
	src/serve/spill_io.c src/serve/spill_io.h \
	src/serve/step.c \
	src/serve/warm_start.c
SERVE_LIBS = src/libflserve.a $(TRAINER_LIBS)
