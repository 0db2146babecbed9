/* engine.h - one thread that owns the model's state and serves many conversations at once.
 *
 * Jobs come from any thread through a bounded queue; the engine thread admits them into slots, runs
 * one batched pass after another (a slice of somebody's prompt beside one row of everybody else's
 * answer), and hands tokens out through callbacks. Jobs join and leave at any step, each behind its
 * own cartridges. By the row rule an answer is the same in any company, with or without
 * speculation, and equal to `flotilla ask`.
 *
 * A slot keeps its rows after its job: the next request of that conversation continues from the
 * longest common prefix. How slots change state: slots.h. Drafts: speculate.h. The HTTP side
 * (edge/) knows nothing of either.
 */
#ifndef FL_SERVE_ENGINE_H
#define FL_SERVE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/events.h"
#include "fleet/fleet.h"
#include "model/generate.h"
#include "retrieval/retrieval.h"
#include "text/chat.h"

/* A disk, of the fleet or of spilled slots, that gives and takes nothing for longer hangs. */
#define FL_DISK_PATIENCE_S 2.0

typedef struct fl_engine fl_engine;
typedef struct fl_job fl_job;

typedef struct fl_engine_options {
  size_t n_slots; /* conversations decoded at once; 1..64 */
  size_t queue;   /* jobs that may wait */
  size_t ctx;     /* rows of a slot at most, cartridges included; 0: the model's context */
  fl_kv_type kv;
  uint64_t max_bytes; /* K/V memory in all; 0: half of what is available */
  fl_rag_options rag;
  bool adaptive; /* a follow-up may change the documents */
  double margin; /* by how much better the others must score */
  bool speculate;
  const char *spill_dir; /* NULL: slots are not spilled to disk */
  size_t spill_files;
  double reload_s; /* how often the fleet's manifest is looked at; 0: when a file is missed */
  void (*reading)(void *ctx); /* for tests, on a thread that is about to wait for the disk, of the
                                 fleet or of spilled slots; may be NULL */
  void *reading_ctx;
} fl_engine_options;

void fl_engine_options_default(fl_engine_options *o);

/* fleet: opened read-only, NULL to serve the bare model; owned by the engine from here on success.
 * log: events (`retrieve`, `request` is the edge's); may be NULL. Starts the thread. */
int fl_engine_start(fl_engine **out, fl_fleet *fleet, fl_model *model, fl_team *team,
                    const fl_engine_options *o, fl_events *log, fl_err *err);
/* Refuses new jobs, lets those in slots finish for up to grace_s seconds, cancels the rest,
 * joins. */
void fl_engine_stop(fl_engine *e, double grace_s);

typedef enum fl_rag_mode { FL_RAG_AUTO, FL_RAG_NONE, FL_RAG_NAMED } fl_rag_mode;

typedef struct fl_job_request {
  const fl_message *msgs; /* copied; the last one is the user's */
  size_t n_msgs;
  bool thinking;
  fl_sampling sampling; /* biases are copied */
  uint64_t seed;
  size_t max_new;
  const char *const *stop; /* strings; copied */
  size_t n_stop;
  bool logprobs;
  size_t top_logprobs; /* 0..20 */
  fl_rag_mode rag;
  const char *const *docs; /* FL_RAG_NAMED: names; copied */
  size_t n_docs;
  const char *conversation; /* id for the sticky selection; NULL: hash of the whole opening */
  uint32_t owner;           /* rows, answers and selections are shared among equal ones only */
} fl_job_request;

typedef struct fl_job_doc {
  uint32_t id;
  const char *name;
  fl_evidence why; /* zeros when it was named */
  size_t rows;
} fl_job_doc;

/* Told once, when the job has its slot. Pointers are valid during the call. */
typedef struct fl_job_start {
  const fl_job_doc *docs;
  size_t n_docs, rows;                 /* cartridge rows in front of the prompt */
  size_t prompt_tokens, cached_tokens; /* tokens; cartridge rows are counted in neither */
  double queue_s;
} fl_job_start;

