# retrieval: which documents a question is about.
noinst_LIBRARIES += src/libflretrieval.a
src_libflretrieval_a_SOURCES = \
	src/retrieval/fleet_words.c src/retrieval/fleet_words.h \
	src/retrieval/fuse.c src/retrieval/fuse.h \
	src/retrieval/hits.h \
	src/retrieval/index.c src/retrieval/index.h \
	src/retrieval/lexical.c src/retrieval/lexical.h \
	src/retrieval/lexical_build.c \
	src/retrieval/lexical_db.c src/retrieval/lexical_db.h \
	src/retrieval/lexical_fts.c \
	src/retrieval/likelihood.c src/retrieval/likelihood.h \
	src/retrieval/passage.c src/retrieval/passage.h \
	src/retrieval/rebuild.c \
	src/retrieval/retrieval.c src/retrieval/retrieval.h \
	src/retrieval/search.c src/retrieval/search.h \
	src/retrieval/words.c src/retrieval/words.h
src_libflretrieval_a_CFLAGS = $(AM_CFLAGS) $(SQLITE_CFLAGS)
RETRIEVAL_LIBS = src/libflretrieval.a $(FLEET_LIBS) $(SQLITE_LIBS)
