noinst_LIBRARIES += src/libflcartridge.a
# sqrtf sets errno by default, which keeps the optimizer's loop from being vectorised.
src_libflcartridge_a_CFLAGS = $(AM_CFLAGS) -fno-math-errno
src_libflcartridge_a_SOURCES = \
	src/cartridge/adam.c src/cartridge/adam.h \
	src/cartridge/cartridge.c src/cartridge/cartridge.h \
	src/cartridge/cartridge_io.c src/cartridge/cartridge_io.h \
	src/cartridge/match.c src/cartridge/match.h \
	src/cartridge/match_head.c src/cartridge/match_head.h \
	src/cartridge/rows.c
CARTRIDGE_LIBS = src/libflcartridge.a $(MODEL_LIBS)
