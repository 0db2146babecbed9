/* cmd_study.c - study: makes self-study conversations about documents and writes them as JSONL. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "commands/command.h"
#include "commands/docs.h"
#include "commands/runtime.h"
#include "cli/output_guard.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "study/study_file.h"
#include "commands/study_remote.h"
#include "commands/train_options.h"
#include "trainer/sizes.h"
#include "study/part.h"

enum { MAX_BATCH = 32 };

typedef struct study_args {
  common_args common;
  engine_args engine;
  fl_train_options train;
  docs_args input;
  remote_args remote;
  size_t count, batch, texts;
  const char *out, *seeds, *show;
  opt_list merge;
} study_args;

static const opt_spec specs[] = {
  { .name = "count",
    .letter = 'c',
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = 1e7,
    .offset = offsetof(study_args, count),
    .help = "conversations, dealt over the documents" },
  { .name = "batch",
    .letter = 'b',
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = MAX_BATCH,
    .offset = offsetof(study_args, batch),
    .help = "conversations made side by side" },
  { .name = "out",
    .letter = 'o',
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(study_args, out),
    .help = "where to; standard output without it" },
  { .name = "seeds",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(study_args, seeds),
    .help = "seed instructions instead of the seven" },
  { .name = "show",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(study_args, show),
    .help = "tell what is in a file of conversations, and make none" },
  { .name = "texts",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 0,
    .max = 1e6,
    .offset = offsetof(study_args, texts),
    .help = "with --show: conversations shown as text" },
  { .name = "merge",
    .type = OPT_LIST,
    .meta = "FILE",
    .offset = offsetof(study_args, merge),
    .help = "put files of conversations together, and make none; repeatable" },
  { 0 }
};
static const opt_group groups[] = { { "Documents", docs_specs, offsetof(study_args, input) },
                                    { "Options", specs, 0 },
                                    { "Model", engine_options, offsetof(study_args, engine) },
                                    { "Self-study", study_specs, offsetof(study_args, train) },
                                    { "Remote generator", remote_specs,
                                      offsetof(study_args, remote) },
                                    { "Common options", common_json_options, 0 },
                                    { 0 } };

static void init(void *args) {
  study_args *a = args;
  fl_train_options_default(&a->train);
  remote_default(&a->remote);
  a->count = 16;
  a->batch = 8;
  a->texts = 3;
}

typedef struct maker {
  const study_args *args;
  engine engine;
  fl_source_list docs;
  fl_study_seeds seeds;
  study_wire *wire;   /* NULL: the bots are here */
  fl_doc_text *texts; /* [docs.n] */
  fl_pass *pass;
  fl_kv_pool *pool;
  fl_part *part;      /* what --out will be made of; NULL: standard output */
  fl_part_count done; /* conversations, with those of earlier runs */
  bool compared;      /* the server's prompts with ours */
} maker;

/* --out may name nothing that the conversations are made from. */
static int check_out(const study_args *a, const fl_source_list *docs, fl_err *err) {
  int rc = output_apart("--out", a->out, a->engine.model, "the model", err);
  if (rc == FL_OK) rc = output_apart("--out", a->out, a->seeds, "the file of seeds", err);
  for (size_t i = 0; i < a->input.docs.n && rc == FL_OK; i++)
    rc = output_apart("--out", a->out, a->input.docs.v[i], "a document", err);
  for (size_t i = 0; i < docs->n && rc == FL_OK; i++)
    rc = output_apart("--out", a->out, docs->doc[i].name, "a document", err);
  return rc;
}

static void put_text(fl_buf *b, const char *text) {
  fl_json_escape(b, text ? text : "", text ? strlen(text) : 0);
  fl_buf_putc(b, '\n');
}

/* Everything that the conversations follow from; how many, in which batches and on how many threads
 * changes none of them, and a server may have moved. */
