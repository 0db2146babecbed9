/* summary.c - what an evaluation found, as one JSON object. Intervals come from one set of
 * resamples for all arms, so that differences between arms are paired. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "eval/state.h"
#include "eval/stats.h"

/* Columns of the resampled table, for every arm. */
enum { COL_RIGHT, COL_NLL, COL_TOKENS, N_COLS };

typedef struct spread { /* of one statistic */
  double value, low, high;
} spread;

typedef struct table {
  const eval_summary *s;
  double *x;       /* [questions, arms * N_COLS] */
  double *sums;    /* [1 + resamples, arms * N_COLS]; row 0: of the questions as they are */
  double *scratch; /* [resamples] */
} table;

bool eval_is_right(const eval_summary *s, size_t arm, size_t i) {
  const eval_answer *a = &s->result[arm].answer[i];
  return s->score == EVAL_EXACT ? a->exact : s->score == EVAL_CHOICE ? a->choice : a->contains;
}

static int table_init(table *t, const eval_summary *s, fl_err *err) {
  const size_t n = s->q->n, width = s->arms->n * N_COLS;
  size_t rows;
  *t = (table){ .s = s };
  if (fl_mul_size(s->resamples + 1, width, &rows)) t->sums = fl_calloc(rows, sizeof *t->sums);
  t->x = fl_calloc(n, width * sizeof *t->x);
  t->scratch = fl_calloc(s->resamples, sizeof *t->scratch);
  if (!t->sums || !t->x || !t->scratch)
    return fl_fail(err, FL_ENOMEM, "not enough memory for %zu resamples", s->resamples);
  for (size_t i = 0; i < n; i++)
    for (size_t a = 0; a < s->arms->n; a++) {
      double *row = t->x + i * width + a * N_COLS;
      row[COL_RIGHT] = eval_is_right(s, a, i);
      row[COL_NLL] = s->result[a].answer[i].nll;
      row[COL_TOKENS] = (double)s->result[a].answer[i].nll_tokens;
      for (size_t c = 0; c < N_COLS; c++) t->sums[a * N_COLS + c] += row[c];
    }
  eval_resample(t->sums + width, s->resamples, t->x, n, width);
  return FL_OK;
}

static void table_release(table *t) {
  fl_free(t->x);
  fl_free(t->sums);
  fl_free(t->scratch);
}

/* A statistic of the sums of one resample; other is the arm of a difference. */
typedef double statistic(const table *t, const double *sums, size_t arm, size_t other);

static double share(const table *t, const double *sums, size_t arm, size_t other) {
  (void)other;
  return sums[arm * N_COLS + COL_RIGHT] / (double)t->s->q->n;
}

static double share_less(const table *t, const double *sums, size_t arm, size_t other) {
  return share(t, sums, arm, 0) - share(t, sums, other, 0);
}

static double perplexity(const table *t, const double *sums, size_t arm, size_t other) {
  (void)t;
  (void)other;
  return exp(sums[arm * N_COLS + COL_NLL] / sums[arm * N_COLS + COL_TOKENS]);
}

static double perplexity_times(const table *t, const double *sums, size_t arm, size_t other) {
  return perplexity(t, sums, arm, 0) / perplexity(t, sums, other, 0);
}

static spread spread_of(const table *t, statistic *f, size_t arm, size_t other) {
  const size_t width = t->s->arms->n * N_COLS;
  spread r = { .value = f(t, t->sums, arm, other) };
  for (size_t k = 0; k < t->s->resamples; k++)
    t->scratch[k] = f(t, t->sums + (k + 1) * width, arm, other);
  eval_middle95(t->scratch, t->s->resamples, &r.low, &r.high);
  return r;
}

/* Four decimals say all that a few hundred questions can. */
static void set_rounded(fl_json *o, const char *key, double v) {
  fl_json_set_num(o, key, isfinite(v) ? round(v * 1e4) / 1e4 : v);
}

static const char *arm_name(const eval_summary *s, size_t i) {
  return eval_arm_names[s->arms->arm[i]];
}

static void set_counts(fl_json *row, const eval_summary *s, size_t a) {
  const eval_result *r = &s->result[a];
  size_t contains = 0, exact = 0, choice = 0;
  double rows = 0, prompt = 0;
  for (size_t i = 0; i < r->n; i++) {
    contains += r->answer[i].contains;
    exact += r->answer[i].exact;
    choice += r->answer[i].choice;
    rows += (double)r->answer[i].rows / (double)r->n;
    prompt += (double)r->answer[i].prompt_tokens / (double)r->n;
  }
  fl_json_set_u64(row, "contains", contains);
  fl_json_set_u64(row, "exact", exact);
  if (s->q->n_options > 0) fl_json_set_u64(row, "choice", choice);
  fl_json_set_num(row, "rows", round(rows * 10) / 10);
  fl_json_set_num(row, "prompt_tokens", round(prompt * 10) / 10);
  if (r->n_alone > 0) {
    set_rounded(row, "first_token_s", r->first_token_s);
    fl_json_set_num(row, "tokens_a_second", round(r->tokens_per_s * 10) / 10);
  }
  set_rounded(row, "all_s", r->seconds);
}

