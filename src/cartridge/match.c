/* match.c - a cartridge by attention matching, layer by layer. */
#include "cartridge/match.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cartridge/match_head.h"
#include "model/layerwise.h"

enum { SLICE_SPANS = 8, SLICE_ROWS = 512 };

typedef struct match {
  const fl_match_options *o;
  const fl_hparams *hp;
  const fl_kernels *kern;
  fl_team *team;
  fl_pass *pass;        /* runs conversations, in slices */
  fl_seq *seq;          /* the document */
  size_t n_doc;         /* its rows */
  fl_rows rows;         /* being made; keys at the document's positions until the end */
  fl_prefix_part part;  /* the same, as what stands before a conversation */
  fl_span *span;        /* [n_convs] */
  size_t n_rows;        /* of all conversations */
  float *x;             /* [n_rows, d_model] the input of the layer that runs */
  size_t *ask, n_ask;   /* [n_ask] the rows that ask, ascending */
  size_t *ask_at;       /* [n_ask] how many rows of its conversation stand before each */
  fl_layer_queries all; /* of a slice */
  fl_layer_queries q;   /* [n_ask, ...] of the layer */
} match;

static int no_memory(const match *m, fl_err *err) {
  return fl_fail(err, FL_ENOMEM, "not enough memory to match a document of %zu tokens", m->n_doc);
}

static size_t longest(const fl_match_options *o) {
  size_t most = 0;
  for (size_t i = 0; i < o->n_convs; i++)
    if (o->convs[i].n > most) most = o->convs[i].n;
  return most;
}

static void match_release(match *m) {
  fl_pass_free(m->pass);
  fl_seq_free(m->seq);
  fl_rows_release(&m->rows);
  fl_free(m->span);
  fl_free(m->x);
  fl_free(m->ask);
  fl_free(m->ask_at);
  fl_free(m->all.q);
  fl_free(m->all.own);
  fl_free(m->all.mass);
  fl_free(m->q.q);
  fl_free(m->q.own);
  fl_free(m->q.mass);
}

/* The most query heads that share a key head, and the widest row of queries. */
static void widest(const fl_hparams *hp, size_t *group, size_t *width, size_t *heads) {
  *group = 1;
  *width = *heads = 0;
  for (size_t l = 0; l <= fl_last_kv_layer(hp); l++) {
    const fl_layer_hparams *lh = &hp->layer[l];
    if (lh->n_heads / lh->kv_heads > *group) *group = lh->n_heads / lh->kv_heads;
    if (lh->n_heads * lh->head_dim > *width) *width = lh->n_heads * lh->head_dim;
    if (lh->n_heads > *heads) *heads = lh->n_heads;
  }
}

static int queries_init(fl_layer_queries *q, size_t rows, size_t width, size_t heads) {
  q->q = fl_aligned_malloc(rows * width, sizeof *q->q);
  q->own = fl_aligned_malloc(rows * width, sizeof *q->own);
  q->mass = fl_aligned_malloc(rows * heads, sizeof *q->mass);
  return q->q != NULL && q->own != NULL && q->mass != NULL ? FL_OK : FL_ENOMEM;
}

/* Which rows of the conversations ask, and how far into theirs they stand. */
static int choose_queries(match *m, size_t group, fl_err *err) {
  const size_t most = m->o->max_queries > 0 ? m->o->max_queries : FL_MATCH_QUERIES;
  m->n_ask = most / group > 0 ? most / group : 1;
  if (m->n_ask > m->n_rows) m->n_ask = m->n_rows;
  m->ask = fl_calloc(m->n_ask, sizeof *m->ask);
  m->ask_at = fl_calloc(m->n_ask, sizeof *m->ask_at);
  if (m->ask == NULL || m->ask_at == NULL) return no_memory(m, err);
  for (size_t i = 0, c = 0, begin = 0; i < m->n_ask; i++) {
    m->ask[i] = i * m->n_rows / m->n_ask;
    while (m->ask[i] >= begin + m->span[c].n_rows) begin += m->span[c++].n_rows;
    m->ask_at[i] = m->ask[i] - begin;
  }
  return FL_OK;
}

