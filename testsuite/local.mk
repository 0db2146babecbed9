EXTRA_DIST += fixtures/embedded fixtures/real fixtures/tiny fixtures/models fixtures/tokenizers
# Tests. One program a layer (its check_<module>.c files and a layer_<layer>.c that lists them),
# linked whole-archive with its own layer and those left of it: an upward call does not link.
AM_TESTS_ENVIRONMENT = FIXTURES='$(abs_srcdir)/fixtures'; export FIXTURES; \
	FLOTILLA='$(abs_builddir)/flotilla'; export FLOTILLA; \
	MAKE_MODEL='$(abs_builddir)/testsuite/make_model'; export MAKE_MODEL; \
	SRCDIR='$(abs_srcdir)'; export SRCDIR; \
	CK_DEFAULT_TIMEOUT="$${CK_DEFAULT_TIMEOUT:-60}"; export CK_DEFAULT_TIMEOUT;
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
include $(srcdir)/testsuite/answer.mk
include $(srcdir)/testsuite/trainer.mk
include $(srcdir)/testsuite/serve.mk
include $(srcdir)/testsuite/http.mk
include $(srcdir)/testsuite/eval.mk
include $(srcdir)/testsuite/gate.mk
include $(srcdir)/testsuite/convert.mk
include $(srcdir)/testsuite/bench.mk
include $(srcdir)/testsuite/cli.mk
include $(srcdir)/testsuite/tui.mk


# Those that take longest first, so that `make -j` ends with short ones.
TESTS += $(cli_tests) $(gate_tests) $(convert_tests) $(bench_tests) $(trainer_tests) $(serve_tests) \
	$(http_tests) $(model_tests) $(kernels_tests) $(eval_tests) $(tui_tests) $(train_tests) \
	$(study_tests) $(cartridge_tests) $(answer_tests) $(retrieval_tests) $(fleet_tests) \
	$(formats_tests) $(text_tests) $(sources_tests) $(base_tests)

# A suite of a layer's program stands in TESTS by itself where the program takes long: see timed.
suites = $(trainer_suites) $(serve_suites) $(model_suites) $(kernels_suites)
$(suites):
	@$(MKDIR_P) $(@D) && : >$@
CLEANFILES += $(suites) testsuite/*.xml testsuite/*/*.xml
LOG_COMPILER = sh $(srcdir)/testsuite/timed
EXTRA_DIST += testsuite/timed testsuite/slowest
check-local: check-TESTS
	@sh $(srcdir)/testsuite/slowest $(TESTS)

# A part of the tests: one layer's, or the inner loop, within a minute, of what takes no training,
# no server and no sweep (libcheck's tag "slow"). What a part needs is built, and no more. "+": make
# does not see that these lines are makes, which share its jobs.
check_some = $(MAKE) $(AM_MAKEFLAGS) --no-print-directory check-local check_PROGRAMS=
fast_tests = $(kernels_suites) $(model_suites) testsuite/check_train testsuite/check_tui \
	testsuite/check_cartridge testsuite/check_formats testsuite/check_text testsuite/check_sources \
	$(base_tests) testsuite/cli/help.sh
check-fast: flotilla$(EXEEXT)
	+@CK_EXCLUDE_TAGS=slow FLOTILLA_BRIEF=1 $(check_some) TESTS='$(fast_tests)'
check-base:
	+@$(check_some) TESTS='$(base_tests)'
check-formats:
	+@$(check_some) TESTS='$(formats_tests)'
check-text:
	+@$(check_some) TESTS='$(text_tests)'
check-sources:
	+@$(check_some) TESTS='$(sources_tests)'
check-kernels:
	+@$(check_some) TESTS='$(kernels_tests)'
check-model:
	+@$(check_some) TESTS='$(model_tests)'
check-cartridge:
	+@$(check_some) TESTS='$(cartridge_tests)'
check-study:
	+@$(check_some) TESTS='$(study_tests)'
check-train:
	+@$(check_some) TESTS='$(train_tests)'
check-fleet:
	+@$(check_some) TESTS='$(fleet_tests)'