static int identity(char out[FL_HASH_TEXT], const maker *m, fl_err *err) {
  const study_args *a = m->args;
  const fl_study_options o = fl_train_study(&a->train);
  fl_buf b = { 0 };
  put_text(&b, fl_model_hash(m->engine.model));
  put_text(&b, fl_template_name(fl_model_template(m->engine.model)));
  fl_buf_printf(&b, "%zu %zu %zu %.17g %zu %zu %.17g %zu %.17g %llu %d\n", o.chunk_min, o.chunk_max,
                o.top_k, o.top_mass, o.max_q, o.max_a, o.temperature, o.turns, o.think,
                (unsigned long long)o.seed, (int)a->train.gen_kv);
  if (fl_mix_is_anchored(&o.mix)) {
    fl_buf_puts(&b, "kinds ");
    fl_mix_print(&b, &o.mix);
    fl_buf_putc(&b, '\n');
  }
  if (a->remote.url) {
    fl_buf_printf(&b, "remote %d\n", a->remote.teacher);
    put_text(&b, a->remote.model);
  }
  for (size_t i = 0; i < m->seeds.n; i++) {
    fl_buf_printf(&b, "seed %d\n", m->seeds.v[i].is_request);
    put_text(&b, m->seeds.v[i].kind);
    put_text(&b, m->seeds.v[i].text);
  }
  for (size_t i = 0; i < m->docs.n; i++) {
    put_text(&b, m->docs.doc[i].name);
    put_text(&b, m->docs.doc[i].hash);
  }
  if (b.oom) return fl_fail(err, FL_ENOMEM, "not enough memory");
  fl_hash_bytes(out, b.data, b.len);
  fl_buf_release(&b);
  return FL_OK;
}

static int open_part(maker *m, fl_err *err) {
  const study_args *a = m->args;
  char study[FL_HASH_TEXT];
  int rc = identity(study, m, err);
  if (rc == FL_OK) rc = fl_part_open(&m->part, &m->done, a->out, study, err);
  if (rc != FL_OK || m->done.tried == 0) return rc;
  if (m->done.tried > a->count)
    return fl_fail(err, FL_EUSAGE,
                   "--count %zu: %s.part holds %zu conversations of this study "
                   "already; ask for as many or more, or move it away",
                   a->count, a->out, m->done.tried);
  fl_info("%s.part: holds %zu conversations of this study already; going on from there", a->out,
          m->done.tried);
  return FL_OK;
}

static int prepare(maker *m, fl_err *err) {
  const study_args *a = m->args;
  int rc = a->seeds ? fl_study_seeds_read(&m->seeds, a->seeds, err) : FL_OK;
  if (rc == FL_OK) rc = docs_read(&m->docs, &a->input, err);
  if (rc == FL_OK) rc = check_out(a, &m->docs, err);
  if (rc == FL_OK) rc = engine_open(&m->engine, &a->engine, NULL, err);
  if (rc != FL_OK) return rc;
  const fl_model *model = m->engine.model;
  fl_pass_options opt = { .max_rows = FL_PASS_ROWS, .max_spans = MAX_BATCH };
  rc = fl_pass_new(&m->pass, model, m->engine.team, &opt, err);
  if (rc == FL_OK)
    rc = fl_kv_pool_new(&m->pool, fl_model_hparams(model), fl_model_kernels(model), a->train.gen_kv,
                        0, err);
  m->texts = fl_calloc(m->docs.n, sizeof *m->texts);
  if (rc == FL_OK && !m->texts) rc = fl_fail(err, FL_ENOMEM, "not enough memory");
  for (size_t i = 0; i < m->docs.n && rc == FL_OK; i++)
    rc = fl_doc_text_init(&m->texts[i], fl_model_tokenizer(model), m->docs.doc[i].text,
                          m->docs.doc[i].len, err);
  for (size_t i = 0; i < m->docs.n && rc == FL_OK; i++) m->texts[i].name = m->docs.doc[i].name;
  if (rc == FL_OK && a->remote.url) rc = study_wire_open(&m->wire, &a->remote, model, err);
  if (rc == FL_OK && a->out) rc = open_part(m, err);
  return rc;
}

static void put(const maker *m, fl_buf *lines, const fl_conv *c, const fl_conv_plan *plan) {
  const fl_source_doc *d = &m->docs.doc[plan->doc];
  fl_conv_label label = { .doc = plan->doc,
                          .name = d->name,
                          .hash = d->hash,
                          .tokenizer = fl_model_tokenizer_hash(m->engine.model),
                          .index = plan->draw };
  fl_conv_print(lines, c, &label);
}

