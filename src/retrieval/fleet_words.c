/* fleet_words.c - see fleet_words.h. */
#include "retrieval/fleet_words.h"

#include "base/mem.h"

typedef struct texts {
  fl_fleet *f;
  const fl_train_hooks *hooks;
} texts;

static int read_text(void *ctx, size_t i, fl_buf *out, fl_err *err) {
  const texts *t = ctx;
  if (fl_hooks_poll(t->hooks) != FL_OK) return FL_EINTR;
  return fl_fleet_text(t->f, i, out, err);
}

static int build(fl_lexical **out, const char *path, const char *from, texts *t, fl_err *err) {
  const fl_manifest *m = &t->f->m;
  fl_lexical_doc *docs = fl_calloc(m->n + 1, sizeof *docs);
  if (docs == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for the index of words");
  for (size_t i = 0; i < m->n; i++)
    docs[i] = (fl_lexical_doc){ m->doc[i].id, m->doc[i].name, m->doc[i].hash };
  const fl_lexical_source source = { docs, m->n, read_text, t };
  int rc = fl_lexical_build(out, path, from, &source, err);
  fl_free(docs);
  return rc;
}

int fl_fleet_words_write(fl_lexical **out, char **name, fl_fleet *f, fl_commit *c, bool whole,
                         const fl_train_hooks *hooks, fl_err *err) {
  texts t = { .f = f, .hooks = hooks };
  char *file = fl_lexical_file_name(fl_manifest_generation(&f->m)), *path = NULL, *from = NULL;
  int rc = file != NULL ? FL_OK : fl_fail(err, FL_ENOMEM, "%s: not enough memory", f->dir);
  if (rc == FL_OK && !whole && f->m.lexical_file != NULL) {
    from = fl_fs_join(f->dir, f->m.lexical_file);
    if (from == NULL) rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory", f->dir);
  }
  if (rc == FL_OK) rc = fl_commit_path(&path, c, file, err);
  if (rc == FL_OK) rc = build(out, path, from, &t, err);
  fl_free(path);
  fl_free(from);
  if (rc == FL_OK) *name = file;
  else fl_free(file);
  return rc;
}

int fl_manifest_open_words(fl_lexical **out, const fl_manifest *m, const char *dir, fl_err *err) {
  if (m->lexical_file == NULL) return FL_ENOENT;
  char *path = fl_fs_join(dir, m->lexical_file);
  if (path == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", dir);
  int rc = fl_lexical_open(out, path, err);
  fl_free(path);
  return rc;
}

int fl_fleet_words_make(fl_lexical **out, fl_fleet *f, fl_err *err) {
  texts t = { .f = f };
  return build(out, NULL, NULL, &t, err);
}
