/* kv.c - pages, pools and sequences.
 *
 * Invariants: (1) a page with more than one reference is never written; (2) every row of a page
 * that lies past the rows of all its sequences is finite (zero or stale), so that a masked row adds
 * an exact zero; (3) a sequence holds pages for at least its rows.
 */
#include "model/kv.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

typedef struct page {
  size_t refs;
  struct page *next_free;
  void *data; /* page_bytes, FL_ALIGN-aligned */
} page;

struct fl_kv_pool {
  const fl_kernels *kern;
  fl_kv_type type;
  size_t n_layers, page_bytes, max_bytes, n_used;
  page *free_list;
  fl_kv_layer layer[FL_MAX_LAYERS];
};

struct fl_seq {
  fl_kv_pool *pool;
  page **page;
  const void **base; /* base[i] == page[i]->data, what the kernels take */
  size_t n_pages, cap, n_rows;
  size_t shift;      /* the next row's index less its position */
  size_t shift_from; /* rows there were when it was set */
};

static size_t element_bytes(fl_kv_type t) { return t == FL_KV_F16 ? 2 : 4; }

int fl_kv_pool_new(fl_kv_pool **out, const fl_hparams *hp, const fl_kernels *kern, fl_kv_type type,
                   size_t max_bytes, fl_err *err) {
  fl_kv_pool *p = fl_calloc(1, sizeof *p);
  if (p == NULL) return fl_fail(err, FL_ENOMEM, "out of memory");
  p->kern = kern;
  p->type = type;
  p->max_bytes = max_bytes;
  p->n_layers = hp->n_layers;
  for (size_t i = 0; i < hp->n_layers; i++) {
    const fl_layer_hparams *l = &hp->layer[i];
    fl_kv_layer *kl = &p->layer[i];
    size_t plane = l->kv_heads * l->head_dim * FL_KV_ROWS * element_bytes(type);
    kl->kv_heads = l->kv_heads;
    kl->head_dim = l->head_dim;
    kl->owned = l->kv_from == (int32_t)i;
    if (!kl->owned) {
      kl->k_offset = p->layer[l->kv_from].k_offset;
      kl->v_offset = p->layer[l->kv_from].v_offset;
      continue;
    }
    plane = (plane + FL_ALIGN - 1) / FL_ALIGN * FL_ALIGN;
    kl->k_offset = p->page_bytes;
    kl->v_offset = p->page_bytes + plane;
    p->page_bytes += 2 * plane;
  }
  *out = p;
  return FL_OK;
}

void fl_kv_pool_trim(fl_kv_pool *p) {
  while (p->free_list != NULL) {
    page *next = p->free_list->next_free;
    fl_free(p->free_list->data);
    fl_free(p->free_list);
    p->free_list = next;
  }
}

void fl_kv_pool_free(fl_kv_pool *p) {
  if (p == NULL) return;
  fl_kv_pool_trim(p);
  fl_free(p);
}

fl_kv_type fl_kv_pool_type(const fl_kv_pool *p) { return p->type; }

size_t fl_kv_pool_bytes(const fl_kv_pool *p) { return p->n_used * p->page_bytes; }

size_t fl_kv_page_bytes(const fl_kv_pool *p) { return p->page_bytes; }

size_t fl_kv_n_layers(const fl_kv_pool *p) { return p->n_layers; }

const fl_kv_layer *fl_kv_layer_at(const fl_kv_pool *p, size_t layer) { return &p->layer[layer]; }

/* A page with one reference, a copy of `like` or zeroed; NULL when the limit or memory is
 * reached. */
static page *page_take(fl_kv_pool *p, const page *like) {
  page *g = p->free_list;
  if (p->max_bytes != 0 && (p->n_used + 1) * p->page_bytes > p->max_bytes) return NULL;
  if (g != NULL) {
    p->free_list = g->next_free;
    if (like == NULL) memset(g->data, 0, p->page_bytes);
  } else {
    g = fl_calloc(1, sizeof *g);
    if (g == NULL) return NULL;
    g->data = fl_aligned_calloc(1, p->page_bytes);
    if (g->data == NULL) {
      fl_free(g);
      return NULL;
    }
  }
  if (like != NULL) memcpy(g->data, like->data, p->page_bytes);
  g->refs = 1;
  p->n_used++;
  return g;
}

static void page_drop(fl_kv_pool *p, page *g) {
  if (--g->refs > 0) return;
  g->next_free = p->free_list;
  p->free_list = g;
  p->n_used--;
}

int fl_seq_new(fl_seq **out, fl_kv_pool *p, fl_err *err) {
  fl_seq *s = fl_calloc(1, sizeof *s);
  if (s == NULL) return fl_fail(err, FL_ENOMEM, "out of memory");
  s->pool = p;
  *out = s;
  return FL_OK;
}

static bool list_room(fl_seq *s, size_t n_pages) {
  size_t cap = s->cap;
  page **pg;
  const void **base;
  if (n_pages <= cap) return true;
  while (cap < n_pages) cap = cap == 0 ? 8 : 2 * cap;
  pg = fl_reallocarray(s->page, cap, sizeof *pg);
  if (pg == NULL) return false;
  s->page = pg;
  base = fl_reallocarray(s->base, cap, sizeof *base);
  if (base == NULL) return false;
  s->base = base;
  s->cap = cap;
  return true;
}

