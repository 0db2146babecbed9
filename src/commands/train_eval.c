/* train_eval.c - see train_eval.h. */
#include "commands/train_eval.h"

#include "base/log.h"
#include "base/mem.h"
#include "eval/eval.h"
#include "commands/sampling.h"
#include "cli/signals.h"

enum { BATCH = 16, MAX_NEW = 64, RESAMPLES = 2000 };

struct train_eval {
  eval_questions q;
  eval_arms arms;
  retrieval_args retrieval;
  eval_options o;
  eval_state *bench; /* kept: questions are searched once, the index stays as it is */
};

int train_eval_new(train_eval **out, const char *questions, const char *arms, fl_fleet *f,
                   fl_team *team, fl_err *err) {
  sampling_args sampling;
  train_eval *e = fl_calloc(1, sizeof *e);
  if (!e) return fl_fail(err, FL_ENOMEM, "not enough memory for --eval");
  sampling_default(&sampling);
  retrieval_default(&e->retrieval);
  sampling.max_new = MAX_NEW;
  e->o = (eval_options){ .rag = &e->retrieval.rag, .batch = BATCH, .stop = signals_stop };
  sampling_apply_eval(&e->o, &sampling);
  int rc = eval_arms_parse(&e->arms, "--eval-arms", arms, err);
  if (rc == FL_OK) rc = eval_questions_read(&e->q, questions, err);
  if (rc == FL_OK) rc = eval_questions_resolve(&e->q, f, questions, err);
  if (rc == FL_OK) rc = eval_state_new(&e->bench, f, team, &e->q, &e->o, err);
  if (rc != FL_OK) {
    train_eval_free(e);
    return rc;
  }
  *out = e;
  return FL_OK;
}

void train_eval_free(train_eval *e) {
  if (!e) return;
  eval_state_free(e->bench);
  eval_questions_release(&e->q);
  fl_free(e);
}

static void copy_num(fl_event *ev, const fl_json *row, const char *from, const char *to) {
  double v;
  if (fl_json_get_num(row, from, &v)) fl_event_num(ev, to, v);
}

static void log_arm(fl_events *log, uint64_t round, const fl_json *row, const fl_json *ppl,
                    double seconds) {
  const char *arm = "";
  uint64_t right = 0, of = 0;
  fl_event ev;
  fl_json_get_str(row, "arm", &arm);
  fl_json_get_u64(row, "right", &right);
  fl_json_get_u64(row, "of", &of);
  fl_event_begin(&ev, "eval");
  fl_event_int(&ev, "round", (int64_t)round);
  fl_event_str(&ev, "arm", arm);
  fl_event_int(&ev, "right", (int64_t)right);
  fl_event_int(&ev, "of", (int64_t)of);
  copy_num(&ev, row, "share", "share");
  copy_num(&ev, row, "low", "low");
  copy_num(&ev, row, "high", "high");
  copy_num(&ev, ppl, "perplexity", "perplexity");
  copy_num(&ev, row, "rows", "rows");
  fl_event_num(&ev, "seconds", seconds);
  fl_event_emit(log, &ev);
  fl_info("round %llu: %s %llu of %llu questions right", (unsigned long long)round, arm,
          (unsigned long long)right, (unsigned long long)of);
}

int train_eval_run(void *ctx, fl_fleet *f, uint64_t round, fl_err *err) {
  train_eval *e = ctx;
  eval_result result[EVAL_N_ARMS] = { 0 };
  const eval_summary s = { .q = &e->q, .arms = &e->arms, .result = result, .resamples = RESAMPLES };
  fl_json *summary = NULL;
  int rc = FL_OK;
  for (size_t i = 0; i < e->arms.n && rc == FL_OK; i++)
    rc = eval_run(&result[i], e->bench, e->arms.arm[i], err);
  if (rc == FL_OK) rc = eval_summary_json(&summary, &s, f, e->bench, err);
  if (rc == FL_OK) {
    const fl_json *row = fl_json_first(fl_json_get(summary, "arms"));
    const fl_json *ppl = fl_json_first(fl_json_get(summary, "perplexity"));
    for (size_t i = 0; row && ppl; i++, row = fl_json_next(row), ppl = fl_json_next(ppl))
      log_arm(fl_fleet_events(f), round, row, ppl, result[i].seconds);
  }
  fl_json_free(summary);
  for (size_t i = 0; i < EVAL_N_ARMS; i++) eval_result_release(&result[i]);
  return rc;
}
