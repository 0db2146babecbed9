/* pass.c - the workspace of a pass and the loop over layers.
 *
 * Memory: one arena, laid out by carve(), which runs twice: once to measure, once to hand out.
 * After fl_pass_new nothing but page reservation allocates.
 */
#include <assert.h>
#include <string.h>

#include "model/stages.h"

enum {
  LOSS_ROWS = 96,       /* head rows at a time in the loss: bounds the logits held */
  SERIAL_VALUES = 16384 /* below this many values a region is not worth waking threads */
};

static size_t max2(size_t a, size_t b) { return a > b ? a : b; }

static fl_widths widest(const fl_model *m) {
  fl_widths w = { 0 };
  for (size_t i = 0; i < m->hp.n_layers; i++) {
    const fl_layer_hparams *l = &m->hp.layer[i];
    size_t q = l->n_heads * l->head_dim, kv = l->kv_heads * l->head_dim;
    w.q = max2(w.q, q);
    w.kv = max2(w.kv, kv);
    w.qkv = max2(w.qkv, fl_layer_qkv_cols(&m->hp, i));
    w.ff = max2(w.ff, l->n_ff);
    w.heads = max2(w.heads, l->n_heads);
  }
  return w;
}

static size_t attention_scratch(const fl_pass *p, size_t layer) {
  const fl_layer_hparams *l = &p->model->hp.layer[layer];
  fl_attn a = { .n_heads = l->n_heads, .kv_heads = l->kv_heads, .head_dim = l->head_dim };
  size_t f32 = fl_attention_scratch(&a, p->team), f16;
  a.kv_f16 = true;
  f16 = fl_attention_scratch(&a, p->team);
  return max2(f32, f16);
}

static size_t scratch_bytes(const fl_pass *p) {
  const fl_model *m = p->model;
  size_t rows = p->opt.max_rows, most;
  most = fl_matmul_scratch(m->weights.head, p->team, max2(p->opt.max_out_rows, p->loss_rows));
  most = max2(most, fl_linear_scratch(&m->weights.ple_proj, p->team, rows));
  for (size_t i = 0; i < m->hp.n_layers; i++) {
    const fl_layer_weights *w = &m->weights.layer[i];
    most = max2(most, fl_linear_scratch(&w->qkv, p->team, rows));
    most = max2(most, fl_linear_scratch(&w->attn_out, p->team, rows));
    most = max2(most, fl_linear_scratch(&w->gate_up, p->team, rows));
    most = max2(most, fl_linear_scratch(&w->ffn_down, p->team, rows));
    most = max2(most, fl_moe_scratch(p, i));
    if (w->ple != NULL) {
      most = max2(most, fl_linear_scratch(&w->ple->gate, p->team, rows));
      most = max2(most, fl_linear_scratch(&w->ple->out, p->team, rows));
    }
    most = max2(most, attention_scratch(p, i));
  }
  return most;
}

static float *floats(fl_pass *p, size_t rows, size_t cols) {
  size_t n;
  if (!fl_mul_size(rows, cols, &n)) n = SIZE_MAX;
  return fl_arena_take(&p->arena, n, sizeof(float));
}

/* The inner activations of one layer; with checkpointing all layers share one set. */
static void carve_inner(fl_pass *p, fl_tape *t, const fl_layer_weights *w, size_t qkv, size_t q,
                        size_t heads, size_t ff) {
  size_t rows = p->opt.max_rows, d = p->model->hp.d_model;
  t->qkv_raw = floats(p, rows, qkv);
  t->att = floats(p, rows, q);
  t->stat = floats(p, rows, heads);
  t->x_mid = floats(p, rows, d);
  t->gate_up = floats(p, rows, 2 * ff);
  if (w == NULL || w->post_attn_norm != NULL) t->attn_y = floats(p, rows, d);
  if (w == NULL || w->post_ffn_norm != NULL) t->ffn_y = floats(p, rows, d);
  if (p->model->hp.n_experts != 0) fl_moe_layout_tape(p, t);
  if (p->model->hp.n_embd_per_layer != 0) {
    t->ple_g = floats(p, rows, p->model->hp.n_embd_per_layer);
    t->ple_y = floats(p, rows, d);
  }
}

