/* pages.c - where the attention of a pass finds keys and values, layer by layer.
 *
 * Spans of a sequence find them in its pages, which hold all layers. Spans behind a detached prefix
 * (given as arrays) have none: the pass lays out the pages of the layer that runs, prefix and own
 * rows, and the next layer takes the same memory. The backward, and a layer that is run again, lay
 * them out once more from the same values. Layers whose rows later layers read keep pages of their
 * own (sets 1 and 2) from the forward to the end of the backward.
 */
#include <string.h>

#include "model/internal.h"

enum { SETS = 1 + FL_ACCUMULATED };

static size_t plane_floats(const fl_pass *p) { return p->wide.kv * FL_KV_ROWS; }

/* A span's pages hold prefix and own rows together: one more than each needs for itself. */
static size_t page_cap(const fl_pass *p) {
  const size_t of_prefix = (p->opt.max_prefix + FL_KV_ROWS - 1) / FL_KV_ROWS;
  return p->opt.max_spans * (of_prefix + 1) + p->opt.max_rows / FL_KV_ROWS;
}

void fl_pages_layout(fl_pass *p) {
  const size_t n = page_cap(p);
  for (size_t i = 0; i < SETS; i++) {
    if (i > 0 && p->acc_of[i - 1] < 0) continue;
    p->page[i] = fl_arena_take(&p->arena, n, sizeof *p->page[i]);
    p->page_mem[i] = fl_arena_take(&p->arena, n, 2 * plane_floats(p) * sizeof(float));
  }
}

/* The layer that owns the rows of `layer` has this set. */
static size_t set_of(const fl_pass *p, size_t layer) {
  for (size_t i = 0; i < FL_ACCUMULATED; i++)
    if (p->acc_of[i] == p->model->hp.layer[layer].kv_from) return 1 + i;
  return 0;
}

void fl_pages_place(fl_pass *p) {
  size_t at = 0;
  p->detached = p->n_spans > 0 && p->span[0].seq == NULL;
  if (!p->detached) return;
  for (size_t s = 0; s < p->n_spans; s++) {
    p->page_first[s] = at;
    at += (p->attn_span[s].n_rows + FL_KV_ROWS - 1) / FL_KV_ROWS;
  }
  p->n_pages = at;
  for (size_t i = 0; i < SETS; i++)
    for (size_t g = 0; p->page[i] != NULL && g < at; g++)
      p->page[i][g] = p->page_mem[i] + g * 2 * plane_floats(p);
}

fl_attn fl_layer_attn(const fl_pass *p, size_t layer) {
  const fl_hparams *hp = &p->model->hp;
  const fl_layer_hparams *l = &hp->layer[layer];
  float scale = hp->attn_scale;
  if (scale == 0) scale = (float)(1.0 / __builtin_sqrt((double)l->head_dim));
  fl_attn a = { .n_heads = l->n_heads,
                .kv_heads = l->kv_heads,
                .head_dim = l->head_dim,
                .v_offset = plane_floats(p) * sizeof(float),
                .scale = scale,
                .softcap = hp->attn_softcap,
                .window = l->window };
  if (!p->detached) {
    const fl_kv_pool *pool = fl_seq_pool(p->span[0].seq);
    const fl_kv_layer *kl = fl_kv_layer_at(pool, layer);
    a.k_offset = kl->k_offset;
    a.v_offset = kl->v_offset;
    a.kv_f16 = fl_kv_pool_type(pool) == FL_KV_F16;
  }
  return a;
}

typedef struct laying {
  fl_attn a;
  size_t layer, set;
} laying;

/* Prefix rows of span s that belong on its page `local`. */
static void lay_page(const fl_pass *p, const laying *c, float *page, size_t s, size_t local) {
  const fl_span *span = &p->span[s];
  const size_t width = c->a.kv_heads * c->a.head_dim, begin = local * FL_KV_ROWS;
  const size_t end = begin + FL_KV_ROWS;
  size_t row = 0; /* of the part's first */
  for (size_t i = 0; i < span->n_parts && row < end; i++) {
    const fl_prefix_part *part = &span->parts[i];
    const size_t first = row > begin ? row : begin;
    const size_t past = row + part->n_rows < end ? row + part->n_rows : end;
    if (first < past) {
      const size_t from = (first - row) * width;
      fl_page_put_rows(p->model->kern, page, &c->a, true, first - begin, past - first,
                       part->k[c->layer] + from);
      fl_page_put_rows(p->model->kern, page, &c->a, false, first - begin, past - first,
                       part->v[c->layer] + from);
    }
    row += part->n_rows;
  }
  if (row >= end) return;
  /* What nobody writes must be finite (kv.c): nothing but own rows comes behind. */
  const size_t used = row > begin ? row - begin : 0;
  for (size_t d = 0; d < width; d++)
    memset(page + d * FL_KV_ROWS + used, 0, (FL_KV_ROWS - used) * sizeof *page);
  float *val = page + c->a.v_offset / sizeof *page;
  for (size_t h = 0; h < c->a.kv_heads; h++)
    memset(val + (h * FL_KV_ROWS + used) * c->a.head_dim, 0,
           (FL_KV_ROWS - used) * c->a.head_dim * sizeof *val);
}

static void lay_pages(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const laying *c = ctx;
  size_t s = 0;
  for (size_t g = first; g < end; g++) {
    while (s + 1 < p->n_spans && p->page_first[s + 1] <= g) s++;
    lay_page(p, c, p->page_mem[c->set] + g * 2 * plane_floats(p), s, g - p->page_first[s]);
  }
}

bool fl_pages_open(fl_pass *p, size_t layer, bool kept) {
  const bool owner = p->model->hp.layer[layer].kv_from == (int32_t)layer;
  const laying c = { .a = fl_layer_attn(p, layer), .layer = layer, .set = set_of(p, layer) };
  if (!p->detached) return owner && !kept;
  for (size_t s = 0; s < p->n_spans; s++) p->attn_span[s].pages = p->page[c.set] + p->page_first[s];
  if (!owner || (kept && c.set > 0)) return false;
  fl_pass_rows(p, lay_pages, &c, p->n_pages, 2 * FL_KV_ROWS * p->wide.kv);
  return true;
}

void fl_pages_put(fl_pass *p, size_t layer, size_t row, const float *k, const float *v) {
  const size_t s = p->row_span[row], pos = p->row_pos[row];
  if (!p->detached) {
    fl_seq_write(p->span[s].seq, layer, pos, 1, k, v);
    return;
  }
  const fl_attn a = fl_layer_attn(p, layer);
  const size_t page = p->page_first[s] + pos / FL_KV_ROWS;
  float *mem = p->page_mem[set_of(p, layer)] + page * 2 * plane_floats(p);
  fl_page_put(p->model->kern, mem, &a, true, pos % FL_KV_ROWS, k);
  fl_page_put(p->model->kern, mem, &a, false, pos % FL_KV_ROWS, v);
}
