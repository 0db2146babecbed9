# commands: the program. The only code that prints results or exits.
bin_PROGRAMS += flotilla
flotilla_SOURCES = \
	src/commands/cmd_ask.c \
	src/commands/cmd_bench.c \
	src/commands/cmd_chat.c \
	src/commands/cmd_eval.c \
	src/commands/cmd_export.c \
	src/commands/cmd_gate.c \
	src/commands/cmd_help.c \
	src/commands/cmd_import.c \
	src/commands/cmd_index.c \
	src/commands/cmd_info.c \
	src/commands/cmd_serve.c \
	src/commands/cmd_study.c \
	src/commands/cmd_train.c \
	src/commands/cmd_watch.c \
	src/commands/command.h \
	src/commands/commands.c \
	src/commands/doc_choice.c src/commands/doc_choice.h \
	src/commands/docs.c src/commands/docs.h \
	src/commands/info.h \
	src/commands/info_files.c \
	src/commands/info_fleet.c \
	src/commands/info_gguf.c \
	src/commands/main.c \
	src/commands/options.c src/commands/options.h \
	src/commands/output_guard.c src/commands/output_guard.h \
	src/commands/progress.c src/commands/progress.h \
	src/commands/report.c src/commands/report.h \
	src/commands/runtime.c src/commands/runtime.h \
	src/commands/sampling.c src/commands/sampling.h \
	src/commands/serve_control.c src/commands/serve_control.h \
	src/commands/sigbus.c src/commands/sigbus.h \
	src/commands/signals.c src/commands/signals.h \
	src/commands/study_files.c src/commands/study_files.h \
	src/commands/study_remote.c src/commands/study_remote.h \
	src/commands/study_seeds.c \
	src/commands/train.h \
	src/commands/train_detached.c \
	src/commands/train_eval.c src/commands/train_eval.h \
	src/commands/train_options.c src/commands/train_options.h \
	src/commands/watchdog.c src/commands/watchdog.h
flotilla_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)
flotilla_CFLAGS = $(AM_CFLAGS) $(EDIT_CFLAGS)
flotilla_LDADD = $(TUI_LIBS) $(BENCH_LIBS) $(NET_LIBS) $(BASE_LIBS) $(EDIT_LIBS) $(NCURSES_LIBS)