static fl_json *arms_json(const table *t) {
  const eval_summary *s = t->s;
  fl_json *rows = fl_json_array();
  for (size_t a = 0; rows && a < s->arms->n; a++) {
    spread r = spread_of(t, share, a, 0);
    fl_json *row = fl_json_object();
    fl_json_set_str(row, "arm", arm_name(s, a));
    fl_json_set_u64(row, "right", (uint64_t)t->sums[a * N_COLS + COL_RIGHT]);
    fl_json_set_u64(row, "of", s->q->n);
    set_rounded(row, "share", r.value);
    set_rounded(row, "low", r.low);
    set_rounded(row, "high", r.high);
    set_counts(row, s, a);
    fl_json_push(rows, row);
  }
  return rows;
}

static fl_json *perplexity_json(const table *t) {
  fl_json *rows = fl_json_array();
  for (size_t a = 0; rows && a < t->s->arms->n; a++) {
    spread r = spread_of(t, perplexity, a, 0);
    fl_json *row = fl_json_object();
    fl_json_set_str(row, "arm", arm_name(t->s, a));
    set_rounded(row, "perplexity", r.value);
    set_rounded(row, "low", r.low);
    set_rounded(row, "high", r.high);
    fl_json_set_u64(row, "tokens", (uint64_t)t->sums[a * N_COLS + COL_TOKENS]);
    fl_json_push(rows, row);
  }
  return rows;
}

static fl_json *differences_json(const table *t) {
  fl_json *rows = fl_json_array();
  size_t against = (size_t)t->s->against;
  for (size_t a = 0; rows && a < t->s->arms->n; a++) {
    if (a == against) continue;
    spread d = spread_of(t, share_less, a, against);
    spread p = spread_of(t, perplexity_times, a, against);
    fl_json *row = fl_json_object();
    fl_json_set_str(row, "arm", arm_name(t->s, a));
    fl_json_set_str(row, "against", arm_name(t->s, against));
    set_rounded(row, "share", d.value);
    set_rounded(row, "low", d.low);
    set_rounded(row, "high", d.high);
    set_rounded(row, "perplexity_times", p.value);
    set_rounded(row, "times_low", p.low);
    set_rounded(row, "times_high", p.high);
    fl_json_push(rows, row);
  }
  return rows;
}

/* Right answers by document, in the fleet's order; documents without a question are left out. */
static fl_json *documents_json(const eval_summary *s, const fl_fleet *f) {
  fl_json *rows = fl_json_array();
  for (size_t d = 0; rows && d < fl_fleet_n_docs(f); d++) {
    fl_doc_info info;
    size_t n = 0, right[EVAL_N_ARMS] = { 0 };
    fl_fleet_doc(f, d, &info);
    for (size_t i = 0; i < s->q->n; i++) {
      if (s->q->q[i].doc_index != d) continue;
      n++;
      for (size_t a = 0; a < s->arms->n; a++) right[a] += eval_is_right(s, a, i);
    }
    fl_json *row = n > 0 ? fl_json_object() : NULL;
    if (!row) continue;
    fl_json_set_str(row, "document", info.name);
    fl_json_set_u64(row, "questions", n);
    for (size_t a = 0; a < s->arms->n; a++) fl_json_set_u64(row, arm_name(s, a), right[a]);
    fl_json_push(rows, row);
  }
  return rows;
}

static fl_json *answers_json(const eval_summary *s) {
  fl_json *rows = fl_json_array();
  for (size_t i = 0; rows && i < s->q->n; i++) {
    fl_json *row = fl_json_object();
    fl_json_set_str(row, "question", s->q->q[i].question);
    fl_json_set_str(row, "value", s->q->q[i].value.v[0]);
    for (size_t a = 0; a < s->arms->n; a++)
      fl_json_set_str(row, arm_name(s, a), s->result[a].answer[i].text);
    fl_json_push(rows, row);
  }
  return rows;
}

/* How often retrieval put the question's document first, and among the chosen. */
static void set_retrieval(fl_json *out, const eval_state *b) {
  size_t first = 0, among = 0;
  for (size_t i = 0; i < b->q->n; i++)
    for (size_t d = 0; d < b->hits[i].n_docs; d++) {
      if (b->hits[i].doc[d].doc != b->q->q[i].doc_index) continue;
      among++;
      first += d == 0;
    }
  fl_json_set_u64(out, "right_document_first", first);
  fl_json_set_u64(out, "right_document_chosen", among);
}

int eval_summary_json(fl_json **out, const eval_summary *s, fl_fleet *f, eval_state *b,
                      fl_err *err) {
  table t;
  fl_json *o = fl_json_object();
  int rc = table_init(&t, s, err);
  if (rc == FL_OK && !o) rc = fl_fail(err, FL_ENOMEM, "not enough memory for the result");
  if (rc == FL_OK) {
    fl_json_set_u64(o, "questions", s->q->n);
    fl_json_set_str(o, "score", eval_score_names[s->score]);
    fl_json_set_u64(o, "resamples", s->resamples);
    if (b->have_hits) set_retrieval(o, b);
    fl_json_set(o, "arms", arms_json(&t));
    fl_json_set(o, "perplexity", perplexity_json(&t));
    if (s->arms->n > 1) fl_json_set(o, "differences", differences_json(&t));
    fl_json_set(o, "documents", documents_json(s, f));
    if (s->answers) fl_json_set(o, "answers", answers_json(s));
    *out = o;
  } else {
    fl_json_free(o);
  }
  table_release(&t);
  return rc;
}
