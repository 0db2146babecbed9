/* texts.h - the texts that a writer trains on, kept out of memory: one file without a name in the
 * fleet's folder, from which a text is read when its document is born, indexed or resident. A copy,
 * because a run has to see the texts that it began with, whatever happens to the documents. */
#ifndef FL_FLEET_TEXTS_H
#define FL_FLEET_TEXTS_H

#include "base/buf.h"
#include "base/err.h"
#include "sources/source.h"

typedef struct fl_texts fl_texts;

/* Copies the texts of the list, which is not needed afterwards. A full disk is FL_EFAIL. */
int fl_texts_new(fl_texts **out, const char *dir, const fl_source_list *docs, fl_err *err);
void fl_texts_free(fl_texts *t);
/* Appends text i, in the order of the list. */
int fl_texts_read(const fl_texts *t, size_t i, fl_buf *out, fl_err *err);

#endif
