/* loader.h - the one thread that reads a fleet's folder, so that a disk which is slow, or hangs,
 * holds up those alone who need what is on it.
 *
 * Now and then it looks at the manifest; between that it reads what a conversation needs, one load
 * at a time. Where a file has gone, or the index is missed, it looks at the manifest at once: a
 * trainer may have committed.
 * It knows neither fleet nor engine while it waits for the disk, so that a stop need not wait for
 * it: a thread that hangs is left behind and goes when it comes back.
 */
#ifndef FL_SERVE_FLEET_READER_H
#define FL_SERVE_FLEET_READER_H

#include "answer/fetch_plan.h"

typedef struct fl_fleet_reader fl_fleet_reader;

typedef struct fl_fleet_reader_options {
  const char *dir;          /* the fleet's */
  size_t dim;               /* the width of its model */
  double every_s;           /* between looks at the manifest; 0: only when something is missed */
  void (*ready)(void *ctx); /* called on the thread when there is something to take */
  void *ctx;                /* lives until the thread is gone: `gone` */
  void (*gone)(void *ctx);
  void (*reading)(void *ctx); /* before what somebody waits for, for tests that hold the disk;
                                 NULL */
  void *reading_ctx;
} fl_fleet_reader_options;

int fl_fleet_reader_start(fl_fleet_reader **out, const fl_fleet_reader_options *o, fl_err *err);

/* The supply is read; it is the loader's until it comes back by a take. There is no other one. */
void fl_fleet_reader_begin(fl_fleet_reader *w, fl_fetch_plan *s);

/* The manifest and its index are read soon. Any thread. */
void fl_fleet_reader_look(fl_fleet_reader *w);

/* What came since the last call. Does not wait. */
typedef struct fl_loaded {
  bool any; /* a manifest was read, well or not */
  int rc;
  fl_err err;
  fl_manifest now;        /* the caller's, when rc is FL_OK */
  struct fl_index *index; /* its index, the caller's, when index_rc is FL_OK */
  int index_rc;
  fl_err index_err;
  fl_fetch_plan *supply; /* has ended; NULL: none */
  int supply_rc;
  fl_err supply_err;
} fl_loaded;
void fl_fleet_reader_take(fl_fleet_reader *w, fl_loaded *out);

/* Ends the thread; one that is with the disk is left to itself, and so is what it was to read. */
void fl_fleet_reader_stop(fl_fleet_reader *w);

#endif
