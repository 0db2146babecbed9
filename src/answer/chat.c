/* chat.c - a conversation: one holding, many turns. */
#include <string.h>

#include "base/mem.h"
#include "answer/session.h"

struct fl_chat {
  fl_session h;
  fl_ask_options o; /* its docs are ours */
  size_t *docs;
};

int fl_chat_new(fl_chat **out, fl_fleet *f, const fl_ask_options *o, fl_err *err) {
  fl_chat *c = fl_calloc(1, sizeof *c);
  if (c != NULL) c->docs = fl_calloc(o->n_docs + 1, sizeof *c->docs);
  if (c == NULL || c->docs == NULL) {
    fl_chat_free(c);
    return fl_fail(err, FL_ENOMEM, "not enough memory for a conversation");
  }
  if (o->n_docs > 0) memcpy(c->docs, o->docs, o->n_docs * sizeof *c->docs);
  c->o = *o;
  c->o.docs = c->docs;
  int rc = fl_session_begin(&c->h, f, &c->o, err);
  c->o.hits = NULL; /* needed no longer, and not ours */
  if (rc != FL_OK) {
    fl_chat_free(c);
    return rc;
  }
  *out = c;
  return FL_OK;
}

int fl_chat_turn(fl_chat *c, const char *user, size_t len, fl_reply *out, fl_err *err) {
  int rc = fl_session_turn(&c->h, user, len, &c->o, out, err);
  if (rc == FL_OK) fl_log_answer(c->h.f, user, len, &c->o, out);
  return rc;
}

void fl_chat_free(fl_chat *c) {
  if (c == NULL) return;
  fl_session_end(&c->h);
  fl_free(c->docs);
  fl_free(c);
}
