/* cmd_eval.c - eval: how many questions a fleet answers rightly, beside other ways of answering. */
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/units.h"
#include "commands/command.h"
#include "commands/runtime.h"
#include "eval/eval.h"
#include "cli/output_guard.h"
#include "cli/report.h"
#include "commands/sampling.h"
#include "cli/signals.h"

typedef struct eval_args {
  common_args common;
  engine_args engine;
  sampling_args sampling;
  retrieval_args retrieval;
  const char *questions, *arms, *against, *html;
  size_t batch, limit, alone, resamples;
  int score;
  bool answers;
  opt_list thresholds;
} eval_args;

static const opt_spec specs[] = {
  { .name = "questions",
    .letter = 'Q',
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(eval_args, questions),
    .help = "JSON with question, value and document, an array or one object a line" },
  { .name = "arms",
    .letter = 'a',
    .type = OPT_TEXT,
    .meta = "LIST",
    .offset = offsetof(eval_args, arms),
    .help = "of bare, context, text, text4, oracle, retrieved, all" },
  { .name = "limit",
    .letter = 'l',
    .type = OPT_COUNT,
    .meta = "N",
    .min = 0,
    .max = 1e9,
    .offset = offsetof(eval_args, limit),
    .help = "the first questions only; 0: all" },
  { .name = "batch",
    .letter = 'b',
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = EVAL_MAX_BATCH,
    .offset = offsetof(eval_args, batch),
    .help = "questions answered side by side" },
  { .name = "score",
    .type = OPT_CHOICE,
    .meta = "NAME",
    .choices = eval_score_names,
    .offset = offsetof(eval_args, score),
    .help = "what makes an answer right" },
  { .name = "against",
    .type = OPT_TEXT,
    .meta = "ARM",
    .offset = offsetof(eval_args, against),
    .help = "differences are taken against this arm; the first without it" },
  { .name = "resamples",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 40,
    .max = 100000,
    .offset = offsetof(eval_args, resamples),
    .help = "of the bootstrap intervals" },
  { .name = "alone",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 0,
    .max = 1e6,
    .offset = offsetof(eval_args, alone),
    .help = "questions asked once more, one at a time, for the waiting times" },
  { .name = "answers",
    .type = OPT_ON,
    .offset = offsetof(eval_args, answers),
    .help = "every answer as well" },
  { .name = "html",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(eval_args, html),
    .help = "the result as a page with plots" },
  { .name = "threshold",
    .type = OPT_LIST,
    .meta = "TEST",
    .offset = offsetof(eval_args, thresholds),
    .help = "status 3 unless it holds, as in retrieved>=0.8; repeatable" },
  { 0 }
};
static const opt_group groups[] = { { "Options", specs, 0 },
                                    { "Model", engine_options, offsetof(eval_args, engine) },
                                    { "Retrieval", retrieval_specs,
                                      offsetof(eval_args, retrieval) },
                                    { "Generation", sampling_specs, offsetof(eval_args, sampling) },
                                    { "Common options", common_json_options, 0 },
                                    { 0 } };

static void init(void *args) {
  eval_args *a = args;
  sampling_default(&a->sampling);
  retrieval_default(&a->retrieval);
  a->sampling.max_new = 64;
  a->arms = "bare,context,text,text4,oracle,retrieved";
  a->batch = 16;
  a->alone = 4;
  a->resamples = 2000;
}

typedef struct evaluation {
  const eval_args *args;
  eval_questions q;
  eval_arms arms;
  eval_result result[EVAL_N_ARMS];
  int against;
  fl_json *summary;
} evaluation;

/* What needs no model is refused before one is read. */
static int prepare(evaluation *e, fl_err *err) {
  const eval_args *a = e->args;
  if (!a->questions) return fl_fail(err, FL_EUSAGE, "--questions FILE is needed");
  int rc = eval_arms_parse(&e->arms, "--arms", a->arms, err);
  for (size_t i = 0; i < a->thresholds.n && rc == FL_OK; i++)
    rc = eval_threshold_check(&e->arms, a->thresholds.v[i], err);
  if (rc == FL_OK) rc = eval_questions_read(&e->q, a->questions, err);
  if (rc != FL_OK) return rc;
  if (a->limit > 0) eval_questions_limit(&e->q, a->limit);
  for (size_t i = 0; a->score == EVAL_CHOICE && i < e->q.n; i++)
    if (e->q.q[i].option.n == 0)
      return fl_fail(err, FL_EINPUT,
                     "%s: question %zu has no \"options\", which --score choice "
                     "needs",
                     a->questions, i + 1);
  for (size_t i = 0; a->against && i < e->arms.n; i++)
    if (strcmp(eval_arm_names[e->arms.arm[i]], a->against) == 0) {
      e->against = (int)i;
      return FL_OK;
    }
  if (a->against)
    return fl_fail(err, FL_EUSAGE, "--against %s: give one of the arms %s", a->against, a->arms);
  return FL_OK;
}

