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
 * (http/) knows nothing of either.
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
#include "serve/chat_request.h"
#include "serve/job_event.h"

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
 * log: events (`retrieve`, `request` is written by http/); may be NULL. Starts the thread. */
int fl_engine_start(fl_engine **out, fl_fleet *fleet, fl_model *model, fl_team *team,
                    const fl_engine_options *o, fl_events *log, fl_err *err);
/* Refuses new jobs, lets those in slots finish for up to grace_s seconds, cancels the rest,
 * joins. */
void fl_engine_stop(fl_engine *e, double grace_s);

/* Called on the engine's thread with what happened: the start, pieces, always and last, exactly
 * once, the end. It must not block. What it wants to keep it merges away (job_event.h). Returning
 * false cancels. */
typedef struct fl_job_sink {
  void *ctx;
  bool (*on_event)(void *ctx, fl_job_event *e);
} fl_job_sink;

/* Takes the request over and leaves *r empty. Refused, it stays the caller's as it is, and the sink
 * is not called: FL_EFULL: the queue is full (say 429); FL_EINPUT: the request cannot be rendered
 * or is too long for ctx; FL_ENOENT: a named document does not exist; FL_EBUSY: stopping. *job may
 * be NULL when the caller will not cancel. */
int fl_engine_submit(fl_engine *e, fl_chat_request *r, const fl_job_sink *sink, fl_job **job,
                     fl_err *err);
/* As it was submitted; valid until the job is released. */
const fl_chat_request *fl_job_request(const fl_job *j);
void fl_job_cancel(fl_job *j);  /* any thread; noticed within a step, inside prefill too */
void fl_job_release(fl_job *j); /* at any time; it runs on to its end unless it is cancelled */

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
