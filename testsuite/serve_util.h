/* serve_util.h - a small fleet on the embedded model, an engine on it, clients that wait for their
 * answers, and what `flotilla ask` says on the same fleet. */
#ifndef FL_TESTSUITE_SERVE_UTIL_H
#define FL_TESTSUITE_SERVE_UTIL_H

#include <pthread.h>

#include "model_util.h"
#include "answer/answer.h"
#include "serve/engine.h"

enum { FLEET_DOCS = 4, FLEET_ROWS = 48, QUESTIONS = 8 };
extern const char *const question[QUESTIONS];
extern const fl_sampling warm; /* at some temperature */

/* --- a fleet: an unchecked fixture of each case --- */
void fleet_make(void); /* of two rounds, in a scratch folder */
void fleet_drop(void);
void fleet_train(size_t rounds, bool resume);
const char *spill_dir(void); /* in the scratch folder; not made */
void spill_drop(void);

/* --- what `flotilla ask` says: the fleet opened beside the engine's --- */
typedef struct reference {
  rig r;
  fl_fleet *f;
} reference;
reference reference_open(void);
void reference_close(reference *x);
fl_hits reference_hits(reference *x, const char *q);
fl_ask_options reference_options(const size_t *docs, size_t n);
/* s: NULL for greedy. The caller frees the text. */
char *reference_ask(reference *x, const char *q, const fl_sampling *s, uint64_t seed);

/* --- an engine --- */
typedef struct served {
  rig r;
  fl_engine *e;
} served;
fl_engine_options small_options(void);
served serve(const fl_engine_options *o, bool with_fleet);
void serve_end(served *s, double grace_s);

/* --- a request as a test writes it: everything is borrowed --- */
typedef struct query {
  const fl_message *msgs;
  size_t n_msgs;
  bool thinking;
  fl_sampling sampling;
  uint64_t seed;
  size_t max_new;
  const char *const *stop;
  size_t n_stop;
  bool logprobs;
  size_t top_logprobs;
  fl_rag_mode rag;
  const char *const *docs;
  size_t n_docs;
  const char *conversation;
  uint32_t owner;
} query;

/* --- a client: what the engine told it so far --- */
typedef struct client {
  pthread_mutex_t mu;
  pthread_cond_t moved;
  fl_job *job;
  fl_buf text;
  size_t deltas, tokens, n_docs, rows, prompt, cached;
  double logprob;
  char docs[256], error[FL_ERR_TEXT], stop[64];
  int starts, ends, code;
  fl_finish finish;
  size_t completion, drafted, accepted;
  size_t hang_up_after; /* deltas; 0: never */
} client;
client *client_new(void);
void client_free(client *c);
const char *client_text(const client *c);
int client_submit(client *c, fl_engine *e, const query *r, fl_err *err);
client *client_begin(fl_engine *e, const query *r); /* a new one's; must be taken */
void client_wait_end(client *c);
void client_wait_ok(client *c); /* for an end that must be a good one */
void client_wait_delta(client *c);

/* --- requests --- */
fl_message user_says(const char *text);
fl_message model_said(const char *text);
fl_buf words(size_t n);                             /* "word word ..." */
query request_of(const fl_message *msgs, size_t n); /* greedy, 24 tokens; borrows msgs */
/* Submits and waits for the end, which must be a good one. */
client *converse(fl_engine *e, const query *r);
client *ask(fl_engine *e, const char *text);

#endif
