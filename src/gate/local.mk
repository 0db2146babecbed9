# gate: the acceptance gates, one file each.
noinst_LIBRARIES += src/libflgate.a
src_libflgate_a_SOURCES = \
	src/gate/batch.c \
	src/gate/equiv.c \
	src/gate/evict.c \
	src/gate/gate.c src/gate/gate.h \
	src/gate/grad.c \
	src/gate/logits.c \
	src/gate/resume.c src/gate/resume.h \
	src/gate/resume_parts.c \
	src/gate/util.c
GATE_LIBS = src/libflgate.a $(EVAL_LIBS)