static void carve_tape(fl_pass *p) {
  const fl_model *m = p->model;
  fl_tape shared = { 0 };
  if (p->opt.checkpoint)
    carve_inner(p, &shared, NULL, p->wide.qkv, p->wide.q, p->wide.heads, p->wide.ff);
  for (size_t i = 0; i < m->hp.n_layers; i++) {
    const fl_layer_hparams *l = &m->hp.layer[i];
    fl_tape t = shared;
    if (!p->opt.checkpoint)
      carve_inner(p, &t, &m->weights.layer[i], fl_layer_qkv_cols(&m->hp, i),
                  l->n_heads * l->head_dim, l->n_heads, l->n_ff);
    t.x_in = floats(p, p->opt.max_rows, m->hp.d_model);
    if (p->tape != NULL) p->tape[i] = t;
  }
}

static void find_shared_layers(fl_pass *p) {
  const fl_hparams *hp = &p->model->hp;
  int n = 0;
  p->acc_of[0] = p->acc_of[1] = -1;
  for (size_t i = 0; i < hp->n_layers; i++) {
    int32_t from = hp->layer[i].kv_from;
    if (from == (int32_t)i || from == p->acc_of[0] || from == p->acc_of[1] || n == 2) continue;
    p->acc_of[n++] = from;
  }
}

static void carve_backward(fl_pass *p) {
  size_t rows = p->opt.max_rows, d = p->model->hp.d_model;
  size_t kv_rows = p->opt.max_spans * p->opt.max_prefix + rows;
  fl_pages_layout(p);
  carve_tape(p);
  p->dx = floats(p, rows, d);
  p->dh = floats(p, max2(rows, p->loss_rows), d);
  p->dy = floats(p, rows, d);
  p->dqkv = floats(p, rows, p->wide.qkv);
  p->datt = floats(p, rows, p->wide.q);
  p->dgu = floats(p, rows, 2 * p->wide.ff);
  p->dk = floats(p, kv_rows, p->wide.kv);
  p->dv = floats(p, kv_rows, p->wide.kv);
  for (int i = 0; i < 2; i++) {
    if (p->acc_of[i] < 0) continue;
    p->dk_acc[i] = floats(p, kv_rows, p->wide.kv);
    p->dv_acc[i] = floats(p, kv_rows, p->wide.kv);
  }
  p->loss_logits = p->loss_dlogits = floats(p, p->loss_rows, p->model->hp.n_vocab);
  if (p->model->hp.logit_softcap != 0)
    p->loss_dlogits = floats(p, p->loss_rows, p->model->hp.n_vocab);
}

static void carve(fl_pass *p) {
  const fl_hparams *hp = &p->model->hp;
  size_t rows = p->opt.max_rows, spans = p->opt.max_spans;
  if (p->opt.record) p->tape = fl_arena_take(&p->arena, hp->n_layers, sizeof *p->tape);
  p->kept_bytes = p->arena.used;
  p->page_first = fl_arena_take(&p->arena, spans, sizeof *p->page_first);
  p->span = fl_arena_take(&p->arena, spans, sizeof *p->span);
  p->attn_span = fl_arena_take(&p->arena, spans, sizeof *p->attn_span);
  p->grad_span = fl_arena_take(&p->arena, spans, sizeof *p->grad_span);
  p->kv_first = fl_arena_take(&p->arena, spans, sizeof *p->kv_first);
  p->row_span = fl_arena_take(&p->arena, rows, sizeof *p->row_span);
  p->row_token = fl_arena_take(&p->arena, rows, sizeof *p->row_token);
  p->row_pos = fl_arena_take(&p->arena, rows, sizeof *p->row_pos);
  p->output_row = fl_arena_take(&p->arena, rows, sizeof *p->output_row);
  p->place = fl_arena_take(&p->arena, rows, sizeof *p->place);
  for (int i = 0; i < 2; i++) p->rope[i] = floats(p, rows, 2 * hp->rope[i].half);
  p->x = floats(p, rows, hp->d_model);
  p->h = floats(p, rows, hp->d_model);
  p->qkv = floats(p, rows, p->wide.qkv);
  p->glu = floats(p, rows, p->wide.ff);
  fl_moe_layout(p);
  if (hp->n_embd_per_layer != 0) {
    p->ple_in = floats(p, rows, hp->n_layers * hp->n_embd_per_layer);
    p->ple_a = floats(p, rows, hp->n_embd_per_layer);
    p->ple_g = floats(p, rows, hp->n_embd_per_layer);
  }
  p->out_h = floats(p, max2(p->opt.max_out_rows, p->loss_rows), hp->d_model);
  if (p->opt.record) {
    carve_backward(p);
  } else {
    if (p->opt.max_prefix > 0) fl_pages_layout(p);
    p->att = floats(p, rows, p->wide.q);
    p->gu = floats(p, rows, 2 * p->wide.ff);
  }
  p->scratch = fl_arena_take(&p->arena, scratch_bytes(p), 1);
}

