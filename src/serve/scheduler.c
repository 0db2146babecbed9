/* scheduler.c - from the queue into a slot: which documents, which rows, whether there is room. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/engine_state.h"

static const double admit_s = 0.02; /* between two steps, unless one job alone takes longer */

/* --- which documents --- */

static int make_prefix(fl_engine *e, fl_job *j, fl_prefix **x, bool *waits, fl_err *err) {
  int rc;
  if (j->docs.n == 0) return fl_prefix_make(x, &e->prefixes, NULL, &j->docs, NULL, err);
  do {
    rc = fl_engine_need(e, j, waits, err);
    if (rc == FL_OK && !*waits) rc = fl_engine_compose(e, j, x, err);
  } while (rc == FL_EBUSY);
  return rc;
}

/* The prefix of the selection, composed when it is not in memory. The conversation's own rows, of
 * an older generation perhaps, come first. *waits: for the disk. */
static int take_prefix(fl_engine *e, fl_job *j, bool *waits, fl_err *err) {
  fl_prefix *x = NULL;
  if (j->known_digest[0] != '\0') x = fl_prefix_find(&e->prefixes, &j->docs, j->known_digest, 0);
  uint64_t generation = e->fleet != NULL ? fl_fleet_generation(e->fleet) : 0;
  if (x == NULL) x = fl_prefix_find(&e->prefixes, &j->docs, NULL, generation);
  const int rc = x == NULL ? make_prefix(e, j, &x, waits, err) : FL_OK;
  if (rc != FL_OK || *waits) return rc;
  fl_prefix_hold(&e->prefixes, x);
  j->prefix = x;
  fl_engine_need_over(e, j); /* somebody else may have composed it */
  if (j->req.rag == FL_RAG_AUTO && e->fleet != NULL)
    fl_affinities_put(&e->affinities, j->key, &j->docs, x->digest);
  return FL_OK;
}

static const fl_message *last_user(const fl_job *j) { return &j->req.msgs[j->req.n_msgs - 1]; }

/* Leaves out the documents with the lowest scores until the prompt and one token fit. */
static int trim_selection(fl_engine *e, fl_job *j, fl_err *err) {
  const size_t prompt = j->prompt.len + 1;
  size_t rows = 0;
  int rc = fl_selection_rows(e->fleet, &j->docs, &rows, err);
  while (rc == FL_OK && j->docs.n > 0 &&
         (rows + prompt > e->opt.ctx || fl_slots_too_large(&e->slots, rows + prompt))) {
    j->docs.n--;
    rc = fl_selection_rows(e->fleet, &j->docs, &rows, err);
  }
  return rc;
}

/* Once a job, however long it waits for room afterwards. *waits: for the index. */
static int select_docs(fl_engine *e, fl_job *j, bool *waits, fl_err *err) {
  const fl_doc_select_options o = { .rag = e->opt.rag,
                                    .adaptive = e->opt.adaptive,
                                    .margin = e->opt.margin };
  const fl_message *q = last_user(j);
  const fl_affinity *known = fl_affinities_find(&e->affinities, j->key);
  fl_err why = { 0 };
  bool kept = false;
  int rc = fl_doc_select(&j->docs, &kept, e->fleet, &o, known, q->text, q->len, &why);
  if (rc == FL_EBUSY) rc = fl_engine_need_index(e, j, waits, err);
  else if (rc != FL_OK) *err = why;
  if (*waits || rc != FL_OK) return rc;
  if (kept) {
    snprintf(j->known_digest, sizeof j->known_digest, "%s", known->digest);
  } else {
    rc = trim_selection(e, j, err);
    /* For requests of this conversation that overtake it while it waits for the disk. */
    if (rc == FL_OK) fl_affinities_put(&e->affinities, j->key, &j->docs, "");
  }
  j->selected = rc == FL_OK;
  return rc;
}

static int render(fl_engine *e, fl_job *j, bool behind_rows, const char *scope, fl_err *err) {
  const fl_prompt c = { .msgs = j->req.msgs,
                        .n_msgs = j->req.n_msgs,
                        .thinking = j->req.thinking,
                        .behind_rows = behind_rows,
                        .scope = scope,
                        .answers = scope != NULL ? &e->answers : NULL };
  fl_ids_reset(&j->prompt);
  return fl_prompt_ids(&e->prompter, &c, &j->prompt, err);
}

