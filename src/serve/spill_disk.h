/* spill_disk.h - the thread that touches the folder of spilled slots; private to spill.c.
 *
 * Nobody waits for it but at the end: rows that it is to write, or to fill, are taken back whenever
 * they are wanted, for it looks at them block by block, each time under a lock that it never holds
 * while it is with the disk. Somebody waits for what is read, so that comes first; then what is to
 * be removed, which makes room for what is to be written.
 *
 * All but the thread itself is called by one other thread, the engine's.
 */
#ifndef FL_SERVE_SPILL_DISK_H
#define FL_SERVE_SPILL_DISK_H

#include "serve/spill_io.h"

typedef struct fl_spill_disk fl_spill_disk;

typedef struct fl_spill_write {
  struct fl_spill_write *next; /* younger */
  fl_spill_file *f;
  fl_seq *seq; /* NULL: taken back */
  int rc;      /* once it is done */
  fl_err why;
  bool done; /* under the lock; so is the change of seq */
} fl_spill_write;

struct fl_spill_reading {
  fl_spill_reading *next;
  fl_spill_file f; /* a copy: the list may drop it */
  fl_seq *seq;     /* NULL: nobody waits for it any more */
  size_t n;
  int rc;
  fl_err why;
  bool done;
};

/* shape, dir: copied. */
int fl_spill_disk_start(fl_spill_disk **out, const char *dir, const fl_spill_shape *shape,
                        fl_err *err);
/* Before anything is written or read. */
void fl_spill_disk_hooks(fl_spill_disk *d, const fl_spill_hooks *h);

void fl_spill_disk_write(fl_spill_disk *d, fl_spill_write *w); /* takes it over, seq and all */
/* The oldest, when it is done, the caller's again; else NULL. */
fl_spill_write *fl_spill_disk_written(fl_spill_disk *d);
/* The oldest of all, and by `next` the others; the caller may look at f and seq. */
const fl_spill_write *fl_spill_disk_first(const fl_spill_disk *d);
/* Frees the pages of the oldest rows that are not written, which never will be; false: none. */
bool fl_spill_disk_take_back(fl_spill_disk *d);

void fl_spill_disk_read(fl_spill_disk *d, fl_spill_reading *r); /* lent */
bool fl_spill_disk_read_done(fl_spill_disk *d, const fl_spill_reading *r);
/* Waits for that; r is the caller's again. */
void fl_spill_disk_read_end(fl_spill_disk *d, fl_spill_reading *r);
/* r->seq is the caller's at once. */
void fl_spill_disk_read_drop(fl_spill_disk *d, fl_spill_reading *r);
/* One that is done and was dropped, the caller's; NULL: none. */
fl_spill_reading *fl_spill_disk_dropped(fl_spill_disk *d);

void fl_spill_disk_remove(fl_spill_disk *d, fl_spill_file *f); /* frees it, too */

/* It has been with the disk for long and nothing moves. */
bool fl_spill_disk_stands(fl_spill_disk *d);
/* Waits until nothing is left to do; false: it stands. */
bool fl_spill_disk_wait(fl_spill_disk *d);
/* Ends the thread when it has done all, or leaves it to itself, with all it was given but for
 * rows. */
void fl_spill_disk_stop(fl_spill_disk *d, bool left);

#endif
