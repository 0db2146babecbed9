/* fleet.h - a folder of cartridges: made, opened, listed, closed.
 *
 * One writer at a time (lock file), which may be several processes that train together
 * (train/dist.h). Everything on disk belongs to a generation; the rename of fleet.json is the only
 * commit point: manifest.h. What is done with it stands in the layers to its right: it is
 * searched by retrieval/retrieval.h, asked by answer/answer.h, trained by trainer/trainer.h.
 */
#ifndef FL_FLEET_FLEET_H
#define FL_FLEET_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/events.h"
#include "base/fs.h"
#include "model/model.h"
#include "sources/source.h"
#include "fleet/train_options.h"
#include "train/dist.h"

typedef struct fl_fleet fl_fleet;

/* What a document is, for listings. Strings belong to the fleet. */
typedef struct fl_doc_info {
  uint32_t id;
  const char *name, *hash;
  size_t tokens, rows;
  uint64_t steps;
  bool resident;
} fl_doc_info;

/* How an existing folder and the documents given are reconciled. */
typedef struct fl_open_options {
  bool resume;               /* continue an existing fleet; without it an existing one is refused */
  bool update;               /* retrain documents whose text changed; else refused by name */
  bool allow_add;            /* documents not in the fleet join it (true for train) */
  const char *const *remove; /* names to take out */
  size_t n_remove;
  const char *const *redo; /* names whose files are damaged or missing: born again */
  size_t n_redo;
  const char *merge;  /* != NULL: one cartridge of this name for all documents together */
  bool read_only;     /* ask, eval, info: no lock, no writing, documents not needed */
  bool log_events;    /* with read_only: queries and answers still go to events.jsonl */
  uint64_t log_bytes; /* of a part of the event log; 0: the default */
  fl_dist *dist;      /* the ranks that open it for training together, each in the same folder;
                             rank 0 alone holds the lock and writes. NULL: this process alone */
} fl_open_options;

/* Opens (creating, resuming, reconciling) the fleet in folder `dir` for `model`. docs and opts may
 * be NULL when read_only, the model too where only listings are wanted. model and team are borrowed
 * and must outlive the fleet; docs is needed during the call alone. opts: flags given; on resume
 * the manifest's p, frozen, embed_chunk, seed win and a different explicit value is refused by the
 * command. */
int fl_fleet_open(fl_fleet **out, const char *dir, fl_model *model, fl_team *team,
                  const fl_source_list *docs, const fl_train_options *opts,
                  const fl_open_options *how, fl_err *err);
/* A fleet that was to be made, and of which nothing was ever saved, leaves nothing behind: neither
 * log nor lock nor a folder that was not there before. */
void fl_fleet_close(fl_fleet *f);
/* What is left by a process that could not close it so. lock: of FL_LOCK_FILE, held, given away;
 * made: as of fl_fs_mkdir_made. Nothing where there is a fleet. */
void fl_fleet_leave_nothing(const char *dir, fl_lock *lock, const char *made);
#define FL_LOCK_FILE "lock"
#define FL_TRAIN_LOG_FILE "train.log" /* of a trainer that a dashboard has started */

/* Writes the `run` event: command, machine, model, flags. A trainer says "train". */
void fl_fleet_log_run(fl_fleet *f, const char *cmd, uint64_t rounds_total);

size_t fl_fleet_n_docs(const fl_fleet *f);
void fl_fleet_doc(const fl_fleet *f, size_t i, fl_doc_info *out);
int fl_fleet_find(const fl_fleet *f, const char *name, size_t *out); /* FL_ENOENT; exact name, or a
                                                                       unique base name or stem */
uint64_t fl_fleet_rounds(const fl_fleet *f);
uint64_t fl_fleet_generation(const fl_fleet *f);
const char *fl_fleet_dir(const fl_fleet *f);
fl_events *fl_fleet_events(fl_fleet *f);
fl_model *fl_fleet_model(const fl_fleet *f);
/* Appends the text of document i as training sees it: of a fleet opened for writing from what it
 * was given, else read from its name again: FL_ENOENT when the file is gone, FL_EINPUT when it
 * changed since the training. */
int fl_fleet_text(const fl_fleet *f, size_t i, fl_buf *out, fl_err *err);

#endif
