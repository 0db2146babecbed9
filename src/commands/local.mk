# commands: the program. The only code that prints results or exits.
bin_PROGRAMS += flotilla
flotilla_SOURCES = \
	src/commands/bench.h \
	src/commands/bench_decode.c \
	src/commands/bench_machine.c \
	src/commands/bench_peer.c \
	src/commands/bench_products.c \
	src/commands/bench_train.c \
	src/commands/bench_turns.c \
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
	src/commands/eval.h \
	src/commands/eval_bench.h \
	src/commands/eval_html.c \
	src/commands/eval_prefix.c \
	src/commands/eval_questions.c \
	src/commands/eval_run.c \
	src/commands/eval_score.c src/commands/eval_score.h \
	src/commands/eval_stats.c src/commands/eval_stats.h \
	src/commands/eval_summary.c \
	src/commands/eval_threshold.c \
	src/commands/export.h \
	src/commands/export_archive.c \
	src/commands/export_model.c \
	src/commands/export_state.c \
	src/commands/export_torch.c \
	src/commands/fleet_dir.c src/commands/fleet_dir.h \
	src/commands/gate.h \
	src/commands/gate_batch.c \
	src/commands/gate_equiv.c \
	src/commands/gate_evict.c \
	src/commands/gate_grad.c \
	src/commands/gate_logits.c \
	src/commands/gate_resume.c \
	src/commands/gate_util.c \
	src/commands/import.h \
	src/commands/import_torch.c \
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
	src/commands/shape.c src/commands/shape.h \
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
flotilla_CFLAGS = $(AM_CFLAGS) $(EDIT_CFLAGS) $(ARCHIVE_CFLAGS)
flotilla_LDADD = $(TUI_LIBS) $(HTTP_LIBS) $(NET_LIBS) $(BASE_LIBS) $(EDIT_LIBS) $(NCURSES_LIBS)

# What bench --peer torch runs.
dist_pkgdata_DATA = testsuite/peers/torch_step.py