/* Chooses documents, takes their prefix, renders the prompt. *waits: for the disk. */
static int prepare(fl_engine *e, fl_job *j, bool *waits, fl_err *err) {
  int rc = j->selected ? FL_OK : render(e, j, true, NULL, err); /* how long it is, about */
  pthread_mutex_lock(&e->fleet_mu);
  if (rc == FL_OK && !j->selected) rc = select_docs(e, j, waits, err);
  if (rc == FL_ENOENT) rc = FL_EFAIL; /* nothing that the client named */
  if (rc == FL_OK && !*waits) rc = take_prefix(e, j, waits, err);
  pthread_mutex_unlock(&e->fleet_mu);
  if (rc != FL_OK || *waits) return rc;
  char scope[FL_SCOPE_TEXT];
  fl_answers_scope(scope, j->prefix->digest, j->req.owner);
  return render(e, j, j->prefix->rows > 0, scope, err);
}

/* --- the slot --- */

static int check_context(const fl_engine *e, const fl_job *j, fl_err *err) {
  size_t used = j->prefix->rows + j->prompt.len;
  if (used + 1 <= e->opt.ctx) return FL_OK;
  return fl_fail(err, FL_EINPUT,
                 "the conversation has %zu tokens behind %zu rows of documents, which leaves no "
                 "room for an answer in a context of %zu; shorten it",
                 j->prompt.len, j->prefix->rows, e->opt.ctx);
}

static int open_slot(fl_engine *e, fl_job *j, fl_err *err) {
  size_t used = j->prefix->rows + j->prompt.len;
  int rc = check_context(e, j, err);
  if (rc != FL_OK) return rc;
  j->max_new = j->req.max_new;
  if (j->max_new > e->opt.ctx - used) j->max_new = e->opt.ctx - used;
  /* A request without a limit must not be refused for rows that it may never need. */
  while (j->max_new > 256 && fl_slots_too_large(&e->slots, used + j->max_new)) j->max_new /= 2;
  const fl_slot_wish w = { .prefix = j->prefix,
                           .ids = j->prompt.data,
                           .n = j->prompt.len,
                           .rows = used + j->max_new,
                           .key = j->key,
                           .owner = j->req.owner };
  return fl_slots_open(&j->slot, &e->slots, &w, err);
}

static bool tell_doc(const fl_engine *e, const fl_job *j, size_t i, fl_job_doc *out) {
  fl_doc_info d = { .name = "" };
  size_t at;
  if (fl_doc_by_id(e->fleet, j->prefix->doc[i], &at)) fl_fleet_doc(e->fleet, at, &d);
  *out = (fl_job_doc){
    .id = d.id, .name = fl_strdup(d.name), .why = j->docs.why[i], .rows = j->prefix->doc_rows[i]
  };
  return out->name != NULL;
}

static void tell_start(fl_engine *e, fl_job *j) {
  const size_t n = j->prefix->n_docs;
  fl_job_start *s = &j->event.start;
  *s = (fl_job_start){ .docs = fl_calloc(n, sizeof *s->docs),
                       .rows = j->prefix->rows,
                       .prompt_tokens = j->prompt.len,
                       .cached_tokens = j->n_computed,
                       .queue_s = fl_now_s() - j->submitted };
  pthread_mutex_lock(&e->fleet_mu);
  while (s->docs != NULL && s->n_docs < n && tell_doc(e, j, s->n_docs, &s->docs[s->n_docs]))
    s->n_docs++;
  pthread_mutex_unlock(&e->fleet_mu);
  j->event.started = true;
  j->event.lost = s->n_docs < n;
  if (!fl_job_tell(j)) atomic_store(&j->cancel, true);
}

/* The slot has the rows that are known already: the remaining prompt can be computed. */
static void begin(fl_engine *e, fl_job *j) {
  j->ready = true;
  j->n_computed = j->slot->ids.len;
  pthread_mutex_lock(&e->box->mu);
  e->stats.prompt_tokens += j->prompt.len;
  e->stats.cached_tokens += j->n_computed;
  pthread_mutex_unlock(&e->box->mu);
  tell_start(e, j);
}

