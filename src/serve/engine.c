/* engine.c - starting, the thread's loop, stopping, and what other threads may call. */
#include "serve/engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "answer/reload.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/cond.h"
#include "retrieval/retrieval.h"
#include "serve/engine_state.h"

enum {
  ANSWERS = 1024,
  ANSWER_TOKENS = 1 << 20, /* remembered */
  AFFINITIES = 4096
};

void fl_engine_options_default(fl_engine_options *o) {
  *o = (fl_engine_options){ .n_slots = 8,
                            .queue = 64,
                            .kv = FL_KV_F16,
                            .rag = { .docs = 2, .chunks = 8, .floor = -1 },
                            .margin = 0.05,
                            .speculate = true,
                            .spill_files = 64,
                            .reload_s = 2 };
}

/* --- the loop --- */

static void finish_queued(fl_engine *e, bool all) {
  fl_job *gone = NULL;
  pthread_mutex_lock(&e->box->mu);
  fl_job **at = &e->head, *last = NULL;
  while (*at != NULL) {
    fl_job *j = *at;
    if (!all && !atomic_load(&j->cancel)) {
      last = j;
      at = &j->next;
      continue;
    }
    *at = j->next;
    j->next = gone;
    gone = j;
    e->n_queued--;
  }
  e->tail = last;
  pthread_mutex_unlock(&e->box->mu);
  while (gone != NULL) {
    fl_job *j = gone;
    gone = j->next;
    fl_job_finish(e, j, FL_FINISH_CANCELLED, NULL, FL_OK, NULL);
  }
}

static void finish_active(fl_engine *e, bool all) {
  for (size_t i = e->n_jobs; i-- > 0;)
    if (all || atomic_load(&e->active[i]->cancel))
      fl_job_finish(e, e->active[i], FL_FINISH_CANCELLED, NULL, FL_OK, NULL);
}

static void fail_embeds(fl_engine *e) {
  pthread_mutex_lock(&e->box->mu);
  for (fl_embed_task *t = e->embed; t != NULL; t = t->next) {
    fl_seq_free(t->seq);
    t->seq = NULL;
    t->rc = fl_fail(&t->err, FL_EBUSY, "the server is stopping");
    t->finished = true;
  }
  e->embed = NULL;
  pthread_cond_broadcast(&e->box->done);
  pthread_mutex_unlock(&e->box->mu);
}

static void log_reload_failure(fl_engine *e, const char *text) {
  fl_event ev;
  fl_event_begin(&ev, "error");
  fl_event_str(&ev, "message", text);
  fl_event_emit(e->log, &ev);
  if (!e->warned) fl_warn("%s; going on with what is in memory", text);
  e->warned = true;
}

static void follow(fl_engine *e) {
  bool changed = false;
  fl_fleet_read r = { 0 };
  fl_manifest_read *m = &r.manifest;
  if (e->reader == NULL) return;
  fl_fleet_reader_take(e->reader, &r);
  if (r.plan != NULL) fl_engine_fetched(e);
  if (!m->any) return;
  pthread_mutex_lock(&e->fleet_mu);
  int rc = m->rc;
  if (rc == FL_OK) rc = fl_fleet_follow(e->fleet, &m->now, m->index, &changed, &m->err);
  uint64_t generation = fl_fleet_generation(e->fleet);
  size_t docs = fl_fleet_n_docs(e->fleet);
  pthread_mutex_unlock(&e->fleet_mu);
  if (rc != FL_OK) log_reload_failure(e, m->err.text);
  else e->warned = false;
  fl_engine_index_read(e, rc != FL_OK ? rc : m->index_rc, rc != FL_OK ? &m->err : &m->index_err);
  pthread_mutex_lock(&e->box->mu);
  e->stats.reloads += generation != e->stats.generation;
  e->stats.generation = generation;
  e->stats.docs = docs;
  pthread_mutex_unlock(&e->box->mu);
}

/* Pages that only the busiest moment needed are not kept for ever. */
static void trim(fl_engine *e) {
  static const double every_s = 10;
  const double now = fl_now_s();
  if (now - e->trimmed < every_s) return;
  fl_kv_pool_trim(e->pool);
  fl_kv_pool_trim(e->embed_pool);
  e->trimmed = now;
}

