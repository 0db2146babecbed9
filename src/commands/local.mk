# commands: the program. The only code that prints results or exits.
# All but main.c is a library, whose tables of options the tests read.
bin_PROGRAMS += flotilla
flotilla_SOURCES = src/commands/main.c
noinst_LIBRARIES += src/libflcommands.a
src_libflcommands_a_SOURCES = \
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
	src/commands/runtime.c src/commands/runtime.h \
	src/commands/sampling.c src/commands/sampling.h \
	src/commands/serve_control.c src/commands/serve_control.h \
	src/commands/study_remote.c src/commands/study_remote.h \
	src/commands/train.h \
	src/commands/train_detached.c \
	src/commands/train_eval.c src/commands/train_eval.h \
	src/commands/train_options.c src/commands/train_options.h
src_libflcommands_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)
src_libflcommands_a_CFLAGS = $(AM_CFLAGS) $(EDIT_CFLAGS)
COMMANDS_LIBS = src/libflcommands.a $(TUI_LIBS) $(CLI_LIBS) $(NET_LIBS) $(BASE_LIBS) $(EDIT_LIBS) \
	$(NCURSES_LIBS)
flotilla_LDADD = $(COMMANDS_LIBS)
