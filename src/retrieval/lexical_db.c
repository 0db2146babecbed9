/* lexical_db.c - a connection to the database of a lexical index. */
#include "retrieval/lexical_db.h"

#include <string.h>

#include "base/fs.h"
#include "base/mem.h"

static const char *name_of(const fl_lexical *x) {
  return x->path != NULL ? x->path : "the lexical index";
}

int fl_lexical_fail(const fl_lexical *x, int code, fl_err *err) {
  switch (code & 0xFF) {
  case SQLITE_NOMEM: return fl_fail(err, FL_ENOMEM, "%s: not enough memory", name_of(x));
  case SQLITE_FULL: return fl_fail(err, FL_EFAIL, "%s: no space left on the disk", name_of(x));
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
  case SQLITE_MISMATCH:
  case SQLITE_ERROR: /* a table that is not there or is not ours */
    return fl_fail(err, FL_EINPUT, "%s: damaged (%s); rebuild it with flotilla index", name_of(x),
                   x->db != NULL ? sqlite3_errmsg(x->db) : sqlite3_errstr(code));
  default:
    return fl_fail(err, FL_EFAIL, "%s: %s", name_of(x),
                   x->db != NULL ? sqlite3_errmsg(x->db) : sqlite3_errstr(code));
  }
}

int fl_lexical_exec(fl_lexical *x, const char *sql, fl_err *err) {
  int rc = sqlite3_exec(x->db, sql, NULL, NULL, NULL);
  return rc == SQLITE_OK ? FL_OK : fl_lexical_fail(x, rc, err);
}

int fl_lexical_prepare(fl_lexical *x, sqlite3_stmt **out, const char *sql, fl_err *err) {
  int rc = sqlite3_prepare_v2(x->db, sql, -1, out, NULL);
  return rc == SQLITE_OK ? FL_OK : fl_lexical_fail(x, rc, err);
}

int fl_lexical_step(fl_lexical *x, sqlite3_stmt *s, bool *more, fl_err *err) {
  int rc = sqlite3_step(s);
  *more = rc == SQLITE_ROW;
  return rc == SQLITE_ROW || rc == SQLITE_DONE ? FL_OK : fl_lexical_fail(x, rc, err);
}

/* The path as a URI that says that the file never changes, so that nothing is locked. */
static char *uri_of(const char *path) {
  fl_buf b = { 0 };
  fl_buf_puts(&b, "file:");
  for (const char *p = path; *p != '\0'; p++)
    if (strchr("?#%", *p) != NULL) fl_buf_printf(&b, "%%%02X", (unsigned)(unsigned char)*p);
    else fl_buf_putc(&b, *p);
  fl_buf_puts(&b, "?immutable=1");
  return fl_buf_detach(&b);
}

/* Nothing that a file may say is to run: no functions or modules by a schema that is not ours. */
static void harden(sqlite3 *db) {
  (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  (void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
}

int fl_lexical_connect(fl_lexical **out, const char *path, int flags, fl_err *err) {
  fl_lexical *x = fl_calloc(1, sizeof *x);
  bool reads = (flags & SQLITE_OPEN_READONLY) != 0;
  char *uri = path != NULL && reads ? uri_of(path) : NULL;
  if (x == NULL || (path != NULL && (x->path = fl_strdup(path)) == NULL) ||
      (path != NULL && reads && uri == NULL)) {
    fl_lexical_close(x);
    fl_free(uri);
    return fl_fail(err, FL_ENOMEM, "not enough memory for the lexical index");
  }
  const char *name = uri != NULL ? uri : path != NULL ? path : ":memory:";
  int rc = sqlite3_open_v2(name, &x->db, flags | (uri != NULL ? SQLITE_OPEN_URI : 0), NULL);
  fl_free(uri);
  int code = rc == SQLITE_OK ? FL_OK : fl_lexical_fail(x, rc, err);
  if (code == FL_OK) harden(x->db);
  if (code == FL_OK) code = fl_lexical_register(x, err);
  if (code == FL_OK) *out = x;
  else fl_lexical_close(x);
  return code;
}

void fl_lexical_close(fl_lexical *x) {
  if (x == NULL) return;
  (void)sqlite3_close_v2(x->db);
  fl_free(x->path);
  fl_free(x);
}
