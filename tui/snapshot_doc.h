/* snapshot_doc.h - how the fold (snapshot.c) changes the documents of a snapshot. */
#ifndef TUI_SNAPSHOT_DOC_H
#define TUI_SNAPSHOT_DOC_H

#include "tui/snapshot.h"

/* *out: the document, made if it is new, valid until the next one is made; NULL for TUI_NONE and
 * beyond TUI_DOCS_MAX documents. FL_OK or FL_ENOMEM, then *out is NULL. */
int tui_snapshot_need_doc(tui_snapshot *s, uint32_t id, tui_doc **out);
/* Adds tokens [first, end) to its spans, which stay sorted and disjoint; beyond 4096 spans a new
 * one is left out. FL_OK or FL_ENOMEM, then nothing has changed. */
int tui_doc_add_span(tui_doc *d, uint32_t first, uint32_t end);
/* One more conversation there; nothing while the document's length is unknown. */
void tui_doc_add_heat(tui_doc *d, uint32_t first, uint32_t end);
void tui_doc_release(tui_doc *d);

/* Drops what lies after round `last`. */
void tui_curves_truncate(tui_curves *c, uint32_t last);
void tui_curves_release(tui_curves *c);

#endif
