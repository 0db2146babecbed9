/* lexical_build.c - writing a lexical index: from texts, or from the one before and the texts of
 * what has changed. The file is new and nobody names it yet, so that SQLite need not keep a
 * journal. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "retrieval/lexical_db.h"
#include "retrieval/passage.h"

static const char schema[] =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "INSERT INTO meta VALUES ('format', '" FL_LEXICAL_FORMAT "');"
    "CREATE TABLE doc (id INTEGER PRIMARY KEY, name TEXT NOT NULL, hash TEXT NOT NULL,"
    " passages INTEGER NOT NULL);"
    "CREATE VIRTUAL TABLE words USING fts5 (text, name, heading, first UNINDEXED,"
    " past UNINDEXED, tokenize = 'porter words');";

typedef struct builder {
  fl_lexical *x;
  sqlite3_stmt *add_doc, *add_passage, *drop_doc, *drop_passages;
} builder;

static int no_memory(fl_err *err) {
  return fl_fail(err, FL_ENOMEM, "not enough memory for the lexical index");
}

static int prepare(builder *b, fl_err *err) {
  const struct {
    sqlite3_stmt **s;
    const char *sql;
  } all[] = {
    { &b->add_doc, "INSERT INTO doc VALUES (?1, ?2, ?3, ?4)" },
    { &b->add_passage, "INSERT INTO words (rowid, text, name, heading, first, past)"
                       " VALUES (?1, ?2, ?3, ?4, ?5, ?6)" },
    { &b->drop_doc, "DELETE FROM doc WHERE id = ?1" },
    { &b->drop_passages, "DELETE FROM words WHERE rowid >= ?1 AND rowid < ?2" },
  };
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < sizeof all / sizeof *all; i++)
    rc = fl_lexical_prepare(b->x, all[i].s, all[i].sql, err);
  return rc;
}

static void finalize(builder *b) {
  (void)sqlite3_finalize(b->add_doc);
  (void)sqlite3_finalize(b->add_passage);
  (void)sqlite3_finalize(b->drop_doc);
  (void)sqlite3_finalize(b->drop_passages);
}

/* Runs a statement whose values are bound, for its effect. */
static int run(builder *b, sqlite3_stmt *s, fl_err *err) {
  bool more;
  int rc = fl_lexical_step(b->x, s, &more, err);
  (void)sqlite3_reset(s);
  (void)sqlite3_clear_bindings(s);
  return rc;
}

static void bind_text(sqlite3_stmt *s, int at, const char *text, size_t len) {
  (void)sqlite3_bind_text64(s, at, text, len, SQLITE_STATIC, SQLITE_UTF8);
}

static sqlite3_int64 row_of(sqlite3_int64 doc) { return doc << FL_LEXICAL_PASSAGE_BITS; }

static int drop(builder *b, sqlite3_int64 id, fl_err *err) {
  (void)sqlite3_bind_int64(b->drop_passages, 1, row_of(id));
  (void)sqlite3_bind_int64(b->drop_passages, 2, row_of(id + 1));
  int rc = run(b, b->drop_passages, err);
  (void)sqlite3_bind_int64(b->drop_doc, 1, id);
  return rc == FL_OK ? run(b, b->drop_doc, err) : rc;
}

/* The name without its folders and its kind: what somebody may call it by. */
static void stem_of(const char *name, const char **stem, size_t *len) {
  const char *slash = strrchr(name, '/');
  *stem = slash != NULL ? slash + 1 : name;
  const char *dot = strrchr(*stem, '.');
  *len = dot != NULL && dot > *stem ? (size_t)(dot - *stem) : strlen(*stem);
}

