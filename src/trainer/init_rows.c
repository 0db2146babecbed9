/* init_rows.c - five ways to begin a cartridge. arXiv 2506.06266, section 5, compares the first two
 * and finds the model's own rows of the document's first tokens the better; matched ones know more
 * of the document than either (init_match.h). */
#include "trainer/init_rows.h"

#include <string.h>

#include "base/rng.h"
#include "cartridge/cartridge_io.h"
#include "trainer/init_match.h"

/* Tokens of the vocabulary that stand for text. */
static int32_t draw_token(fl_rng *rng, const fl_tokenizer *t) {
  enum { TRIES = 64 };
  int32_t id = 0;
  for (int i = 0; i < TRIES; i++) {
    id = (int32_t)fl_rng_below(rng, fl_tokenizer_n_vocab(t));
    if (!fl_tokenizer_is_control(t, id) && !fl_tokenizer_is_end(t, id)) break;
  }
  return id;
}

static int rows_of_ids(fl_cartridge *out, fl_fleet *f, const fl_ids *ids, fl_err *err) {
  fl_seq *seq = NULL;
  int rc = fl_seq_new(&seq, f->pool[FL_KV_F32], err);
  if (rc == FL_OK) rc = fl_pass_prefill(f->pass, seq, ids->data, ids->len, NULL, err);
  if (rc == FL_OK)
    rc = fl_cartridge_capture(out, fl_model_hparams(f->model), seq, 0, ids->len,
                              (size_t)f->m.frozen, err);
  if (seq != NULL) fl_seq_free(seq);
  return rc;
}

/* The wrapping of the document, around random tokens in the place of its own: rows that have the
 * statistics of the model's, and nothing of the text. */
static int from_random(fl_cartridge *out, fl_fleet *f, size_t i, const char *text, size_t len,
                       fl_err *err) {
  const fl_tokenizer *t = fl_model_tokenizer(f->model);
  fl_rng rng = fl_rng_stream(f->opts.seed, FL_RNG_INIT, f->m.doc[i].id, 0, 0);
  fl_ids ids = { 0 }, none = { 0 };
  size_t head = 0, tail = 0;
  int rc = fl_wrapped_system(&ids, f->model, text, len, (size_t)f->m.p, err);
  if (rc == FL_OK) rc = fl_wrapped_system(&none, f->model, "", 0, 0, err);
  if (rc == FL_OK) {
    while (head < none.len && head < ids.len && ids.data[head] == none.data[head]) head++;
    while (tail < none.len - head && tail < ids.len - head &&
           ids.data[ids.len - 1 - tail] == none.data[none.len - 1 - tail])
      tail++;
    for (size_t k = head; k < ids.len - tail; k++) ids.data[k] = draw_token(&rng, t);
    rc = rows_of_ids(out, f, &ids, err);
  }
  fl_ids_release(&ids);
  fl_ids_release(&none);
  return rc;
}

static const char request[] =
    "Write a summary of the document that keeps its names, numbers and dates. Give the summary "
    "alone.";

/* The prompt: as much of the document as the context has room for. */
static int summary_prompt(fl_ids *ids, const fl_fleet *f, const char *text, size_t len,
                          fl_err *err) {
  const size_t n_ctx = fl_model_hparams(f->model)->n_ctx, p = (size_t)f->m.p;
  fl_ids asks = { 0 };
  int rc = fl_chat_user(&asks, fl_model_template(f->model), fl_model_tokenizer(f->model), request,
                        sizeof request - 1, true, false, err);
  if (rc == FL_OK && (asks.oom || asks.len + p + 64 > n_ctx))
    rc = fl_fail(err, FL_EUSAGE,
                 "--init summary: %zu rows leave no room for the document in the "
                 "model's context of %zu; lower --p",
                 p, n_ctx);
  if (rc == FL_OK) rc = fl_wrapped_system(ids, f->model, text, len, n_ctx - p - asks.len, err);
  if (rc == FL_OK) fl_ids_append(ids, asks.data, asks.len);
  if (rc == FL_OK && ids->oom) rc = fl_fail(err, FL_ENOMEM, "not enough memory for a summary");
  fl_ids_release(&asks);
  return rc;
}

static int from_summary(fl_cartridge *out, fl_fleet *f, const char *text, size_t len, fl_err *err) {
  fl_ids ids = { 0 };
  fl_buf summary = { 0 };
  fl_stream s = { .sampling = FL_SAMPLING_GREEDY, .max_new = (size_t)f->m.p };
  int rc = summary_prompt(&ids, f, text, len, err);
  if (rc == FL_OK) rc = fl_seq_new(&s.seq, f->pool[FL_KV_F32], err);
  s.prompt = ids.data;
  s.n_prompt = ids.len;
  if (rc == FL_OK) rc = fl_generate(f->pass, &s, 1, NULL, err);
  fl_detokenize(fl_model_tokenizer(f->model), &summary, s.out.data, s.out.len, false);
  if (rc == FL_OK && summary.oom) rc = fl_fail(err, FL_ENOMEM, "not enough memory for a summary");
  if (rc == FL_OK) /* a model that says nothing leaves the document's own beginning */
    rc = fl_cartridge_birth(out, f->pass, f->pool[FL_KV_F32], summary.len > 0 ? summary.data : text,
                            summary.len > 0 ? summary.len : len, (size_t)f->m.p,
                            (size_t)f->m.frozen, err);
  fl_streams_release(&s, 1);
  if (s.seq != NULL) fl_seq_free(s.seq);
  fl_ids_release(&ids);
  fl_buf_release(&summary);
  return rc;
}

static int from_file(fl_cartridge *out, const fl_fleet *f, fl_err *err) {
  const char *path = f->opts.init_file;
  fl_cartridge c = { 0 };
  if (path == NULL)
    return fl_fail(err, FL_EUSAGE,
                   "--init: documents without a cartridge were to begin with a "
                   "cartridge file; name it again");
  int rc = fl_cartridge_read(&c, NULL, path, fl_model_hparams(f->model), err);
  if (rc != FL_OK) return rc;
  if (c.rows.n_rows > f->m.p || c.rows.n_rows <= f->m.frozen) {
    rc = fl_fail(err, FL_EINPUT, "%s: %zu rows, where --p and --frozen allow %llu to %llu", path,
                 c.rows.n_rows, (unsigned long long)f->m.frozen + 1, (unsigned long long)f->m.p);
    fl_cartridge_release(&c);
    return rc;
  }
  c.frozen = (size_t)f->m.frozen;
  c.steps = 0;
  *out = c;
  return FL_OK;
}

int fl_fleet_init_rows(fl_cartridge *out, fl_fleet *f, size_t i, const char *text, size_t len,
                       fl_err *err) {
  switch ((fl_init)f->opts.init) {
  case FL_INIT_RANDOM: return from_random(out, f, i, text, len, err);
  case FL_INIT_SUMMARY: return from_summary(out, f, text, len, err);
  case FL_INIT_FILE: return from_file(out, f, err);
  case FL_INIT_MATCH: return fl_fleet_init_match(out, f, i, text, len, err);
  case FL_INIT_FIRST: break;
  }
  return fl_cartridge_birth(out, f->pass, f->pool[FL_KV_F32], text, len, (size_t)f->m.p,
                            (size_t)f->m.frozen, err);
}