static void publish(fl_engine *e) {
  if (e->spill != NULL) fl_spill_collect(e->spill);
  trim(e);
  const size_t bytes = fl_kv_pool_bytes(e->pool) + fl_kv_pool_bytes(e->embed_pool);
  const fl_spill_stats sp = e->spill != NULL ? fl_spill_stats_of(e->spill) : (fl_spill_stats){ 0 };
  pthread_mutex_lock(&e->box->mu);
  e->stats.kv_bytes = bytes;
  e->stats.spills = sp.saved;
  e->stats.restores = sp.restored;
  e->stats.spills_failed = sp.skipped;
  pthread_mutex_unlock(&e->box->mu);
}

/* Under mu: nothing can go on before the engine is woken. `more`: jobs may be admitted at once. */
static bool nothing_to_do(const fl_engine *e, bool more) {
  size_t ready = 0;
  if (e->embed != NULL) return false;
  if (e->n_jobs == 0) return !e->stopping && (e->head == NULL || (e->blocked && !e->box->woken));
  for (size_t i = 0; i < e->n_jobs; i++) ready += e->active[i]->ready;
  return ready == 0 && !more && !e->box->woken;
}

/* Waits until there is something to do; false when the thread is to end. */
static bool await_work(fl_engine *e, bool more) {
  pthread_mutex_lock(&e->box->mu);
  while (nothing_to_do(e, more)) {
    /* Once a second all the same: the end of a grace and a disk that stalls send no news. */
    if (!fl_cond_wait(&e->box->wake, &e->box->mu, fl_now_s() + 1)) break;
  }
  e->box->woken = false;
  bool go_on = !(e->stopping && e->n_jobs == 0 && e->head == NULL && e->embed == NULL);
  pthread_mutex_unlock(&e->box->mu);
  return go_on;
}

static void wind_down(fl_engine *e) {
  pthread_mutex_lock(&e->box->mu);
  bool stopping = e->stopping, late = stopping && fl_now_s() >= e->deadline;
  pthread_mutex_unlock(&e->box->mu);
  if (!stopping) return;
  finish_queued(e, true);
  fail_embeds(e);
  if (late) finish_active(e, true);
}

static void *run(void *arg) {
  fl_engine *e = arg;
  bool more = false;
  if (e->opt.speculate) fl_engine_calibrate(e);
  while (await_work(e, more)) {
    follow(e);
    wind_down(e);
    finish_queued(e, false);
    finish_active(e, false);
    fl_engine_join(e);
    more = fl_engine_admit(e);
    fl_engine_embed_slice(e);
    fl_engine_step(e);
    publish(e);
  }
  return NULL;
}

/* --- starting and stopping --- */

static uint64_t memory_available(void) {
  long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  uint64_t free_bytes = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
  fl_buf b = { 0 };
  if (fl_fs_read(&b, "/proc/meminfo", 1 << 16, NULL) == FL_OK) {
    const char *at = strstr(b.data, "MemAvailable:");
    unsigned long long kib = 0;
    if (at != NULL && sscanf(at, "MemAvailable: %llu kB", &kib) == 1) free_bytes = kib << 10;
  }
  fl_buf_release(&b);
  return free_bytes;
}

static int check_options(fl_engine *e, fl_err *err) {
  fl_engine_options *o = &e->opt;
  const size_t n_ctx = fl_model_hparams(e->model)->n_ctx;
  if (o->n_slots < 1 || o->n_slots > FL_SERVE_SLOTS)
    return fl_fail(err, FL_EUSAGE, "%zu slots; 1 to %d are possible", o->n_slots, FL_SERVE_SLOTS);
  if (o->rag.docs > FL_PREFIX_DOCS)
    return fl_fail(err, FL_EUSAGE, "%zu documents for an answer; at most %d are possible",
                   o->rag.docs, FL_PREFIX_DOCS);
  if (o->ctx == 0 || o->ctx > n_ctx) o->ctx = n_ctx;
  if (o->max_bytes == 0) o->max_bytes = memory_available() / 2;
  if (o->max_bytes == 0) o->max_bytes = SIZE_MAX / 4; /* not known: no limit */
  return FL_OK;
}

static int make_samplers(fl_engine *e, fl_err *err) {
  const size_t n = fl_team_size(e->team);
  e->sampler = fl_calloc(n, sizeof *e->sampler);
  int rc = e->sampler != NULL ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory for the server");
  for (size_t i = 0; rc == FL_OK && i < n; i++)
    rc = fl_sampler_new(&e->sampler[i], fl_model_kernels(e->model),
                        fl_model_hparams(e->model)->n_vocab, err);
  return rc;
}

