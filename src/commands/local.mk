# commands: the program. The only code that prints results or exits.
bin_PROGRAMS += flotilla
flotilla_SOURCES = \
	src/commands/cmd_gate.c \
	src/commands/cmd_help.c \
	src/commands/cmd_info.c \
	src/commands/command.h src/commands/commands.c \
	src/commands/engine.c src/commands/engine.h \
	src/commands/fleet_dir.c src/commands/fleet_dir.h \
	src/commands/gate.h src/commands/gate_util.c \
	src/commands/gate_batch.c \
	src/commands/gate_equiv.c \
	src/commands/gate_grad.c \
	src/commands/gate_logits.c \
	src/commands/info.h \
	src/commands/info_files.c \
	src/commands/info_fleet.c \
	src/commands/info_gguf.c \
	src/commands/main.c \
	src/commands/options.c src/commands/options.h \
	src/commands/report.c src/commands/report.h \
	src/commands/signals.c src/commands/signals.h \
	src/commands/train_options.c src/commands/train_options.h
flotilla_LDADD = $(FLEET_LIBS) $(SOURCES_LIBS) $(TRAIN_LIBS) $(BASE_LIBS) $(EDIT_LIBS)
