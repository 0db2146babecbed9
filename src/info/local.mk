# info: what is in a model, a cartridge, an index, a fleet.
noinst_LIBRARIES += src/libflinfo.a
src_libflinfo_a_SOURCES = \
	src/info/files.c \
	src/info/fleet.c \
	src/info/gguf.c \
	src/info/info.h
INFO_LIBS = src/libflinfo.a $(BENCH_LIBS)
