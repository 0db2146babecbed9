/* loop.c - a run: births, index, residents, rounds, rotation, saves, the end. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "retrieval/retrieval.h"
#include "trainer/ranks.h"

const fl_cartridge *fl_trainer_cartridge(const void *ctx, size_t doc) {
  const fl_trainer *t = ctx;
  const fl_resident *s = fl_residency_find(&t->res, doc);
  return s != NULL ? &s->cart : NULL;
}

fl_rot_limits fl_trainer_limits(const fl_trainer *t) {
  return (fl_rot_limits){ .budget = t->f->opts.budget, .budget_bytes = t->f->opts.budget_bytes };
}

/* --- saving --- */

static bool anything_dirty(const fl_trainer *t) {
  for (size_t i = 0; i < t->res.n; i++)
    if (t->res.slot[i]->dirty || t->res.slot[i]->kept_dirty) return true;
  return t->f->unsaved;
}

/* Of a rank that does not write. Rank 0 may have saved in between by request: names tell of
 * changes, not of saves. */
static int follow_save(fl_trainer *t, fl_err *err) {
  const int rc = fl_residency_name(&t->res, t->f, err);
  if (rc == FL_OK) fl_residency_saved(&t->res);
  return rc;
}

int fl_trainer_save(fl_trainer *t, const char *reason, fl_err *err) {
  double began = fl_now_s();
  fl_commit c = { .dir = t->f->dir };
  if (!fl_dist_leads(t->f->dist)) return follow_save(t, err);
  if (t->diverged)
    return fl_fail(err, FL_EFAIL, "%s: the ranks diverged; train again with --resume", t->f->dir);
  if (!anything_dirty(t)) return FL_OK;
  int rc = fl_residency_save(&t->res, t->f, &c, err);
  if (rc == FL_OK) {
    rc = fl_fleet_commit(t->f, &c, reason, err);
  } else {
    fl_commit_abandon(&c);
    fl_err_prefix(err, "the last saved generation is whole, the new one was given up");
  }
  /* After a failure the manifest in memory names files that are not there, all of slots that are
   * DIRTY still: the next save writes them. What the folder names already is not written to. */
  if (rc == FL_OK || c.in_place) fl_residency_saved(&t->res);
  if (rc == FL_OK) fl_log_coverage(t);
  t->f->unsaved = rc != FL_OK;
  t->io_s += fl_now_s() - began;
  return rc;
}

/* Ranks that have diverged save nothing more. */
static int compare_ranks(fl_trainer *t, fl_err *err) {
  const int rc = fl_ranks_compare(t, err);
  t->diverged = t->diverged || rc == FL_EFAIL;
  return rc;
}

/* --- who is in memory --- */

/* Asks the system to read files ahead that will be needed soon. */
static void prefetch(const fl_fleet *f, size_t doc) {
  const char *const names[] = { f->m.doc[doc].cart_file, f->m.doc[doc].opt_file };
  for (size_t k = 0; k < 2; k++) {
    char *path = fl_fs_join(f->dir, names[k]);
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
      (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
      close(fd);
    }
    fl_free(path);
  }
}

typedef struct change { /* of the residents; positions in the manifest */
  size_t *out, *in;
  size_t n_out, n_in;
} change;

static void set_resident(fl_rot_doc *d, const size_t *v, size_t n, bool resident) {
  for (size_t i = 0; i < n; i++) d[v[i]].resident = resident;
}

/* The difference between the manifest's residents and those in d. */
static void difference(const fl_fleet *f, const fl_rot_doc *d, change *c) {
  c->n_out = c->n_in = 0;
  for (size_t i = 0; i < f->m.n; i++) {
    if (f->m.doc[i].resident && !d[i].resident) c->out[c->n_out++] = i;
    if (!f->m.doc[i].resident && d[i].resident) c->in[c->n_in++] = i;
  }
}

