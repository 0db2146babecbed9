noinst_LIBRARIES += src/libfltext.a
src_libfltext_a_CFLAGS = $(AM_CFLAGS)
src_libfltext_a_SOURCES = \
	src/text/bpe.c src/text/bpe.h \
	src/text/chat.c src/text/chat.h \
	src/text/merge.c src/text/merge.h \
	src/text/pretokenise.c src/text/pretokenise.h \
	src/text/spm.c src/text/spm.h \
	src/text/tokenizer.c src/text/tokenizer.h \
	src/text/unicode.c src/text/unicode.h \
	src/text/vocab.c src/text/vocab.h
TEXT_LIBS = src/libfltext.a $(FORMATS_LIBS) $(UNISTRING_LIBS)
