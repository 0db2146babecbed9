/* cmd_ask.c - ask: one question to a fleet, or the same question four ways beside each other. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "commands/doc_choice.h"
#include "commands/command.h"
#include "commands/runtime.h"
#include "cli/report.h"
#include "cli/signals.h"

typedef struct ask_args {
  common_args common;
  engine_args engine;
  sampling_args sampling;
  retrieval_args retrieval;
  opt_list oracle;
  bool compare, bare;
} ask_args;

static const opt_spec specs[] = {
  { .name = "oracle",
    .letter = 'o',
    .type = OPT_LIST,
    .meta = "NAME",
    .offset = offsetof(ask_args, oracle),
    .help = "answer from this document, without retrieval; repeatable" },
  { .name = "compare",
    .letter = 'c',
    .type = OPT_ON,
    .offset = offsetof(ask_args, compare),
    .help = "four answers: cartridges, bare model, documents in context, retrieved text" },
  { .name = "bare",
    .type = OPT_ON,
    .offset = offsetof(ask_args, bare),
    .help = "the model's answer without any document" },
  { 0 }
};
static const opt_group groups[] = { { "Options", specs, 0 },
                                    { "Model", engine_options, offsetof(ask_args, engine) },
                                    { "Retrieval", retrieval_specs, offsetof(ask_args, retrieval) },
                                    { "Generation", sampling_specs, offsetof(ask_args, sampling) },
                                    { "Common options", common_json_options, 0 },
                                    { 0 } };

static void init(void *args) {
  sampling_default(&((ask_args *)args)->sampling);
  retrieval_default(&((ask_args *)args)->retrieval);
}

static int ask_arm(fl_reply *out, fl_fleet *f, const char *question, const ask_args *a,
                   const selection *s, fl_arm arm, bool stream, fl_err *err) {
  fl_ask_options o = { .arm = arm,
                       .docs = s->docs,
                       .n_docs = s->n_docs,
                       .hits = &s->hits,
                       .on_token = stream ? stream_token : NULL };
  sampling_apply(&o, &a->sampling);
  return fl_fleet_ask(f, question, strlen(question), &o, out, err);
}

static int answer_one(fl_fleet *f, const char *question, const ask_args *a, const selection *s,
                      fl_err *err) {
  bool json = a->common.json;
  fl_reply r = { 0 };
  fl_arm arm = a->bare || s->n_docs == 0 ? FL_ARM_BARE : FL_ARM_CARTRIDGE;
  int rc = ask_arm(&r, f, question, a, s, arm, !json, err);
  if (rc != FL_OK) return rc;
  if (json) {
    fl_json *out = reply_json(&r, arm);
    fl_json_set_str(out, "question", question);
    fl_json_set(out, "docs", selection_json(s, f));
    fl_json_set_num(out, "margin", s->hits.margin);
    rc = report_print(out, true, err);
    fl_json_free(out);
  } else {
    putchar('\n');
    if (!a->common.quiet && arm == FL_ARM_CARTRIDGE) {
      putchar('\n');
      selection_print(s, f);
    }
    if (!a->bare && s->n_docs == 0)
      fl_warn("no document scored above the floor: this is the bare model's answer");
    fl_debug("%zu rows held, %zu tokens of prompt, %zu of answer, first after %.3f s, all %.3f s",
             r.rows, r.prompt_tokens, r.tokens, r.ttft_s, r.seconds);
  }
  fl_reply_release(&r);
  return rc;
}

static void print_arm(const fl_reply *r, fl_arm arm) {
  printf("%s: %zu rows held, %zu tokens of prompt, %zu of answer, %.2f s\n", fl_arm_name(arm),
         r->rows, r->prompt_tokens, r->tokens, r->seconds);
  printf("%s\n\n", r->text);
}

static int compare(fl_fleet *f, const char *question, const ask_args *a, const selection *s,
                   fl_err *err) {
  static const fl_arm arms[] = { FL_ARM_CARTRIDGE, FL_ARM_BARE, FL_ARM_CONTEXT, FL_ARM_TEXT };
  fl_json *out = fl_json_object(), *rows = fl_json_array();
  int rc = out && rows ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
  for (size_t i = 0; i < sizeof arms / sizeof *arms && rc == FL_OK; i++) {
    fl_reply r = { 0 };
    fl_err why = { 0 };
    rc = signals_stop() ? FL_EINTR : ask_arm(&r, f, question, a, s, arms[i], false, &why);
    if (rc == FL_EINTR) break;
    fl_json *row = NULL;
    if (rc == FL_OK) {
      row = reply_json(&r, arms[i]);
      if (!a->common.json) print_arm(&r, arms[i]);
    } else { /* an arm that can't run (text too long, file gone) leaves the others standing */
      row = fl_json_object();
      fl_json_set_str(row, "arm", fl_arm_name(arms[i]));
      fl_json_set_str(row, "error", why.text);
      if (!a->common.json) printf("%s: none: %s\n\n", fl_arm_name(arms[i]), why.text);
    }
    rc = FL_OK;
    fl_json_push(rows, row);
    fl_reply_release(&r);
  }
  if (rc == FL_OK && a->common.json) {
    fl_json_set_str(out, "question", question);
    fl_json_set(out, "docs", selection_json(s, f));
    fl_json_set(out, "arms", rows);
    rows = NULL;
    rc = report_print(out, true, err);
  } else if (rc == FL_OK) {
    selection_print(s, f);
  }
  fl_json_free(rows);
  fl_json_free(out);
  return rc;
}

static int run(const opt_parsed *p, fl_err *err) {
  ask_args *a = p->args;
  const char *dir = p->operand[0], *question = p->operand[1];
  if (a->bare && (a->compare || a->oracle.n > 0))
    return fl_fail(err, FL_EUSAGE, "--bare: does not go with --compare or --oracle");
  engine e = { 0 };
  fl_fleet *f = NULL;
  selection s = { 0 };
  fl_open_options how = { .read_only = true, .log_events = true };
  signals_catch();
  int rc = engine_open(&e, &a->engine, dir, err);
  if (rc == FL_OK) rc = fl_fleet_open(&f, dir, e.model, e.team, NULL, NULL, &how, err);
  if (rc == FL_OK && a->oracle.n > 0) {
    rc = selection_named(&s, f, &a->oracle, err);
    if (rc == FL_OK && a->compare) /* the arm of retrieved text searches all the same */
      (void)fl_fleet_retrieve(f, question, strlen(question), &a->retrieval.rag, &s.hits, NULL);
  } else if (rc == FL_OK && !a->bare) {
    rc = selection_retrieve(&s, f, question, &a->retrieval.rag, err);
  }
  if (rc == FL_OK)
    rc = a->compare ? compare(f, question, a, &s, err) : answer_one(f, question, a, &s, err);
  selection_release(&s);
  if (f) fl_fleet_close(f);
  engine_close(&e);
  return rc;
}

const command cmd_ask = { .name = "ask",
                          .operands = "FLEET QUESTION",
                          .summary = "Answers a question from a fleet and names the documents",
                          .min_operands = 2,
                          .max_operands = 2,
                          .groups = groups,
                          .args_size = sizeof(ask_args),
                          .init = init,
                          .run = run };