static int place_convs(match *m, fl_err *err) {
  const fl_match_options *o = m->o;
  m->part = (fl_prefix_part){ .n_rows = o->p, .k = m->rows.k, .v = m->rows.v };
  m->span = fl_calloc(o->n_convs, sizeof *m->span);
  if (m->span == NULL) return no_memory(m, err);
  for (size_t i = 0; i < o->n_convs; i++) {
    m->span[i] = (fl_span){ .tokens = o->convs[i].tokens,
                            .n_rows = o->convs[i].n,
                            .parts = &m->part,
                            .n_parts = 1,
                            .position = m->n_doc };
    m->n_rows += o->convs[i].n;
  }
  return FL_OK;
}

static int workspaces(match *m, const fl_model *model, fl_err *err) {
  const size_t most = longest(m->o), slice = most > SLICE_ROWS ? most : SLICE_ROWS;
  const fl_pass_options po = { .max_rows = slice, .max_spans = SLICE_SPANS, .max_prefix = m->o->p };
  size_t group, width, heads;
  widest(m->hp, &group, &width, &heads);
  int rc = fl_rows_init(&m->rows, m->hp, m->o->p, err);
  if (rc == FL_OK) rc = fl_pass_new(&m->pass, model, m->team, &po, err);
  if (rc == FL_OK) rc = place_convs(m, err);
  if (rc == FL_OK) rc = choose_queries(m, group, err);
  if (rc != FL_OK) return rc;
  m->x = fl_aligned_malloc(m->n_rows * m->hp->d_model, sizeof *m->x);
  if (m->x == NULL || queries_init(&m->all, slice, width, heads) != FL_OK ||
      queries_init(&m->q, m->n_ask, width, heads) != FL_OK)
    return no_memory(m, err);
  return FL_OK;
}

/* --- conversations, in slices ------------------------------------------------------------------
 */

typedef struct slice {
  size_t conv, n_convs, row, n_rows;
} slice;

/* The next slice; false when there is none. Begins with a zeroed one. */
static bool next_slice(const match *m, slice *s) {
  s->conv += s->n_convs;
  s->row += s->n_rows;
  s->n_convs = s->n_rows = 0;
  while (s->conv + s->n_convs < m->o->n_convs && s->n_convs < SLICE_SPANS) {
    const size_t n = m->span[s->conv + s->n_convs].n_rows;
    if (s->n_rows + n > fl_pass_max_rows(m->pass)) break;
    s->n_rows += n;
    s->n_convs++;
  }
  return s->n_convs > 0;
}

static int embed(match *m, fl_err *err) {
  int rc = FL_OK;
  for (slice s = { 0 }; rc == FL_OK && next_slice(m, &s);)
    rc = fl_layerwise_embed(m->pass, m->span + s.conv, s.n_convs, m->x + s.row * m->hp->d_model,
                            err);
  return rc;
}

static int run_layer(match *m, size_t layer, fl_err *err) {
  int rc = FL_OK;
  for (slice s = { 0 }; rc == FL_OK && next_slice(m, &s);)
    rc = fl_layerwise_run(m->pass, m->span + s.conv, s.n_convs, layer,
                          m->x + s.row * m->hp->d_model, err);
  return rc;
}

static int layer_queries(match *m, size_t layer, fl_err *err) {
  const fl_layer_hparams *lh = &m->hp->layer[layer];
  const size_t width = lh->n_heads * lh->head_dim, heads = lh->n_heads;
  size_t i = 0;
  int rc = FL_OK;
  for (slice s = { 0 }; rc == FL_OK && next_slice(m, &s);) {
    rc = fl_layerwise_queries(m->pass, m->span + s.conv, s.n_convs, layer,
                              m->x + s.row * m->hp->d_model, &m->all, err);
    for (; rc == FL_OK && i < m->n_ask && m->ask[i] < s.row + s.n_rows; i++) {
      const size_t from = m->ask[i] - s.row;
      memcpy(m->q.q + i * width, m->all.q + from * width, width * sizeof(float));
      memcpy(m->q.own + i * width, m->all.own + from * width, width * sizeof(float));
      memcpy(m->q.mass + i * heads, m->all.mass + from * heads, heads * sizeof(float));
    }
  }
  return rc;
}

