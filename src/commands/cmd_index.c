/* cmd_index.c - index: rebuilds a fleet's retrieval index, or shows what a query finds in it. */
#include <string.h>

#include "base/mem.h"
#include "commands/doc_choice.h"
#include "commands/command.h"
#include "commands/docs.h"
#include "commands/runtime.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "commands/sampling.h"
#include "fleet/fleet_dir.h"
#include "retrieval/retrieval.h"

typedef struct index_args {
  common_args common;
  engine_args engine;
  retrieval_args retrieval;
  const char *query;
  docs_args input; /* where the documents are now; none: their names */
} index_args;

static const opt_spec specs[] = { { .name = "query",
                                    .letter = 'Q',
                                    .type = OPT_TEXT,
                                    .meta = "TEXT",
                                    .offset = offsetof(index_args, query),
                                    .help = "search instead of rebuilding" },
                                  { 0 } };
static const opt_group groups[] = { { "Options", specs, 0 },
                                    { "Documents", docs_specs, offsetof(index_args, input) },
                                    { "Model", engine_options, offsetof(index_args, engine) },
                                    { "Retrieval", retrieval_specs,
                                      offsetof(index_args, retrieval) },
                                    { "Common options", common_json_options, 0 },
                                    { 0 } };

static void init(void *args) { retrieval_default(&((index_args *)args)->retrieval); }

typedef enum unit { DOCUMENT, PASSAGE, CHUNK } unit;

static fl_json *hits_json(const fl_hits *h, const fl_hit *hits, size_t n, const fl_fleet *f,
                          unit what) {
  fl_json *rows = fl_json_array();
  for (size_t i = 0; rows && i < n; i++) {
    fl_doc_info d;
    fl_json *row = fl_json_object();
    fl_fleet_doc(f, hits[i].doc, &d);
    if (what == DOCUMENT) hit_json(row, h, &hits[i]);
    else fl_json_set_num(row, "score", hits[i].score);
    if (what == PASSAGE) fl_json_set_u64(row, "passage", hits[i].passage);
    if (what == CHUNK) fl_json_set_u64(row, "piece", hits[i].chunk);
    fl_json_set_str(row, "name", d.name);
    fl_json_push(rows, row);
  }
  return rows;
}

static int query(fl_fleet *f, const index_args *a, fl_err *err) {
  fl_hits h = { 0 };
  int rc = fl_fleet_retrieve(f, a->query, strlen(a->query), &a->retrieval.rag, &h, err);
  if (rc != FL_OK) return rc;
  fl_json *out = fl_json_object();
  fl_json_set_str(out, "query", a->query);
  fl_json_set_num(out, "margin", h.margin);
  fl_json_set_str(out, "rag", fl_rag_by_words[a->retrieval.rag.by]);
  fl_json_set(out, "chosen", hits_json(&h, h.doc, h.n_docs, f, DOCUMENT));
  fl_json_set(out, "ranked", hits_json(&h, h.ranked, h.n_ranked, f, DOCUMENT));
  fl_json_set(out, "passages", hits_json(&h, h.passage, h.n_passages, f, PASSAGE));
  fl_json_set(out, "pieces", hits_json(&h, h.chunk, h.n_chunks, f, CHUNK));
  rc = report_print(out, a->common.json, err);
  fl_json_free(out);
  fl_hits_release(&h);
  return rc;
}

static int rebuild(fl_fleet *f, const index_args *a, const char *dir, fl_err *err) {
  fl_train_hooks hooks = { .poll = signals_poll, .progress = progress_line };
  int rc = fl_fleet_index(f, &hooks, err);
  if (rc != FL_OK || (a->common.quiet && !a->common.json)) return rc;
  fl_json *out = fl_json_object();
  fl_json_set_str(out, "fleet", dir);
  fl_json_set_u64(out, "docs", fl_fleet_n_docs(f));
  fl_json_set_u64(out, "generation", fl_fleet_generation(f));
  rc = report_print(out, a->common.json, err);
  fl_json_free(out);
  return rc;
}

/* Documents from where they were, unless --docs says where they are. */
static int read_docs(fl_source_list *out, const index_args *a, const fl_manifest *m, fl_err *err) {
  if (a->input.docs.n > 0) return docs_read(out, &a->input, err);
  bool merged = m->n_members > 0;
  size_t n = merged ? m->n_members : m->n;
  const char **names = fl_calloc(n + 1, sizeof *names);
  if (!names) return fl_fail(err, FL_ENOMEM, "not enough memory");
  for (size_t i = 0; i < n; i++) names[i] = merged ? m->member[i].name : m->doc[i].name;
  int rc = fl_source_read(out, names, n, false, err);
  fl_free(names);
  return rc;
}

static int run(const opt_parsed *p, fl_err *err) {
  const index_args *a = p->args;
  const char *dir = p->operand[0];
  engine e = { 0 };
  fl_fleet *f = NULL;
  fl_source_list docs = { 0 };
  fl_manifest m = { 0 };
  signals_catch();
  int rc = fl_fleet_dir_load(&m, dir, err);
  fl_train_options opts = m.opts;
  fl_open_options how = { .read_only = a->query != NULL,
                          .log_events = a->query != NULL,
                          .resume = true };
  if (m.n_members > 0) how.merge = m.doc[0].name;
  if (rc == FL_OK && !a->query) rc = read_docs(&docs, a, &m, err);
  if (rc == FL_OK) rc = engine_open(&e, &a->engine, dir, err);
  if (rc == FL_OK)
    rc = fl_fleet_open(&f, dir, e.model, e.team, a->query ? NULL : &docs, &opts, &how, err);
  if (rc == FL_OK) rc = a->query ? query(f, a, err) : rebuild(f, a, dir, err);
  if (f) fl_fleet_close(f);
  engine_close(&e);
  fl_source_release(&docs);
  fl_manifest_release(&m);
  return rc;
}

const command cmd_index = { .name = "index",
                            .operands = "FLEET",
                            .summary = "Rebuilds the retrieval index of a fleet, or searches it",
                            .min_operands = 1,
                            .max_operands = 1,
                            .groups = groups,
                            .args_size = sizeof(index_args),
                            .init = init,
                            .run = run };
