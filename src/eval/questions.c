/* questions.c - reading a question file. */
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "eval/eval.h"

enum { MAX_TEXTS = 64 };
static const size_t file_max_bytes = (size_t)256 << 20;

const char *const eval_arm_names[] = { "bare",   "context",   "text", "text4",
                                       "oracle", "retrieved", "all",  NULL };
const char *const eval_score_names[] = { "contains", "exact", "choice", NULL };

int eval_arms_parse(eval_arms *out, const char *flag, const char *list, fl_err *err) {
  eval_arms a = { 0 };
  bool seen[EVAL_N_ARMS] = { false };
  for (const char *at = list; *at;) {
    size_t len = strcspn(at, ","), i = 0;
    while (eval_arm_names[i] &&
           (strlen(eval_arm_names[i]) != len || memcmp(at, eval_arm_names[i], len) != 0))
      i++;
    if (!eval_arm_names[i] || seen[i])
      return fl_fail(err, FL_EUSAGE,
                     "%s %s: give some of bare, context, text, text4, oracle, "
                     "retrieved, all, each once",
                     flag, list);
    seen[i] = true;
    a.arm[a.n++] = (eval_arm)i;
    at += len + (at[len] == ',');
  }
  if (a.n == 0) return fl_fail(err, FL_EUSAGE, "%s: at least one arm is needed", flag);
  *out = a;
  return FL_OK;
}

static int add_text(eval_texts *t, const char *s) {
  char **grown = fl_reallocarray(t->v, t->n + 1, sizeof *grown);
  if (!grown) return FL_ENOMEM;
  t->v = grown;
  t->v[t->n] = fl_strdup(s);
  return t->v[t->n++] ? FL_OK : FL_ENOMEM;
}

/* A text, or several in an array; none of them empty. */
static int read_texts(eval_texts *out, const fl_json *v) {
  const char *one = v ? fl_json_as_str(v) : NULL;
  if (one) return *one ? add_text(out, one) : FL_EINPUT;
  if (!v || !fl_json_is_arr(v) || fl_json_len(v) == 0 || fl_json_len(v) > MAX_TEXTS)
    return FL_EINPUT;
  int rc = FL_OK;
  for (const fl_json *e = fl_json_first(v); e && rc == FL_OK; e = fl_json_next(e)) {
    const char *s = fl_json_as_str(e);
    rc = s && *s ? add_text(out, s) : FL_EINPUT;
  }
  return rc;
}

/* The right option is the one that "correct" counts, from 0, or the one that a value equals. */
static int read_options(eval_question *e, const fl_json *o) {
  const fl_json *options = fl_json_get(o, "options");
  uint64_t correct;
  if (!options) return FL_OK;
  if (!fl_json_is_arr(options) || fl_json_len(options) < 2) return FL_EINPUT;
  int rc = read_texts(&e->option, options);
  if (rc != FL_OK) return rc;
  if (fl_json_get(o, "correct")) {
    if (!fl_json_get_u64(o, "correct", &correct) || correct >= e->option.n) return FL_EINPUT;
    e->correct = (size_t)correct;
    return FL_OK;
  }
  for (size_t i = 0; i < e->option.n; i++)
    for (size_t k = 0; k < e->value.n; k++) {
      if (strcasecmp(e->option.v[i], e->value.v[k]) != 0) continue;
      e->correct = i;
      return FL_OK;
    }
  return FL_EINPUT;
}

static int fill(eval_question *e, const fl_json *o) {
  const char *question = NULL, *doc = NULL, *reference = NULL;
  const fl_json *value = fl_json_get(o, "value");
  fl_json_get_str(o, "question", &question);
  if (!fl_json_get_str(o, "document", &doc)) fl_json_get_str(o, "doc", &doc);
  if (!question || !doc || !*question || !*doc) return FL_EINPUT;
  int rc = value ? read_texts(&e->value, value) : FL_OK;
  if (rc == FL_OK) rc = read_options(e, o);
  if (rc == FL_OK && e->value.n == 0)
    rc = e->option.n > 0 ? add_text(&e->value, e->option.v[e->correct]) : FL_EINPUT;
  if (rc != FL_OK) return rc;
  if (!fl_json_get_str(o, "answer", &reference) || !*reference) reference = e->value.v[0];
  e->question = fl_strdup(question);
  e->doc = fl_strdup(doc);
  e->reference = fl_strdup(reference);
  return e->question && e->doc && e->reference ? FL_OK : FL_ENOMEM;
}

static int add(eval_questions *q, const fl_json *o, const char *path, fl_err *err) {
  eval_question *grown = fl_reallocarray(q->q, q->n + 1, sizeof *grown);
  if (!grown) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", path);
  q->q = grown;
  eval_question *e = &q->q[q->n++];
  *e = (eval_question){ 0 };
  int rc = fill(e, o);
  q->n_options += e->option.n > 0;
  if (rc == FL_ENOMEM) return fl_fail(err, rc, "%s: not enough memory", path);
  if (rc != FL_OK)
    return fl_fail(err, rc,
                   "%s: question %zu: \"question\" and \"document\" are needed as texts, "
                   "and \"value\" (a text or several) or \"options\" with \"correct\"",
                   path, q->n);
  return FL_OK;
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
  int rc = FL_OK;
  for (size_t at = 0; at < text->len && rc == FL_OK; line++) {
    const char *from = text->data + at, *end = memchr(from, '\n', text->len - at);
    size_t len = end ? (size_t)(end - from) : text->len - at;
    fl_json *o = NULL;
    at += len + 1;
    if (strspn(from, " \t\r") >= len) continue;
    rc = fl_json_parse(&o, from, len, err);
    if (rc != FL_OK) {
      fl_err_prefix(err, "%s: line %zu", path, line);
      return rc;
    }
    rc = add(q, o, path, err);
    fl_json_free(o);
  }
  return rc;
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

static void release_texts(eval_texts *t) {
  for (size_t i = 0; i < t->n; i++) fl_free(t->v[i]);
  fl_free(t->v);
  *t = (eval_texts){ 0 };
}

static void release_question(eval_question *e) {
  fl_free(e->question);
  fl_free(e->doc);
  fl_free(e->reference);
  release_texts(&e->value);
  release_texts(&e->option);
}

void eval_questions_limit(eval_questions *q, size_t n) {
  while (q->n > n) {
    eval_question *last = &q->q[--q->n];
    q->n_options -= last->option.n > 0;
    release_question(last);
  }
}

void eval_questions_release(eval_questions *q) {
  for (size_t i = 0; i < q->n; i++) release_question(&q->q[i]);
  fl_free(q->q);
  *q = (eval_questions){ 0 };
}
