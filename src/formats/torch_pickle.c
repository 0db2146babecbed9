/* torch_pickle.c - see torch_pickle.h. */
#include "formats/torch_pickle.h"

#include <string.h>

#include "base/mem.h"

enum { MAX_VALUES = 1 << 22 };

typedef struct machine {
  fl_pickle *p;
  const uint8_t *at, *end;
  uint32_t *stack, *mark, *memo;
  size_t n_stack, cap_stack, n_mark, cap_mark, n_memo, cap_memo;
  fl_err *err;
} machine;

void fl_pickle_release(fl_pickle *p) {
  for (size_t i = 0; i < p->n; i++) fl_free(p->value[i].item);
  fl_free(p->value);
  *p = (fl_pickle){ 0 };
}

bool fl_pvalue_is(const fl_pvalue *v, fl_pkind kind, const char *text) {
  return v->kind == kind && v->len == strlen(text) && memcmp(v->text, text, v->len) == 0;
}

const fl_pvalue *fl_pickle_get(const fl_pickle *p, const fl_pvalue *v, const char *key) {
  if (v->kind != FL_P_DICT) return NULL;
  for (size_t i = 0; i + 1 < v->n; i += 2)
    if (fl_pvalue_is(&p->value[v->item[i]], FL_P_TEXT, key)) return &p->value[v->item[i + 1]];
  return NULL;
}

static int bad(const machine *m, const char *what) {
  return fl_fail(m->err, FL_EINPUT, "%s", what);
}

/* Room for one more in an array of indices. */
static int room(machine *m, uint32_t **a, size_t n, size_t *cap) {
  if (n < *cap) return FL_OK;
  if (n >= MAX_VALUES) return bad(m, "more values than a cartridge has");
  const size_t want = *cap ? *cap * 2 : 8;
  uint32_t *grown = fl_reallocarray(*a, want, sizeof *grown);
  if (!grown) return fl_fail(m->err, FL_ENOMEM, "not enough memory");
  *a = grown;
  *cap = want;
  return FL_OK;
}

static int push(machine *m, uint32_t v) {
  int rc = room(m, &m->stack, m->n_stack, &m->cap_stack);
  if (rc == FL_OK) m->stack[m->n_stack++] = v;
  return rc;
}

static int push_new(machine *m, fl_pvalue v) {
  fl_pickle *p = m->p;
  if (p->n == p->cap) {
    const size_t want = p->cap ? p->cap * 2 : 256;
    if (p->n >= MAX_VALUES) return bad(m, "more values than a cartridge has");
    fl_pvalue *grown = fl_reallocarray(p->value, want, sizeof *grown);
    if (!grown) return fl_fail(m->err, FL_ENOMEM, "not enough memory");
    p->value = grown;
    p->cap = want;
  }
  p->value[p->n] = v;
  return push(m, (uint32_t)p->n++);
}

static int add_item(machine *m, uint32_t to, uint32_t item) {
  fl_pvalue *v = &m->p->value[to];
  int rc = room(m, &v->item, v->n, &v->cap);
  if (rc == FL_OK) v->item[v->n++] = item;
  return rc;
}

/* n values from the top, above the last mark or anywhere where there is none. */
static bool has(const machine *m, size_t n) {
  const size_t floor = m->n_mark ? m->mark[m->n_mark - 1] : 0;
  return m->n_stack - floor >= n;
}

/* Values from stack position `from` on become items of `to`; a container that is none swallows. */
static int move_items(machine *m, size_t from, uint32_t to) {
  const fl_pkind kind = m->p->value[to].kind;
  int rc = FL_OK;
  if (kind == FL_P_LIST || kind == FL_P_DICT)
    for (size_t i = from; i < m->n_stack && rc == FL_OK; i++) rc = add_item(m, to, m->stack[i]);
  m->n_stack = from;
  return rc;
}

/* A tuple of all from stack position `from` on. */
static int tuple(machine *m, size_t from) {
  int rc = push_new(m, (fl_pvalue){ .kind = FL_P_LIST });
  if (rc != FL_OK) return rc;
  const uint32_t t = m->stack[--m->n_stack];
  rc = move_items(m, from, t);
  return rc == FL_OK ? push(m, t) : rc;
}

