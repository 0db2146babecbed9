/* spill_disk.h - the worker that touches the folder of spilled slots; private to spill.c.
 *
 * Nobody waits for it but at the end. The rows that it is to write or to fill can be taken away
 * from it at any moment: it borrows them block by block, under the worker's lock, which it does not
 * hold while it waits for the disk. Readings come first, as somebody waits for them; then removals,
 * which make room for what is to be written.
 *
 * All of this is called by one thread, the engine's.
 */
#ifndef FL_SERVE_SPILL_DISK_H
#define FL_SERVE_SPILL_DISK_H

#include "base/worker.h"
#include "serve/spill_io.h"

/* Rows that are to be written or read; made by fl_calloc. */
struct fl_spill_job {
  fl_task task;
  fl_spill_job *next; /* the caller's */
  fl_spill_file *f;   /* owned */
  fl_seq *seq;        /* owned by a job that writes; NULL: taken away. Changed under the lock, by
                         the engine's thread alone */
  bool writes;
  size_t n; /* rows to read */
  int rc;   /* the result once it is done */
  fl_err why;
};

typedef struct fl_spill_disk {
  fl_worker *worker;
  char *dir;
  fl_spill_shape shape;

  /* For spill_disk.c. */
  char model_hash[FL_HASH_TEXT];
  fl_kv_layer *layer; /* the shape's, as the former */
  fl_spill_hooks hooks;
  fl_task removal;
  fl_spill_file *unwanted; /* to be removed; under the lock */
  fl_spill_job *rest;      /* not done when it was closed */
} fl_spill_disk;

/* shape, dir: copied. */
int fl_spill_disk_start(fl_spill_disk **out, const char *dir, const fl_spill_shape *shape,
                        fl_err *err);
/* f, seq, writes and n are set. */
void fl_spill_disk_submit(fl_spill_disk *d, fl_spill_job *j);
bool fl_spill_disk_done(fl_spill_disk *d, const fl_spill_job *j);
/* The rows are the caller's from now on, whether the job is done or not; NULL: they were before. */
fl_seq *fl_spill_disk_take_rows(fl_spill_disk *d, fl_spill_job *j);
void fl_spill_job_free(fl_spill_job *j);
void fl_spill_disk_remove(fl_spill_disk *d, fl_spill_file *f); /* frees it, too */
/* Takes over the jobs that are not done, by `next`, and frees their rows, as far as they own them.
 * A worker that hangs is left behind with everything else. NULL: nothing. */
void fl_spill_disk_close(fl_spill_disk *d, fl_spill_job *rest);

#endif
