/* io_wait.c - what jobs need from the fleet's disk. The engine never waits for it: the job does, in
 * the queue, and those behind it that need nothing go past. One load is on its way at a time; it
 * belongs to a job, until that goes away, and then to nobody.
 *
 * The index is had by a look at the manifest, one for all who miss it.
 *
 *   NONE --fl_engine_need--> READING --fl_engine_supplied--> THERE --fl_engine_need_over--> NONE
 *                                                                    composed, failed or given up
 */
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "serve/engine_state.h"

enum { LOADS = 8 }; /* of one job: each shows that a trainer has committed meanwhile */

static void drop(fl_engine *e) {
  fl_load *l = &e->load;
  if (l->supply != NULL && l->rc == FL_OK) fl_fetch_plan_keep(l->supply, e->fleet);
  fl_fetch_plan_free(l->supply);
  *l = (fl_load){ 0 };
  e->slots.elsewhere = 0;
}

void fl_engine_need_over(fl_engine *e, const fl_job *j) {
  if (e->load.job != j || e->load.supply == NULL) return;
  e->load.job = NULL;
  if (e->load.there) drop(e);
}

void fl_engine_supplied(fl_engine *e, const fl_loaded *l) {
  e->load.there = true;
  e->load.rc = l->supply_rc;
  e->load.err = l->supply_err;
  if (e->load.job == NULL) drop(e);
}

void fl_engine_load_release(fl_engine *e) {
  if (e->load.there) drop(e); /* else it is the loader's */
}

/* Others end, what is read for them turns into fewer rows, or rows go to the disk. */
bool fl_engine_room_to_come(const fl_engine *e, const fl_job *j) {
  return e->n_jobs > 0 || (e->load.supply != NULL && e->load.job != j) ||
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
  s->elsewhere = n * s->page_bytes;
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
  e->load = (fl_load){ .supply = s, .job = j, .there = !*waits, .began = fl_now_s() };
  if (*waits) fl_fleet_reader_begin(e->loader, s);
  return FL_OK;
}

int fl_engine_need(fl_engine *e, fl_job *j, bool *waits, fl_err *err) {
  fl_load *l = &e->load;
  const bool own = l->supply != NULL && l->job == j;
  *waits = l->supply != NULL && !(own && l->there);
  if (*waits || (own && l->rc == FL_OK)) return FL_OK;
  if (own && !(l->rc == FL_ENOENT && l->supply->generation != fl_fleet_generation(e->fleet))) {
    const int rc = l->rc;
    if (err != NULL) *err = l->err;
    drop(e);
    return rc;
  }
  if (own) drop(e); /* of a generation that has gone */
  return begin(e, j, waits, err);
}

int fl_engine_compose(fl_engine *e, fl_job *j, fl_prefix **out, fl_err *err) {
  const size_t held = e->slots.elsewhere;
  size_t rows = 0;
  int rc = fl_selection_rows(e->fleet, &j->docs, &rows, err);
  e->slots.elsewhere = 0; /* what was read turns into these rows */
  if (rc == FL_OK) rc = fl_slots_make_room(&e->slots, rows, NULL, err);
  if (rc == FL_OK) rc = fl_prefix_make(out, &e->prefixes, e->fleet, &j->docs, e->load.supply, err);
  if (rc == FL_OK && e->opt.speculate)
    fl_prefix_take_texts(*out, fl_model_tokenizer(e->model), e->load.supply);
  if (rc == FL_EFULL) e->slots.elsewhere = held; /* it waits for room with what it has */
  else drop(e);
  return rc;
}

/* --- the index --- */

int fl_engine_need_index(fl_engine *e, fl_job *j, bool *waits, fl_err *err) {
  fl_look *k = &e->look;
  *waits = j->look == 0 || j->look > k->done;
  if (*waits && j->look == 0) {
    if (k->asked == k->done) {
      k->asked++;
      k->began = fl_now_s();
      fl_fleet_reader_look(e->loader);
    }
    j->look = k->asked;
  }
  if (*waits) return FL_OK;
  if (k->rc == FL_OK) return fl_fail(err, FL_EFAIL, "the fleet changes faster than it can be read");
  return fl_fail(err, k->rc == FL_ENOMEM ? k->rc : FL_EFAIL, "%s", k->err.text);
}

void fl_engine_looked(fl_engine *e, int rc, const fl_err *err) {
  e->look.done = e->look.asked;
  e->look.rc = rc;
  e->look.err = *err;
}

bool fl_engine_disk_stands(const fl_engine *e) {
  const double since = fl_now_s() - FL_DISK_PATIENCE_S;
  return (e->load.supply != NULL && !e->load.there && e->load.began < since) ||
         (e->look.done < e->look.asked && e->look.began < since);
}
