/* study_file.c - see study_files.h. */
#include "study/study_file.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "study/conv_json.h"

/* Any model's: the ids are not checked against a vocabulary here. */
static const fl_conv_limits any = { .n_vocab = INT32_MAX,
                                    .max_tokens = 1 << 20,
                                    .max_sup = 1 << 20 };

typedef struct line {
  fl_json *o;
  const char *name, *hash, *tokenizer; /* tokenizer NULL: not said */
  bool skipped;
  fl_conv conv; /* empty when skipped */
} line;

static void line_release(line *l) {
  fl_conv_release(&l->conv);
  fl_json_free(l->o);
}

static int line_parse(line *l, const char *text, size_t len, const char *path, size_t number,
                      fl_err *err) {
  line x = { 0 };
  fl_err why = { 0 };
  int rc = fl_json_parse(&x.o, text, len, &why);
  if (rc == FL_OK &&
      (!fl_json_get_str(x.o, "name", &x.name) || !fl_json_get_str(x.o, "hash", &x.hash)))
    rc = FL_EINPUT;
  if (rc == FL_OK) (void)fl_json_get_str(x.o, "tokenizer", &x.tokenizer);
  if (rc == FL_OK) (void)fl_json_get_bool(x.o, "skipped", &x.skipped);
  if (rc == FL_OK && !x.skipped) rc = fl_conv_parse(&x.conv, x.o, &any);
  if (rc != FL_OK) {
    line_release(&x);
    return fl_fail(err, rc, "%s: line %zu is no conversation of a study file%s%s", path, number,
                   why.text[0] ? ": " : "", why.text);
  }
  *l = x;
  return FL_OK;
}

typedef int line_fn(void *ctx, line *l, fl_err *err);

static int each_line(const char *path, line_fn *fn, void *ctx, fl_err *err) {
  fl_map map;
  int rc = fl_map_open(&map, path, err);
  if (rc != FL_OK) return rc;
  const char *data = (const char *)map.data;
  size_t number = 1;
  for (size_t at = 0; at < map.size && rc == FL_OK; number++) {
    const char *end = memchr(data + at, '\n', map.size - at);
    size_t len = end ? (size_t)(end - (data + at)) : map.size - at;
    line l;
    if (len > 0) {
      rc = line_parse(&l, data + at, len, path, number, err);
      if (rc == FL_OK) {
        rc = fn(ctx, &l, err);
        line_release(&l);
      }
    }
    at += len + 1;
  }
  fl_map_close(&map);
  return rc;
}

/* --- show ---------------------------------------------------------------------------------- */

typedef struct group { /* conversations of a document or of a kind */
  char *name;
  size_t n, tokens, supervised;
} group;

typedef struct groups {
  group *v;
  size_t n;
} groups;

static group *group_of(groups *g, const char *name) {
  for (size_t i = 0; i < g->n; i++)
    if (strcmp(g->v[i].name, name) == 0) return &g->v[i];
  group *grown = fl_reallocarray(g->v, g->n + 1, sizeof *grown);
  if (!grown) return NULL;
  g->v = grown;
  g->v[g->n] = (group){ .name = fl_strdup(name) };
  return g->v[g->n].name ? &g->v[g->n++] : NULL;
}

static void groups_release(groups *g) {
  for (size_t i = 0; i < g->n; i++) fl_free(g->v[i].name);
  fl_free(g->v);
}

typedef struct show {
  groups docs, kinds;
  size_t n, skipped, tokens, supervised, entries, texts;
  double mass;
  fl_json *rows;
} show;

static void count(group *g, const fl_conv *c) {
  g->n++;
  g->tokens += c->tokens.len;
  g->supervised += c->targets.n_rows;
}

static void show_text(show *s, const line *l) {
  fl_json *row = fl_json_object();
  fl_json_set_str(row, "document", l->name);
  fl_json_set_str(row, "kind", fl_conv_kind(&l->conv));
  fl_json_set_u64(row, "first", l->conv.first);
  fl_json_set_u64(row, "end", l->conv.end);
  fl_json_set_u64(row, "supervised", l->conv.targets.n_rows);
  fl_json_set_str(row, "request", l->conv.request);
  fl_json_set_str(row, "answer", l->conv.answer);
  fl_json_push(s->rows, row);
}

static int show_line(void *ctx, line *l, fl_err *err) {
  show *s = ctx;
  const fl_targets *t = &l->conv.targets;
  if (l->skipped) {
    s->skipped += l->name[0] != '\0'; /* not the marks of a part (study/part.h) */
    return FL_OK;
  }
  group *doc = group_of(&s->docs, l->name), *kind = group_of(&s->kinds, fl_conv_kind(&l->conv));
  if (!doc || !kind) return fl_fail(err, FL_ENOMEM, "not enough memory");
  count(doc, &l->conv);
  count(kind, &l->conv);
  s->n++;
  s->tokens += l->conv.tokens.len;
  s->supervised += t->n_rows;
  s->entries += t->first[t->n_rows];
  for (uint32_t i = 0; i < t->first[t->n_rows]; i++) s->mass += (double)t->prob[i];
  if (fl_json_len(s->rows) < s->texts) show_text(s, l);
  return FL_OK;
}

static fl_json *groups_json(const groups *g, const char *what) {
  fl_json *rows = fl_json_array();
  for (size_t i = 0; rows && i < g->n; i++) {
    fl_json *row = fl_json_object();
    fl_json_set_str(row, what, g->v[i].name);
    fl_json_set_u64(row, "conversations", g->v[i].n);
    fl_json_set_u64(row, "tokens", g->v[i].tokens);
    fl_json_set_u64(row, "supervised", g->v[i].supervised);
    fl_json_push(rows, row);
  }
  return rows;
}