/* What a call of `name` with a tuple would give. */
static int reduce(machine *m, uint32_t name, uint32_t args) {
  const fl_pvalue *f = &m->p->value[name];
  fl_pvalue *a = &m->p->value[args];
  if (a->kind != FL_P_LIST) return bad(m, "a call without its operands");
  if (fl_pvalue_is(f, FL_P_NAME, "torch._utils\n_rebuild_tensor_v2")) {
    if (a->n < 4) return bad(m, "a tensor without its sizes");
    a->kind = FL_P_TENSOR; /* its operands are all that a tensor is */
    return push(m, args);
  }
  if (fl_pvalue_is(f, FL_P_NAME, "torch._utils\n_rebuild_parameter") && a->n > 0)
    return push(m, a->item[0]);
  if (fl_pvalue_is(f, FL_P_NAME, "collections\nOrderedDict"))
    return push_new(m, (fl_pvalue){ .kind = FL_P_DICT });
  return push_new(m, (fl_pvalue){ .kind = FL_P_OBJECT });
}

/* The number in the next n bytes, the lowest first. */
static bool number(machine *m, size_t n, uint64_t *out) {
  if ((size_t)(m->end - m->at) < n) return false;
  *out = 0;
  for (size_t i = 0; i < n; i++) *out |= (uint64_t)m->at[i] << 8 * i;
  m->at += n;
  return true;
}

static int push_int(machine *m, size_t n) {
  uint64_t v;
  if (n > 8 || !number(m, n, &v)) return bad(m, "a number cut short");
  if (n == 4 && v > INT32_MAX) v |= UINT64_MAX << 32; /* a negative one */
  return push_new(m, (fl_pvalue){ .kind = FL_P_INT, .num = (int64_t)v });
}

static int push_text(machine *m, size_t n) {
  if ((size_t)(m->end - m->at) < n) return bad(m, "a text cut short");
  const char *text = (const char *)m->at;
  m->at += n;
  return push_new(m, (fl_pvalue){ .kind = FL_P_TEXT, .text = text, .len = n });
}

static int push_name(machine *m) {
  const uint8_t *first = memchr(m->at, '\n', (size_t)(m->end - m->at));
  const uint8_t *second = first ? memchr(first + 1, '\n', (size_t)(m->end - first - 1)) : NULL;
  if (!second) return bad(m, "a name cut short");
  const char *text = (const char *)m->at;
  const size_t len = (size_t)(second - m->at);
  m->at = second + 1;
  return push_new(m, (fl_pvalue){ .kind = FL_P_NAME, .text = text, .len = len });
}

static int put_memo(machine *m, uint64_t k) {
  if (!has(m, 1) || k >= MAX_VALUES) return bad(m, "a memo of nothing");
  while (m->n_memo <= k) {
    int rc = room(m, &m->memo, m->n_memo, &m->cap_memo);
    if (rc != FL_OK) return rc;
    m->memo[m->n_memo++] = UINT32_MAX;
  }
  m->memo[k] = m->stack[m->n_stack - 1];
  return FL_OK;
}

static int get_memo(machine *m, uint64_t k) {
  if (k >= m->n_memo || m->memo[k] == UINT32_MAX) return bad(m, "a memo that was never made");
  return push(m, m->memo[k]);
}

/* The steps that take what lies above the last mark. */
static int marked_step(machine *m, uint8_t op) {
  if (m->n_mark == 0) return bad(m, "a step without its mark");
  const size_t from = m->mark[--m->n_mark];
  if (op == 't') return tuple(m, from);
  if (!has(m, m->n_stack - from + 1)) return bad(m, "items without a list");
  if (op == 'u' && (m->n_stack - from) % 2) return bad(m, "a key without its value");
  return move_items(m, from, m->stack[from - 1]);
}

