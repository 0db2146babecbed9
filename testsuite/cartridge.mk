check_PROGRAMS += testsuite/check_cartridge
cartridge_tests = testsuite/check_cartridge
testsuite_check_cartridge_SOURCES = testsuite/layer_cartridge.c testsuite/suite.h \
	testsuite/cart_util.h testsuite/model_util.h \
	testsuite/check_adam.c testsuite/check_cartridge.c testsuite/check_cartridge_io.c \
	testsuite/check_match.c testsuite/check_match_head.c
testsuite_check_cartridge_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_cartridge_LDADD = $(WHOLE) src/libflcartridge.a src/libflmodel.a \
	src/libflkernels.a \
	src/libfltext.a src/libflformats.a src/libflbase.a $(NO_WHOLE) $(CARTRIDGE_LIBS) $(CHECK_LIBS)