int fl_pass_new(fl_pass **out, const fl_model *m, fl_team *team, const fl_pass_options *opt,
                fl_err *err) {
  fl_pass *p = fl_calloc(1, sizeof *p);
  size_t n_bytes;
  if (p == NULL) return fl_fail(err, FL_ENOMEM, "out of memory");
  p->model = m;
  p->team = team;
  p->opt = *opt;
  if (p->opt.max_rows == 0) p->opt.max_rows = 1;
  if (p->opt.max_spans == 0) p->opt.max_spans = 1;
  if (p->opt.max_out_rows == 0) p->opt.max_out_rows = p->opt.max_spans;
  if (opt->record) p->loss_rows = p->opt.max_out_rows < LOSS_ROWS ? p->opt.max_out_rows : LOSS_ROWS;
  p->wide = widest(m);
  p->last_kv_layer = fl_last_kv_layer(&m->hp);
  find_shared_layers(p);
  fl_arena_measure(&p->arena);
  carve(p);
  n_bytes = p->arena.used;
  if (fl_arena_init(&p->arena, n_bytes) < 0) {
    fl_free(p);
    return fl_fail(err, FL_ENOMEM,
                   "out of memory: a pass of %zu rows needs %zu MiB; use fewer rows "
                   "or --checkpoint",
                   opt->max_rows, n_bytes >> 20);
  }
  if (opt->touch) fl_arena_touch(&p->arena);
  carve(p);
  *out = p;
  return FL_OK;
}

void fl_pass_free(fl_pass *p) {
  if (p == NULL) return;
  fl_arena_release(&p->arena);
  fl_free(p);
}

void fl_pass_evict_pages(fl_pass *p) {
  p->n_rows = p->n_output_rows = p->n_spans = 0;
  fl_arena_forget(&p->arena, p->kept_bytes);
}

size_t fl_pass_max_rows(const fl_pass *p) { return p->opt.max_rows; }

const fl_model *fl_pass_model(const fl_pass *p) { return p->model; }

/* ---- regions over rows ---- */

typedef struct region {
  fl_pass *p;
  fl_rows_fn *fn;
  const void *ctx;
  size_t n_rows;
} region;

static void run_region(void *arg, unsigned rank, unsigned n_ranks) {
  const region *r = arg;
  size_t first, end;
  fl_thread_range(r->n_rows, rank, n_ranks, &first, &end);
  if (first < end) r->fn(r->p, r->ctx, first, end);
}

void fl_pass_rows(fl_pass *p, fl_rows_fn *fn, const void *ctx, size_t n_rows, size_t cost) {
  region r = { .p = p, .fn = fn, .ctx = ctx, .n_rows = n_rows };
  if (n_rows * cost < SERIAL_VALUES) run_region(&r, 0, 1);
  else fl_team_run(p->team, run_region, &r);
}

/* ---- forward ---- */

/* Rows before a span. */
static size_t rows_before(const fl_span *s) {
  size_t n = 0;
  if (s->seq != NULL) return fl_seq_rows(s->seq);
  for (size_t i = 0; i < s->n_parts; i++) n += s->parts[i].n_rows;
  return n;
}

static int check_span(const fl_pass *p, const fl_span *s, fl_err *err) {
  const fl_hparams *hp = &p->model->hp;
  size_t end = rows_before(s) + s->n_rows;
  if (end > hp->n_ctx)
    return fl_fail(err, FL_EINPUT, "%s: %zu rows do not fit the model's context of %zu",
                   p->model->path, end, hp->n_ctx);
  for (size_t i = 0; i < s->n_rows; i++)
    if (s->tokens[i] < 0 || (size_t)s->tokens[i] >= hp->n_vocab)
      return fl_fail(err, FL_EINPUT, "%s: token id %d is outside the vocabulary of %zu",
                     p->model->path, s->tokens[i], hp->n_vocab);
  return FL_OK;
}