/* --- one head ----------------------------------------------------------------------------------
 */

/* Arrays of one head of one layer. */
typedef struct head_space {
  float *k, *v;            /* [candidates, head_dim] */
  float *q, *own, *mass;   /* of the queries of the group */
  size_t *from, *from_new; /* of a layer with a window */
  float *new_k, *new_v;    /* [p, head_dim] */
  uint32_t *row;
} head_space;

static void space_release(head_space *s) {
  fl_free(s->k);
  fl_free(s->v);
  fl_free(s->q);
  fl_free(s->own);
  fl_free(s->mass);
  fl_free(s->from);
  fl_free(s->from_new);
  fl_free(s->new_k);
  fl_free(s->new_v);
  fl_free(s->row);
}

static bool space_init(head_space *s, size_t n_rows, size_t n_queries, size_t p, size_t head_dim) {
  s->k = fl_aligned_malloc(n_rows * head_dim, sizeof *s->k);
  s->v = fl_aligned_malloc(n_rows * head_dim, sizeof *s->v);
  s->q = fl_aligned_malloc(n_queries * head_dim, sizeof *s->q);
  s->own = fl_aligned_malloc(n_queries * head_dim, sizeof *s->own);
  s->mass = fl_aligned_malloc(n_queries, sizeof *s->mass);
  s->from = fl_calloc(n_queries, sizeof *s->from);
  s->from_new = fl_calloc(n_queries, sizeof *s->from_new);
  s->new_k = fl_aligned_malloc(p * head_dim, sizeof *s->new_k);
  s->new_v = fl_aligned_malloc(p * head_dim, sizeof *s->new_v);
  s->row = fl_calloc(p, sizeof *s->row);
  return s->k && s->v && s->q && s->own && s->mass && s->from && s->from_new && s->new_k &&
         s->new_v && s->row;
}

/* The group's queries one after the other: row by row, within it head by head. */
static void gather_queries(const match *m, size_t layer, size_t head, head_space *s) {
  const fl_layer_hparams *lh = &m->hp->layer[layer];
  const size_t hd = lh->head_dim, group = lh->n_heads / lh->kv_heads;
  const size_t width = lh->n_heads * hd, part = group * hd;
  float scale = m->hp->attn_scale;
  if (scale == 0) scale = (float)(1 / sqrt((double)hd));
  for (size_t i = 0; i < m->n_ask; i++) {
    const size_t from = i * width + head * part;
    for (size_t d = 0; d < part; d++) s->q[i * part + d] = m->q.q[from + d] * scale;
    memcpy(s->own + i * part, m->q.own + from, part * sizeof *s->own);
    memcpy(s->mass + i * group, m->q.mass + i * lh->n_heads + head * group,
           group * sizeof *s->mass);
  }
}

/* What each query sees, counted in candidates (the document's last n) and in new rows: a window
 * counts rows. */
static void gather_sight(const match *m, size_t window, size_t group, size_t n, head_space *s) {
  for (size_t i = 0; i < m->n_ask * group; i++) {
    const size_t own = m->ask_at[i / group] + 1, left = window > own ? window - own : 0;
    s->from[i] = left < n ? n - left : 0;
    s->from_new[i] = left < m->o->p ? m->o->p - left : 0;
  }
}

