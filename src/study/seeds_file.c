/* seeds_file.c - a user's seed instructions. */
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "study/study_file.h"

enum { KIND_MAX = 64, TEXT_MAX = 4096, FILE_MAX = 1 << 20 };

static int add(fl_study_seeds *s, const fl_json *o, const char *path, fl_err *err) {
  const char *kind = NULL, *text = NULL, *request = NULL;
  fl_json_get_str(o, "kind", &kind);
  fl_json_get_str(o, "text", &text);
  fl_json_get_str(o, "request", &request);
  const char *words = request ? request : text;
  if (!kind || !*kind || strlen(kind) > KIND_MAX || !words || !*words || strlen(words) > TEXT_MAX ||
      (text && request))
    return fl_fail(err, FL_EINPUT,
                   "%s: seed instruction %zu: \"kind\" (up to %d bytes) and "
                   "either \"text\" or \"request\" (up to %d) are needed",
                   path, s->n + 1, KIND_MAX, TEXT_MAX);
  if (s->n == FL_MAX_SEEDS)
    return fl_fail(err, FL_EINPUT, "%s: more than %d seed instructions; leave some out", path,
                   FL_MAX_SEEDS);
  fl_seed_kind *grown = fl_reallocarray(s->v, s->n + 1, sizeof *grown);
  if (!grown) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", path);
  s->v = grown;
  fl_seed_kind *k = &s->v[s->n++];
  *k = (fl_seed_kind){ fl_strdup(kind), fl_strdup(words), request != NULL };
  return k->kind && k->text ? FL_OK : fl_fail(err, FL_ENOMEM, "%s: not enough memory", path);
}

static int read_value(fl_study_seeds *s, const char *text, size_t len, const char *path,
                      fl_err *err) {
  fl_json *root = NULL;
  int rc = fl_json_parse(&root, text, len, err);
  if (rc != FL_OK) {
    fl_err_prefix(err, "%s", path);
    return rc;
  }
  if (!fl_json_is_arr(root)) rc = add(s, root, path, err);
  for (const fl_json *o = fl_json_is_arr(root) ? fl_json_first(root) : NULL; o && rc == FL_OK;
       o = fl_json_next(o))
    rc = add(s, o, path, err);
  fl_json_free(root);
  return rc;
}

int fl_study_seeds_read(fl_study_seeds *out, const char *path, fl_err *err) {
  fl_study_seeds s = { 0 };
  fl_buf text = { 0 };
  int rc = fl_fs_read(&text, path, FILE_MAX, err);
  if (rc == FL_OK && text.len > 0) {
    bool array = text.data[strspn(text.data, " \t\r\n")] == '[';
    for (size_t at = 0; at < text.len && rc == FL_OK;) {
      const char *from = text.data + at, *end = array ? NULL : memchr(from, '\n', text.len - at);
      size_t len = end ? (size_t)(end - from) : text.len - at;
      at += len + 1;
      if (strspn(from, " \t\r\n") < len) rc = read_value(&s, from, len, path, err);
    }
  }
  if (rc == FL_OK && s.n == 0)
    rc = fl_fail(err, FL_EINPUT,
                 "%s: no seed instruction in it; give objects with \"kind\" and "
                 "\"text\" or \"request\"",
                 path);
  fl_buf_release(&text);
  if (rc != FL_OK) {
    fl_study_seeds_release(&s);
    return rc;
  }
  *out = s;
  return FL_OK;
}

void fl_study_seeds_release(fl_study_seeds *s) {
  for (size_t i = 0; i < s->n; i++) {
    fl_free((char *)s->v[i].kind); /* they are this list's own copies */
    fl_free((char *)s->v[i].text);
  }
  fl_free(s->v);
  *s = (fl_study_seeds){ 0 };
}
