check_PROGRAMS += testsuite/check_model
model_suites = testsuite/model/pass.suite testsuite/model/output_rows.suite \
	testsuite/model/generate.suite testsuite/model/kv.suite testsuite/model/sampler.suite \
	testsuite/model/rope.suite testsuite/model/model_file.suite
$(model_suites): testsuite/check_model$(EXEEXT)
model_tests = $(model_suites) testsuite/fuzz_model
testsuite_check_model_SOURCES = testsuite/layer_model.c testsuite/suite.h testsuite/model_util.h \
	testsuite/check_generate.c testsuite/check_kv.c testsuite/check_model_file.c \
	testsuite/check_pass.c testsuite/check_rope.c \
	testsuite/check_sampler.c testsuite/check_output_rows.c testsuite/prefix_case.h \
	testsuite/scratch.h
testsuite_check_model_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_model_LDADD = $(WHOLE) src/libflmodel.a $(NO_WHOLE) $(MODEL_LIBS) $(CHECK_LIBS)
# Random experts at the widths of a published model; made on request: make testsuite/make_moe
EXTRA_PROGRAMS += testsuite/make_moe
testsuite_make_moe_SOURCES = testsuite/make_moe.c testsuite/random_weights.h
testsuite_make_moe_LDADD = $(FORMATS_LIBS)
# Damaged models; under the sanitizers in a build for them
check_PROGRAMS += testsuite/fuzz_model
testsuite_fuzz_model_SOURCES = testsuite/fuzz_model.c
testsuite_fuzz_model_LDADD = $(MODEL_LIBS)
