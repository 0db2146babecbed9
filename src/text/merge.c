/* merge.c - symbols in a doubly linked list inside an array, candidates in a binary heap. A merge
 * never removes candidates that it made stale: they are dropped when they come up, because their
 * left symbol is gone, its neighbour is another, or the length differs. */
#include "text/merge.h"

#include "base/mem.h"

void fl_merger_reset(fl_merger *m) {
  m->n_symbols = 0;
  m->n_heap = 0;
}

void fl_merger_push(fl_merger *m, uint32_t pos, uint32_t len, int32_t id) {
  if (m->oom) return;
  if (m->n_symbols == m->cap_symbols) {
    size_t cap = m->cap_symbols ? m->cap_symbols * 2 : 64;
    fl_symbol *grown = fl_reallocarray(m->symbol, cap, sizeof *grown);
    if (grown == NULL) {
      m->oom = true;
      return;
    }
    m->symbol = grown;
    m->cap_symbols = cap;
  }
  uint32_t at = (uint32_t)m->n_symbols++; /* a piece has at most INT32_MAX bytes */
  m->symbol[at] = (fl_symbol){ pos, len, at == 0 ? FL_NO_SYMBOL : at - 1, FL_NO_SYMBOL, id };
  if (at > 0) m->symbol[at - 1].next = at;
}

static void heap_push(fl_merger *m, fl_candidate c) {
  if (m->n_heap == m->cap_heap) {
    size_t cap = m->cap_heap ? m->cap_heap * 2 : 64;
    fl_candidate *grown = fl_reallocarray(m->heap, cap, sizeof *grown);
    if (grown == NULL) {
      m->oom = true;
      return;
    }
    m->heap = grown;
    m->cap_heap = cap;
  }
  size_t at = m->n_heap++;
  for (; at > 0 && c.order < m->heap[(at - 1) / 2].order; at = (at - 1) / 2)
    m->heap[at] = m->heap[(at - 1) / 2];
  m->heap[at] = c;
}

static fl_candidate heap_pop(fl_merger *m) {
  fl_candidate top = m->heap[0], last = m->heap[--m->n_heap];
  size_t at = 0, child;
  while ((child = 2 * at + 1) < m->n_heap) {
    if (child + 1 < m->n_heap && m->heap[child + 1].order < m->heap[child].order) child++;
    if (last.order <= m->heap[child].order) break;
    m->heap[at] = m->heap[child];
    at = child;
  }
  m->heap[at] = last;
  return top;
}

static void consider(fl_merger *m, uint32_t left, fl_pair_fn *pair, void *ctx) {
  if (left == FL_NO_SYMBOL || m->symbol[left].next == FL_NO_SYMBOL) return;
  const fl_symbol *l = &m->symbol[left], *r = &m->symbol[l->next];
  uint32_t priority;
  int32_t id;
  if (pair(ctx, l, r, &priority, &id))
    heap_push(m, (fl_candidate){ (uint64_t)priority << 32 | left, l->next, l->len + r->len, id });
}

void fl_merger_run(fl_merger *m, fl_pair_fn *pair, void *ctx) {
  for (uint32_t i = 0; i + 1 < m->n_symbols; i++) consider(m, i, pair, ctx);
  while (m->n_heap > 0 && !m->oom) {
    const fl_candidate c = heap_pop(m);
    uint32_t left = (uint32_t)c.order;
    fl_symbol *l = &m->symbol[left], *r = &m->symbol[c.right];
    if (l->len == 0 || l->next != c.right || l->len + r->len != c.len) continue;
    l->len = c.len;
    l->id = c.id;
    l->next = r->next;
    r->len = 0;
    if (l->next != FL_NO_SYMBOL) m->symbol[l->next].prev = left;
    consider(m, l->prev, pair, ctx);
    consider(m, left, pair, ctx);
  }
}

void fl_merger_release(fl_merger *m) {
  fl_free(m->symbol);
  fl_free(m->heap);
  *m = (fl_merger){ 0 };
}
