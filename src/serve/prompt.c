/* prompt.c - a conversation as the pieces of text/chat.h, so that each turn's ids do not depend on
 * those after it. */
#include "serve/prompt.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static fl_template tpl(const fl_prompter *r) { return fl_model_template(r->model); }
static const fl_tokenizer *tok(const fl_prompter *r) { return fl_model_tokenizer(r->model); }

/* --- openers --- */

/* A user's turn begins and the opener begins with the same control token; contents have none. */
static int find_opener(const fl_prompter *r, bool thinking, fl_ids *out, fl_err *err) {
  fl_ids ids = { 0 };
  int rc = fl_chat_user(&ids, tpl(r), tok(r), "", 0, false, thinking, err);
  if (rc == FL_OK && tpl(r) != FL_TEMPLATE_PLAIN) {
    size_t at = ids.len;
    while (at > 0 && ids.data[at - 1] != ids.data[0]) at--;
    if (at > 1) fl_ids_append(out, ids.data + at - 1, ids.len - at + 1);
  }
  if (rc == FL_OK && out->oom)
    rc = fl_fail(err, FL_ENOMEM, "not enough memory for a chat template");
  fl_ids_release(&ids);
  return rc;
}

int fl_prompter_init(fl_prompter *r, const fl_model *m, fl_err *err) {
  *r = (fl_prompter){ .model = m };
  int rc = find_opener(r, false, &r->opener[0], err);
  if (rc == FL_OK) rc = find_opener(r, true, &r->opener[1], err);
  if (rc != FL_OK) fl_prompter_release(r);
  return rc;
}

void fl_prompter_release(fl_prompter *r) {
  fl_ids_release(&r->opener[0]);
  fl_ids_release(&r->opener[1]);
}

/* --- turns --- */

static int put_user(const fl_prompter *r, const fl_prompt *c, const fl_message *m,
                    bool after_system, fl_ids *out, fl_err *err) {
  int rc = fl_chat_user(out, tpl(r), tok(r), m->text, m->len, after_system, c->thinking, err);
  if (rc == FL_OK) out->len -= r->opener[c->thinking].len; /* put where an answer follows */
  return rc;
}

static int put_answer(const fl_prompter *r, const fl_prompt *c, const fl_message *m, fl_ids *out,
                      fl_err *err) {
  const fl_answer *known = NULL;
  fl_ids_append(out, r->opener[c->thinking].data, r->opener[c->thinking].len);
  if (c->answers != NULL) known = fl_answers_find(c->answers, c->scope, out, m->text, m->len);
  if (known == NULL) return fl_chat_assistant(out, tpl(r), tok(r), m->text, m->len, err);
  fl_ids_append(out, known->ids, known->n);
  return fl_chat_assistant(out, tpl(r), tok(r), "", 0, err);
}

/* A system message that does not open the conversation: behind cartridges, or later on. */
static int put_later_system(const fl_prompter *r, const fl_message *m, fl_ids *out, fl_err *err) {
  const size_t had = out->len;
  int rc;
  if (tpl(r) == FL_TEMPLATE_GEMMA || tpl(r) == FL_TEMPLATE_PLAIN) { /* folded into what is open */
    rc = fl_tokenize(tok(r), out, m->text, m->len, FL_TOK_CONTINUE, err);
    return rc == FL_OK ? fl_tokenize(tok(r), out, "\n\n", 2, FL_TOK_CONTINUE, err) : rc;
  }
  rc = fl_chat_system(out, tpl(r), tok(r), m->text, m->len, err);
  if (rc == FL_OK && fl_tokenizer_adds_bos(tok(r))) {
    out->len--;
    memmove(out->data + had, out->data + had + 1, (out->len - had) * sizeof *out->data);
  }
  return rc;
}

/* Everything up to and including the first user's message when nothing stands before it. */
static int put_opening(const fl_prompter *r, const fl_prompt *c, size_t n, fl_ids *out,
                       fl_err *err) {
  int rc = fl_chat_render(out, tpl(r), tok(r), c->msgs, n, c->thinking, err);
  if (rc == FL_OK) out->len -= r->opener[c->thinking].len;
  return rc;
}

static bool system_anywhere(fl_template t) {
  return t == FL_TEMPLATE_CHATML || t == FL_TEMPLATE_LLAMA3;
}

static int put_message(const fl_prompter *r, const fl_prompt *c, size_t i, bool *after_system,
                       fl_ids *out, fl_err *err) {
  const fl_message *m = &c->msgs[i];
  int rc;
  if (m->role == FL_ROLE_SYSTEM) {
    if (!*after_system && !system_anywhere(tpl(r)))
      return fl_fail(err, FL_EINPUT,
                     "message %zu: the model's chat template (%s) allows system messages only at "
                     "the start of a conversation; move it there",
                     i + 1, fl_template_name(tpl(r)));
    return put_later_system(r, m, out, err);
  }
  rc = m->role == FL_ROLE_USER ? put_user(r, c, m, *after_system, out, err)
                               : put_answer(r, c, m, out, err);
  *after_system = false;
  return rc;
}

static size_t first_user(const fl_message *msgs, size_t n) {
  size_t i = 0;
  while (i < n && msgs[i].role == FL_ROLE_SYSTEM) i++;
  return i;
}

