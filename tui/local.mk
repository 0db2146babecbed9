# The dashboard: reads event logs and talks to the control socket; uses src/base only.
noinst_LIBRARIES += tui/libfltui.a
tui_libfltui_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)
tui_libfltui_a_CFLAGS = $(AM_CFLAGS) $(NCURSES_CFLAGS)
tui_libfltui_a_SOURCES = \
	tui/actions.c \
	tui/app.c tui/app.h \
	tui/braille.c tui/braille.h \
	tui/canvas.c tui/canvas.h \
	tui/chrome.c \
	tui/control.c tui/control.h \
	tui/doc.h \
	tui/document.c \
	tui/edit.c tui/edit.h \
	tui/export.c tui/export.h \
	tui/feed.c tui/feed.h \
	tui/format.c tui/format.h \
	tui/headless.c tui/headless.h tui/report.c \
	tui/input.c tui/keys.h tui/term.c tui/term.h \
	tui/layout.c tui/layout.h \
	tui/overlay.c \
	tui/parts.h \
	tui/reader.c tui/reader.h \
	tui/records.h tui/words.c tui/words.h \
	tui/scan.c tui/scan.h \
	tui/series.c tui/series.h \
	tui/settings.c tui/settings.h \
	tui/snapshot.c tui/snapshot.h tui/snapshot_doc.c tui/snapshot_doc.h \
	tui/store.c tui/store.h \
	tui/style.c tui/style.h \
	tui/text.c tui/text.h tui/width_table.h \
	tui/tui.h \
	tui/view_chat.c \
	tui/view_cost.c \
	tui/view_fleet.c \
	tui/view_loss.c \
	tui/view_retrieval.c \
	tui/view_study.c \
	tui/view_state.h \
	tui/watch.c
TUI_LIBS = tui/libfltui.a $(NCURSES_LIBS)
