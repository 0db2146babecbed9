/* fleet_reader.h - the worker that reads a fleet's folder, so that a disk which is slow, or hangs,
 * holds up only those who need what is on it.
 *
 * It has two tasks. It fetches what a conversation needs, one fetch plan at a time. And it reads
 * the manifest and its index: when somebody misses the index, and from time to time, if the
 * manifest has changed, as a trainer may have committed. When a file that it fetches is gone it
 * reads the manifest at once, for the same reason.
 *
 * It knows neither the fleet nor the engine: a worker that hangs when it is stopped is left behind
 * (worker.h).
 */
#ifndef FL_SERVE_FLEET_READER_H
#define FL_SERVE_FLEET_READER_H

#include "answer/fetch_plan.h"

typedef struct fl_fleet_reader fl_fleet_reader;

typedef struct fl_fleet_reader_options {
  const char *dir;            /* the fleet's */
  size_t dim;                 /* the width of its model */
  double every_s;             /* between polls of the manifest; 0: none */
  void (*ready)(void *ctx);   /* there may be something to take; on the thread, under a lock: must
                                 not call the reader */
  void (*release)(void *ctx); /* ctx is not used any more */
  void *ctx;
  void (*reading)(void *ctx); /* before it reads what somebody waits for, for tests that hold up
                                 the disk; NULL */
  void *reading_ctx;
} fl_fleet_reader_options;

/* After an error ctx is the caller's. */
int fl_fleet_reader_start(fl_fleet_reader **out, const fl_fleet_reader_options *o, fl_err *err);

/* Fetches what the plan lists. The plan is the reader's until it comes back by a take; there is no
 * other one meanwhile. */
void fl_fleet_reader_fetch(fl_fleet_reader *r, fl_fetch_plan *plan);

/* Reads the manifest and its index soon, whether they have changed or not. Any thread. */
void fl_fleet_reader_poll_manifest(fl_fleet_reader *r);

/* What somebody waits for has taken long, and may never come. */
bool fl_fleet_reader_stalled(fl_fleet_reader *r);

typedef struct fl_manifest_read {
  bool any; /* a manifest was read, well or not; else the rest is empty */
  int rc;
  fl_err err;
  fl_manifest now;        /* the taker's, when rc is FL_OK */
  struct fl_index *index; /* its index, the taker's, when index_rc is FL_OK */
  int index_rc;
  fl_err index_err;
} fl_manifest_read;

typedef struct fl_fleet_read {
  fl_manifest_read manifest;
  fl_fetch_plan *plan; /* the taker's again; NULL: none has ended */
} fl_fleet_read;

/* What has been read since the last call. Does not wait. */
void fl_fleet_reader_take(fl_fleet_reader *r, fl_fleet_read *out);

/* Does not wait for the disk. What was not taken goes, and so does the plan. NULL: nothing. */
void fl_fleet_reader_stop(fl_fleet_reader *r);

#endif