/* The steps that take `n` values from the top. */
static int plain_step(machine *m, uint8_t op, size_t n) {
  if (!has(m, n)) return bad(m, "a step without its operands");
  const size_t from = m->n_stack - n;
  const uint32_t first = m->stack[from], last = m->stack[m->n_stack - 1];
  switch (op) {
  case 'a':
  case 's': return move_items(m, from + 1, first);
  case 'R': m->n_stack = from; return reduce(m, first, last);
  case 0x81: m->n_stack = from; return push_new(m, (fl_pvalue){ .kind = FL_P_OBJECT });
  case 'b':
    m->n_stack = from + 1;
    return m->p->value[first].kind == FL_P_OBJECT && m->p->value[first].n == 0
               ? add_item(m, first, last)
               : FL_OK;
  case 'Q':
    if (m->p->value[last].kind != FL_P_LIST || m->p->value[last].n != 5)
      return bad(m, "values that are none of torch");
    m->p->value[last].kind = FL_P_STORAGE;
    return FL_OK;
  default: return tuple(m, from); /* 0x85 to 0x87 */
  }
}

static int step(machine *m, uint8_t op) {
  uint64_t k = 0;
  switch (op) {
  case 0x80: return number(m, 1, &k) && k == 2 ? FL_OK : bad(m, "a protocol that is not 2");
  case '}': return push_new(m, (fl_pvalue){ .kind = FL_P_DICT });
  case ']':
  case ')': return push_new(m, (fl_pvalue){ .kind = FL_P_LIST });
  case '(': {
    int rc = room(m, &m->mark, m->n_mark, &m->cap_mark);
    if (rc == FL_OK) m->mark[m->n_mark++] = (uint32_t)m->n_stack;
    return rc;
  }
  case 'N':
  case 0x88:
  case 0x89: return push_new(m, (fl_pvalue){ .kind = FL_P_NONE });
  case 'G':
    return number(m, 8, &k) ? push_new(m, (fl_pvalue){ .kind = FL_P_NONE })
                            : bad(m, "a number cut short");
  case 'K': return push_int(m, 1);
  case 'M': return push_int(m, 2);
  case 'J': return push_int(m, 4);
  case 0x8a: return number(m, 1, &k) ? push_int(m, (size_t)k) : bad(m, "a number cut short");
  case 'X': return number(m, 4, &k) ? push_text(m, (size_t)k) : bad(m, "a text cut short");
  case 'c': return push_name(m);
  case 'q': return number(m, 1, &k) ? put_memo(m, k) : bad(m, "a memo cut short");
  case 'r': return number(m, 4, &k) ? put_memo(m, k) : bad(m, "a memo cut short");
  case 'h': return number(m, 1, &k) ? get_memo(m, k) : bad(m, "a memo cut short");
  case 'j': return number(m, 4, &k) ? get_memo(m, k) : bad(m, "a memo cut short");
  case 't':
  case 'u':
  case 'e': return marked_step(m, op);
  case 'a':
  case 'R':
  case 0x81:
  case 'b':
  case 0x86: return plain_step(m, op, 2);
  case 's':
  case 0x87: return plain_step(m, op, 3);
  case 'Q':
  case 0x85: return plain_step(m, op, 1);
  default: return fl_fail(m->err, FL_EINPUT, "a step 0x%02x that tensors do not need", op);
  }
}

int fl_pickle_read(fl_pickle *out, const uint8_t *data, size_t len, fl_err *err) {
  fl_pickle p = { 0 };
  machine m = { .p = &p, .at = data, .end = data + len, .err = err };
  int rc = FL_OK;
  bool ended = false;
  while (rc == FL_OK && !ended && m.at < m.end) {
    const uint8_t op = *m.at++;
    ended = op == '.';
    if (!ended) rc = step(&m, op);
  }
  if (rc == FL_OK && (!ended || m.n_mark > 0 || m.n_stack != 1)) rc = bad(&m, "no whole pickle");
  if (rc == FL_OK) p.root = m.stack[0];
  fl_free(m.stack);
  fl_free(m.mark);
  fl_free(m.memo);
  if (rc != FL_OK) {
    fl_pickle_release(&p);
    return rc;
  }
  *out = p;
  return FL_OK;
}
