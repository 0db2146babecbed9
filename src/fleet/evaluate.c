/* evaluate.c - held-out conversations: made once, evaluated alone and beside the others. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "fleet/trainer.h"

static bool cancelled(void *ctx) { return fl_trainer_poll(ctx); }

/* All conversations of one document in one batch. */
static int make_for(fl_trainer *t, fl_resident *s, size_t n, fl_err *err) {
  fl_study_options o = fl_trainer_study(t);
  fl_conv *conv = fl_calloc(n, sizeof *conv);
  bool *ok = fl_calloc(n, sizeof *ok);
  fl_conv_plan *plan = fl_calloc(n, sizeof *plan);
  const fl_doc_text **text = fl_calloc(n, sizeof *text);
  int rc = FL_OK;
  if (conv == NULL || ok == NULL || plan == NULL || text == NULL) {
    rc = fl_fail(err, FL_ENOMEM, "not enough memory for held-out conversations");
    goto done;
  }
  o.cancelled = cancelled;
  o.cancel_ctx = t;
  fl_heldout_plan(t->f, s, n, plan);
  for (size_t i = 0; i < n; i++) text[i] = &s->text;
  /* No log: these conversations are no part of the training. */
  rc = fl_study_make(conv, ok, plan, text, n, &o, t->pass, t->pool, NULL, NULL, err);
  for (size_t i = 0; rc == FL_OK && i < n; i++)
    ok[i] = ok[i] && fl_conv_within(&conv[i], &t->limits);
  if (rc == FL_OK) rc = fl_heldout_take(s, conv, ok, n, err);
done:
  for (size_t i = 0; conv != NULL && i < n; i++) fl_conv_release(&conv[i]);
  fl_free(conv);
  fl_free(ok);
  fl_free(plan);
  fl_free(text);
  return rc;
}

int fl_trainer_heldout(fl_trainer *t, fl_err *err) {
  size_t n = t->f->opts.heldout < t->max_convs ? t->f->opts.heldout : t->max_convs;
  bool any = false;
  if (n == 0) return FL_OK;
  bool *fresh = fl_calloc(t->res.n + 1, sizeof *fresh);
  if (fresh == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for held-out conversations");
  int rc = fl_heldout_read(&t->res, t->f, &t->limits, err);
  for (size_t i = 0; rc == FL_OK && i < t->res.n; i++) {
    fl_resident *s = t->res.slot[i];
    if (s->heldout_known) continue;
    fl_hooks_note(t->f, t->hooks, t->f->m.doc[s->doc].name, "held-out conversations");
    rc = make_for(t, s, n, err);
    if (rc == FL_OK) any = fresh[i] = true;
  }
  if (any) { /* also after a stop: what was made is not made again */
    int wrote = fl_heldout_write(&t->res, t->f, fresh, rc == FL_OK ? err : NULL);
    if (rc == FL_OK) rc = wrote;
  }
  fl_free(fresh);
  return rc;
}

/* Loss of slot i's held-out conversations behind the given parts. */
static int loss_behind(fl_trainer *t, size_t i, const size_t *parts, size_t n_parts, double *loss,
                       fl_err *err) {
  const fl_resident *s = t->res.slot[i];
  size_t n = s->n_heldout < t->max_convs ? s->n_heldout : t->max_convs, n_sup = 0;
  fl_step_conv *c = fl_calloc(n, sizeof *c);
  if (c == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for the held-out loss");
  for (size_t k = 0; k < n; k++)
    c[k] = (fl_step_conv){ .conv = &s->heldout[k], .parts = parts, .n_parts = n_parts };
  int rc = fl_step_eval(t->stepper, t->res.trainee, t->res.n, c, n, loss, &n_sup, err);
  fl_free(c);
  return rc;
}

/* The document and as many others as a step allows, in the order of the manifest. */
static size_t parts_around(const fl_trainer *t, size_t i, size_t *parts) {
  size_t n = 0, most = t->max_parts;
  for (size_t k = 0; k < t->res.n; k++) {
    bool room = n + (k < i ? 1 : 0) < most; /* a place is kept for i */
    if (k == i || room) parts[n++] = k;
  }
  return n;
}

int fl_trainer_evaluate(fl_trainer *t, fl_err *err) {
  size_t *parts = fl_calloc(t->res.n + 1, sizeof *parts);
  int rc = parts != NULL ? FL_OK
                         : fl_fail(err, FL_ENOMEM, "not enough memory for the held-out loss");
  for (size_t i = 0; rc == FL_OK && i < t->res.n; i++) {
    const fl_resident *s = t->res.slot[i];
    double alone = NAN, composed = NAN;
    if (s->n_heldout == 0) continue;
    if (fl_trainer_poll(t)) break;
    rc = loss_behind(t, i, &i, 1, &alone, err);
    size_t n = parts_around(t, i, parts);
    if (rc == FL_OK && n > 1) rc = loss_behind(t, i, parts, n, &composed, err);
    if (rc == FL_OK) fl_log_heldout(t, s->doc, alone, composed, s->n_heldout);
  }
  fl_free(parts);
  if (rc == FL_OK && t->hooks != NULL && t->hooks->evaluate != NULL && !fl_trainer_poll(t))
    rc = t->hooks->evaluate(t->hooks->ctx, t->f, t->f->m.rounds, err);
  return rc;
}
