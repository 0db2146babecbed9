check_PROGRAMS += testsuite/check_train
train_tests = testsuite/check_train
testsuite_check_train_SOURCES = testsuite/layer_train.c testsuite/suite.h \
	testsuite/cart_util.h testsuite/model_util.h testsuite/dist_util.h testsuite/step_util.h \
	testsuite/check_dist.c testsuite/check_step.c testsuite/check_step_grad.c
testsuite_check_train_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_train_LDADD = $(WHOLE) src/libfltrain.a src/libflstudy.a src/libflcartridge.a \
	src/libflmodel.a src/libflkernels.a src/libfltext.a src/libflformats.a src/libflbase.a \
	$(NO_WHOLE) $(TRAIN_LIBS) $(CHECK_LIBS)
