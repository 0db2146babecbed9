/* residency.h - the bounded set of cartridges that is in memory, and what is saved of them.
 *
 * States of a document, and the function that makes each transition:
 *
 *            init.c            fl_residency_load        fl_resident_touch
 *   UNBORN ----------> ON DISK ------------------> CLEAN ------------------> DIRTY
 *                         ^                        |   ^                       |
 *                         |  fl_residency_drop     |   |  fl_residency_saved   |
 *                         +------------------------+   +-----------------------+
 *
 *   UNBORN   the manifest has the document, no file exists; not resident, never visible
 *   ON DISK  the file that the manifest names holds all that is known; no memory is used but the
 *            manifest's few numbers
 *   CLEAN    rows, moments, token offsets, kept conversations in memory, equal to the files
 *   DIRTY    rows and moments are ahead of the files; `changed` is the generation of the change
 *
 * Invariants:
 *   1. A slot is in at most one of CLEAN and DIRTY, and a document in at most one slot.
 *   2. Slots stand in the order of the manifest, so that draws over residents do not depend on the
 *      order in which they came.
 *   3. Between rounds the flag `resident` in the manifest equals having a slot.
 *   4. A file that the manifest on disk names is never written to: a save writes under the name of
 *      the generation of the change, which is later than that of every committed file of the
 *      document.
 *   5. The manifest on disk never names a file before it is whole and synced (commit.h).
 *   6. A DIRTY slot is never dropped.
 *   7. The number of slots is at most `budget`, and the sum of their bytes at most `budget_bytes`
 *      unless there is only one.
 */
#ifndef FL_TRAINER_RESIDENCY_H
#define FL_TRAINER_RESIDENCY_H

#include "trainer/replay.h"
#include "trainer/rotate.h"
#include "fleet/state.h"
#include "study/study.h"
#include "train/step.h"

typedef struct fl_resident {
  size_t doc; /* position in the manifest */
  fl_cartridge cart;
  fl_adam adam;
  fl_rows grad; /* without a block but in a step */
  fl_doc_text text;
  fl_replay kept;
  fl_conv *given; /* from a study file: these instead of fresh and kept ones */
  size_t n_given;
  bool dirty, kept_dirty;
  uint64_t changed, kept_changed; /* generations of the changes */
  fl_conv *heldout;               /* fixed at birth; heldout.h */
  size_t n_heldout;
  bool heldout_known;
} fl_resident;

typedef struct fl_residency {
  fl_resident **slot; /* ascending by doc */
  size_t n;
  fl_trainable *trainee; /* [n] the same, as a training step sees them */
} fl_residency;

void fl_residency_release(fl_residency *r);
/* Slot of a document, or NULL. */
fl_resident *fl_residency_find(const fl_residency *r, size_t doc);
size_t fl_residency_slot(const fl_residency *r, size_t doc); /* r->n if none */

/* ON DISK -> CLEAN. Missing moments are replaced with fresh ones and a warning. */
int fl_residency_load(fl_residency *r, const fl_fleet *f, size_t doc, const fl_conv_limits *limits,
                      fl_err *err);
/* CLEAN -> ON DISK. */
void fl_residency_drop(fl_residency *r, size_t doc);
/* CLEAN -> DIRTY: rows changed in generation gen. */
void fl_resident_touch(fl_resident *s, uint64_t gen);
/* Held-out conversations are unknown again. */
void fl_resident_drop_heldout(fl_resident *s);

/* Writes the files of every DIRTY slot through c and names them in the manifest, to be committed by
 * the caller. After a failure of either the slots stay DIRTY, and the next save writes and names
 * the files again. */
int fl_residency_save(fl_residency *r, fl_fleet *f, fl_commit *c, fl_err *err);
/* The same names without the files: on ranks that do not write, which need them to load what was
 * evicted. */
int fl_residency_name(fl_residency *r, fl_fleet *f, fl_err *err);
/* DIRTY -> CLEAN for every slot: the commit went through. */
void fl_residency_saved(fl_residency *r);

/* Bytes in memory of one document's rows, moments and gradient. */
uint64_t fl_resident_bytes(const fl_hparams *hp, uint64_t rows);
uint64_t fl_residency_bytes(const fl_residency *r, const fl_hparams *hp);
/* The counters that rotate.h decides by; out [m.n]. */
void fl_rot_docs(const fl_fleet *f, fl_rot_doc *out);

#endif
