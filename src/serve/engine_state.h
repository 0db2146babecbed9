/* engine_state.h - the engine's state; private to engine.c, job.c, scheduler.c, io_wait.c,
 * warm_start.c, step.c.
 *
 * Threads: members under `mu` of the mailbox may be touched by any thread that holds it; all others
 * belong to the engine's thread. The fleet is used under `fleet_mu`, because submitting looks names
 * up in it. Lock order: fleet_mu, then mu.
 */
#ifndef FL_SERVE_ENGINE_STATE_H
#define FL_SERVE_ENGINE_STATE_H

#include <pthread.h>

#include "model/generate.h"
#include "model/sampler.h"
#include "serve/doc_select.h"
#include "serve/fleet_reader.h"
#include "serve/job.h"
#include "serve/prompt.h"

enum {
  FL_SERVE_SLOTS = 64,
  FL_STEP_ROWS = 256, /* rows of one pass at most */
  FL_DRAFT_ROWS = 32  /* draft rows of one pass, all jobs together */
};

/* A text to embed; lives on the waiting caller's stack. */
typedef struct fl_embed_task {
  struct fl_embed_task *next;
  fl_ids ids;
  size_t at; /* tokens that were run */
  fl_seq *seq;
  float *out;
  int rc;
  bool finished; /* under mu */
  fl_err err;
} fl_embed_task;

typedef struct fl_load { /* what is fetched for a job */
  fl_fetch_plan *plan;   /* the reader's until it has ended; NULL: none */
  fl_job *job;           /* NULL: it has gone */
  bool ended;
} fl_load;

typedef struct fl_index_wait { /* readings of the manifest for its index, which was missed */
  uint64_t asked, done;        /* how many */
  int rc;                      /* of the last one, asked for or not */
  fl_err err;
} fl_index_wait;

struct fl_engine {
  fl_engine_options opt;
  fl_model *model;
  fl_team *team;
  fl_fleet *fleet; /* NULL: bare; fleet_mu */
  fl_events *log;
  pthread_mutex_t fleet_mu;
  fl_mailbox *box;
  pthread_t thread;

  /* Under mu. */
  fl_job *head, *tail;
  fl_embed_task *embed;
  size_t n_queued, n_active;
  bool stopping;
  double deadline; /* of stopping */
  double job_s;    /* smoothed seconds of a job in its slot */
  fl_engine_stats stats;

  /* The engine's thread. */
  fl_pass *pass;
  fl_kv_pool *pool, *embed_pool;
  fl_sampler **sampler; /* [ranks of the team] */
  float *logits;        /* [out_rows, n_vocab] */
  size_t out_rows;
  fl_prompter prompter;
  fl_answers answers;
  fl_affinities affinities;
  fl_prefixes prefixes;
  fl_slots slots;
  fl_spill *spill;
  fl_cost cost;
  double trimmed;          /* clock of the last time that free pages were given back */
  double row_s;            /* smoothed seconds of a row in a slice of prefill */
  fl_fleet_reader *reader; /* NULL without a fleet */
  fl_load load;
  fl_index_wait index_wait;
  bool blocked;    /* nobody in the queue can go on before the engine is woken */
  size_t rotation; /* of the order of prompts, by one each step */
  fl_job *active[FL_SERVE_SLOTS];
  size_t n_jobs; /* in active; n_active for others to read */
  bool warned;   /* that the fleet cannot be reloaded */
};

/* scheduler.c */
/* Moves jobs from the queue into slots; true: there was no time for all that might have gone. */
bool fl_engine_admit(fl_engine *e);
/* Lets jobs go on whose rows have been read. */
void fl_engine_join(fl_engine *e);

/* io_wait.c; those with an err with the fleet held */
/* What the job's documents take from the disk: *waits, or fl_engine_compose has all that it needs.
 * Otherwise the error is the job's; FL_EFULL: there is no room to read it, for now. */
int fl_engine_need(fl_engine *e, fl_job *j, bool *waits, fl_err *err);
/* FL_EBUSY: something is missing after all, for a trainer has committed; need it again. FL_EFULL:
 * no room for the rows, for now. */
int fl_engine_compose(fl_engine *e, fl_job *j, fl_prefix **out, fl_err *err);
/* The index is not in memory: *waits until the manifest is read, or why the last reading of it
 * found none. */
int fl_engine_need_index(fl_engine *e, fl_job *j, bool *waits, fl_err *err);
void fl_engine_index_read(fl_engine *e, int rc, const fl_err *err);
/* Whether a job that finds no room now may find some later. */
bool fl_engine_room_to_come(const fl_engine *e, const fl_job *j);
/* The job goes. */
void fl_engine_need_over(fl_engine *e, const fl_job *j);
void fl_engine_fetched(fl_engine *e);      /* the reader has ended the plan */
void fl_engine_load_release(fl_engine *e); /* once the reader has been stopped */

/* warm_start.c */
/* Fills in what the spilled files tell of earlier conversations. */
void fl_engine_warm_start(fl_engine *e);

/* step.c */
/* Measures what steps of a few rows cost, before the first job needs to know. */
void fl_engine_calibrate(fl_engine *e);
/* One pass for all jobs in slots. */
void fl_engine_step(fl_engine *e);
/* One slice of the first text to embed. */
void fl_engine_embed_slice(fl_engine *e);

#endif
