# man
dist_man_MANS += \
	man/flotilla.1 \
	man/flotilla-ask.1 \
	man/flotilla-bench.1 \
	man/flotilla-chat.1 \
	man/flotilla-eval.1 \
	man/flotilla-export.1 \
	man/flotilla-gate.1 \
	man/flotilla-help.1 \
	man/flotilla-import.1 \
	man/flotilla-index.1 \
	man/flotilla-info.1 \
	man/flotilla-serve.1 \
	man/flotilla-study.1 \
	man/flotilla-train.1 \
	man/flotilla-watch.1 \
	man/flotilla-events.5 \
	man/flotilla-formats.5 \
	man/flotilla-concepts.7 \
	man/flotilla-performance.7 \
	man/flotilla-documents.7 \
	man/flotilla-models.7 \
	man/flotilla-evidence.7

# Completion for bash, from the tables that `flotilla help` prints.
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = man/completion/flotilla
EXTRA_DIST += README.md ARCHITECTURE.md CONTRIBUTING.md NEWS bootstrap .ci/run \
	demo/demo.sh demo/fleet.svg \
	demo/loss.svg demo/retrieval.svg
