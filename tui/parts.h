/* parts.h - the parts of the dashboard that work on a tui_app: actions, the frame, overlays, what
 * views use of each other. Included by app.h. */
#ifndef TUI_PARTS_H
#define TUI_PARTS_H

/* actions.c: what is sent to the trainer, and exports. */
bool tui_action_live(const tui_app *a); /* somebody listens */
void tui_action_send(tui_app *a, const char *cmd, const char *key, double value);
void tui_action_mark(tui_app *a, uint32_t doc, bool value);
void tui_action_command(tui_app *a, const char *line); /* ":lr 0.001" without the colon */
bool tui_action_poll(tui_app *a);
void tui_action_export(tui_app *a, bool svg);

/* chrome.c: the rows that every view has. */
void tui_chrome_draw(tui_app *a, tui_canvas *c);
void tui_chrome_too_small(tui_canvas *c);
bool tui_chrome_mouse(tui_app *a, const tui_key *k);

/* overlay.c: help, menu, settings, the question before a stop. */
void tui_overlay_draw(tui_app *a, tui_canvas *c);
bool tui_overlay_key(tui_app *a, const tui_key *k);

/* Replies to what these two views asked; true when one came. */
bool tui_retrieval_poll(tui_app *a);
bool tui_chat_poll(tui_app *a);

/* view_fleet.c, used by other views: the selected document, NULL if there is none. */
tui_doc *tui_fleet_selected(tui_app *a);
void tui_fleet_search(tui_app *a, int direction);

/* document.c: where a document is, as a mark; one document in a frame. */
typedef struct tui_mark {
  uint32_t cp;
  tui_style style;
  const char *word;
} tui_mark;
tui_mark tui_residency_glyph(tui_residency r);
void tui_document_draw(tui_app *a, tui_canvas *c, tui_rect frame);
/* A strip of `cols` cells that shows which parts of a document were studied how often. */
void tui_coverage_strip(tui_canvas *c, int x, int y, int cols, const tui_doc *d);

#endif
