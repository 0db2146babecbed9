/* cmd_eval.c - eval: how many questions a fleet answers rightly, beside other ways of answering. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "commands/command.h"
#include "commands/engine.h"
#include "commands/eval.h"
#include "commands/report.h"
#include "commands/signals.h"

typedef struct eval_args {
  common_args common;
  engine_args engine;
  sampling_args sampling;
  retrieval_args retrieval;
  const char *questions, *arms;
  size_t batch;
  bool answers;
  double at_least;
} eval_args;

static const opt_spec specs[] = {
  { .name = "questions", .letter = 'Q', .type = OPT_TEXT, .meta = "FILE",
    .offset = offsetof(eval_args, questions),
    .help = "JSON with question, value and document, an array or one object a line" },
  { .name = "arms", .letter = 'a', .type = OPT_TEXT, .meta = "LIST",
    .offset = offsetof(eval_args, arms),
    .help = "of bare, context, oracle, retrieved, text" },
  { .name = "batch", .letter = 'b', .type = OPT_COUNT, .meta = "N", .min = 1, .max = 64,
    .offset = offsetof(eval_args, batch), .help = "questions answered side by side" },
  { .name = "answers", .type = OPT_ON, .offset = offsetof(eval_args, answers),
    .help = "every answer as well" },
  { .name = "at-least", .type = OPT_REAL, .meta = "X", .min = 0, .max = 1,
    .offset = offsetof(eval_args, at_least),
    .help = "status 3 unless the last arm reaches this share of right answers" },
  { 0 }
};
static const opt_group groups[] = {
  { "Options", specs, 0 },
  { "Model", engine_options, offsetof(eval_args, engine) },
  { "Retrieval", retrieval_specs, offsetof(eval_args, retrieval) },
  { "Generation", sampling_specs, offsetof(eval_args, sampling) },
  { "Common options", common_json_options, 0 },
  { 0 }
};

static void init(void *args) {
  eval_args *a = args;
  sampling_default(&a->sampling);
  retrieval_default(&a->retrieval);
  a->sampling.max_new = 64;
  a->arms = "bare,context,oracle,retrieved";
  a->batch = 16;
}

typedef struct evaluation {
  eval_questions q;
  eval_arm arm[EVAL_N_ARMS];
  eval_result result[EVAL_N_ARMS];
  size_t n_arms;
} evaluation;

static int parse_arms(evaluation *e, const char *list, fl_err *err) {
  for (const char *at = list; *at;) {
    size_t len = strcspn(at, ","), i = 0;
    while (eval_arm_names[i] &&
           (strlen(eval_arm_names[i]) != len || memcmp(at, eval_arm_names[i], len) != 0))
      i++;
    if (!eval_arm_names[i] || e->n_arms == EVAL_N_ARMS)
      return fl_fail(err, FL_EUSAGE,
                     "--arms %s: give some of bare, context, oracle, retrieved, text", list);
    e->arm[e->n_arms++] = (eval_arm)i;
    at += len + (at[len] == ',');
  }
  if (e->n_arms == 0) return fl_fail(err, FL_EUSAGE, "--arms: at least one is needed");
  return FL_OK;
}

static fl_json *arms_json(const evaluation *e) {
  fl_json *rows = fl_json_array();
  for (size_t i = 0; rows && i < e->n_arms; i++) {
    const eval_result *r = &e->result[i];
    double low, high;
    fl_json *row = fl_json_object();
    eval_interval(r, &low, &high);
    fl_json_set_str(row, "arm", eval_arm_names[e->arm[i]]);
    fl_json_set_u64(row, "right", r->right);
    fl_json_set_u64(row, "of", r->n);
    fl_json_set_num(row, "share", (double)r->right / (double)r->n);
    fl_json_set_num(row, "low", low);
    fl_json_set_num(row, "high", high);
    fl_json_set_num(row, "rows", r->rows);
    fl_json_set_num(row, "tokens", r->tokens);
    fl_json_set_num(row, "total_s", r->seconds);
    fl_json_push(rows, row);
  }
  return rows;
}

/* Right answers by document, in the fleet's order; documents without a question are left out. */
static fl_json *docs_json(const evaluation *e, const fl_fleet *f) {
  fl_json *rows = fl_json_array();
  for (size_t d = 0; rows && d < fl_fleet_n_docs(f); d++) {
    fl_doc_info info;
    size_t n = 0, right[EVAL_N_ARMS] = { 0 };
    fl_fleet_doc(f, d, &info);
    for (size_t i = 0; i < e->q.n; i++) {
      if (e->q.q[i].doc_index != d) continue;
      n++;
      for (size_t a = 0; a < e->n_arms; a++) right[a] += e->result[a].answer[i].right;
    }
    fl_json *row = n > 0 ? fl_json_object() : NULL;
    if (!row) continue;
    fl_json_set_str(row, "document", info.name);
    fl_json_set_u64(row, "questions", n);
    for (size_t a = 0; a < e->n_arms; a++)
      fl_json_set_u64(row, eval_arm_names[e->arm[a]], right[a]);
    fl_json_push(rows, row);
  }
  return rows;
}