static int fit_head(match *m, size_t layer, size_t head, size_t n, head_space *s, const float *keys,
                    const float *vals, fl_err *err) {
  const fl_layer_hparams *lh = &m->hp->layer[layer];
  const size_t hd = lh->head_dim, width = lh->kv_heads * hd, group = lh->n_heads / lh->kv_heads;
  const size_t p = m->o->p;
  for (size_t r = 0; r < n; r++) {
    memcpy(s->k + r * hd, keys + r * width + head * hd, hd * sizeof *s->k);
    memcpy(s->v + r * hd, vals + r * width + head * hd, hd * sizeof *s->v);
  }
  gather_queries(m, layer, head, s);
  const fl_match_head h = { .head_dim = hd,
                            .n_rows = n,
                            .k = s->k,
                            .v = s->v,
                            .n_queries = m->n_ask * group,
                            .q = s->q,
                            .own = s->own,
                            .own_mass = s->mass,
                            .from = lh->window > 0 ? s->from : NULL,
                            .from_chosen = lh->window > 0 ? s->from_new : NULL,
                            .softcap = m->hp->attn_softcap,
                            .p = p,
                            .keep_first = n == m->n_doc,
                            .ridge = m->o->ridge > 0 ? m->o->ridge : FL_MATCH_RIDGE };
  const int rc = fl_match_head_fit(&h, m->kern, m->team, s->row, s->new_k, s->new_v, err);
  for (size_t r = 0; rc == FL_OK && r < p; r++) {
    memcpy(m->rows.k[layer] + r * width + head * hd, s->new_k + r * hd, hd * sizeof *keys);
    memcpy(m->rows.v[layer] + r * width + head * hd, s->new_v + r * hd, hd * sizeof *vals);
  }
  return rc;
}

/* --- one layer ---------------------------------------------------------------------------------
 */

static int fit_heads(match *m, size_t layer, size_t n, fl_err *err) {
  const fl_layer_hparams *lh = &m->hp->layer[layer];
  const size_t width = lh->kv_heads * lh->head_dim, group = lh->n_heads / lh->kv_heads;
  head_space s = { 0 };
  float *keys = fl_aligned_malloc(n * width, sizeof *keys);
  float *vals = fl_aligned_malloc(n * width, sizeof *vals);
  int rc = layer_queries(m, layer, err);
  if (rc == FL_OK &&
      (keys == NULL || vals == NULL || !space_init(&s, n, m->n_ask * group, m->o->p, lh->head_dim)))
    rc = no_memory(m, err);
  if (rc == FL_OK) {
    fl_seq_read(m->seq, layer, m->n_doc - n, n, keys, vals);
    if (lh->window > 0) gather_sight(m, lh->window, group, n, &s);
  }
  for (size_t h = 0; rc == FL_OK && h < lh->kv_heads; h++)
    rc = fit_head(m, layer, h, n, &s, keys, vals, err);
  space_release(&s);
  fl_free(keys);
  fl_free(vals);
  return rc;
}

static int make_layer(match *m, size_t layer, fl_err *err) {
  const size_t window = m->hp->layer[layer].window, p = m->o->p;
  const size_t n = window > 0 && window - 1 < m->n_doc ? window - 1 : m->n_doc;
  if (n > p) return fit_heads(m, layer, n, err);
  fl_seq_read(m->seq, layer, m->n_doc - p, p, m->rows.k[layer], m->rows.v[layer]);
  return FL_OK;
}

static int make_layers(match *m, fl_err *err) {
  const size_t last = fl_last_kv_layer(m->hp);
  int rc = embed(m, err);
  for (size_t l = 0; rc == FL_OK && l <= last; l++) {
    if (m->o->poll != NULL) rc = m->o->poll(m->o->ctx);
    if (rc == FL_OK && m->rows.width[l] > 0) rc = make_layer(m, l, err);
    if (rc == FL_OK && l < last) rc = run_layer(m, l, err);
  }
  return rc;
}

/* --- positions ---------------------------------------------------------------------------------
 */

typedef struct turning {
  const fl_hparams *hp;
  const fl_kernels *kern;
  fl_rows *rows;
  float *cs[2]; /* [half, 2] of each rotary set */
} turning;

