/* replay.h - the conversations kept of one document, for --replay: the last FL_REPLAY_MAX that were
 * made, oldest first. They are a file of the document's generation, so that a resumed run draws
 * from the same ones. Zeroed is empty. */
#ifndef FL_TRAINER_REPLAY_H
#define FL_TRAINER_REPLAY_H

#include "study/conv_json.h"

enum { FL_REPLAY_MAX = 64 };

typedef struct fl_replay {
  fl_conv *conv;
  size_t n;
} fl_replay;

void fl_replay_release(fl_replay *k);
/* Moves *c in (*c is zeroed), dropping the oldest when full. FL_ENOMEM: *c stays the caller's. */
int fl_replay_push(fl_replay *k, fl_conv *c);
/* Writes a new file, fsynced. */
int fl_replay_write(const char *path, const fl_replay *k, const fl_conv_label *label, fl_err *err);
/* FL_EINPUT with a sentence on anything that is not such a file. */
int fl_replay_read(fl_replay *out, const char *path, const fl_conv_limits *limits, fl_err *err);

#endif