static int run_arms(evaluation *e, eval_state *b, fl_err *err) {
  eval_summary s = { .q = &e->q, .arms = &e->arms, .result = e->result, .score = e->args->score };
  for (size_t i = 0; i < e->arms.n; i++) {
    char took[32];
    size_t right = 0;
    int rc = eval_run(&e->result[i], b, e->arms.arm[i], err);
    if (rc != FL_OK) return rc;
    for (size_t k = 0; k < e->q.n; k++) right += eval_is_right(&s, i, k);
    fl_info("%s: %zu of %zu right in %s", eval_arm_names[e->arms.arm[i]], right, e->q.n,
            fl_format_seconds(took, e->result[i].seconds));
  }
  return FL_OK;
}

/* Before the work, not after it. */
static int check_page(const eval_args *a, const char *dir, fl_err *err) {
  int rc = output_apart("--html", a->html, a->questions, "the questions' file", err);
  if (rc == FL_OK) rc = output_apart("--html", a->html, a->engine.model, "the model", err);
  if (rc == FL_OK) rc = output_outside("--html", a->html, dir, err);
  return rc == FL_OK && a->html ? fl_fs_check_replaceable(a->html, err) : rc;
}

static int write_page(const evaluation *e, const char *fleet, fl_err *err) {
  fl_buf page = { 0 }, title = { 0 };
  fl_buf_printf(&title, "Evaluation of %s", fleet);
  eval_html(&page, e->summary, title.data ? title.data : "Evaluation");
  int rc = page.oom ? fl_fail(err, FL_ENOMEM, "%s: not enough memory for the page", e->args->html)
                    : fl_fs_replace(e->args->html, page.data, page.len, err);
  fl_buf_release(&page);
  fl_buf_release(&title);
  return rc;
}

static int report(evaluation *e, const char *dir, fl_fleet *f, eval_state *b, fl_err *err) {
  const eval_args *a = e->args;
  const eval_summary s = { .q = &e->q,
                           .arms = &e->arms,
                           .result = e->result,
                           .score = a->score,
                           .resamples = a->resamples,
                           .against = e->against,
                           .answers = a->answers };
  int rc = eval_summary_json(&e->summary, &s, f, b, err);
  if (rc == FL_OK) rc = report_print(e->summary, a->common.json, err);
  if (rc == FL_OK && a->html) rc = write_page(e, dir, err);
  for (size_t i = 0; i < a->thresholds.n && rc == FL_OK; i++)
    rc = eval_threshold(e->summary, a->thresholds.v[i], err);
  return rc;
}

static int run(const opt_parsed *p, fl_err *err) {
  const char *dir = p->operand[0];
  evaluation e = { .args = p->args };
  const eval_args *a = e.args;
  eval_options o = {
    .rag = &a->retrieval.rag, .batch = a->batch, .alone = a->alone, .stop = signals_stop
  };
  engine eng = { 0 };
  fl_fleet *f = NULL;
  eval_state *b = NULL;
  fl_open_options how = { .read_only = true };
  sampling_apply_eval(&o, &a->sampling);
  signals_catch();
  int rc = check_page(a, dir, err);
  if (rc == FL_OK) rc = prepare(&e, err);
  if (rc == FL_OK) rc = engine_open(&eng, &a->engine, dir, err);
  if (rc == FL_OK) rc = fl_fleet_open(&f, dir, eng.model, eng.team, NULL, NULL, &how, err);
  if (rc == FL_OK) rc = eval_questions_resolve(&e.q, f, a->questions, err);
  if (rc == FL_OK) rc = eval_state_new(&b, f, eng.team, &e.q, &o, err);
  if (rc == FL_OK) rc = run_arms(&e, b, err);
  if (rc == FL_OK) rc = report(&e, dir, f, b, err);
  for (size_t i = 0; i < EVAL_N_ARMS; i++) eval_result_release(&e.result[i]);
  fl_json_free(e.summary);
  eval_state_free(b);
  eval_questions_release(&e.q);
  if (f) fl_fleet_close(f);
  engine_close(&eng);
  return rc;
}

const command cmd_eval = { .name = "eval",
                           .operands = "FLEET",
                           .summary =
                               "Counts right answers of a fleet and of other ways of answering",
                           .min_operands = 1,
                           .max_operands = 1,
                           .groups = groups,
                           .args_size = sizeof(eval_args),
                           .init = init,
                           .run = run };