static void turn_layers(void *ctx, unsigned rank, unsigned n_ranks) {
  const turning *t = ctx;
  size_t first, end;
  fl_thread_range(t->rows->n_layers, rank, n_ranks, &first, &end);
  for (size_t l = first; l < end; l++) {
    const fl_layer_hparams *lh = &t->hp->layer[l];
    if (t->rows->width[l] == 0) continue;
    for (size_t r = 0; r < t->rows->n_rows; r++)
      fl_rope_row(t->kern, t->rows->k[l] + r * t->rows->width[l], lh->kv_heads, lh->head_dim,
                  t->hp->rope[lh->rope_set].half, t->cs[lh->rope_set], t->hp->rope_interleaved,
                  true);
  }
}

/* Back by the number of rows that were left out. A rotation alone: what scales the keys has done so
 * at their own positions. */
static int turn_keys(match *m, fl_err *err) {
  turning t = { .hp = m->hp, .kern = m->kern, .rows = &m->rows };
  bool room = true;
  for (int i = 0; i < 2; i++) {
    const fl_rope_hparams *r = &m->hp->rope[i];
    t.cs[i] = fl_aligned_calloc(2 * r->half + 1, sizeof *t.cs[i]);
    room = room && t.cs[i] != NULL;
    if (room && r->half > 0) fl_rope_table(t.cs[i], m->n_doc - m->o->p, 1, r->inv_freq, r->half, 1);
  }
  if (room) fl_team_run(m->team, turn_layers, &t);
  fl_free(t.cs[0]);
  fl_free(t.cs[1]);
  return room ? FL_OK : no_memory(m, err);
}

/* --- all ---------------------------------------------------------------------------------------
 */

static int make(match *m, fl_pass *pass, fl_kv_pool *pool, const fl_ids *ids, fl_cartridge *out,
                fl_err *err) {
  m->n_doc = ids->len;
  int rc = fl_seq_new(&m->seq, pool, err);
  if (rc == FL_OK) rc = fl_pass_prefill(pass, m->seq, ids->data, ids->len, NULL, err);
  if (rc == FL_OK) rc = workspaces(m, fl_pass_model(pass), err);
  if (rc == FL_OK) rc = make_layers(m, err);
  if (rc == FL_OK) rc = turn_keys(m, err);
  if (rc != FL_OK) return rc;
  *out = (fl_cartridge){ .rows = m->rows, .frozen = m->o->frozen };
  m->rows = (fl_rows){ 0 };
  return FL_OK;
}

int fl_cartridge_match(fl_cartridge *out, fl_pass *pass, fl_kv_pool *pool, fl_team *team,
                       const char *doc, size_t doc_len, const fl_match_options *o, fl_err *err) {
  const fl_model *model = fl_pass_model(pass);
  match m = {
    .o = o, .hp = fl_model_hparams(model), .kern = fl_model_kernels(model), .team = team
  };
  fl_ids ids = { 0 };
  assert(fl_kv_pool_type(pool) == FL_KV_F32 && o->n_convs > 0);
  const size_t behind = longest(o), n_ctx = m.hp->n_ctx;
  int rc = fl_wrapped_system(&ids, model, doc, doc_len, 0, err);
  if (rc == FL_OK && ids.len <= o->p) {
    rc = fl_cartridge_birth(out, pass, pool, doc, doc_len, o->p, o->frozen, err);
  } else if (rc == FL_OK && (behind + o->p >= n_ctx || o->frozen >= o->p)) {
    rc = fl_fail(err, FL_EUSAGE,
                 "%zu rows and a conversation of %zu tokens do not fit the model's context of "
                 "%zu, or all are frozen; lower --p or --frozen",
                 o->p, behind, n_ctx);
  } else if (rc == FL_OK) {
    fl_ids_reset(&ids);
    rc = fl_wrapped_system(&ids, model, doc, doc_len, n_ctx - behind, err);
    if (rc == FL_OK) rc = make(&m, pass, pool, &ids, out, err);
  }
  match_release(&m);
  fl_ids_release(&ids);
  return rc;
}
