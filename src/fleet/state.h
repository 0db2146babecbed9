/* state.h - what a fleet is in memory; private to the layers that work on it: fleet,
 * retrieval, answer, trainer.
 *
 * Who owns what: the fleet owns everything but the model, the team and the ranks, which must
 * outlive it. Strings that listings hand out belong to the manifest in memory.
 *
 * Workspaces (the pass and the pools) are made when first needed, so that listing costs nothing.
 */
#ifndef FL_FLEET_STATE_H
#define FL_FLEET_STATE_H

#include "base/fs.h"
#include "fleet/commit.h"
#include "fleet/fleet.h"
#include "fleet/manifest.h"
#include "cartridge/cartridge_io.h"
#include "model/pass.h"
#include "train/dist.h"

enum { FL_PASS_SPANS = 32 };

typedef struct fl_text_cache fl_text_cache;

/* What a layer to the right keeps with a fleet, which does no more than give it back. */
typedef enum fl_attached {
  FL_WITH_INDEX,
  FL_WITH_CACHE,
  FL_WITH_DATASET,
  FL_N_ATTACHED
} fl_attached;
typedef struct fl_attachment {
  void *p; /* NULL: none */
  void (*free)(void *p);
} fl_attachment;

struct fl_fleet {
  char *dir;
  fl_model *model;
  fl_team *team;
  bool read_only;
  bool off_disk; /* what is not in memory cannot be had */
  fl_dist *dist; /* the ranks that train it together; NULL: alone */
  fl_train_options opts;
  fl_manifest m;
  fl_manifest *old; /* manifests that a reload replaced; their strings may be in use */
  size_t n_old;
  fl_lock *lock;
  bool fresh;     /* there was nothing of a fleet when this one was opened to make it */
  char *made_dir; /* the first folder of the path that was made; NULL: all were there */
  fl_events *log;
  fl_buf run;                    /* members of the run event, for later parts of the log */
  const fl_source_list *sources; /* while opening for writing */
  fl_text_cache *texts;          /* of the sources, by position; NULL when read-only */
  size_t *source_of;             /* [m.n] position of a document's text; of a merged fleet:
                                    [m.n_members] of a member's */
  fl_pass *pass;                 /* not recording; answers, embedding, birth */
  fl_kv_pool *pool[2];           /* by fl_kv_type */
  fl_attachment with[FL_N_ATTACHED];
  uint64_t next_query; /* ids of retrieve and answer events */
  /* A trainer that runs: the rows of its resident `doc`, or NULL. rows_of NULL: none runs. */
  const fl_cartridge *(*rows_of)(const void *ctx, size_t doc);
  const void *rows_ctx;
  bool unsaved; /* the manifest in memory is ahead of the one on disk */
};

/* p takes the place of what was attached, which is given back; NULL: nothing does. */
void fl_fleet_attach(fl_fleet *f, fl_attached what, void *p, void (*free)(void *p));
static inline void *fl_fleet_attachment(const fl_fleet *f, fl_attached what) {
  return f->with[what].p;
}

/* Makes f->pass and the pool of a type when they are not there yet. */
int fl_fleet_workspace(fl_fleet *f, fl_kv_type type, fl_err *err);

/* What workspaces hold goes back to the system until they are used again. */
void fl_fleet_evict_pages(fl_fleet *f);

/* Appends a document's text, read from the names that the manifest keeps: of d, or of the members
 * [n] of a merged fleet. Errors as fl_fleet_text. */
int fl_doc_entry_text(const fl_doc_entry *d, const fl_member *m, size_t n, fl_buf *out,
                      fl_err *err);

/* Read-only fleets: takes the manifest on disk when it differs from ours. *changed tells. */
int fl_fleet_reload(fl_fleet *f, bool *changed, fl_err *err);
/* A file that the manifest in memory names is gone. True: a trainer has saved since, and what it
 * saved has been taken over, so that looking again makes sense; FL_RELOADS times at the most, for a
 * trainer that saves faster than its files are read. */
enum { FL_RELOADS = 7 };
bool fl_fleet_moved_on(fl_fleet *f);
/* As fl_fleet_reload with a manifest that was read already, which is used up. */
int fl_fleet_take(fl_fleet *f, fl_manifest *now, bool *changed, fl_err *err);
/* What is written into a document's files. Strings are borrowed. */
void fl_fleet_provenance(const fl_fleet *f, const fl_doc_entry *d, uint64_t gen,
                         fl_provenance *out);
/* Reads a document's cartridge file and checks it against the manifest. hp NULL: not against the
 * model. */
int fl_doc_entry_read_cartridge(const fl_doc_entry *d, const char *dir, const char *model_hash,
                                const fl_hparams *hp, fl_cartridge *out, fl_err *err);
int fl_fleet_read_cartridge(const fl_fleet *f, size_t i, fl_cartridge *out, fl_err *err);

/* The `doc` event of document i (run_event.c). */
void fl_log_doc(const fl_fleet *f, size_t i, const char *state);

/* Commits what `c` wrote together with the manifest, and logs it. */
int fl_fleet_commit(fl_fleet *f, fl_commit *c, const char *reason, fl_err *err);

#endif