static int make_pass(fl_engine *e, fl_err *err) {
  const fl_hparams *hp = fl_model_hparams(e->model);
  const fl_kernels *kern = fl_model_kernels(e->model);
  e->out_rows = e->opt.n_slots + FL_DRAFT_ROWS;
  const fl_pass_options o = { .max_rows = FL_STEP_ROWS,
                              .max_spans = e->opt.n_slots + 1,
                              .max_out_rows = e->out_rows,
                              .touch = true };
  int rc = fl_pass_new(&e->pass, e->model, e->team, &o, err);
  if (rc == FL_OK)
    rc = fl_kv_pool_new(&e->pool, hp, kern, e->opt.kv, (size_t)e->opt.max_bytes, err);
  if (rc == FL_OK) rc = fl_kv_pool_new(&e->embed_pool, hp, kern, FL_KV_F32, 0, err);
  if (rc == FL_OK) rc = make_samplers(e, err);
  if (rc != FL_OK) return rc;
  e->logits = fl_aligned_calloc(e->out_rows * hp->n_vocab, sizeof *e->logits);
  return e->logits != NULL
             ? FL_OK
             : fl_fail(err, FL_ENOMEM, "not enough memory for %zu slots", e->opt.n_slots);
}

/* On the worker of the spill, or of the fleet's reader. */
static void on_read(void *ctx) { fl_mailbox_wake(ctx); }
static void on_release(void *ctx) { fl_mailbox_unref(ctx); }

static int make_state(fl_engine *e, fl_err *err) {
  int rc = fl_prompter_init(&e->prompter, e->model, err);
  if (rc == FL_OK && (fl_answers_init(&e->answers, ANSWERS, ANSWER_TOKENS) != FL_OK ||
                      fl_affinities_init(&e->affinities, AFFINITIES) != FL_OK))
    rc = fl_fail(err, FL_ENOMEM, "not enough memory for the server");
  if (rc == FL_OK && e->opt.spill_dir != NULL)
    rc = fl_spill_open(&e->spill, e->opt.spill_dir, e->opt.spill_files, e->model, e->pool, err);
  if (rc == FL_OK && e->spill != NULL) {
    const fl_spill_hooks h = {
      .ready = on_read, .ready_ctx = e->box, .disk = e->opt.reading, .disk_ctx = e->opt.reading_ctx
    };
    fl_spill_set_hooks(e->spill, &h);
    fl_engine_warm_start(e);
  }
  e->prefixes.pool = e->pool;
  if (rc == FL_OK)
    rc = fl_slots_init(&e->slots, e->opt.n_slots, e->pool, (size_t)e->opt.max_bytes, &e->prefixes,
                       e->spill, err);
  return rc;
}

