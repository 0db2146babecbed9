check_PROGRAMS += testsuite/check_text testsuite/check_vocabularies
text_tests = testsuite/check_text testsuite/check_vocabularies
testsuite_check_text_SOURCES = testsuite/layer_text.c testsuite/suite.h \
	testsuite/check_chat.c testsuite/check_tokenizer.c \
	testsuite/text_util.c testsuite/text_util.h
testsuite_check_text_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_text_LDADD = $(WHOLE) src/libfltext.a $(NO_WHOLE) $(TEXT_LIBS) $(CHECK_LIBS)
# The vocabularies of real models, where testsuite/fetch-models has put them; skipped elsewhere.
testsuite_check_vocabularies_SOURCES = testsuite/check_vocabularies.c testsuite/suite.h \
	testsuite/text_util.c testsuite/text_util.h
testsuite_check_vocabularies_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_vocabularies_LDADD = $(TEXT_LIBS) $(CHECK_LIBS)
EXTRA_DIST += testsuite/fetch-models testsuite/peers/make_vocab_gguf.py
