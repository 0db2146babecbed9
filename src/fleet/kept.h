/* kept.h - the conversations kept of one document, for --replay: the last FL_KEPT_MAX that were
 * made, oldest first. They are a file of the document's generation, so that a resumed run draws
 * from the same ones. Zeroed is empty. */
#ifndef FL_FLEET_KEPT_H
#define FL_FLEET_KEPT_H

#include "fleet/conv_json.h"

enum { FL_KEPT_MAX = 64 };

typedef struct fl_kept {
  fl_conv *conv;
  size_t n;
} fl_kept;

void fl_kept_release(fl_kept *k);
/* Moves *c in (*c is zeroed), dropping the oldest when full. FL_ENOMEM: *c stays the caller's. */
int fl_kept_push(fl_kept *k, fl_conv *c);
/* Writes a new file, fsynced. */
int fl_kept_write(const char *path, const fl_kept *k, const fl_conv_label *label, fl_err *err);
/* FL_EINPUT with a sentence on anything that is not such a file. */
int fl_kept_read(fl_kept *out, const char *path, const fl_conv_limits *limits, fl_err *err);

#endif