static int check_spans(const fl_pass *p, const fl_span *spans, size_t n_spans, fl_err *err) {
  size_t rows = 0;
  int rc;
  if (n_spans > p->opt.max_spans)
    return fl_fail(err, FL_EFULL, "%zu sequences in a pass made for %zu", n_spans,
                   p->opt.max_spans);
  for (size_t i = 0; i < n_spans; i++) {
    if ((rc = check_span(p, &spans[i], err)) < 0) return rc;
    assert((spans[i].seq == NULL) == (spans[0].seq == NULL) && (spans[i].seq || p->page_mem[0]));
    assert(spans[i].n_no_output <= spans[i].n_rows);
    if ((p->opt.record || spans[i].seq == NULL) && rows_before(&spans[i]) > p->opt.max_prefix)
      return fl_fail(err, FL_EFULL, "a prefix of %zu rows in a pass made for %zu",
                     rows_before(&spans[i]), p->opt.max_prefix);
    rows += spans[i].n_rows;
  }
  if (rows > p->opt.max_rows)
    return fl_fail(err, FL_EFULL, "%zu rows in a pass made for %zu", rows, p->opt.max_rows);
  for (size_t i = 0; i < n_spans && spans[i].seq != NULL; i++) {
    rc = fl_seq_reserve(spans[i].seq, fl_seq_rows(spans[i].seq) + spans[i].n_rows, err);
    if (rc < 0) return rc;
  }
  return FL_OK;
}

static void place_rows(fl_pass *p, const fl_span *spans, size_t n_spans) {
  const fl_hparams *hp = &p->model->hp;
  size_t at = 0;
  for (size_t s = 0; s < n_spans; s++) {
    fl_seq *seq = spans[s].seq;
    size_t pos0 = rows_before(&spans[s]), n = spans[s].n_rows;
    p->span[s] = spans[s];
    p->attn_span[s] =
        (fl_attn_span){ .pages = seq != NULL ? fl_seq_pages(seq) : NULL, .n_rows = pos0 + n };
    for (size_t i = 0; i < n; i++) {
      p->row_span[at + i] = (uint32_t)s;
      p->row_token[at + i] = spans[s].tokens[i];
      p->row_pos[at + i] = pos0 + i;
    }
    const size_t position = seq != NULL ? fl_seq_position(seq) : spans[s].position;
    for (int r = 0; r < 2; r++)
      if (hp->rope[r].half != 0)
        fl_rope_table(p->rope[r] + at * 2 * hp->rope[r].half, position, n, hp->rope[r].inv_freq,
                      hp->rope[r].half, hp->rope[r].mscale);
    at += n;
  }
  p->n_spans = n_spans;
  p->n_rows = at;
  fl_output_rows_place(p);
  fl_pages_place(p);
}

static void embed_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const fl_tensor_info *t = p->model->weights.embd;
  const fl_dtype_traits *d = fl_dtype_get(t->ggml_type);
  size_t n = p->model->hp.d_model, row_bytes = n / d->block * d->bytes;
  (void)ctx;
  for (size_t r = first; r < end; r++) {
    d->dequantise(p->x + r * n, (const char *)t->data + (size_t)p->row_token[r] * row_bytes, n);
    if (p->model->hp.embed_scale != 1)
      fl_scale(p->model->kern, p->x + r * n, p->model->hp.embed_scale, n);
  }
}

/* Tables of embeddings are read in the mapped file, where each row brings its neighbours with it:
 * given back now and then, they never become a second copy of the table in memory. */
static void forget_tables(fl_pass *p) {
  enum { ROWS_KEPT = 256 };
  const fl_model *m = p->model;
  p->rows_looked_up += p->n_rows;
  if (p->rows_looked_up < ROWS_KEPT) return;
  p->rows_looked_up = 0;
  fl_gguf_drop(m->gguf, m->weights.embd);
  if (m->weights.ple_embd != NULL) fl_gguf_drop(m->gguf, m->weights.ple_embd);
}

static void layer_done(const fl_pass *p, size_t layer) {
  if (p->opt.layer_done != NULL) p->opt.layer_done(p->opt.ctx, layer);
}

