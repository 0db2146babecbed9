/* study.c - the two bots in lockstep.
 *
 * All conversations of a call go through the same stages together. The system rows of every
 * distinct chunk are computed once; each bot works on a fork of them, so that a chunk's rows are
 * held once.
 *   stage A: every conversation without a request: fork, seed instruction, sampled request
 *   stage B: every conversation with one: fork, request, greedy answer, teacher rows on the way; of
 *            those whose answer is given (anchored.h) one forward pass over request and answer
 * What either wrote may be refused (reject.h); the conversation then takes part in the next
 * attempt, in which bot A draws from the next stretch of the same random stream. By the row rule
 * nothing of this depends on the company: a plan gives the same conversation alone and among
 * others.
 *
 * The stages are in bots.c. Which kind: mix.h; which chunk and which instruction: chunk.c, or
 * anchored.h.
 */
#include "study/study.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cartridge/cartridge.h"
#include "study/examples.h"
#include "study/maker.h"

enum { PROMPT_SLACK = 256 };

static size_t n_turns(const fl_study_options *o) { return o->turns > 0 ? o->turns : 1; }

size_t fl_study_max_rows(const fl_study_options *o) {
  return o->chunk_max + n_turns(o) * (o->max_q + o->max_a + PROMPT_SLACK) +
         (o->think > 0 ? THINK_ROOM : 0);
}

static int check_options(const fl_study_options *o, const fl_model *m, fl_err *err) {
  const size_t n_ctx = fl_model_hparams(m)->n_ctx;
  if (o->chunk_min < 1 || o->chunk_min > o->chunk_max)
    return fl_fail(err, FL_EUSAGE,
                   "--chunk-min %zu and --chunk-max %zu: the range is empty; give "
                   "1 <= min <= max",
                   o->chunk_min, o->chunk_max);
  if (n_turns(o) > FL_MAX_TURNS || !(o->think >= 0 && o->think <= 1))
    return fl_fail(err, FL_EUSAGE, "--turns must be at most %d and --think from 0 to 1",
                   FL_MAX_TURNS);
  if (o->seeds && (o->n_seeds < 1 || o->n_seeds > FL_MAX_SEEDS))
    return fl_fail(err, FL_EUSAGE, "--seeds: %zu instructions; give 1 to %d", o->n_seeds,
                   FL_MAX_SEEDS);
  if (o->top_k < 1 || o->max_q < 1 || o->max_a < 1)
    return fl_fail(err, FL_EUSAGE, "--top-k, --max-q and --max-a must be at least 1");
  if (o->max_q >= ATTEMPT_STRIDE || o->max_a >= ATTEMPT_STRIDE || o->chunk_max >= ATTEMPT_STRIDE)
    return fl_fail(err, FL_EUSAGE, "--max-q, --max-a and --chunk-max must be below %d",
                   ATTEMPT_STRIDE);
  if (o->chunk_max + o->max_q + o->max_a > n_ctx)
    return fl_fail(err, FL_EUSAGE,
                   "--chunk-max %zu with --max-q %zu and --max-a %zu is more than "
                   "the model's context of %zu; lower --chunk-max",
                   o->chunk_max, o->max_q, o->max_a, n_ctx);
  return FL_OK;
}

/* --- setting up ---------------------------------------------------------------------------- */

static const base *find_base(maker *mk, const fl_doc_text *doc, size_t first, size_t end) {
  for (size_t i = 0; i < mk->n_base; i++) {
    const base *b = &mk->base[i];
    if (b->doc == doc && b->first == first && b->end == end) return b;
  }
  mk->base[mk->n_base] = (base){ .doc = doc, .first = first, .end = end };
  return &mk->base[mk->n_base++];
}

bool fl_maker_cancelled(void *ctx) {
  const maker *mk = ctx;
  return mk->o->cancelled && mk->o->cancelled(mk->o->cancel_ctx);
}

/* A slice at a time: a chunk may take longer than who asked for a stop likes to wait. */
static int prefill(maker *mk, fl_seq *seq, const fl_ids *ids) {
  const size_t slice = fl_pass_max_rows(mk->pass);
  int rc = FL_OK;
  for (size_t at = 0; at < ids->len && rc == FL_OK; at += slice) {
    const size_t n = ids->len - at < slice ? ids->len - at : slice;
    if (fl_maker_cancelled(mk)) return fl_fail(mk->err, FL_EINTR, "stopped");
    rc = fl_pass_prefill(mk->pass, seq, ids->data + at, n, NULL, mk->err);
  }
  return rc;
}

