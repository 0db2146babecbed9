/* text_cache.h - the texts that a writer trains on, kept out of memory: one file without a name in
 * the fleet's folder, from which a text is read when its document is born, indexed or resident. A
 * copy, because a run has to see the texts that it began with, whatever happens to the documents.
 */
#ifndef FL_FLEET_TEXT_CACHE_H
#define FL_FLEET_TEXT_CACHE_H

#include "base/buf.h"
#include "base/err.h"
#include "sources/source.h"

typedef struct fl_text_cache fl_text_cache;

/* Copies the texts of the list, which is not needed afterwards. A full disk is FL_EFAIL. */
int fl_text_cache_new(fl_text_cache **out, const char *dir, const fl_source_list *docs,
                      fl_err *err);
void fl_text_cache_free(fl_text_cache *t);
/* Appends text i, in the order of the list. */
int fl_text_cache_read(const fl_text_cache *t, size_t i, fl_buf *out, fl_err *err);

#endif