int fl_study_show(fl_json **out, const char *path, size_t texts, fl_err *err) {
  show s = { .texts = texts, .rows = fl_json_array() };
  fl_json *o = fl_json_object();
  int rc = o && s.rows ? each_line(path, show_line, &s, err)
                       : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) {
    const double n = s.supervised > 0 ? (double)s.supervised : 1;
    fl_json_set_u64(o, "conversations", s.n);
    fl_json_set_u64(o, "skipped", s.skipped);
    fl_json_set_u64(o, "tokens", s.tokens);
    fl_json_set_u64(o, "supervised", s.supervised);
    fl_json_set_num(o, "entries_each", (double)s.entries / n);
    fl_json_set_num(o, "probability_each", s.mass / n);
    fl_json_set(o, "documents", groups_json(&s.docs, "document"));
    fl_json_set(o, "kinds", groups_json(&s.kinds, "kind"));
    if (texts > 0) {
      fl_json_set(o, "texts", s.rows);
      s.rows = NULL;
    }
    *out = o;
    o = NULL;
  }
  fl_json_free(o);
  fl_json_free(s.rows);
  groups_release(&s.docs);
  groups_release(&s.kinds);
  return rc;
}

/* --- merge --------------------------------------------------------------------------------- */

typedef struct seen { /* what a document's lines are known by */
  char hash[FL_HASH_TEXT];
} seen;

typedef struct merge {
  groups docs; /* by name and hash; n numbers the next conversation */
  seen *seen;  /* [cap] hashed, open addressing, at most half full; empty text: free */
  size_t n_seen, cap, dropped;
  fl_sink *sink;
} merge;

/* Two lines are the same when document, chunk, tokens and targets are. */
static void identity(seen *out, const line *l) {
  fl_buf text = { 0 };
  const fl_conv_label label = { .name = l->name, .hash = l->hash, .tokenizer = l->tokenizer };
  fl_conv_print(&text, &l->conv, &label);
  fl_hash_bytes(out->hash, text.data ? text.data : "", text.len);
  fl_buf_release(&text);
}

/* Where s stands, or the free place for it. */
static seen *place_of(seen *table, size_t cap, const seen *s) {
  size_t at = 0;
  for (const char *c = s->hash; *c; c++) at = at * 31 + (unsigned char)*c;
  for (at &= cap - 1; table[at].hash[0]; at = (at + 1) & (cap - 1))
    if (memcmp(&table[at], s, sizeof *s) == 0) break;
  return &table[at];
}

static int grow(merge *m) {
  size_t cap = m->cap ? m->cap * 2 : 512;
  seen *table = fl_calloc(cap, sizeof *table);
  if (!table) return FL_ENOMEM;
  for (size_t i = 0; i < m->cap; i++)
    if (m->seen[i].hash[0]) *place_of(table, cap, &m->seen[i]) = m->seen[i];
  fl_free(m->seen);
  m->seen = table;
  m->cap = cap;
  return FL_OK;
}

static bool is_new(merge *m, const seen *s, int *rc) {
  if (m->n_seen * 2 >= m->cap) *rc = grow(m);
  if (*rc != FL_OK) return false;
  seen *at = place_of(m->seen, m->cap, s);
  if (at->hash[0]) return false;
  *at = *s;
  m->n_seen++;
  return true;
}

static int merge_line(void *ctx, line *l, fl_err *err) {
  merge *m = ctx;
  seen s = { { 0 } };
  int rc = FL_OK;
  if (l->skipped) return FL_OK;
  identity(&s, l);
  if (!is_new(m, &s, &rc)) {
    m->dropped += rc == FL_OK;
    return rc == FL_OK ? rc : fl_fail(err, rc, "not enough memory to merge");
  }
  char *key = fl_asprintf("%s\n%s", l->name, l->hash);
  group *doc = key ? group_of(&m->docs, key) : NULL;
  fl_free(key);
  if (!doc) return fl_fail(err, FL_ENOMEM, "not enough memory to merge");
  const fl_conv_label label = { .doc = (uint32_t)(doc - m->docs.v),
                                .name = l->name,
                                .hash = l->hash,
                                .tokenizer = l->tokenizer,
                                .index = (uint32_t)doc->n++ };
  fl_buf text = { 0 };
  fl_conv_print(&text, &l->conv, &label);
  if (text.oom) rc = fl_fail(err, FL_ENOMEM, "not enough memory to merge");
  else if (m->sink) (void)fl_sink_write(m->sink, text.data, text.len); /* sticks until commit */
  else fwrite(text.data, 1, text.len, stdout);
  fl_buf_release(&text);
  return rc;
}

int fl_study_merge(const char *const *paths, size_t n, const char *to, size_t *kept,
                   size_t *dropped, fl_err *err) {
  merge m = { 0 };
  int rc = to ? fl_fs_open_temp(&m.sink, to, err) : FL_OK;
  for (size_t i = 0; i < n && rc == FL_OK; i++) rc = each_line(paths[i], merge_line, &m, err);
  if (m.sink && rc == FL_OK) rc = fl_fs_commit_temp(m.sink, to, err);
  else if (m.sink) fl_sink_abandon(m.sink);
  *kept = m.n_seen;
  *dropped = m.dropped;
  groups_release(&m.docs);
  fl_free(m.seen);
  return rc;
}
