/* job.h - a request on its way through the engine; private to the engine's files (engine_state.h).
 *
 * A job's life, and who moves it on:
 *
 *   submit        scheduler.c              step.c                step.c
 *   ------> QUEUED ------> PREFILL ------------> DECODE ------------> ended (told once)
 *              |              |                     |
 *              +-- cancelled, refused, failed: fl_job_finish, from anywhere --+
 *
 * While its cartridges are read a job stays QUEUED and others overtake it (io_wait.c). While rows
 * of its conversation are read from a file it has a slot but is not `ready`.
 *
 * Threads: members under `mu` of the mailbox may be touched by any thread that holds it; the
 * request is constant; all others belong to the engine's thread.
 */
#ifndef FL_SERVE_JOB_H
#define FL_SERVE_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "serve/detokenize.h"
#include "serve/engine.h"
#include "serve/slots.h"

/* Where jobs wait and wake the engine; outlives the engine as long as somebody holds a job. */
typedef struct fl_mailbox {
  pthread_mutex_t mu;
  pthread_cond_t wake; /* the engine */
  pthread_cond_t done; /* embeddings */
  bool woken;          /* under mu: something has come since the engine looked */
  atomic_size_t refs;
} fl_mailbox;

struct fl_job {
  fl_mailbox *box;
  atomic_size_t refs;
  atomic_bool cancel;
  struct fl_job *next; /* queue; under mu */
  fl_chat_request req;
  char key[FL_HASH_TEXT]; /* of the conversation */
  fl_job_sink sink;
  double submitted;

  /* The engine's thread. */
  bool selected; /* docs and known_digest are set */
  fl_selection docs;
  char known_digest[FL_HASH_TEXT]; /* of the prefix that the conversation stood behind; "" none */
  fl_prefix *prefix;               /* held; NULL: not composed yet */
  int loads;                       /* how often it had something read */
  uint64_t index_read;             /* the reading of the index that it waits for; 0: none */
  fl_ids prompt;
  bool ready;        /* its slot has the rows that are to be had */
  size_t n_computed; /* prompt tokens that have rows */
  fl_slot *slot;
  fl_ids out;
  int32_t last_token; /* sampled, without a row yet */
  fl_rng rng;
  fl_suffix suffix; /* prompt and answer, for drafts */
  fl_draft draft;
  size_t n_draft; /* tokens of it in this step */
  fl_gate gate;
  fl_detokenizer detokenizer;
  fl_job_event event; /* what is told next */
  size_t max_new, drafted, accepted;
  double first_token_s; /* clock of the first token; 0: none yet */
  int32_t row_token[1 + FL_DRAFT_MAX];
  size_t rows, first_out; /* of this step: rows, and the first of its logits */
};

/* Takes the request over, or leaves it as it is. */
int fl_job_new(fl_job **out, struct fl_engine *e, fl_chat_request *r, const fl_job_sink *sink,
               fl_err *err);
void fl_job_unref(fl_job *j);
void fl_mailbox_unref(fl_mailbox *b);
void fl_mailbox_wake(fl_mailbox *b); /* any thread: the engine has something to look at */
/* Gives `event` to the sink and empties it; false: the sink wants no more. */
bool fl_job_tell(fl_job *j);
/* Ends a job wherever it is: gives slot and prefix back, remembers the answer, tells the sink,
 * drops the engine's reference. text: the sentence with code < 0. */
void fl_job_finish(struct fl_engine *e, fl_job *j, fl_finish how, const char *stop_string, int code,
                   const char *text);

#endif