typedef struct fl_job_logprob {
  int32_t token;
  float logprob;
  const char *text; /* bytes of the token */
  size_t len;
} fl_job_logprob;

/* A piece of answer: whole UTF-8, never past a stop string, never a prefix of one that may yet
 * complete. `tokens` entries with their alternatives when logprobs were asked for. */
typedef struct fl_job_delta {
  const char *text;
  size_t len;
  const fl_job_logprob *token; /* [n_tokens] tokens of this delta */
  const fl_job_logprob *top;   /* [n_tokens * n_top] */
  size_t n_tokens, n_top;
} fl_job_delta;

typedef enum fl_finish {
  FL_FINISH_STOP,
  FL_FINISH_LENGTH,
  FL_FINISH_CANCELLED,
  FL_FINISH_ERROR
} fl_finish;

typedef struct fl_job_end {
  fl_finish finish;
  const char *stop_string; /* which one, or NULL */
  size_t completion_tokens, drafted, accepted;
  double ttft_s, seconds;
  int code;          /* FL_OK, or with FL_FINISH_ERROR: FL_EINPUT the conversation does not
                                fit the context, or the memory even alone, behind its documents;
                                FL_ENOMEM; FL_EFAIL the documents could not be had; FL_EFULL too
                                many wait for a disk that does not answer (say 429) */
  const char *error; /* one sentence with code < 0 */
} fl_job_end;

/* Called on the engine thread; must not block. Returning false from on_delta cancels. */
typedef struct fl_job_sink {
  void *ctx;
  void (*on_start)(void *ctx, const fl_job_start *s);
  bool (*on_delta)(void *ctx, const fl_job_delta *d);
  void (*on_end)(void *ctx, const fl_job_end *e); /* always, exactly once, last */
} fl_job_sink;

/* FL_EFULL: the queue is full (say 429). FL_EINPUT: the request cannot be rendered or is too long
 * for ctx; FL_ENOENT: a named document does not exist; FL_EBUSY: stopping. The sink is not called
 * then. *job may be NULL when the caller will not cancel. */
int fl_engine_submit(fl_engine *e, const fl_job_request *r, const fl_job_sink *sink, fl_job **job,
                     fl_err *err);
void fl_job_cancel(fl_job *j);  /* any thread; noticed within a step, inside prefill too */
void fl_job_release(fl_job *j); /* after on_end, or right after cancel */

/* The embedding of a text by the recipe of the retrieval, of length 1, not centred (the centre
 * moves with the fleet). Blocks until the engine thread made it. out [d_model]. FL_EFULL, FL_EINPUT
 * (too long), FL_EBUSY as for submit. */
int fl_engine_embed(fl_engine *e, const char *text, size_t len, float *out, size_t *n_tokens,
                    fl_err *err);

/* Appends the members of a retrieve event from "query" on, without braces. FL_ENOENT: no fleet;
 * FL_EBUSY: its index is not in memory, and looked for again from now on. Otherwise as
 * fl_engine_embed. */
int fl_engine_retrieve(fl_engine *e, const char *query, size_t len, fl_buf *out, fl_err *err);

/* A snapshot for /health and /metrics. */
typedef struct fl_engine_stats {
  size_t slots, slots_busy, queued;
  uint64_t jobs_done, jobs_refused, jobs_cancelled, jobs_failed;
  uint64_t prompt_tokens, cached_tokens, completion_tokens, drafted, accepted;
  uint64_t steps, reloads, spills, restores, spills_failed;
  uint64_t generation;
  size_t kv_bytes, weight_bytes;
  size_t docs;
} fl_engine_stats;
void fl_engine_stats_get(fl_engine *e, fl_engine_stats *out);
double fl_engine_retry_after_s(fl_engine *e); /* an estimate for Retry-After */

#endif