check-retrieval:
	+@$(check_some) TESTS='$(retrieval_tests)'
check-answer:
	+@$(check_some) TESTS='$(answer_tests)'
check-trainer:
	+@$(check_some) TESTS='$(trainer_tests)'
check-serve:
	+@$(check_some) TESTS='$(serve_tests)'
check-http: flotilla$(EXEEXT)
	+@$(check_some) TESTS='$(http_tests)'
check-cli: flotilla$(EXEEXT) testsuite/fake_openai$(EXEEXT) testsuite/make_model$(EXEEXT)
	+@$(check_some) TESTS='$(cli_tests)'
check-eval:
	+@$(check_some) TESTS='$(eval_tests)'
check-gate: flotilla$(EXEEXT)
	+@$(check_some) TESTS='$(gate_tests)'
check-convert: flotilla$(EXEEXT)
	+@$(check_some) TESTS='$(convert_tests)'
check-bench: flotilla$(EXEEXT)
	+@$(check_some) TESTS='$(bench_tests)'
check-tui: flotilla$(EXEEXT) testsuite/make_events$(EXEEXT) testsuite/fake_trainer$(EXEEXT)
	+@$(check_some) TESTS='$(tui_tests)'

# Under a sanitiser: what reads hostile input or has threads, and of the sums as much as check-fast
# does. Whether answers, gates and pages are right is not asked again, nor are the long trainings of
# resume, ranks, train.sh and study.sh repeated: `make check` in a sanitised tree runs those too.
sanitised_tests = testsuite/peers/stress.sh testsuite/cli/refuse.sh testsuite/cli/remote.sh \
	testsuite/cli/serve.sh testsuite/cli/mpi.sh testsuite/cli/archive.sh testsuite/cli/export.sh \
	testsuite/cli/info.sh testsuite/cli/experts.sh \
	testsuite/cli/detached.sh testsuite/tui/hostile.sh testsuite/tui/server.sh \
	testsuite/check_options testsuite/check_eval testsuite/check_gate testsuite/check_convert \
	testsuite/check_bench $(trainer_short_suites) $(serve_tests) testsuite/check_http \
	testsuite/fuzz_request $(kernels_tests) $(model_tests) testsuite/check_tui $(train_tests) \
	$(study_tests) $(cartridge_tests) $(answer_tests) $(retrieval_tests) $(fleet_tests) \
	$(formats_tests) $(text_tests) $(sources_tests) testsuite/check_base
check-sanitised: flotilla$(EXEEXT) testsuite/fake_openai$(EXEEXT)
	+@CK_EXCLUDE_TAGS=slow FLOTILLA_BRIEF=1 $(check_some) TESTS='$(sanitised_tests)'
.PHONY: check-sanitised
.PHONY: check-fast check-base check-formats check-text check-sources check-kernels check-model \
	check-cartridge check-study check-train check-fleet check-retrieval check-answer \
	check-trainer check-serve check-http \
	check-eval check-gate check-convert check-bench check-cli check-tui

# Long tests, apart from `check`; 77 says that what a test needs is not there.
long_tests = testsuite/long/whole.sh testsuite/long/memory.sh testsuite/long/kills.sh \
	testsuite/long/sweep.sh \
	testsuite/long/load.sh testsuite/peers/fucina.sh testsuite/peers/torch_cartridge.sh
EXTRA_DIST += $(long_tests) testsuite/peers/torch_cartridge.py testsuite/long/mutations.sh
.PHONY: check-long
check-long: all
	@status=0; for t in $(long_tests); do \
	  echo "== $$t"; ($(AM_TESTS_ENVIRONMENT) sh $(srcdir)/$$t); rc=$$?; \
	  test $$rc = 0 || test $$rc = 77 || status=1; done; exit $$status

# Whether the tests notice what is broken on purpose: some forty builds.
.PHONY: check-mutations
check-mutations:
	@$(AM_TESTS_ENVIRONMENT) sh $(srcdir)/testsuite/long/mutations.sh $(LAYERS)
