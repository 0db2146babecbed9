check_PROGRAMS += testsuite/check_formats
formats_tests = testsuite/check_formats
testsuite_check_formats_SOURCES = testsuite/layer_formats.c testsuite/suite.h testsuite/scratch.h \
	testsuite/gguf_faults.h \
	testsuite/check_dtype.c testsuite/check_fza.c testsuite/check_gguf.c \
	testsuite/check_safetensors.c testsuite/check_torch_file.c testsuite/check_transcode.c
testsuite_check_formats_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -Wno-missing-prototypes
testsuite_check_formats_LDADD = $(WHOLE) src/libflformats.a src/libflbase.a $(NO_WHOLE) \
	$(CJSON_LIBS) $(XXHASH_LIBS) $(CHECK_LIBS)
