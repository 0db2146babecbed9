/* chat_request.c - see chat_request.h. */
#include "serve/chat_request.h"

#include "base/buf.h"
#include "base/mem.h"

/* Texts are ours, though messages elsewhere borrow theirs. */
static char *text_of(const fl_message *m) { return (char *)m->text; }

void fl_chat_request_release(fl_chat_request *r) {
  for (size_t i = 0; i < r->n_msgs; i++) fl_free(text_of(&r->msgs[i]));
  for (size_t i = 0; i < r->n_stop; i++) fl_free(r->stop[i]);
  for (size_t i = 0; i < r->n_docs; i++) fl_free(r->docs[i]);
  fl_free(r->msgs);
  fl_free(r->bias);
  fl_free(r->conversation);
  *r = (fl_chat_request){ 0 };
}

int fl_chat_request_say(fl_chat_request *r, fl_role role, const char *text, size_t len) {
  if (r->n_msgs == r->cap) {
    const size_t cap = r->cap > 0 ? 2 * r->cap : 16;
    fl_message *more = fl_reallocarray(r->msgs, cap, sizeof *more);
    if (more == NULL) return FL_ENOMEM;
    r->msgs = more;
    r->cap = cap;
  }
  char *copy = fl_strndup(len > 0 ? text : "", len);
  if (copy == NULL) return FL_ENOMEM;
  r->msgs[r->n_msgs++] = (fl_message){ role, copy, len };
  return FL_OK;
}

int fl_chat_request_go_on(fl_chat_request *r, const char *text, size_t len) {
  fl_message *m = &r->msgs[r->n_msgs - 1];
  fl_buf both = { 0 };
  fl_buf_append(&both, m->text, m->len);
  fl_buf_putc(&both, '\n');
  fl_buf_append(&both, text, len);
  const size_t n = both.len;
  char *whole = fl_buf_detach(&both);
  if (whole == NULL) return FL_ENOMEM;
  fl_free(text_of(m));
  m->text = whole;
  m->len = n;
  return FL_OK;
}

int fl_chat_request_list(char **list, size_t *n, const char *text) {
  list[*n] = fl_strdup(text);
  if (list[*n] == NULL) return FL_ENOMEM;
  (*n)++;
  return FL_OK;
}
