/* snapshot_doc.h - how the fold (snapshot.c) changes the documents of a snapshot. */
#ifndef FL_TUI_SNAPSHOT_DOC_H
#define FL_TUI_SNAPSHOT_DOC_H

#include "tui/snapshot.h"

/* *out: the document, made if it is new, valid until the next one is made; NULL for FL_NONE and
 * beyond FL_DOCS_MAX documents. FL_OK or FL_ENOMEM, then *out is NULL. */
int fl_snapshot_need_doc(fl_snapshot *s, uint32_t id, fl_doc **out);
/* Adds tokens [first, end) to its spans, which stay sorted and disjoint; beyond 4096 spans a new
 * one is left out. FL_OK or FL_ENOMEM, then nothing has changed. */
int fl_doc_add_span(fl_doc *d, uint32_t first, uint32_t end);
/* One more conversation there; nothing while the document's length is unknown. */
void fl_doc_add_heat(fl_doc *d, uint32_t first, uint32_t end);
void fl_doc_release(fl_doc *d);

/* Drops what lies after round `last`. */
void fl_curves_truncate(fl_curves *c, uint32_t last);
void fl_curves_release(fl_curves *c);

#endif
