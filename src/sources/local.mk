noinst_LIBRARIES += src/libflsources.a
src_libflsources_a_SOURCES = \
	src/sources/kind.h \
	src/sources/source.c src/sources/source.h \
	src/sources/source_text.c
SOURCES_LIBS = src/libflsources.a
