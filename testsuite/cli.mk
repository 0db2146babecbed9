# cli: the program as people meet it
cli_tests = \
	testsuite/cli/help.sh \
	testsuite/cli/usage.sh \
	testsuite/cli/info.sh \
	testsuite/cli/gates.sh \
	testsuite/cli/train.sh \
	testsuite/cli/refuse.sh \
	testsuite/cli/detached.sh
TESTS += $(cli_tests)
EXTRA_DIST += testsuite/cli/lib.sh $(cli_tests)