static void start(fl_engine *e, fl_job *j) {
  if (e->opt.speculate) (void)fl_suffix_append(&j->suffix, j->prompt.data, j->prompt.len);
  e->active[e->n_jobs++] = j;
  pthread_mutex_lock(&e->box->mu);
  e->n_active = e->n_jobs;
  pthread_mutex_unlock(&e->box->mu);
  if (fl_slots_ready(&e->slots, j->slot, j->prompt.data)) begin(e, j);
}

void fl_engine_join(fl_engine *e) {
  for (size_t i = 0; i < e->n_jobs; i++) {
    fl_job *j = e->active[i];
    if (!j->ready && fl_slots_ready(&e->slots, j->slot, j->prompt.data)) begin(e, j);
  }
}

/* --- the queue --- */

/* The job behind j; the first one for NULL. */
static fl_job *next_queued(fl_engine *e, const fl_job *j) {
  pthread_mutex_lock(&e->box->mu);
  fl_job *next = j != NULL ? j->next : e->head;
  pthread_mutex_unlock(&e->box->mu);
  return next;
}

static void leave_queue(fl_engine *e, const fl_job *j) {
  fl_job *before = NULL;
  pthread_mutex_lock(&e->box->mu);
  for (fl_job *k = e->head; k != j; k = k->next) before = k;
  if (before != NULL) before->next = j->next;
  else e->head = j->next;
  if (e->tail == j) e->tail = before;
  e->n_queued--;
  pthread_mutex_unlock(&e->box->mu);
}

typedef enum outcome { GONE, WAITS, NO_ROOM } outcome; /* GONE: left the queue */

static outcome admit_one(fl_engine *e, fl_job *j) {
  fl_err err = { 0 };
  bool waits = false;
  int rc = j->prefix == NULL ? prepare(e, j, &waits, &err) : FL_OK;
  if (rc == FL_OK && waits) return WAITS;
  if (rc == FL_OK) rc = open_slot(e, j, &err);
  if ((rc == FL_EBUSY || rc == FL_EFULL) && fl_engine_room_to_come(e, j)) return NO_ROOM;
  leave_queue(e, j);
  if (rc == FL_EFULL) rc = FL_EINPUT; /* not even alone: to try again later would not help */
  if (rc == FL_OK) start(e, j);
  else fl_job_finish(e, j, FL_FINISH_ERROR, NULL, rc, err.text);
  return GONE;
}

/* Jobs that wait for a stalled disk must not fill the queue: of too many the last to come are
 * refused. True: this one was. */
static bool give_up_waiting(fl_engine *e, fl_job *j, size_t waiting) {
  fl_err err = { 0 };
  if (waiting <= (e->opt.queue + 1) / 2 || !fl_fleet_reader_stalled(e->reader)) return false;
  (void)fl_fail(&err, FL_EFULL,
                "%zu requests wait for documents from a disk that does not answer, which is the "
                "limit; try again later",
                waiting - 1);
  leave_queue(e, j);
  fl_job_finish(e, j, FL_FINISH_ERROR, NULL, err.code, err.text);
  return true;
}

bool fl_engine_admit(fl_engine *e) {
  const double began = fl_now_s();
  size_t waiting = 0;
  fl_job *j = NULL, *next;
  outcome how = GONE;
  e->blocked = false;
  /* First who has what was read: it holds memory, and the reader waits for its next plan. */
  if (e->n_jobs < e->slots.n && e->load.ended && e->load.job != NULL)
    how = admit_one(e, e->load.job);
  next = next_queued(e, NULL);
  while (how != NO_ROOM && e->n_jobs < e->slots.n && (j = next) != NULL) {
    next = next_queued(e, j);
    how = admit_one(e, j);
    if (how == WAITS && give_up_waiting(e, j, ++waiting)) waiting--;
    /* Retrieval and composition take time, which those in slots wait for. */
    if (how != NO_ROOM && e->n_jobs > 0 && fl_now_s() - began > admit_s) return true;
  }
  e->blocked = e->n_jobs == 0;
  return false;
}