static int make_mailbox(fl_engine *e, fl_err *err) {
  e->box = fl_calloc(1, sizeof *e->box);
  if (e->box == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for the server");
  pthread_mutex_init(&e->box->mu, NULL);
  fl_cond_init(&e->box->wake);
  pthread_cond_init(&e->box->done, NULL);
  atomic_init(&e->box->refs, 1);
  pthread_mutex_init(&e->fleet_mu, NULL);
  return FL_OK;
}

/* Everything but the fleet, which is the caller's until the engine runs. */
static void engine_free(fl_engine *e) {
  fl_fleet_reader_stop(e->reader);
  fl_engine_load_release(e);
  fl_slots_release(&e->slots);
  fl_prefixes_release(&e->prefixes);
  fl_spill_close(e->spill);
  fl_affinities_release(&e->affinities);
  fl_answers_release(&e->answers);
  fl_prompter_release(&e->prompter);
  for (size_t i = 0; e->sampler != NULL && i < fl_team_size(e->team); i++)
    fl_sampler_free(e->sampler[i]);
  fl_free(e->sampler);
  fl_pass_free(e->pass);
  fl_kv_pool_free(e->pool);
  fl_kv_pool_free(e->embed_pool);
  fl_free(e->logits);
  if (e->box != NULL) pthread_mutex_destroy(&e->fleet_mu);
  fl_mailbox_unref(e->box);
  fl_free(e);
}

static void first_stats(fl_engine *e) {
  e->stats.slots = e->opt.n_slots;
  e->stats.weight_bytes = fl_model_weight_bytes(e->model);
  e->stats.generation = e->fleet != NULL ? fl_fleet_generation(e->fleet) : 0;
  e->stats.docs = e->fleet != NULL ? fl_fleet_n_docs(e->fleet) : 0;
}

static int start_reader(fl_engine *e, fl_err *err) {
  const fl_fleet_reader_options o = { .dir = fl_fleet_dir(e->fleet),
                                      .every_s = e->opt.reload_s,
                                      .dim = fl_model_hparams(e->model)->d_model,
                                      .ready = on_read,
                                      .release = on_release,
                                      .ctx = e->box,
                                      .reading = e->opt.reading,
                                      .reading_ctx = e->opt.reading_ctx };
  (void)fl_fleet_load_index(e->fleet, NULL); /* a question that needs it will say why */
  fl_fleet_keep_off_disk(e->fleet);
  atomic_fetch_add(&e->box->refs, 1);
  const int rc = fl_fleet_reader_start(&e->reader, &o, err);
  if (rc != FL_OK) fl_mailbox_unref(e->box);
  return rc;
}

int fl_engine_start(fl_engine **out, fl_fleet *fleet, fl_model *model, fl_team *team,
                    const fl_engine_options *o, fl_events *log, fl_err *err) {
  fl_engine *e = fl_calloc(1, sizeof *e);
  if (e == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for the server");
  e->opt = *o;
  e->model = model;
  e->team = team;
  e->fleet = fleet;
  e->log = log;
  int rc = check_options(e, err);
  if (rc == FL_OK) rc = make_mailbox(e, err);
  if (rc == FL_OK) rc = make_pass(e, err);
  if (rc == FL_OK) rc = make_state(e, err);
  if (rc == FL_OK) first_stats(e);
  if (rc == FL_OK && fleet != NULL) rc = start_reader(e, err);
  if (rc == FL_OK && pthread_create(&e->thread, NULL, run, e) != 0)
    rc = fl_fail(err, FL_EFAIL, "the system gives no thread for the engine");
  if (rc != FL_OK) {
    engine_free(e);
    return rc;
  }
  *out = e;
  return FL_OK;
}

void fl_engine_stop(fl_engine *e, double grace_s) {
  if (e == NULL) return;
  pthread_mutex_lock(&e->box->mu);
  e->stopping = true;
  e->deadline = fl_now_s() + grace_s;
  pthread_mutex_unlock(&e->box->mu);
  fl_mailbox_wake(e->box);
  pthread_join(e->thread, NULL);
  fl_fleet *fleet = e->fleet;
  engine_free(e);
  fl_fleet_close(fleet);
}

/* --- other threads --- */

/* Under mu. */
static int has_place(fl_engine *e, fl_err *err) {
  if (e->stopping) return fl_fail(err, FL_EBUSY, "the server is stopping");
  if (e->n_queued + e->n_active < e->opt.queue + e->opt.n_slots) return FL_OK;
  e->stats.jobs_refused++;
  return fl_fail(err, FL_EFULL, "%zu requests are waiting, which is the limit; try again later",
                 e->n_queued);
}

static int enqueue(fl_engine *e, fl_job *j, fl_err *err) {
  pthread_mutex_lock(&e->box->mu);
  int rc = has_place(e, err);
  if (rc == FL_OK) {
    if (e->tail != NULL) e->tail->next = j;
    else e->head = j;
    e->tail = j;
    e->n_queued++;
    e->box->woken = true;
    pthread_cond_signal(&e->box->wake);
  }
  pthread_mutex_unlock(&e->box->mu);
  return rc;
}

int fl_engine_submit(fl_engine *e, fl_chat_request *r, const fl_job_sink *sink, fl_job **job,
                     fl_err *err) {
  fl_job *j = NULL;
  pthread_mutex_lock(&e->box->mu);
  int rc = has_place(e, err); /* before the work of rendering: to refuse has to be cheap */
  pthread_mutex_unlock(&e->box->mu);
  if (rc == FL_OK) rc = fl_job_new(&j, e, r, sink, err);
  if (rc != FL_OK) return rc;
  atomic_fetch_add(&j->refs, 1); /* ours, the queue's is the first */
  rc = enqueue(e, j, err);
  if (rc != FL_OK) {
    *r = j->req; /* the caller's again */
    j->req = (fl_chat_request){ 0 };
    fl_job_unref(j);
    fl_job_unref(j);
    return rc;
  }
  if (job != NULL) *job = j;
  else fl_job_unref(j);
  return FL_OK;
}

/* Waits in line; the engine fills the task in. The engine may be gone when this wakes up, the
 * mailbox is not. */
static int await_embedding(fl_engine *e, fl_embed_task *t, fl_err *err) {
  fl_mailbox *box = e->box;
  size_t n = 0;
  int rc = FL_OK;
  pthread_mutex_lock(&box->mu);
  fl_embed_task **at = &e->embed;
  for (; *at != NULL; at = &(*at)->next) n++;
  if (e->stopping) rc = fl_fail(err, FL_EBUSY, "the server is stopping");
  else if (n >= e->opt.queue + 1)
    rc = fl_fail(err, FL_EFULL, "%zu texts wait to be embedded, which is the limit", n);
  if (rc == FL_OK) {
    *at = t;
    atomic_fetch_add(&box->refs, 1);
    pthread_cond_signal(&box->wake);
    while (!t->finished) pthread_cond_wait(&box->done, &box->mu);
    rc = t->rc;
    if (rc != FL_OK && err != NULL) *err = t->err;
  }
  pthread_mutex_unlock(&box->mu);
  if (t->finished) fl_mailbox_unref(box);
  return rc;
}

int fl_engine_embed(fl_engine *e, const char *text, size_t len, float *out, size_t *n_tokens,
                    fl_err *err) {
  const size_t dim = fl_model_hparams(e->model)->d_model;
  fl_embed_task t = { .out = out };
  double sum = 0;
  int rc = fl_embed_ids(&t.ids, e->model, text, len, err);
  if (rc == FL_OK && t.ids.len > e->opt.ctx)
    rc =
        fl_fail(err, FL_EINPUT, "the text has %zu tokens, the context has room for %zu; shorten it",
                t.ids.len, e->opt.ctx);
  if (rc == FL_OK) rc = await_embedding(e, &t, err);
  for (size_t i = 0; rc == FL_OK && i < dim; i++) sum += (double)out[i] * (double)out[i];
  for (size_t i = 0; rc == FL_OK && sum > 0 && i < dim; i++)
    out[i] = (float)((double)out[i] / sqrt(sum));
  if (rc == FL_OK && n_tokens != NULL) *n_tokens = t.ids.len;
  fl_ids_release(&t.ids);
  return rc;
}

int fl_engine_retrieve(fl_engine *e, const char *query, size_t len, fl_buf *out, fl_err *err) {
  if (e->fleet == NULL) return fl_fail(err, FL_ENOENT, "this server has no fleet to search in");
  fl_hits h = { 0 };
  float *v = fl_calloc(fl_model_hparams(e->model)->d_model, sizeof *v);
  if (v == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory to search");
  int rc = fl_engine_embed(e, query, len, v, NULL, err);
  if (rc == FL_OK) {
    pthread_mutex_lock(&e->fleet_mu);
    rc = fl_fleet_retrieve_by(e->fleet, query, len, v, &e->opt.rag, &h, err);
    if (rc == FL_OK) fl_hits_print(out, e->fleet, query, len, &e->opt.rag, &h);
    pthread_mutex_unlock(&e->fleet_mu);
    if (rc == FL_EBUSY) fl_fleet_reader_poll_manifest(e->reader);
  }
  fl_hits_release(&h);
  fl_free(v);
  return rc;
}

void fl_engine_stats_get(fl_engine *e, fl_engine_stats *out) {
  pthread_mutex_lock(&e->box->mu);
  *out = e->stats;
  out->slots_busy = e->n_active;
  out->queued = e->n_queued;
  pthread_mutex_unlock(&e->box->mu);
}

double fl_engine_retry_after_s(fl_engine *e) {
  pthread_mutex_lock(&e->box->mu);
  double one = e->job_s > 0 ? e->job_s : 1;
  double wait = one * (double)(e->n_queued + 1) / (double)e->opt.n_slots;
  pthread_mutex_unlock(&e->box->mu);
  return wait < 1 ? 1 : wait > 600 ? 600 : ceil(wait);
}
