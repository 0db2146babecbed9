/* cmd_train.c - train: makes a fleet or continues one. With --tui the trainer runs in a process of
 * its own, away from the terminal, and the dashboard watches it (train_detached.c). */
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "commands/command.h"
#include "fleet/fleet_dir.h"
#include "cli/output_guard.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "commands/train.h"
#include "commands/train_eval.h"
#include "net/mpi.h"
#include "fleet/train_options.h"
#include "trainer/trainer.h"

static const opt_spec input_specs[] = {
  { .name = "resume",
    .type = OPT_ON,
    .offset = offsetof(train_args, resume),
    .help = "continue an existing fleet" },
  { .name = "update",
    .type = OPT_ON,
    .offset = offsetof(train_args, update),
    .help = "train documents anew whose text has changed" },
  { .name = "remove",
    .type = OPT_LIST,
    .meta = "NAME",
    .offset = offsetof(train_args, remove),
    .help = "take a document out of the fleet; repeatable" },
  { .name = "redo",
    .type = OPT_LIST,
    .meta = "NAME",
    .offset = offsetof(train_args, redo),
    .help = "train a document anew, its files may be damaged; repeatable" },
  { .name = "merge",
    .type = OPT_TEXT,
    .meta = "NAME",
    .offset = offsetof(train_args, merge),
    .help = "one cartridge of this name for all documents together" },
  { .name = "study",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(train_args, study),
    .help = "train on the conversations that flotilla study wrote" },
  { .name = "init",
    .type = OPT_TEXT,
    .meta = "HOW",
    .offset = offsetof(train_args, init),
    .help = "how cartridges begin: first, match, random, summary, or a cartridge file" },
  { .name = "eval",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(train_args, eval),
    .help = "questions, as flotilla eval reads them, asked whenever held-out losses are taken" },
  { .name = "eval-arms",
    .type = OPT_TEXT,
    .meta = "LIST",
    .offset = offsetof(train_args, eval_arms),
    .help = "the ways to ask them" },
  { .name = "log-size",
    .type = OPT_BYTES,
    .meta = "SIZE",
    .min = 1 << 16,
    .max = 1e15,
    .offset = offsetof(train_args, log_bytes),
    .help = "size at which the event log is put aside and the part before it dropped" },
  { .name = "tui",
    .type = OPT_ON,
    .offset = offsetof(train_args, tui),
    .help = "show the dashboard while training" },
  { .name = "leave",
    .type = OPT_ON,
    .offset = offsetof(train_args, leave),
    .help = "with --tui: leave it when the training has ended" },
  { 0 }
};
static const opt_group groups[] = { { "Documents", docs_specs, offsetof(train_args, input) },
                                    { "Fleet", input_specs, 0 },
                                    { "Model", engine_options, offsetof(train_args, engine) },
                                    { "Self-study", study_specs, offsetof(train_args, train) },
                                    { "Training", train_specs, offsetof(train_args, train) },
                                    { "Common options", common_json_options, 0 },
                                    { 0 } };

static void init(void *args) {
  train_args *a = args;
  fl_train_options_default(&a->train);
  a->eval_arms = "oracle";
  a->log_bytes = FL_EVENTS_PART_BYTES;
}

static size_t value_size(const opt_spec *s) {
  switch (s->type) {
  case OPT_ON:
  case OPT_OFF: return sizeof(bool);
  case OPT_COUNT: return sizeof(size_t);
  case OPT_U64:
  case OPT_BYTES: return sizeof(uint64_t);
  case OPT_REAL:
  case OPT_SECONDS: return sizeof(double);
  case OPT_TEXT: return sizeof(const char *);
  case OPT_CHOICE: return sizeof(int);
  case OPT_FORM: return s->form->size;
  case OPT_LIST: break;
  }
  return sizeof(opt_list);
}

/* What the files of a fleet are built on can't change once it exists. */
static int refuse_structural(const opt_parsed *p, const fl_train_options *given,
                             const fl_train_options *kept, const char *dir, fl_err *err) {
  const struct {
    const char *name;
    uint64_t given, kept;
  } fixed[] = {
    { "p", given->p, kept->p },
    { "frozen", given->frozen, kept->frozen },
    { "embed-chunk", given->embed_chunk, kept->embed_chunk },
    { "seed", given->seed, kept->seed },
  };
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
    if (options_given(p, fixed[i].name) && fixed[i].given != fixed[i].kept)
      return fl_fail(err, FL_EUSAGE,
                     "--%s %llu: the fleet %s was made with %llu; leave the option out or train a "
                     "new fleet",
                     fixed[i].name, (unsigned long long)fixed[i].given, dir,
                     (unsigned long long)fixed[i].kept);
  if (options_given(p, "positions") && given->positions != kept->positions)
    return fl_fail(err, FL_EUSAGE,
                   "--positions %s: the fleet %s was made with %s; leave the option out or train a "
                   "new fleet",
                   fl_positions_words[given->positions], dir, fl_positions_words[kept->positions]);
  return FL_OK;
}