static int run_base(maker *mk, base *b) {
  size_t len;
  const char *chunk = fl_doc_text_span(b->doc, b->first, b->end, &len);
  fl_ids ids = { 0 };
  int rc = fl_wrapped_system(&ids, mk->model, chunk, len, 0, mk->err);
  if (rc == FL_OK) rc = fl_seq_new(&b->seq, mk->pool, mk->err);
  if (rc == FL_OK) rc = prefill(mk, b->seq, &ids);
  mk->stats.prefill_tokens += ids.len;
  fl_ids_release(&ids);
  return rc;
}

/* Once a call. */
static int run_examples(maker *mk) {
  if (mk->examples_seq) return FL_OK;
  int rc = fl_examples_render(&mk->examples, mk->model, "", mk->err);
  if (rc == FL_OK) rc = fl_seq_new(&mk->examples_seq, mk->pool, mk->err);
  if (rc == FL_OK) rc = prefill(mk, mk->examples_seq, &mk->examples);
  mk->stats.prefill_tokens += mk->examples.len;
  return rc;
}

/* The sentences of a document, found once a call. */
static int find_spans(maker *mk, const fl_doc_text *doc, const fl_text_spans **out) {
  size_t i = 0;
  while (i < mk->n_docs && mk->docs[i].doc != doc) i++;
  if (i == mk->n_docs) {
    const int rc = fl_text_spans_read(&mk->docs[i].spans, doc->text, doc->len, mk->err);
    if (rc != FL_OK) return rc;
    mk->docs[i].doc = doc;
    mk->n_docs++;
  }
  *out = &mk->docs[i].spans;
  return FL_OK;
}

/* A conversation that is about a place of the document; closed where that gives none. */
static int set_up_anchored(maker *mk, item *it, const fl_doc_text *doc, uint32_t nth) {
  const fl_text_spans *spans = NULL;
  int rc = find_spans(mk, doc, &spans);
  if (rc != FL_OK) return rc;
  rc = fl_anchored_make(&it->anchor, &it->way, nth, it->plan->doc, mk->o, doc, spans, mk->err);
  it->closed = rc == FL_EINPUT;
  if (rc != FL_OK) return it->closed ? FL_OK : rc;
  it->base = find_base(mk, doc, it->anchor.first, it->anchor.end);
  return it->anchor.shown ? run_examples(mk) : FL_OK;
}

static int set_up_item(maker *mk, item *it, const fl_conv_plan *plan, const fl_doc_text *doc) {
  const fl_mix_draw d = fl_mix_at(&mk->o->mix, mk->o->seed, plan->doc, plan->draw);
  fl_rng draw = fl_rng_stream(mk->o->seed, FL_RNG_THINK, plan->doc, plan->round, plan->conv);
  fl_conv_plan seed = *plan;
  size_t first, end;
  it->plan = plan;
  it->way = d.way;
  it->thinks = fl_rng_unit(&draw) < mk->o->think;
  if (it->way != FL_WAY_SEEDS) return set_up_anchored(mk, it, doc, d.nth);
  seed.draw = d.nth;
  fl_study_chunk(mk->o, doc, &seed, &first, &end);
  it->kind = fl_study_kind(mk->o, &seed);
  it->base = find_base(mk, doc, first, end);
  return FL_OK;
}

static int set_up(maker *mk, const fl_conv_plan *plans, const fl_doc_text *const *docs) {
  const size_t n_vocab = fl_model_hparams(mk->model)->n_vocab;
  const size_t top_k = mk->o->top_k < n_vocab ? mk->o->top_k : n_vocab;
  int rc = FL_OK;
  mk->item = fl_calloc(mk->n, sizeof *mk->item);
  mk->base = fl_calloc(mk->n, sizeof *mk->base);
  mk->docs = fl_calloc(mk->n, sizeof *mk->docs);
  mk->stream = fl_calloc(mk->n, sizeof *mk->stream);
  mk->live = fl_calloc(mk->n, sizeof *mk->live);
  mk->forced = fl_calloc(mk->n, sizeof *mk->forced);
  if (!mk->item || !mk->base || !mk->docs || !mk->stream || !mk->live || !mk->forced)
    return fl_fail(mk->err, FL_ENOMEM, "out of memory for %zu conversations", mk->n);
  for (size_t i = 0; i < mk->n && rc == FL_OK; i++) {
    rc = set_up_item(mk, &mk->item[i], &plans[i], docs[i]);
    if (rc == FL_OK) rc = fl_target_room_init(&mk->item[i].room, mk->o->max_a + 1, top_k, mk->err);
  }
  for (size_t i = 0; i < mk->n_base && rc == FL_OK; i++) rc = run_base(mk, &mk->base[i]);
  return rc;
}