static int add_passages(builder *b, const fl_lexical_doc *d, const char *text, const fl_passages *p,
                        fl_err *err) {
  const char *stem;
  size_t stem_len;
  int rc = FL_OK;
  stem_of(d->name, &stem, &stem_len);
  for (size_t i = 0; rc == FL_OK && i < p->n; i++) {
    const fl_passage *v = &p->v[i];
    const char *heading = fl_passage_heading(p, i);
    (void)sqlite3_bind_int64(b->add_passage, 1, row_of(d->id) + (sqlite3_int64)i);
    bind_text(b->add_passage, 2, text + v->first, v->end - v->first);
    bind_text(b->add_passage, 3, stem, stem_len);
    bind_text(b->add_passage, 4, heading, strlen(heading));
    (void)sqlite3_bind_int64(b->add_passage, 5, (sqlite3_int64)v->first);
    (void)sqlite3_bind_int64(b->add_passage, 6, (sqlite3_int64)v->end);
    rc = run(b, b->add_passage, err);
  }
  return rc;
}

static int add(builder *b, const fl_lexical_source *source, size_t i, fl_err *err) {
  const fl_lexical_doc *d = &source->docs[i];
  fl_buf text = { 0 };
  fl_passages p = { 0 };
  int rc = source->text(source->ctx, i, &text, err);
  if (rc == FL_OK && text.oom) rc = no_memory(err);
  if (rc == FL_OK && text.len > 0 && fl_passages_cut(&p, text.data, text.len) != FL_OK)
    rc = no_memory(err);
  if (rc == FL_OK && p.n >= (size_t)1 << FL_LEXICAL_PASSAGE_BITS)
    rc = fl_fail(err, FL_EINPUT, "%s: too long for the lexical index; split it", d->name);
  if (rc == FL_OK) rc = add_passages(b, d, text.data, &p, err);
  if (rc == FL_OK) {
    const char *hash = d->hash != NULL ? d->hash : "";
    (void)sqlite3_bind_int64(b->add_doc, 1, d->id);
    bind_text(b->add_doc, 2, d->name, strlen(d->name));
    bind_text(b->add_doc, 3, hash, strlen(hash));
    (void)sqlite3_bind_int64(b->add_doc, 4, (sqlite3_int64)p.n);
    rc = run(b, b->add_doc, err);
  }
  fl_passages_release(&p);
  fl_buf_release(&text);
  return rc;
}

/* --- what has changed --- */