static fl_json *answers_json(const evaluation *e) {
  fl_json *rows = fl_json_array();
  for (size_t i = 0; rows && i < e->q.n; i++) {
    fl_json *row = fl_json_object();
    fl_json_set_str(row, "question", e->q.q[i].question);
    fl_json_set_str(row, "value", e->q.q[i].value);
    for (size_t a = 0; a < e->n_arms; a++) {
      const char *text = e->result[a].answer[i].text;
      fl_json_set_str(row, eval_arm_names[e->arm[a]], text ? text : "");
    }
    fl_json_push(rows, row);
  }
  return rows;
}

static int print_result(const evaluation *e, const eval_args *a, const fl_fleet *f, fl_err *err) {
  fl_json *out = fl_json_object();
  if (!out) return fl_fail(err, FL_ENOMEM, "not enough memory");
  fl_json_set_u64(out, "questions", e->q.n);
  for (size_t i = 0; i < e->n_arms; i++) {
    if (e->arm[i] != EVAL_RETRIEVED) continue;
    fl_json_set_u64(out, "right_document_first", e->result[i].first);
    fl_json_set_u64(out, "right_document_chosen", e->result[i].among);
  }
  fl_json_set(out, "arms", arms_json(e));
  fl_json_set(out, "documents", docs_json(e, f));
  if (a->answers) fl_json_set(out, "answers", answers_json(e));
  int rc = report_print(out, a->common.json, err);
  fl_json_free(out);
  return rc;
}

static int run_arms(evaluation *e, const eval_args *a, fl_fleet *f, fl_team *team, fl_err *err) {
  eval_options o = { .sampling = &a->sampling, .rag = &a->retrieval.rag, .batch = a->batch,
                     .stop = signals_stop };
  for (size_t i = 0; i < e->n_arms; i++) {
    char took[32];
    int rc = eval_run(&e->result[i], f, team, &e->q, e->arm[i], &o, err);
    if (rc != FL_OK) return rc;
    fl_info("%s: %zu of %zu right in %s", eval_arm_names[e->arm[i]], e->result[i].right, e->q.n,
            fl_format_seconds(took, e->result[i].seconds));
  }
  return FL_OK;
}

static int check_threshold(const evaluation *e, double at_least, fl_err *err) {
  const eval_result *r = &e->result[e->n_arms - 1];
  double share = (double)r->right / (double)r->n;
  if (share >= at_least) return FL_OK;
  return fl_fail(err, FL_EGATE, "--at-least %g: %s reaches only %.4f (%zu of %zu)", at_least,
                 eval_arm_names[e->arm[e->n_arms - 1]], share, r->right, r->n);
}

static int run(const opt_parsed *p, fl_err *err) {
  const eval_args *a = p->args;
  const char *dir = p->operand[0];
  evaluation e = { 0 };
  engine eng = { 0 };
  fl_fleet *f = NULL;
  fl_open_options how = { .read_only = true };
  if (!a->questions) return fl_fail(err, FL_EUSAGE, "--questions FILE is needed");
  signals_catch();
  int rc = parse_arms(&e, a->arms, err);
  if (rc == FL_OK) rc = eval_questions_read(&e.q, a->questions, err);
  if (rc == FL_OK) rc = engine_open(&eng, &a->engine, dir, err);
  if (rc == FL_OK) rc = fl_fleet_open(&f, dir, eng.model, eng.team, NULL, NULL, &how, err);
  if (rc == FL_OK) rc = eval_questions_resolve(&e.q, f, a->questions, err);
  if (rc == FL_OK) rc = run_arms(&e, a, f, eng.team, err);
  if (rc == FL_OK) rc = print_result(&e, a, f, err);
  if (rc == FL_OK) rc = check_threshold(&e, a->at_least, err);
  for (size_t i = 0; i < EVAL_N_ARMS; i++) eval_result_release(&e.result[i]);
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