static void take_given(const opt_parsed *p, fl_train_options *to, const fl_train_options *from,
                       const opt_spec *specs) {
  for (const opt_spec *s = specs; s->name; s++)
    if (options_given(p, s->name))
      memcpy((char *)to + s->offset, (const char *)from + s->offset, value_size(s));
}

/* On resume the manifest's flags hold wherever none was given. */
static int merge_flags(const opt_parsed *p, const fl_manifest *m, const char *dir, fl_err *err) {
  train_args *a = p->args;
  fl_train_options kept = m->opts;
  kept.p = (size_t)m->p;
  kept.frozen = (size_t)m->frozen;
  kept.embed_chunk = (size_t)m->embed_chunk;
  kept.rounds = a->train.rounds;
  int rc = refuse_structural(p, &a->train, &kept, dir, err);
  if (rc != FL_OK) return rc;
  take_given(p, &kept, &a->train, study_specs);
  take_given(p, &kept, &a->train, train_specs);
  a->train = kept;
  return FL_OK;
}

/* Without --docs a resumed fleet's documents are read from where they were. */
static int docs_from_manifest(train_args *a, const fl_manifest *m, fl_err *err) {
  int rc = FL_OK;
  bool merged = m->n_members > 0;
  size_t n = merged ? m->n_members : m->n;
  for (size_t i = 0; i < n && rc == FL_OK; i++) {
    const char *name = merged ? m->member[i].name : m->doc[i].name;
    if (!opt_list_has(&a->remove, name)) rc = opt_list_add(&a->input.docs, name, err);
  }
  if (rc == FL_OK && merged && !a->merge) a->merge = m->doc[0].name;
  return rc;
}

/* first, random, summary and match are words; anything else is a file. */
static void take_init(train_args *a) {
  static const char *const words[] = { [FL_INIT_FIRST] = "first",
                                       [FL_INIT_RANDOM] = "random",
                                       [FL_INIT_SUMMARY] = "summary",
                                       [FL_INIT_MATCH] = "match" };
  if (!a->init) return;
  a->train.init = FL_INIT_FILE;
  a->train.init_file = a->init;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (words[i] != NULL && strcmp(a->init, words[i]) == 0) a->train.init = i;
}

static int prepare(const opt_parsed *p, const char *dir, fl_manifest *manifest, fl_err *err) {
  train_args *a = p->args;
  bool exists;
  int rc = fl_fleet_dir_check(&exists, dir, a->resume, err);
  if (rc == FL_OK && exists) {
    rc = fl_fleet_dir_load(manifest, dir, err);
    if (rc == FL_OK) rc = merge_flags(p, manifest, dir, err);
    if (rc == FL_OK && a->input.docs.n == 0) rc = docs_from_manifest(a, manifest, err);
  }
  if (rc == FL_OK && a->input.docs.n == 0) rc = fl_fail(err, FL_EUSAGE, "--docs PATH is needed");
  if (rc == FL_OK && !exists && !a->engine.model)
    rc = fl_fail(err, FL_EUSAGE, "--model FILE is needed");
  for (size_t i = 0; i < a->input.docs.n && rc == FL_OK; i++) /* its own files are no documents */
    rc = output_apart("--docs", a->input.docs.v[i], dir, "the fleet's folder", err);
  take_init(a);
  if (rc == FL_OK && a->init && a->train.init == FL_INIT_FILE && !fl_fs_exists(a->init))
    rc = fl_fail(err, FL_EUSAGE,
                 "--init %s: no such file; give first, match, random, summary or a "
                 "cartridge",
                 a->init);
  if (rc == FL_OK) rc = fl_train_options_check(&a->train, err);
  return rc;
}

static int print_result(const fl_fleet *f, const char *dir, double seconds, bool json,
                        fl_err *err) {
  fl_json *out = fl_json_object(), *rows = fl_json_array();
  if (!out || !rows) {
    fl_json_free(out);
    fl_json_free(rows);
    return fl_fail(err, FL_ENOMEM, "not enough memory");
  }
  fl_json_set_str(out, "fleet", dir);
  fl_json_set_u64(out, "rounds", fl_fleet_rounds(f));
  fl_json_set_u64(out, "generation", fl_fleet_generation(f));
  fl_json_set_num(out, "elapsed_s", seconds);
  fl_json_set_num(out, "peak_memory_bytes", (double)fl_peak_rss_bytes());
  for (size_t i = 0; i < fl_fleet_n_docs(f); i++) {
    fl_doc_info d;
    fl_fleet_doc(f, i, &d);
    fl_json *row = fl_json_object();
    fl_json_set_str(row, "name", d.name);
    fl_json_set_u64(row, "tokens", d.tokens);
    fl_json_set_u64(row, "rows", d.rows);
    fl_json_set_u64(row, "steps", d.steps);
    fl_json_push(rows, row);
  }
  fl_json_set(out, "docs", rows);
  int rc = report_print(out, json, err);
  fl_json_free(out);
  return rc;
}

