# retrieval: which documents a question is about.
noinst_LIBRARIES += src/libflretrieval.a
src_libflretrieval_a_SOURCES = \
	src/retrieval/hits.h \
	src/retrieval/index.c src/retrieval/index.h \
	src/retrieval/rebuild.c \
	src/retrieval/retrieval.c src/retrieval/retrieval.h
RETRIEVAL_LIBS = src/libflretrieval.a $(FLEET_LIBS)
