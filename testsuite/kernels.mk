check_PROGRAMS += testsuite/check_kernels
TESTS += testsuite/check_kernels
testsuite_check_kernels_SOURCES = testsuite/layer_kernels.c testsuite/suite.h \
	testsuite/kernels_util.h \
	testsuite/check_mapped.c testsuite/check_team.c testsuite/check_matmul.c \
	testsuite/check_matmul_routes.c testsuite/matmul_util.h testsuite/check_pointwise.c \
	testsuite/check_attention.c testsuite/check_attention_bwd.c \
	testsuite/attention_util.h testsuite/check_loss.c
testsuite_check_kernels_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -ffp-contract=off
testsuite_check_kernels_LDADD = $(WHOLE) src/libflkernels.a $(kernels_isa_libs) \
	src/libflformats.a src/libflbase.a $(NO_WHOLE) $(BLIS_LIBS) $(CJSON_LIBS) $(XXHASH_LIBS) \
	$(CHECK_LIBS)
