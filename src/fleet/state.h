/* state.h - what a fleet is in memory; private to this folder.
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

typedef struct fl_index fl_index;
typedef struct fl_trainer fl_trainer;
typedef struct fl_given fl_given;
typedef struct fl_texts fl_texts;

/* A cartridge read for an answer; the oldest goes when all places are taken. */
typedef struct fl_cached {
  fl_cartridge cart;
  char *file;    /* the generation file it came from; NULL: free */
  uint64_t used; /* clock of the last use */
} fl_cached;
enum { FL_CACHE_MIN = 4 };

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
  fl_texts *texts;               /* of the sources, by position; NULL when read-only */
  size_t *source_of;             /* [m.n] position of a document's text; of a merged fleet:
                                    [m.n_members] of a member's */
  fl_pass *pass;                 /* not recording; answers, embedding, birth */
  fl_kv_pool *pool[2];           /* by fl_kv_type */
  fl_index *index;
  fl_cached *cache;
  size_t n_cache;
  uint64_t clock;
  uint64_t next_query; /* ids of retrieve and answer events */
  fl_given *given;     /* a study file; NULL: none */
  fl_trainer *trainer; /* while fl_fleet_train runs */
  bool unsaved;        /* the manifest in memory is ahead of the one on disk */
};

/* Makes f->pass and the pool of a type when they are not there yet. */
int fl_fleet_workspace(fl_fleet *f, fl_kv_type type, fl_err *err);

/* What workspaces hold goes back to the system until they are used again. */
void fl_fleet_rest(fl_fleet *f);

/* Appends the text of document i as training sees it. */
int fl_fleet_text(const fl_fleet *f, size_t i, fl_buf *out, fl_err *err);
/* The same for a fleet opened without documents: read from the name again, and refused when gone or
 * changed. sources may be NULL. */
int fl_fleet_text_again(const fl_fleet *f, size_t i, const fl_source_list *sources, fl_buf *own,
                        fl_err *err);

/* Stands between the texts of a merged fleet's members: an empty line. */
#define FL_MEMBERS_BETWEEN "\n\n"
/* Appends the text of the document `name` from the list, which may be NULL, else from its file. */
int fl_text_by_name(const char *name, const char *hash, const fl_source_list *sources, fl_buf *own,
                    fl_err *err);

/* cache.c */
void fl_cache_release(fl_fleet *f);
bool fl_cache_has(const fl_fleet *f, size_t i); /* the cartridge of document i */

/* Read-only fleets: takes the manifest on disk when it differs from ours. *changed tells. */
int fl_fleet_reload(fl_fleet *f, bool *changed, fl_err *err);
/* A file that the manifest in memory names is gone. True: a trainer has saved since, and what it
 * saved has been taken over, so that looking again makes sense; FL_RELOADS times at the most, for a
 * trainer that saves faster than its files are read. */
enum { FL_RELOADS = 7 };
bool fl_fleet_moved_on(fl_fleet *f);
/* As fl_fleet_reload with a manifest that was read already, which is used up. */
int fl_fleet_take(fl_fleet *f, fl_manifest *now, bool *changed, fl_err *err);
/* *out = the cartridge of document i: the resident's own rows in a trainer, else from the cache or
 * from disk. Valid until the next call. */
int fl_fleet_cartridge(fl_fleet *f, size_t i, const fl_cartridge **out, fl_err *err);

/* What is written into a document's files. Strings are borrowed. */
void fl_fleet_provenance(const fl_fleet *f, const fl_mdoc *d, uint64_t gen, fl_provenance *out);
/* Reads a document's cartridge file and checks it against the manifest. hp NULL: not against the
 * model. */
int fl_mdoc_read_cartridge(const fl_mdoc *d, const char *dir, const char *model_hash,
                           const fl_hparams *hp, fl_cartridge *out, fl_err *err);
int fl_fleet_read_cartridge(const fl_fleet *f, size_t i, fl_cartridge *out, fl_err *err);

/* Commits what `c` wrote together with the manifest, and logs it. */
int fl_fleet_commit(fl_fleet *f, fl_commit *c, const char *reason, fl_err *err);

/* Calls the hook; FL_OK or FL_EINTR. */
static inline int fl_hooks_poll(const fl_train_hooks *h) {
  return h != NULL && h->poll != NULL ? h->poll(h->ctx) : FL_OK;
}
void fl_hooks_note(const fl_fleet *f, const fl_train_hooks *h, const char *doc, const char *note);

#endif