static int by_id(const void *a, const void *b) {
  const fl_lexical_doc *const *x = a, *const *y = b;
  return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

static bool matches(sqlite3_stmt *s, const fl_lexical_doc *d) {
  const char *name = (const char *)sqlite3_column_text(s, 1);
  const char *hash = (const char *)sqlite3_column_text(s, 2);
  return name != NULL && strcmp(name, d->name) == 0 && hash != NULL && d->hash != NULL &&
         strcmp(hash, d->hash) == 0;
}

/* Drops what is not among `sorted` as it is now; have[k] = docs[k] is there. */
static int drop_changed(builder *b, const fl_lexical_doc **sorted, const fl_lexical_source *source,
                        bool *have, fl_err *err) {
  sqlite3_stmt *s = NULL;
  bool more = true;
  sqlite3_int64 *gone = NULL;
  size_t n_gone = 0, cap = 0, i = 0;
  int rc = fl_lexical_prepare(b->x, &s, "SELECT id, name, hash FROM doc ORDER BY id", err);
  while (rc == FL_OK && (rc = fl_lexical_step(b->x, s, &more, err)) == FL_OK && more) {
    sqlite3_int64 id = sqlite3_column_int64(s, 0);
    while (i < source->n && sorted[i]->id < id) i++;
    bool keep = i < source->n && sorted[i]->id == id && matches(s, sorted[i]);
    if (keep) have[sorted[i] - source->docs] = true;
    if (keep) continue;
    if (n_gone == cap) {
      cap = cap > 0 ? cap * 2 : 16;
      sqlite3_int64 *v = fl_reallocarray(gone, cap, sizeof *v);
      if (v == NULL) {
        rc = no_memory(err);
        break;
      }
      gone = v;
    }
    gone[n_gone++] = id;
  }
  (void)sqlite3_finalize(s);
  for (size_t k = 0; rc == FL_OK && k < n_gone; k++) rc = drop(b, gone[k], err);
  fl_free(gone);
  return rc;
}

static int bring_up(builder *b, const fl_lexical_source *source, bool fresh, fl_err *err) {
  const fl_lexical_doc **sorted = fl_calloc(source->n + 1, sizeof *sorted);
  bool *have = fl_calloc(source->n + 1, sizeof *have);
  int rc = sorted == NULL || have == NULL ? no_memory(err) : FL_OK;
  for (size_t i = 0; rc == FL_OK && i < source->n; i++) sorted[i] = &source->docs[i];
  if (rc == FL_OK) qsort(sorted, source->n, sizeof *sorted, by_id);
  if (rc == FL_OK && !fresh) rc = drop_changed(b, sorted, source, have, err);
  for (size_t i = 0; rc == FL_OK && i < source->n; i++)
    if (!have[sorted[i] - source->docs])
      rc = add(b, source, (size_t)(sorted[i] - source->docs), err);
  fl_free(sorted);
  fl_free(have);
  return rc;
}

/* --- the file --- */

static int copy_file(const char *to, const char *from, fl_err *err) {
  enum { PART = 1 << 20 };
  fl_map map = { 0 };
  fl_sink *s = NULL;
  int rc = fl_map_open(&map, from, err);
  if (rc == FL_OK) rc = fl_sink_open(&s, to, err);
  for (size_t at = 0; rc == FL_OK && at < map.size; at += PART)
    (void)fl_sink_write(s, map.data + at, map.size - at < PART ? map.size - at : PART);
  if (s != NULL) rc = fl_sink_close(s, err);
  fl_map_close(&map);
  return rc;
}

static int sync_file(const char *path, fl_err *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  int failed = fd < 0 || fsync(fd) != 0 ? errno : 0;
  if (fd >= 0) (void)close(fd);
  return failed == 0 ? FL_OK : fl_fs_fail_errno(err, path, "written", failed);
}

static int write_all(builder *b, const fl_lexical_source *source, bool fresh, fl_err *err) {
  int rc = fl_lexical_exec(b->x,
                           "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
                           "PRAGMA locking_mode=EXCLUSIVE; BEGIN",
                           err);
  if (rc == FL_OK && fresh) rc = fl_lexical_exec(b->x, schema, err);
  if (rc == FL_OK) rc = prepare(b, err);
  if (rc == FL_OK) rc = bring_up(b, source, fresh, err);
  finalize(b);
  /* One piece is read faster than several; an index of before is left as it is. */
  if (rc == FL_OK && fresh)
    rc = fl_lexical_exec(b->x, "INSERT INTO words(words) VALUES ('optimize')", err);
  return rc == FL_OK ? fl_lexical_exec(b->x, "COMMIT", err) : rc;
}

static int build(fl_lexical **out, const char *path, const char *from,
                 const fl_lexical_source *source, fl_err *err) {
  builder b = { 0 };
  int rc = FL_OK;
  if (from != NULL) {
    fl_lexical *x = NULL; /* is it one that can be used? */
    rc = fl_lexical_open(&x, from, err);
    fl_lexical_close(x);
    if (rc == FL_OK) rc = copy_file(path, from, err);
  }
  if (rc == FL_OK)
    rc = fl_lexical_connect(&b.x, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
  if (rc == FL_OK) rc = write_all(&b, source, from == NULL, err);
  if (rc == FL_OK && path == NULL) *out = b.x;
  else fl_lexical_close(b.x);
  if (rc == FL_OK && path != NULL) rc = sync_file(path, err);
  if (rc != FL_OK && path != NULL) (void)fl_fs_remove(path);
  return rc;
}

int fl_lexical_build(fl_lexical **out, const char *path, const char *from,
                     const fl_lexical_source *source, fl_err *err) {
  fl_err why = { 0 };
  int rc = FL_EINPUT;
  if (path != NULL && from != NULL) rc = build(out, path, from, source, &why);
  if (rc == FL_EINPUT || rc == FL_ENOENT) rc = build(out, path, NULL, source, err);
  else if (rc != FL_OK && err != NULL) *err = why;
  if (rc == FL_OK && path != NULL && out != NULL) rc = fl_lexical_open(out, path, err);
  return rc;
}
