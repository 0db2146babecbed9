/* eval_questions.c - reading a question file. */
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "commands/eval.h"

static const size_t file_max_bytes = (size_t)256 << 20;

static int add(eval_questions *q, const fl_json *o, const char *path, fl_err *err) {
  const char *question = NULL, *value = NULL, *doc = NULL;
  fl_json_get_str(o, "question", &question);
  fl_json_get_str(o, "value", &value);
  if (!fl_json_get_str(o, "document", &doc)) fl_json_get_str(o, "doc", &doc);
  if (!question || !value || !doc || !*question || !*value)
    return fl_fail(err, FL_EINPUT,
                   "%s: question %zu: \"question\", \"value\" and \"document\" are needed as texts",
                   path, q->n + 1);
  eval_question *grown = fl_reallocarray(q->q, q->n + 1, sizeof *grown);
  if (!grown) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", path);
  q->q = grown;
  eval_question *e = &q->q[q->n++];
  *e = (eval_question){ .question = fl_strdup(question), .value = fl_strdup(value),
                        .doc = fl_strdup(doc) };
  if (e->question && e->value && e->doc) return FL_OK;
  return fl_fail(err, FL_ENOMEM, "%s: not enough memory", path);
}

static int read_array(eval_questions *q, const fl_buf *text, const char *path, fl_err *err) {
  fl_json *root = NULL;
  int rc = fl_json_parse(&root, text->data, text->len, err);
  if (rc != FL_OK) fl_err_prefix(err, "%s", path);
  for (const fl_json *o = root ? fl_json_first(root) : NULL; o && rc == FL_OK; o = fl_json_next(o))
    rc = add(q, o, path, err);
  fl_json_free(root);
  return rc;
}

static int read_lines(eval_questions *q, const fl_buf *text, const char *path, fl_err *err) {
  size_t line = 1;
  for (const char *at = text->data; *at; line++) {
    size_t len = strcspn(at, "\n");
    fl_json *o = NULL;
    int rc = FL_OK;
    if (strspn(at, " \t\r") < len) {
      rc = fl_json_parse(&o, at, len, err);
      if (rc != FL_OK) {
        fl_err_prefix(err, "%s: line %zu", path, line);
        return rc;
      }
      rc = add(q, o, path, err);
    }
    fl_json_free(o);
    if (rc != FL_OK) return rc;
    at += len + (at[len] == '\n');
  }
  return FL_OK;
}

int eval_questions_read(eval_questions *out, const char *path, fl_err *err) {
  eval_questions q = { 0 };
  fl_buf text = { 0 };
  int rc = fl_fs_read(&text, path, file_max_bytes, err);
  if (rc == FL_OK && text.data) {
    bool array = text.data[strspn(text.data, " \t\r\n")] == '[';
    rc = array ? read_array(&q, &text, path, err) : read_lines(&q, &text, path, err);
  }
  if (rc == FL_OK && q.n == 0)
    rc = fl_fail(err, FL_EINPUT, "%s: no questions in it; give a JSON array or one object a line",
                 path);
  fl_buf_release(&text);
  if (rc == FL_OK) {
    *out = q;
  } else {
    eval_questions_release(&q);
  }
  return rc;
}

int eval_questions_resolve(eval_questions *q, fl_fleet *f, const char *path, fl_err *err) {
  for (size_t i = 0; i < q->n; i++)
    if (fl_fleet_find(f, q->q[i].doc, &q->q[i].doc_index) != FL_OK)
      return fl_fail(err, FL_EINPUT, "%s: question %zu: the fleet has no document %s", path, i + 1,
                     q->q[i].doc);
  return FL_OK;
}

void eval_questions_release(eval_questions *q) {
  for (size_t i = 0; i < q->n; i++) {
    fl_free(q->q[i].question);
    fl_free(q->q[i].value);
    fl_free(q->q[i].doc);
  }
  fl_free(q->q);
  *q = (eval_questions){ 0 };
}