static void push_page(fl_seq *s, page *g) {
  s->page[s->n_pages] = g;
  s->base[s->n_pages] = g->data;
  s->n_pages++;
}

int fl_seq_fork(fl_seq **out, const fl_seq *src, size_t n_rows, fl_err *err) {
  fl_seq *s = NULL;
  size_t whole = n_rows / FL_KV_ROWS, part = n_rows % FL_KV_ROWS;
  int rc = fl_seq_new(&s, src->pool, err);
  if (rc < 0) return rc;
  if (!list_room(s, whole + (part != 0))) goto full;
  for (size_t i = 0; i < whole; i++) {
    src->page[i]->refs++;
    push_page(s, src->page[i]);
  }
  if (part != 0) {
    page *g = page_take(s->pool, src->page[whole]);
    if (g == NULL) goto full;
    push_page(s, g);
  }
  s->n_rows = n_rows;
  if (n_rows >= src->shift_from) {
    s->shift = src->shift;
    s->shift_from = src->shift_from;
  }
  *out = s;
  return FL_OK;
full:
  fl_seq_free(s);
  return fl_fail(err, FL_EFULL, "no room for %zu key/value rows", n_rows);
}

void fl_seq_free(fl_seq *s) {
  if (s == NULL) return;
  for (size_t i = 0; i < s->n_pages; i++) page_drop(s->pool, s->page[i]);
  fl_free(s->page);
  fl_free(s->base);
  fl_free(s);
}

size_t fl_seq_rows(const fl_seq *s) { return s->n_rows; }

void fl_seq_truncate(fl_seq *s, size_t n_rows) {
  size_t keep = (n_rows + FL_KV_ROWS - 1) / FL_KV_ROWS;
  if (n_rows >= s->n_rows) return;
  while (s->n_pages > keep) page_drop(s->pool, s->page[--s->n_pages]);
  s->n_rows = n_rows;
  if (n_rows < s->shift_from) s->shift = s->shift_from = 0;
}

size_t fl_seq_position(const fl_seq *s) { return s->n_rows - s->shift; }

void fl_seq_place(fl_seq *s, size_t position) {
  assert(position <= s->n_rows);
  s->shift = s->n_rows - position;
  s->shift_from = s->n_rows;
}

/* The page that holds the next row may be shared after a fork or a truncation: take a copy. */
static bool own_tail(fl_seq *s) {
  size_t i = s->n_rows / FL_KV_ROWS;
  page *g;
  if (i >= s->n_pages || s->page[i]->refs == 1) return true;
  g = page_take(s->pool, s->page[i]);
  if (g == NULL) return false;
  page_drop(s->pool, s->page[i]);
  s->page[i] = g;
  s->base[i] = g->data;
  return true;
}

int fl_seq_reserve(fl_seq *s, size_t n_rows, fl_err *err) {
  size_t need = (n_rows + FL_KV_ROWS - 1) / FL_KV_ROWS;
  if (n_rows <= s->n_rows) return FL_OK;
  if (!own_tail(s) || !list_room(s, need)) goto full;
  while (s->n_pages < need) {
    page *g = page_take(s->pool, NULL);
    if (g == NULL) goto full;
    push_page(s, g);
  }
  return FL_OK;
full:
  return fl_fail(err, FL_EFULL, "no room for %zu key/value rows", n_rows);
}

fl_kv_pool *fl_seq_pool(const fl_seq *s) { return s->pool; }

const void *const *fl_seq_pages(const fl_seq *s) { return s->base; }

static fl_attn page_view(const fl_kv_pool *p, size_t layer) {
  const fl_kv_layer *l = &p->layer[layer];
  return (fl_attn){ .n_heads = l->kv_heads,
                    .kv_heads = l->kv_heads,
                    .head_dim = l->head_dim,
                    .k_offset = l->k_offset,
                    .v_offset = l->v_offset,
                    .kv_f16 = p->type == FL_KV_F16 };
}

void fl_seq_write(fl_seq *s, size_t layer, size_t first, size_t n, const float *k, const float *v) {
  fl_attn a = page_view(s->pool, layer);
  size_t width = a.kv_heads * a.head_dim;
  for (size_t i = 0, take; i < n; i += take) {
    size_t row = first + i, at = row % FL_KV_ROWS;
    void *base = s->page[row / FL_KV_ROWS]->data;
    take = n - i < FL_KV_ROWS - at ? n - i : FL_KV_ROWS - at;
    fl_page_put_rows(s->pool->kern, base, &a, true, at, take, k + i * width);
    fl_page_put_rows(s->pool->kern, base, &a, false, at, take, v + i * width);
  }
}

void fl_seq_advance(fl_seq *s, size_t n) { s->n_rows += n; }

void fl_seq_read(const fl_seq *s, size_t layer, size_t first, size_t n, float *k, float *v) {
  fl_attn a = page_view(s->pool, layer);
  size_t width = a.kv_heads * a.head_dim;
  for (size_t i = 0; i < n; i++) {
    size_t row = first + i;
    const void *base = s->page[row / FL_KV_ROWS]->data;
    fl_page_get(s->pool->kern, base, &a, true, row % FL_KV_ROWS, k + i * width);
    fl_page_get(s->pool->kern, base, &a, false, row % FL_KV_ROWS, v + i * width);
  }
}