int fl_pass_begin(fl_pass *p, const fl_span *spans, size_t n_spans, fl_err *err) {
  int rc = check_spans(p, spans, n_spans, err);
  if (rc < 0) return rc;
  place_rows(p, spans, n_spans);
  p->recomputing = false;
  fl_pass_rows(p, embed_rows, NULL, p->n_rows, p->model->hp.d_model);
  fl_ple_inputs(p);
  forget_tables(p);
  return FL_OK;
}

/* A layer of the transformer, for row r at position s of its sequence (what a family lacks is left
 * out; block_attention.c, block_ffn.c, block_moe.c, block_ple.c):
 *
 *   h = rmsnorm(x)
 *   q, k, v = h Wq^T, h Wk^T, h Wv^T        (+ biases; a layer may read an earlier one's k and v)
 *   q, k = rope(rmsnorm by head(q, k), s)   k, v are stored in the pages at s
 *   a = softmax(scale q k^T) v              over the rows 0..s, or the last `window` of them
 *   x = x + [rmsnorm](a Wo^T)
 *   h = rmsnorm(x)
 *   f = act(h Wgate^T) * (h Wup^T) Wdown^T  or a weighted sum of such over the chosen experts
 *   x = x + [rmsnorm](f)
 *   x = x + [rmsnorm](gate by the token's own embedding of this layer)
 *   x = x * out_scale
 */
int fl_pass_forward(fl_pass *p, const fl_span *spans, size_t n_spans, fl_err *err) {
  int rc = fl_pass_begin(p, spans, n_spans, err);
  if (rc < 0) return rc;
  for (size_t i = 0; i < p->model->hp.n_layers && p->n_rows > 0; i++) {
    fl_tape *t = p->opt.record ? &p->tape[i] : NULL;
    fl_attention_block_fwd(p, i, t);
    fl_ffn_block_fwd(p, i, t);
    layer_done(p, i);
  }
  for (size_t s = 0; s < n_spans && !p->detached; s++)
    fl_seq_advance(spans[s].seq, spans[s].n_rows);
  return FL_OK;
}

int fl_pass_prefill(fl_pass *p, fl_seq *seq, const int32_t *tokens, size_t n, size_t *last_row,
                    fl_err *err) {
  size_t rows0 = fl_seq_rows(seq);
  for (size_t at = 0; at < n;) {
    size_t take = n - at < p->opt.max_rows ? n - at : p->opt.max_rows;
    const size_t n_read = last_row != NULL && at + take == n ? 1 : 0;
    fl_span s = { .seq = seq, .tokens = tokens + at, .n_rows = take, .n_no_output = take - n_read };
    int rc = fl_pass_forward(p, &s, 1, err);
    if (rc < 0) {
      fl_seq_truncate(seq, rows0);
      return rc;
    }
    at += take;
    if (last_row != NULL) *last_row = take - 1;
  }
  return FL_OK;
}

/* ---- backward ---- */

/* Fills the shared inner activations again; a sequence's pages have the K/V rows already. */
static void recompute_layer(fl_pass *p, size_t layer) {
  fl_tape *t = &p->tape[layer];
  memcpy(p->x, t->x_in, fl_rows_in(p, layer) * p->model->hp.d_model * sizeof *p->x);
  p->recomputing = true;
  fl_attention_block_fwd(p, layer, t);
  fl_ffn_block_fwd(p, layer, t);
  p->recomputing = false;
}

static void clear_accumulators(fl_pass *p) {
  size_t rows = 0;
  for (size_t s = 0; s < p->n_spans; s++) rows += p->attn_span[s].n_rows;
  for (int i = 0; i < 2; i++) {
    if (p->acc_of[i] < 0) continue;
    memset(p->dk_acc[i], 0, rows * p->wide.kv * sizeof *p->dk);
    memset(p->dv_acc[i], 0, rows * p->wide.kv * sizeof *p->dv);
  }
}

void fl_pass_backward(fl_pass *p, const fl_grad_span *grads) {
  if (p->n_output_rows == 0) return;
  clear_accumulators(p);
  for (size_t i = p->model->hp.n_layers; i-- > 0;) {
    if (p->opt.checkpoint) recompute_layer(p, i);
    fl_ffn_block_bwd(p, i, &p->tape[i]);
    fl_attention_block_bwd(p, i, &p->tape[i], grads);
    layer_done(p, i);
  }
}
