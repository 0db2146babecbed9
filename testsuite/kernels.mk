check_PROGRAMS += testsuite/check_kernels
kernels_suites = testsuite/kernels/matmul.suite testsuite/kernels/attention.suite \
	testsuite/kernels/attention_bwd.suite testsuite/kernels/matmul_routes.suite \
	testsuite/kernels/pointwise.suite testsuite/kernels/loss.suite testsuite/kernels/mapped.suite \
	testsuite/kernels/team.suite testsuite/kernels/cholesky.suite
$(kernels_suites): testsuite/check_kernels$(EXEEXT)
kernels_tests = $(kernels_suites)
testsuite_check_kernels_SOURCES = testsuite/layer_kernels.c testsuite/suite.h \
	testsuite/kernels_util.h \
	testsuite/check_mapped.c testsuite/check_team.c testsuite/check_matmul.c \
	testsuite/check_matmul_routes.c testsuite/matmul_util.h testsuite/check_pointwise.c \
	testsuite/check_attention.c testsuite/check_attention_bwd.c \
	testsuite/attention_util.h testsuite/check_loss.c \
	testsuite/check_cholesky.c
testsuite_check_kernels_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -ffp-contract=off
testsuite_check_kernels_LDADD = $(WHOLE) src/libflkernels.a $(kernels_isa_libs) \
	src/libflformats.a src/libflbase.a $(NO_WHOLE) $(BLIS_LIBS) $(CJSON_LIBS) $(XXHASH_LIBS) \
	$(CHECK_LIBS)
