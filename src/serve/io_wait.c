/* io_wait.c - what jobs need from the fleet's disk. The engine never waits for the disk: a job
 * does, in the queue, and those behind it that need nothing overtake it. One fetch plan is on its
 * way at a time. It belongs to a job until that goes away, and then to nobody.
 *
 *   NONE --fl_engine_need--> READING --fl_engine_fetched--> ENDED --fl_engine_need_over--> NONE
 *                                                                   composed, failed or given up
 *
 * The index comes with the manifest: one reading of it serves all jobs that miss the index.
 */
#include <string.h>

#include "base/mem.h"
#include "serve/engine_state.h"

enum { LOADS = 8 }; /* of one job: each shows that a trainer has committed meanwhile */

static void drop(fl_engine *e) {
  fl_load *l = &e->load;
  if (l->plan != NULL && l->plan->rc == FL_OK) fl_fetch_plan_keep(l->plan, e->fleet);
  fl_fetch_plan_free(l->plan);
  *l = (fl_load){ 0 };
  e->slots.loading_bytes = 0;
}

void fl_engine_need_over(fl_engine *e, const fl_job *j) {
  if (e->load.job != j || e->load.plan == NULL) return;
  e->load.job = NULL;
  if (e->load.ended) drop(e);
}

void fl_engine_fetched(fl_engine *e) {
  e->load.ended = true;
  if (e->load.job == NULL) drop(e);
}

void fl_engine_load_release(fl_engine *e) {
  if (e->load.ended) drop(e); /* else it is the reader's */
}

/* Others may end, what is fetched for them may turn into fewer rows, rows may go to the disk. */
bool fl_engine_room_to_come(const fl_engine *e, const fl_job *j) {
  return e->n_jobs > 0 || (e->load.plan != NULL && e->load.job != j) ||
         (e->spill != NULL && fl_spill_holds_rows(e->spill));
}

/* Room for what is to be read, as much of it as there can be. */
static int make_room(fl_engine *e, const fl_job *j, uint64_t bytes, fl_err *err) {
  fl_slots *s = &e->slots;
  const size_t most = s->max_pages > 0 ? s->max_pages - 1 : 0;
  const uint64_t pages = (bytes + s->page_bytes - 1) / s->page_bytes;
  const size_t n = pages < most ? (size_t)pages : most;
  const int rc = fl_slots_make_room(s, n * FL_KV_ROWS, NULL, err);
  if (rc != FL_OK && fl_engine_room_to_come(e, j)) return rc;
  s->loading_bytes = n * s->page_bytes;
  return FL_OK;
}

static int list(const fl_engine *e, const fl_selection *docs, fl_fetch_plan *s, fl_err *err) {
  size_t at[FL_PREFIX_DOCS];
  for (size_t i = 0; i < docs->n; i++)
    if (!fl_doc_by_id(e->fleet, docs->doc[i], &at[i]))
      return fl_fail(err, FL_ENOENT, "document %lu has left the fleet",
                     (unsigned long)docs->doc[i]);
  return fl_fetch_plan_list(s, e->fleet, at, docs->n, e->opt.speculate ? FL_TEXT_TOKENS : 0, err);
}

static int begin(fl_engine *e, fl_job *j, bool *waits, fl_err *err) {
  if (j->loads++ == LOADS)
    return fl_fail(err, FL_EFAIL, "the fleet changes faster than it can be read; try again");
  fl_fetch_plan *s = fl_calloc(1, sizeof *s);
  int rc = s != NULL ? list(e, &j->docs, s, err)
                     : fl_fail(err, FL_ENOMEM, "not enough memory for a request");
  if (rc == FL_OK && (rc = make_room(e, j, s->bytes, err)) != FL_OK) j->loads--; /* not tried */
  if (rc != FL_OK) {
    fl_fetch_plan_free(s);
    return rc;
  }
  *waits = s->to_read > 0;
  e->load = (fl_load){ .plan = s, .job = j, .ended = !*waits };
  if (*waits) fl_fleet_reader_fetch(e->reader, s);
  return FL_OK;
}

int fl_engine_need(fl_engine *e, fl_job *j, bool *waits, fl_err *err) {
  fl_load *l = &e->load;
  const bool own = l->plan != NULL && l->job == j;
  *waits = l->plan != NULL && !(own && l->ended);
  const int rc = own ? l->plan->rc : FL_OK;
  if (*waits || (own && rc == FL_OK)) return FL_OK;
  const bool outdated = rc == FL_ENOENT && l->plan->generation != fl_fleet_generation(e->fleet);
  if (own && !outdated && err != NULL) *err = l->plan->err;
  if (own) drop(e);
  return own && !outdated ? rc : begin(e, j, waits, err);
}

int fl_engine_compose(fl_engine *e, fl_job *j, fl_prefix **out, fl_err *err) {
  const size_t held = e->slots.loading_bytes;
  size_t rows = 0;
  int rc = fl_selection_rows(e->fleet, &j->docs, &rows, err);
  e->slots.loading_bytes = 0; /* what was read turns into these rows */
  if (rc == FL_OK) rc = fl_slots_make_room(&e->slots, rows, NULL, err);
  if (rc == FL_OK) rc = fl_prefix_make(out, &e->prefixes, e->fleet, &j->docs, e->load.plan, err);
  if (rc == FL_OK && e->opt.speculate)
    fl_prefix_take_texts(*out, fl_model_tokenizer(e->model), e->load.plan);
  if (rc == FL_EFULL) e->slots.loading_bytes = held; /* it waits for room with what it has */
  else drop(e);
  return rc;
}

/* --- the index --- */

int fl_engine_need_index(fl_engine *e, fl_job *j, bool *waits, fl_err *err) {
  fl_index_wait *k = &e->index_wait;
  *waits = j->index_read == 0 || j->index_read > k->done;
  if (*waits && j->index_read == 0) {
    if (k->asked == k->done) {
      k->asked++;
      fl_fleet_reader_poll_manifest(e->reader);
    }
    j->index_read = k->asked;
  }
  if (*waits) return FL_OK;
  if (k->rc == FL_OK) return fl_fail(err, FL_EFAIL, "the fleet changes faster than it can be read");
  return fl_fail(err, k->rc == FL_ENOMEM ? k->rc : FL_EFAIL, "%s", k->err.text);
}

void fl_engine_index_read(fl_engine *e, int rc, const fl_err *err) {
  e->index_wait.done = e->index_wait.asked;
  e->index_wait.rc = rc;
  e->index_wait.err = *err;
}