static uint64_t steps_of(const fl_fleet *f) {
  uint64_t steps = 0;
  for (size_t i = 0; i < fl_fleet_n_docs(f); i++) {
    fl_doc_info d;
    fl_fleet_doc(f, i, &d);
    steps += d.steps;
  }
  return steps;
}

/* Trains, and says so where all the work came to nothing. */
static int learn(fl_fleet *f, const fl_train_hooks *hooks, const char *dir, bool leads,
                 fl_err *err) {
  uint64_t steps = steps_of(f), rounds = fl_fleet_rounds(f);
  int rc = fl_fleet_train(f, hooks, err);
  rounds = fl_fleet_rounds(f) - rounds;
  if (rc == FL_OK && leads && rounds > 0 && steps_of(f) == steps)
    fl_warn("nothing was learned: no conversation came out in %llu rounds; flotilla watch %s tells "
            "why, and more of --max-q and --max-a may help",
            (unsigned long long)rounds, dir);
  return rc;
}

int train_run(train_args *a, const char *dir, fl_source_list *docs, fl_err *err) {
  engine e = { 0 };
  fl_fleet *f = NULL;
  train_eval *asked = NULL;
  double start = fl_now_s();
  fl_open_options how = { .resume = a->resume,
                          .update = a->update,
                          .allow_add = true,
                          .remove = a->remove.v,
                          .n_remove = a->remove.n,
                          .redo = a->redo.v,
                          .n_redo = a->redo.n,
                          .merge = a->merge,
                          .dist = a->dist,
                          .log_bytes = a->log_bytes };
  const bool leads = fl_dist_leads(a->dist);
  fl_train_hooks hooks = { .poll = signals_poll, .progress = leads ? progress_line : NULL };
  signals_catch();
  signals_catch_usr1();
  int rc = engine_open(&e, &a->engine, fl_fleet_dir_exists(dir) ? dir : NULL, err);
  if (rc == FL_OK) rc = fl_fleet_open(&f, dir, e.model, e.team, docs, &a->train, &how, err);
  fl_source_release(docs); /* the fleet has its own copy, out of memory */
  if (rc == FL_OK && a->study) rc = fl_fleet_use_study(f, a->study, err);
  if (rc == FL_OK && a->eval && leads) {
    rc = train_eval_new(&asked, a->eval, a->eval_arms, f, e.team, err);
    hooks.ctx = asked;
    hooks.evaluate = train_eval_run;
  }
  if (rc == FL_OK) rc = learn(f, &hooks, dir, leads, err);
  if (rc == FL_EINTR && f) {
    fl_info("stopped after round %llu, the state is saved; --resume continues",
            (unsigned long long)fl_fleet_rounds(f));
    *err = (fl_err){ 0 }; /* said */
  }
  if (rc == FL_OK && leads && !(fl_log_level() < 0 && !a->common.json))
    rc = print_result(f, dir, fl_now_s() - start, a->common.json, err);
  train_eval_free(asked);
  if (f) fl_fleet_close(f);
  engine_close(&e);
  return rc;
}

static int take_ranks(train_args *a, fl_mpi *ranks, fl_err *err) {
  a->dist = fl_mpi_dist(ranks);
  if (a->dist && a->tui)
    return fl_fail(err, FL_EUSAGE,
                   "--tui: not with several ranks; leave it out and run flotilla "
                   "watch beside them");
  if (a->engine.threads == 0) a->engine.threads = fl_mpi_threads(ranks);
  return FL_OK;
}

static int run(const opt_parsed *p, fl_err *err) {
  train_args *a = p->args;
  const char *dir = p->operand[0];
  fl_manifest manifest = { 0 };
  fl_source_list docs = { 0 };
  int rc = take_ranks(a, p->ranks, err);
  if (rc == FL_OK) rc = prepare(p, dir, &manifest, err);
  if (rc == FL_OK) rc = docs_read(&docs, &a->input, err);
  if (rc == FL_OK) rc = a->tui ? train_detached(a, dir, &docs, err) : train_run(a, dir, &docs, err);
  fl_source_release(&docs);
  fl_manifest_release(&manifest);
  return rc;
}

const command cmd_train = { .name = "train",
                            .operands = "FLEET",
                            .summary =
                                "Makes a fleet of cartridges from documents, or continues one",
                            .min_operands = 1,
                            .max_operands = 1,
                            .groups = groups,
                            .ranks = true,
                            .args_size = sizeof(train_args),
                            .init = init,
                            .run = run };