static void tear_down(maker *mk) {
  for (size_t i = 0; mk->item && i < mk->n; i++) {
    fl_free(mk->item[i].request.text);
    fl_free(mk->item[i].answer.text);
    fl_ids_release(&mk->item[i].prompt);
    fl_ids_release(&mk->item[i].dialogue);
    fl_ids_release(&mk->item[i].history);
    fl_ids_release(&mk->item[i].given);
    fl_anchored_release(&mk->item[i].anchor);
    fl_conv_release(&mk->item[i].conv);
    fl_free(mk->item[i].last_answer);
    fl_target_room_release(&mk->item[i].room);
  }
  for (size_t i = 0; i < mk->n_base; i++) fl_seq_free(mk->base[i].seq);
  fl_seq_free(mk->examples_seq);
  fl_ids_release(&mk->examples);
  for (size_t i = 0; i < mk->n_docs; i++) fl_text_spans_release(&mk->docs[i].spans);
  fl_kv_pool_trim(mk->pool);
  fl_pass_evict_pages(mk->pass);
  fl_free(mk->item);
  fl_free(mk->base);
  fl_free(mk->stream);
  fl_free(mk->live);
  fl_free(mk->docs);
  fl_free(mk->forced);
}

/* --- the call ------------------------------------------------------------------------------ */

size_t fl_maker_turns(const maker *mk) { return n_turns(mk->o); }

bool fl_maker_waits(const maker *mk, const item *it) {
  return !it->closed && it->turns == mk->turn;
}

static size_t n_waiting(const maker *mk) {
  size_t n = 0;
  for (size_t i = 0; i < mk->n; i++) n += fl_maker_waits(mk, &mk->item[i]);
  return n;
}

static size_t n_without_turn(const maker *mk) {
  size_t n = 0;
  for (size_t i = 0; i < mk->n; i++) n += mk->item[i].turns == 0;
  return n;
}

/* A conversation whose next turn does not come out keeps those before it. */
static int make_all(maker *mk) {
  int rc = FL_OK;
  for (mk->turn = 0; mk->turn < n_turns(mk->o) && rc == FL_OK; mk->turn++) {
    for (mk->attempt = 0; mk->attempt < MAX_ATTEMPTS && n_waiting(mk) > 0; mk->attempt++) {
      rc = fl_maker_ask(mk);
      if (rc == FL_OK) rc = fl_maker_answer(mk);
      if (rc != FL_OK) return rc;
    }
    if (mk->turn == 0) mk->stats.skipped = n_without_turn(mk);
    for (size_t i = 0; i < mk->n; i++) mk->item[i].closed |= fl_maker_waits(mk, &mk->item[i]);
  }
  return rc;
}

int fl_study_make(fl_conv *out, bool *ok, const fl_conv_plan *plans, const fl_doc_text *const *docs,
                  size_t n, const fl_study_options *o, fl_pass *pass, fl_kv_pool *pool,
                  fl_events *log, fl_study_stats *stats, fl_err *err) {
  maker mk = {
    .o = o, .model = fl_pass_model(pass), .pass = pass, .pool = pool, .log = log, .err = err, .n = n
  };
  const double start_s = fl_now_s();
  int rc = check_options(o, mk.model, err);
  if (rc != FL_OK) return rc;
  memset(out, 0, n * sizeof *out);
  memset(ok, 0, n * sizeof *ok);
  rc = set_up(&mk, plans, docs);
  if (rc == FL_OK) rc = make_all(&mk);
  for (size_t i = 0; rc == FL_OK && i < n; i++) {
    ok[i] = mk.item[i].turns > 0;
    out[i] = mk.item[i].conv;
    mk.item[i].conv = (fl_conv){ 0 };
  }
  tear_down(&mk);
  mk.stats.gen_s = fl_now_s() - start_s;
  if (rc == FL_OK && stats) *stats = mk.stats;
  return rc;
}