/* What the limits and, if asked for, a rotation change. Arrays of c have room for all documents. */
static int plan_change(const fl_trainer *t, bool rotate, change *c, fl_err *err) {
  const fl_fleet *f = t->f;
  const fl_rot_limits l = fl_trainer_limits(t);
  fl_rot_doc *d = fl_calloc(f->m.n, sizeof *d);
  if (d == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory to rotate");
  fl_rot_docs(f, d);
  fl_rotate_trim(d, f->m.n, &l, c->out, &c->n_out);
  set_resident(d, c->out, c->n_out, false);
  if (rotate) {
    fl_rotate(d, f->m.n, &l, f->opts.evict_frac, c->out, &c->n_out, c->in, &c->n_in);
    set_resident(d, c->out, c->n_out, false);
    set_resident(d, c->in, c->n_in, true);
  }
  fl_rotate_fill(d, f->m.n, &l, c->in, &c->n_in);
  set_resident(d, c->in, c->n_in, true);
  difference(f, d, c);
  fl_free(d);
  return FL_OK;
}

static int change_init(change *c, size_t n, fl_err *err) {
  c->out = fl_calloc(n + 1, sizeof *c->out);
  c->in = fl_calloc(n + 1, sizeof *c->in);
  return c->out != NULL && c->in != NULL ? FL_OK
                                         : fl_fail(err, FL_ENOMEM, "not enough memory to rotate");
}

static void change_release(change *c) {
  fl_free(c->out);
  fl_free(c->in);
}

static void mark_residents(fl_fleet *f, const change *c) {
  for (size_t i = 0; i < c->n_out; i++) f->m.doc[c->out[i]].resident = false;
  for (size_t i = 0; i < c->n_in; i++) f->m.doc[c->in[i]].resident = true;
  if (c->n_out + c->n_in > 0) f->unsaved = true;
}

static int load(fl_trainer *t, size_t doc, fl_err *err) {
  double began = fl_now_s();
  int rc = fl_residency_load(&t->res, t->f, doc, &t->plan.conv, err);
  fl_doc_entry *d = &t->f->m.doc[doc];
  if (rc == FL_OK && d->rows == 0) { /* a fleet by another program does not say */
    d->rows = fl_residency_find(&t->res, doc)->cart.rows.n_rows;
    t->f->unsaved = true;
  }
  t->io_s += fl_now_s() - began;
  return rc;
}

/* At the start of a run: the residents of the manifest, then up to the budget. */
static int first_residents(fl_trainer *t, fl_err *err) {
  fl_fleet *f = t->f;
  change c = { 0 };
  int rc = change_init(&c, f->m.n, err);
  if (rc == FL_OK) rc = plan_change(t, false, &c, err);
  if (rc == FL_OK) mark_residents(f, &c);
  for (size_t i = 0; rc == FL_OK && i < f->m.n; i++) {
    if (!f->m.doc[i].resident) continue;
    fl_hooks_note(f, t->hooks, f->m.doc[i].name, "loading");
    rc = load(t, i, err);
  }
  change_release(&c);
  return rc;
}

/* One commit carries the rows of those who leave and the new set of residents. Rank 0 is through
 * with it before any rank reads files again. */
static int exchange(fl_trainer *t, const change *c, fl_err *err) {
  fl_fleet *f = t->f;
  for (size_t i = 0; i < c->n_in; i++) prefetch(f, c->in[i]);
  int rc = compare_ranks(t, err);
  if (rc != FL_OK) return rc;
  mark_residents(f, c);
  rc = fl_dist_agree(f->dist, "rotate", fl_trainer_save(t, "rotate", err), err);
  if (rc != FL_OK) return rc;
  fl_log_rotation(t, c->out, c->n_out, c->in, c->n_in);
  /* After the last round nobody needs the new ones; the next run loads them. */
  if (f->m.rounds >= t->last_round) return FL_OK;
  for (size_t i = 0; i < c->n_out; i++) fl_residency_drop(&t->res, c->out[i]);
  for (size_t i = 0; rc == FL_OK && i < c->n_in; i++) rc = load(t, c->in[i], err);
  return rc == FL_OK ? fl_trainer_heldout(t, err) : rc;
}

static int make_plan(fl_trainer *t, fl_err *err) {
  const fl_fleet *f = t->f;
  t->budget = f->opts.budget;
  return fl_train_sizes_make(&t->plan, &f->opts, (size_t)f->m.p, f->m.n, fl_model_hparams(f->model),
                             f->dir, err);
}

static int make_stepper(fl_trainer *t, fl_err *err) {
  fl_stepper_limits step = t->plan.step;
  step.dist = t->f->dist;
  fl_stepper_free(t->stepper);
  t->stepper = NULL;
  return fl_stepper_new(&t->stepper, t->f->model, t->f->team, &step, err);
}

/* A budget that was set takes effect as it would at the start of a run: in who is resident, and in
 * how many of them a conversation sees. */
static int follow_budget(fl_trainer *t, fl_err *err) {
  const size_t budget = t->f->opts.budget, parts = t->plan.max_parts;
  change c = { 0 };
  int rc = change_init(&c, t->f->m.n, err);
  if (rc == FL_OK) rc = plan_change(t, false, &c, err);
  if (rc == FL_OK && c.n_out + c.n_in > 0) rc = exchange(t, &c, err);
  change_release(&c);
  if (rc == FL_OK) rc = make_plan(t, err);
  if (rc == FL_OK && t->plan.max_parts != parts) rc = make_stepper(t, err);
  t->budget = budget; /* another may have been set meanwhile */
  return rc;
}

/* Rotation and saves depend on the number of the round alone. */
static int after_round(fl_trainer *t, fl_err *err) {
  const fl_train_options *o = &t->f->opts;
  const uint64_t r = t->f->m.rounds;
  bool rotated = false;
  int rc = FL_OK;
  if (o->rotate_every > 0 && r % o->rotate_every == 0) {
    change c = { 0 };
    rc = change_init(&c, t->f->m.n, err);
    if (rc == FL_OK) rc = plan_change(t, true, &c, err);
    rotated = rc == FL_OK && c.n_out + c.n_in > 0;
    if (rotated) rc = exchange(t, &c, err);
    change_release(&c);
  }
  if (rc == FL_OK && !rotated && o->save_every > 0 && r % o->save_every == 0) {
    rc = compare_ranks(t, err);
    if (rc == FL_OK) rc = fl_trainer_save(t, "every", err);
  }
  if (rc == FL_OK && o->eval_every > 0 && r % o->eval_every == 0 && r < t->last_round)
    rc = fl_trainer_evaluate(t, err);
  return rc;
}

/* --- a run --- */

static int workspaces(fl_trainer *t, fl_err *err) {
  const fl_fleet *f = t->f;
  int rc = fl_pass_new(&t->pass, f->model, f->team, &t->plan.pass, err);
  if (rc == FL_OK)
    rc = fl_kv_pool_new(&t->pool, fl_model_hparams(f->model), fl_model_kernels(f->model),
                        f->opts.gen_kv, 0, err);
  if (rc == FL_OK) rc = make_stepper(t, err);
  if (rc == FL_OK) rc = fl_lookahead_init(&t->ahead, fl_ranks_room(t), err);
  return rc;
}

static int rounds(fl_trainer *t, fl_err *err) {
  int rc = FL_OK;
  while (rc == FL_OK && t->f->m.rounds < t->last_round) {
    rc = fl_trainer_sync(t, err);
    if (rc == FL_OK && t->f->m.rounds >= t->last_round) break; /* set lower in between */
    if (rc == FL_OK && t->f->opts.budget != t->budget) {
      rc = follow_budget(t, err);
      continue; /* it took a while: other things may have been set */
    }
    if (rc == FL_OK) rc = fl_trainer_round(t, err);
    if (rc == FL_OK) rc = after_round(t, err);
    if (t->one_step) {
      t->one_step = false;
      t->paused = true;
    }
  }
  return rc;
}

/* Births and index are made by rank 0; the others read what it committed. */
static int prepare(fl_trainer *t, fl_err *err) {
  fl_fleet *f = t->f;
  bool changed = false, news = f->unsaved || f->m.index_file == NULL || f->m.lexical_file == NULL;
  int rc = FL_OK;
  for (size_t i = 0; i < f->m.n; i++) news = news || !f->m.doc[i].born;
  if (fl_dist_leads(f->dist)) {
    rc = fl_trainer_births(t, err);
    if (rc == FL_OK) rc = fl_trainer_index(t, err);
  }
  rc = fl_trainer_share(t, rc, err);
  if (rc == FL_OK && news && !fl_dist_leads(f->dist)) {
    rc = fl_fleet_reload(f, &changed, err);
    f->unsaved = false;
  }
  return rc;
}

static int train(fl_trainer *t, fl_err *err) {
  const fl_fleet *f = t->f;
  int rc = FL_OK;
  if (f->opts.rounds > 0) rc = make_plan(t, err);
  if (rc == FL_OK) rc = prepare(t, err);
  if (rc != FL_OK) return rc;
  fl_index_forget(t->f); /* a query reads it again */
  fl_fleet_evict_pages(t->f);
  if (t->f->opts.rounds == 0) {
    fl_log_docs(t);
    return FL_OK;
  }
  rc = workspaces(t, err);
  if (rc == FL_OK) rc = first_residents(t, err);
  if (rc != FL_OK) return rc;
  fl_log_docs(t);
  rc = fl_trainer_heldout(t, err);
  if (rc == FL_OK) rc = fl_trainer_evaluate(t, err);
  if (rc == FL_OK) rc = rounds(t, err);
  if (rc == FL_OK) rc = compare_ranks(t, err);
  if (rc == FL_OK) rc = fl_trainer_evaluate(t, err);
  return rc;
}

/* What a run leaves behind, however it ended. */
static int finish(fl_trainer *t, int rc, fl_err *err) {
  fl_fleet *f = t->f;
  if (rc == FL_EINTR) { /* on every rank, as all ends are; a run that is done has compared */
    const int same = compare_ranks(t, err);
    if (same != FL_OK) rc = same;
  }
  const char *status = rc == FL_OK ? "done" : rc == FL_EINTR ? "signal" : "error";
  if (!fl_dist_leads(f->dist)) return rc;
  /* After a step that went wrong the rounds before it are still good. */
  const bool well = rc == FL_OK || rc == FL_EINTR;
  if (well || (rc == FL_EFAIL && !t->diverged)) {
    int saved = fl_trainer_save(t, rc == FL_OK ? "end" : status, well ? err : NULL);
    if (saved != FL_OK && well) {
      rc = saved;
      status = "error";
    }
  }
  if (rc != FL_OK && rc != FL_EINTR && err != NULL) {
    fl_event e;
    fl_event_begin(&e, "error");
    fl_event_str(&e, "text", err->text);
    fl_event_emit(f->log, &e);
  }
  fl_log_end(f, status, fl_now_s() - t->began_s);
  return rc;
}

static void trainer_release(fl_trainer *t) {
  t->f->rows_of = NULL;
  fl_control_close(t->control);
  fl_lookahead_release(&t->ahead);
  fl_residency_release(&t->res);
  fl_stepper_free(t->stepper);
  fl_pass_free(t->pass);
  fl_kv_pool_free(t->pool);
}

int fl_fleet_train(fl_fleet *f, const fl_train_hooks *hooks, fl_err *err) {
  fl_err why = { 0 }, own = { 0 };
  fl_err *e = err != NULL ? err : &own; /* the log wants the sentence in any case */
  if (f->read_only) return fl_fail(err, FL_EUSAGE, "%s: opened for reading only", f->dir);
  fl_trainer t = { .f = f,
                   .hooks = hooks,
                   .began_s = fl_now_s(),
                   .first_round = f->m.rounds,
                   .last_round = f->m.rounds + f->opts.rounds };
  if (t.last_round >= UINT32_MAX)
    return fl_fail(err, FL_EUSAGE, "--rounds: more than a fleet can count (4294967294 in all)");
  t.protocol = fl_trainer_protocol(&t);
  f->rows_of = fl_trainer_cartridge;
  f->rows_ctx = &t;
  if (fl_dist_leads(f->dist) &&
      fl_control_open(&t.control, f->dir, fl_control_handle, &t.protocol, &why) != FL_OK)
    fl_warn("%s", why.text);
  fl_fleet_log_run(f, "train", t.last_round);
  int rc = finish(&t, train(&t, e), e);
  trainer_release(&t);
  return rc;
}