/* Keeps what a batch came to before the next one begins. */
static int keep(maker *m, const fl_buf *lines, size_t tried, size_t written, fl_err *err) {
  fl_part_count now = { m->done.tried + tried, m->done.written + written };
  int rc = FL_OK;
  if (m->part) {
    rc = fl_part_add(m->part, lines, &now, err);
  } else if (lines->oom) {
    rc = fl_fail(err, FL_ENOMEM, "not enough memory");
  } else if (lines->len > 0) {
    const bool ok = fwrite(lines->data, 1, lines->len, stdout) == lines->len && fflush(stdout) == 0;
    if (!ok) rc = fl_fail(err, FL_EFAIL, "standard output: cannot write: %s", fl_fs_reason(errno));
  }
  if (rc == FL_OK) m->done = now;
  return rc;
}

static bool stopped(void *ctx) {
  (void)ctx;
  return signals_stop();
}

static int make_batch(maker *m, size_t n, fl_err *err) {
  const size_t first = m->done.tried;
  fl_study_options o = fl_train_study(&m->args->train);
  o.cancelled = stopped; /* the batch is made again by who goes on */
  o.seeds = m->seeds.v;
  o.n_seeds = m->seeds.n;
  fl_conv convs[MAX_BATCH] = { 0 };
  fl_conv_plan plans[MAX_BATCH] = { 0 };
  const fl_doc_text *docs[MAX_BATCH] = { 0 };
  bool ok[MAX_BATCH];
  for (size_t i = 0; i < n; i++) {
    size_t k = first + i, doc = k % m->docs.n;
    uint32_t draw = (uint32_t)(k / m->docs.n);
    plans[i] = (fl_conv_plan){ .doc = (uint32_t)doc, .round = draw, .conv = 0, .draw = draw };
    docs[i] = &m->texts[doc];
  }
  int rc = m->wire
               ? fl_remote_make(convs, ok, plans, docs, n, &o, study_wire_remote(m->wire), m->pass,
                                m->pool, NULL, NULL, err)
               : fl_study_make(convs, ok, plans, docs, n, &o, m->pass, m->pool, NULL, NULL, err);
  fl_buf lines = { 0 };
  size_t written = 0;
  for (size_t i = 0; i < n && rc == FL_OK; i++) {
    if (!ok[i]) continue;
    put(m, &lines, &convs[i], &plans[i]);
    written++;
  }
  if (rc == FL_OK) rc = keep(m, &lines, n, written, err);
  fl_buf_release(&lines);
  for (size_t i = 0; i < n; i++) fl_conv_release(&convs[i]);
  return rc;
}

/* Once, as soon as it is known. */
static void compare_prompts(maker *m) {
  size_t there, here;
  if (!m->wire || m->compared) return;
  m->compared = fl_remote_prompt_tokens(study_wire_remote(m->wire), &there, &here);
  if (m->compared && there != here)
    fl_warn("--generator: the server makes %zu tokens of a prompt that is %zu here, so its "
            "probabilities are those of another prompt; give it a chat template that writes this "
            "model's prompts without thinking, or add --teacher local",
            there, here);
}

static int make_all(maker *m, fl_err *err) {
  const study_args *a = m->args;
  const double start = fl_now_s();
  const size_t before = m->done.tried;
  while (m->done.tried < a->count) {
    const size_t left = a->count - m->done.tried;
    char time[32];
    if (signals_stop()) return FL_EINTR;
    int rc = make_batch(m, left < a->batch ? left : a->batch, err);
    if (rc != FL_OK) return rc;
    compare_prompts(m);
    const size_t tried = m->done.tried;
    const double each = (fl_now_s() - start) / (double)(tried - before);
    if (fl_log_level() >= 0)
      fprintf(stderr, "%zu/%zu conversations, %zu skipped, %.2f s each, %s left\n", tried, a->count,
              tried - m->done.written, each,
              fl_format_seconds(time, each * (double)(a->count - tried)));
  }
  return FL_OK;
}

