EXTRA_DIST += fixtures/embedded fixtures/tiny fixtures/models fixtures/tokenizers
# Tests. One program a layer (its check_<module>.c files and a layer_<layer>.c that lists them),
# linked whole-archive with its own layer and those left of it: an upward call does not link.
AM_TESTS_ENVIRONMENT = FIXTURES='$(abs_srcdir)/fixtures'; export FIXTURES; \
	FLOTILLA='$(abs_builddir)/flotilla'; export FLOTILLA; \
	MAKE_MODEL='$(abs_builddir)/testsuite/make_model'; export MAKE_MODEL; \
	SRCDIR='$(abs_srcdir)'; export SRCDIR;
include $(srcdir)/testsuite/base.mk
include $(srcdir)/testsuite/formats.mk
include $(srcdir)/testsuite/text.mk
include $(srcdir)/testsuite/sources.mk
include $(srcdir)/testsuite/kernels.mk
include $(srcdir)/testsuite/model.mk
include $(srcdir)/testsuite/cartridge.mk
include $(srcdir)/testsuite/study.mk
include $(srcdir)/testsuite/train.mk
include $(srcdir)/testsuite/fleet.mk
include $(srcdir)/testsuite/retrieval.mk
include $(srcdir)/testsuite/trainer.mk
include $(srcdir)/testsuite/serve.mk
include $(srcdir)/testsuite/http.mk
include $(srcdir)/testsuite/cli.mk
include $(srcdir)/testsuite/tui.mk

# Long tests, apart from `check`; 77 says that what a test needs is not there.
long_tests = testsuite/long/memory.sh testsuite/long/kills.sh testsuite/long/sweep.sh \
	testsuite/long/load.sh testsuite/peers/fucina.sh testsuite/peers/torch_cartridge.sh
EXTRA_DIST += $(long_tests) testsuite/peers/torch_cartridge.py
.PHONY: check-long
check-long: all
	@status=0; for t in $(long_tests); do \
	  echo "== $$t"; ($(AM_TESTS_ENVIRONMENT) sh $(srcdir)/$$t); rc=$$?; \
	  test $$rc = 0 || test $$rc = 77 || status=1; done; exit $$status
