/* follow.h - a thread that reads the manifest of a fleet now and then, so that answers wait neither
 * for the disk that it is on nor for the reading of a long one. */
#ifndef FL_SERVE_FOLLOW_H
#define FL_SERVE_FOLLOW_H

#include "fleet/manifest.h"

typedef struct fl_follower fl_follower;

/* Looks every `every_s` seconds at the manifest in `dir`, and reads it when it is not the file that
 * was read last. ready(ctx) is called on the thread when there is something to take. */
int fl_follower_start(fl_follower **out, const char *dir, double every_s, void (*ready)(void *ctx),
                      void *ctx, fl_err *err);
/* *any: something was read since the last call: *now, the caller's, or the error returned. Does not
 * wait. */
int fl_follower_take(fl_follower *w, fl_manifest *now, bool *any, fl_err *err);
void fl_follower_stop(fl_follower *w);

#endif