int fl_prompt_ids(const fl_prompter *r, const fl_prompt *c, fl_ids *out, fl_err *err) {
  const size_t had = out->len;
  size_t i = 0, user = first_user(c->msgs, c->n_msgs);
  bool after_system = c->behind_rows;
  int rc = FL_OK;
  if (c->n_msgs == 0 || c->msgs[c->n_msgs - 1].role != FL_ROLE_USER)
    return fl_fail(err, FL_EINPUT, "a conversation has to end with a user's message");
  if (!c->behind_rows && c->msgs[user].role == FL_ROLE_USER) {
    rc = put_opening(r, c, user + 1, out, err);
    i = user + 1;
  } else if (!c->behind_rows) { /* an answer comes first */
    rc = fl_chat_system(out, tpl(r), tok(r), NULL, 0, err);
    after_system = system_anywhere(tpl(r));
  }
  for (; rc == FL_OK && i < c->n_msgs; i++) rc = put_message(r, c, i, &after_system, out, err);
  if (rc == FL_OK) fl_ids_append(out, r->opener[c->thinking].data, r->opener[c->thinking].len);
  if (rc == FL_OK && out->oom) rc = fl_fail(err, FL_ENOMEM, "not enough memory for a conversation");
  if (rc != FL_OK) out->len = had;
  return rc == FL_EUSAGE ? FL_EINPUT : rc;
}

void fl_opening_hash(const fl_message *msgs, size_t n, char out[FL_HASH_TEXT]) {
  fl_hasher *h = fl_hasher_new();
  for (size_t i = 0; h != NULL && i < n; i++) {
    const uint64_t head[2] = { (uint64_t)msgs[i].role, msgs[i].len };
    fl_hasher_add(h, head, sizeof head);
    fl_hasher_add(h, msgs[i].text, msgs[i].len);
    if (msgs[i].role == FL_ROLE_USER) break;
  }
  if (h != NULL) fl_hasher_text(h, out);
  else out[0] = '\0';
  fl_hasher_free(h);
}

/* --- remembered answers --- */

void fl_answers_scope(char out[FL_SCOPE_TEXT], const char *digest, uint32_t owner) {
  snprintf(out, FL_SCOPE_TEXT, "%s %lx", digest, (unsigned long)owner);
}

int fl_answers_init(fl_answers *a, size_t max_entries, size_t max_tokens) {
  *a = (fl_answers){ .cap = max_entries, .max_tokens = max_tokens };
  a->entry = fl_calloc(max_entries, sizeof *a->entry);
  return a->entry != NULL ? FL_OK : FL_ENOMEM;
}

void fl_answers_release(fl_answers *a) {
  for (size_t i = 0; i < a->n; i++) fl_free(a->entry[i].ids);
  fl_free(a->entry);
  *a = (fl_answers){ 0 };
}

static bool make_key(char out[FL_HASH_TEXT], const char *scope, const fl_ids *before,
                     const char *text, size_t len) {
  fl_hasher *h = fl_hasher_new();
  if (h == NULL) return false;
  fl_hasher_add(h, scope, strlen(scope));
  fl_hasher_add(h, &before->len, sizeof before->len);
  fl_hasher_add(h, before->data, before->len * sizeof *before->data);
  fl_hasher_add(h, text, len);
  fl_hasher_text(h, out);
  fl_hasher_free(h);
  return true;
}

static void drop_oldest(fl_answers *a) {
  size_t at = 0;
  for (size_t i = 1; i < a->n; i++)
    if (a->entry[i].used < a->entry[at].used) at = i;
  a->tokens -= a->entry[at].n;
  fl_free(a->entry[at].ids);
  a->entry[at] = a->entry[--a->n];
}

static fl_answer *find_key(fl_answers *a, const char *key) {
  for (size_t i = 0; i < a->n; i++)
    if (memcmp(a->entry[i].key, key, FL_HASH_TEXT) == 0) return &a->entry[i];
  return NULL;
}

void fl_answers_add(fl_answers *a, const char *scope, const fl_ids *before, const char *text,
                    size_t len, const int32_t *ids, size_t n) {
  fl_answer e = { .n = n };
  if (n == 0 || n > a->max_tokens || !make_key(e.key, scope, before, text, len)) return;
  fl_answer *same = find_key(a, e.key);
  if (same != NULL) { /* two ways to spell one text: the first stays, slots may hold it */
    same->used = ++a->clock;
    return;
  }
  e.ids = fl_calloc(n, sizeof *e.ids);
  if (e.ids == NULL) return;
  memcpy(e.ids, ids, n * sizeof *ids);
  while (a->n > 0 && (a->n == a->cap || a->tokens + n > a->max_tokens)) drop_oldest(a);
  e.used = ++a->clock;
  a->tokens += n;
  a->entry[a->n++] = e;
}

const fl_answer *fl_answers_find(fl_answers *a, const char *scope, const fl_ids *before,
                                 const char *text, size_t len) {
  char key[FL_HASH_TEXT] = "";
  if (!make_key(key, scope, before, text, len)) return NULL;
  fl_answer *e = find_key(a, key);
  if (e != NULL) e->used = ++a->clock;
  return e;
}
