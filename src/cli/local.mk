# cli: what all commands share: options, printing, progress, signals.
noinst_LIBRARIES += src/libflcli.a
src_libflcli_a_SOURCES = \
	src/cli/options.c src/cli/options.h \
	src/cli/output_guard.c src/cli/output_guard.h \
	src/cli/progress.c src/cli/progress.h \
	src/cli/report.c src/cli/report.h \
	src/cli/sigbus.c src/cli/sigbus.h \
	src/cli/signals.c src/cli/signals.h \
	src/cli/watchdog.c src/cli/watchdog.h
CLI_LIBS = src/libflcli.a $(INFO_LIBS)