/* --out as far as it goes: the whole study, or at a signal what there is. */
static int finish(maker *m, int rc, fl_err *err) {
  const char *out = m->args->out;
  if (rc == FL_EINTR) *err = (fl_err){ 0 }; /* what is left behind says more */
  if (rc == FL_OK || (rc == FL_EINTR && m->done.written > 0)) {
    int saved = fl_part_publish(m->part, err);
    if (saved != FL_OK) rc = saved;
    else if (rc == FL_EINTR)
      fl_fail(err, rc,
              "%s: holds the %zu conversations made so far; the same command goes on from "
              "there",
              out, m->done.written);
  }
  if (rc == FL_EINTR && m->done.written == 0)
    fl_fail(err, rc, "stopped before the first conversations were done; %s is not written", out);
  if (rc != FL_OK && rc != FL_EINTR && m->done.tried > 0)
    fl_err_prefix(err,
                  "%s.part keeps the %zu conversations made so far, and the same command goes "
                  "on from there",
                  out, m->done.written);
  return rc;
}

static void release(maker *m) {
  for (size_t i = 0; m->texts && i < m->docs.n; i++) fl_doc_text_release(&m->texts[i]);
  fl_free(m->texts);
  if (m->pool) fl_kv_pool_free(m->pool);
  if (m->pass) fl_pass_free(m->pass);
  fl_source_release(&m->docs);
  fl_study_seeds_release(&m->seeds);
  study_wire_close(m->wire);
  engine_close(&m->engine);
}

static void show_text(const fl_json *t) {
  const char *doc = "", *kind = "", *request = "", *answer = "";
  uint64_t first = 0, end = 0;
  fl_json_get_str(t, "document", &doc);
  fl_json_get_str(t, "kind", &kind);
  fl_json_get_str(t, "request", &request);
  fl_json_get_str(t, "answer", &answer);
  fl_json_get_u64(t, "first", &first);
  fl_json_get_u64(t, "end", &end);
  printf("\n%s, tokens %llu to %llu, %s\n> %s\n%s\n", doc, (unsigned long long)first,
         (unsigned long long)end, kind, request, answer);
}

static int show(const study_args *a, fl_err *err) {
  fl_json *o = NULL, *texts = NULL;
  int rc = fl_study_show(&o, a->show, a->texts, err);
  if (rc == FL_OK && !a->common.json) { /* texts are no table */
    texts = fl_json_dup(fl_json_get(o, "texts"));
    fl_json_del(o, "texts");
  }
  if (rc == FL_OK) rc = report_print(o, a->common.json, err);
  const fl_json *t = rc == FL_OK && texts ? fl_json_first(texts) : NULL;
  for (; t; t = fl_json_next(t)) show_text(t);
  fl_json_free(texts);
  fl_json_free(o);
  return rc;
}

static int merge(const study_args *a, fl_err *err) {
  size_t kept = 0, dropped = 0;
  int rc = fl_study_merge(a->merge.v, a->merge.n, a->out, &kept, &dropped, err);
  if (rc == FL_OK)
    fl_info("%zu conversations; %zu that stood there already left out", kept, dropped);
  return rc;
}

static int run(const opt_parsed *p, fl_err *err) {
  maker m = { .args = p->args };
  const study_args *a = m.args;
  if (a->show && (a->input.docs.n > 0 || a->merge.n > 0))
    return fl_fail(err, FL_EUSAGE, "--show: makes nothing; leave --docs and --merge out");
  if (a->show) return show(a, err);
  if (a->merge.n > 0 && a->input.docs.n > 0)
    return fl_fail(err, FL_EUSAGE, "--merge: makes no conversations; leave --docs out");
  if (a->merge.n > 0) return merge(a, err);
  if (a->input.docs.n == 0) return fl_fail(err, FL_EUSAGE, "--docs PATH is needed");
  if (a->train.chunk_min > a->train.chunk_max)
    return fl_fail(err, FL_EUSAGE, "--chunk-min %zu: more than --chunk-max %zu; lower it",
                   a->train.chunk_min, a->train.chunk_max);
  signals_catch();
  int rc = prepare(&m, err);
  if (rc == FL_OK) {
    rc = make_all(&m, err);
    if (m.part) rc = finish(&m, rc, err);
  }
  fl_part_close(m.part, rc == FL_OK);
  release(&m);
  return rc;
}

const command cmd_study = { .name = "study",
                            .operands = "",
                            .summary =
                                "Writes self-study conversations about documents as JSON lines",
                            .groups = groups,
                            .args_size = sizeof(study_args),
                            .init = init,
                            .run = run };
