/* forced.c - see forced.h. */
#include "study/forced.h"

#include <math.h>

#include "base/mem.h"

enum { ROWS_AT_ONCE = 8 };

typedef struct piece { /* of one forward: rows of answer `of`, from its row `at` on */
  size_t of, at, n;
} piece;

typedef struct runner {
  fl_forced *f;
  size_t n;
  fl_pass *pass;
  size_t n_vocab, at_once;
  double mass;
  fl_seq **seq;  /* [n] */
  fl_ids *ids;   /* [n] prompt and answer */
  float *logits; /* [at_once, n_vocab] */
  fl_span *span; /* [n] */
  piece *piece;  /* [n] */
  size_t n_pieces;
} runner;

static int set_up(runner *r, fl_err *err) {
  const size_t n = r->n;
  r->seq = fl_calloc(n, sizeof *r->seq);
  r->ids = fl_calloc(n, sizeof *r->ids);
  r->span = fl_calloc(n, sizeof *r->span);
  r->piece = fl_calloc(n, sizeof *r->piece);
  r->logits = fl_calloc(r->at_once, r->n_vocab * sizeof *r->logits);
  bool ok = r->seq && r->ids && r->span && r->piece && r->logits;
  for (size_t i = 0; ok && i < n; i++) {
    const fl_forced *f = &r->f[i];
    fl_ids_append(&r->ids[i], f->prompt->data, f->prompt->len);
    fl_ids_append(&r->ids[i], f->answer->data, f->answer->len);
    ok = !r->ids[i].oom;
  }
  if (!ok) return fl_fail(err, FL_ENOMEM, "out of memory for the teacher's rows");
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < n; i++)
    rc = fl_seq_fork(&r->seq[i], r->f[i].system, fl_seq_rows(r->f[i].system), err);
  return rc;
}

static void tear_down(runner *r) {
  for (size_t i = 0; r->seq && i < r->n; i++) fl_seq_free(r->seq[i]);
  for (size_t i = 0; r->ids && i < r->n; i++) fl_ids_release(&r->ids[i]);
  fl_free(r->seq);
  fl_free(r->ids);
  fl_free(r->span);
  fl_free(r->piece);
  fl_free(r->logits);
}

/* Cuts the next forward: *of, *at is where the last one ended. */
static size_t cut(runner *r, size_t *of, size_t *at) {
  const size_t most = fl_pass_max_rows(r->pass);
  size_t rows = 0;
  r->n_pieces = 0;
  while (*of < r->n && rows < most) {
    const fl_ids *ids = &r->ids[*of];
    const size_t left = ids->len - *at, n = left < most - rows ? left : most - rows;
    const size_t first = r->f[*of].prompt->len - 1; /* the row that predicts the first token */
    const size_t silent = first > *at ? first - *at : 0;
    r->span[r->n_pieces] = (fl_span){ .seq = r->seq[*of],
                                      .tokens = ids->data + *at,
                                      .n_rows = n,
                                      .n_no_output = silent < n ? silent : n };
    r->piece[r->n_pieces++] = (piece){ *of, *at, n };
    rows += n;
    *at += n;
    if (*at == ids->len) *at = 0, (*of)++;
  }
  return rows;
}

/* What the teacher gave the token that follows: its share of the likeliest one's probability. */
static double loss_of(const float *logits, const fl_target_room *room, int32_t next) {
  const size_t at = (room->n_rows - 1) * room->top_k;
  return (double)logits[room->id[at]] - (double)logits[next] - log((double)room->prob[at]);
}

static void take_rows(runner *r, const size_t *rows, size_t n, const piece *p, size_t first) {
  fl_forced *f = &r->f[p->of];
  const size_t prompt = f->prompt->len;
  fl_pass_logits(r->pass, rows, n, r->logits);
  for (size_t i = 0; i < n; i++) {
    const float *row = r->logits + i * r->n_vocab;
    const size_t next = first + i + 1; /* in prompt and answer */
    fl_target_room_add(f->room, fl_model_kernels(fl_pass_model(r->pass)), row, r->n_vocab, r->mass);
    if (next < prompt + f->answer->len)
      f->loss += loss_of(row, f->room, f->answer->data[next - prompt]);
  }
}

/* The rows of a piece, which begins at row `base` of the pass, that predict the answer. */
static void take_piece(runner *r, const piece *p, size_t base) {
  const size_t first = r->f[p->of].prompt->len - 1;
  size_t rows[ROWS_AT_ONCE], held = 0;
  for (size_t at = p->at > first ? p->at : first; at < p->at + p->n; at++) {
    rows[held++] = base + at - p->at;
    if (held < r->at_once && at + 1 < p->at + p->n) continue;
    take_rows(r, rows, held, p, at + 1 - held);
    held = 0;
  }
}

int fl_forced_run(fl_forced *f, size_t n, const fl_study_options *o, fl_pass *pass, fl_err *err) {
  runner r = { .f = f,
               .n = n,
               .pass = pass,
               .n_vocab = fl_model_hparams(fl_pass_model(pass))->n_vocab,
               .at_once = n < ROWS_AT_ONCE ? n : ROWS_AT_ONCE,
               .mass = o->top_mass };
  size_t of = 0, at = 0;
  if (n == 0) return FL_OK;
  int rc = set_up(&r, err);
  for (size_t i = 0; i < n; i++) f[i].loss = 0;
  while (rc == FL_OK && cut(&r, &of, &at) > 0) {
    if (o->cancelled && o->cancelled(o->cancel_ctx)) rc = fl_fail(err, FL_EINTR, "stopped");
    else rc = fl_pass_forward(pass, r.span, r.n_pieces, err);
    size_t base = 0;
    for (size_t i = 0; rc == FL_OK && i < r.n_pieces; i++) {
      take_piece(&r, &r.piece[i], base);
      base += r.piece[i].n;
    }
  }
  tear_down(&r);
  return rc;
}
