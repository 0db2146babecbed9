/* chat_request.c - see chat_request.h. */
#include "http/chat_request.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void fl_call_init(fl_call *c, fl_json *body, const fl_call_defaults *d) {
  *c = (fl_call){ .body = body,
                  .sampling = d->sampling,
                  .max_new = d->max_new,
                  .seed = d->seed,
                  .thinking = d->thinking };
}

void fl_call_release(fl_call *c) {
  for (size_t i = 0; i < c->n_msgs; i++) fl_free((char *)c->msgs[i].text); /* ours: fl_strndup */
  fl_free(c->msgs);
  fl_free(c->bias);
  fl_buf_release(&c->tool_text);
  fl_json_free(c->body);
  *c = (fl_call){ 0 };
}

static int no_memory(fl_api_error *f) {
  return fl_api_error_set(f, 503, "unavailable", NULL, "not enough memory for the request");
}

/* --- messages --- */

static int join(fl_message *m, const char *text, size_t len, fl_api_error *f) {
  fl_buf both = { 0 };
  fl_buf_append(&both, m->text, m->len);
  fl_buf_putc(&both, '\n');
  fl_buf_append(&both, text, len);
  const size_t n = both.len;
  char *whole = fl_buf_detach(&both);
  if (whole == NULL) return no_memory(f);
  fl_free((char *)m->text);
  m->text = whole;
  m->len = n;
  return FL_OK;
}

int fl_call_message(fl_call *c, fl_role role, const char *text, size_t len, bool joins,
                    fl_api_error *f) {
  if (joins && c->n_msgs > 0 && c->msgs[c->n_msgs - 1].role == role)
    return join(&c->msgs[c->n_msgs - 1], text, len, f);
  if (c->n_msgs == FL_CALL_MESSAGES)
    return fl_api_error_set(f, 400, "too_many", "messages", "more than %d messages; send fewer",
                            FL_CALL_MESSAGES);
  if (c->n_msgs == c->cap) {
    const size_t cap = c->cap > 0 ? 2 * c->cap : 16;
    fl_message *more = fl_reallocarray(c->msgs, cap, sizeof *more);
    if (more == NULL) return no_memory(f);
    c->msgs = more;
    c->cap = cap;
  }
  char *copy = fl_strndup(len > 0 ? text : "", len);
  if (copy == NULL) return no_memory(f);
  c->msgs[c->n_msgs++] = (fl_message){ role, copy, len };
  return FL_OK;
}

static bool one_of(const char *s, const char *const *names) {
  for (; *names != NULL; names++)
    if (strcmp(s, *names) == 0) return true;
  return false;
}

static int put_part(fl_buf *out, const fl_json *part, const char *const *types, const char *where,
                    fl_api_error *f) {
  const char *type = NULL, *text = NULL;
  if (!fl_json_is_obj(part) || !fl_json_get_str(part, "type", &type))
    return fl_api_error_set(f, 400, "invalid_type", where, "a part of %s has no type", where);
  if (!one_of(type, types))
    return fl_api_error_set(
        f, 400, "unsupported_content", where,
        "%s has a part of type %.64s, which this server does not take; send text", where, type);
  if (!fl_json_get_str(part, "text", &text))
    return fl_api_error_set(f, 400, "invalid_type", where, "a part of %s has no text", where);
  fl_buf_puts(out, text);
  return FL_OK;
}

int fl_call_content(fl_buf *out, const fl_json *content, const char *const *types,
                    const char *where, fl_api_error *f) {
  const char *s = content != NULL ? fl_json_as_str(content) : NULL;
  int rc = FL_OK;
  if (s != NULL) {
    fl_buf_puts(out, s);
  } else if (content != NULL && fl_json_is_arr(content)) {
    for (const fl_json *p = fl_json_first(content); rc == FL_OK && p != NULL; p = fl_json_next(p))
      rc = put_part(out, p, types, where, f);
  } else {
    rc = fl_api_error_set(f, 400, "invalid_type", where,
                          "%s has to be a string or an array of parts", where);
  }
  return rc == FL_OK && out->oom ? no_memory(f) : rc;
}

/* --- fields --- */

int fl_call_sampling(fl_call *c, double max_temperature, fl_api_error *f) {
  fl_sampling *s = &c->sampling;
  int rc = fl_json_field_num(c->body, "temperature", 0, max_temperature, &s->temperature, f);
  if (rc == FL_OK) rc = fl_json_field_num(c->body, "top_p", 0, 1, &s->top_p, f);
  if (rc == FL_OK) rc = fl_json_field_size(c->body, "top_k", 0, 1000000, &s->top_k, f);
  if (rc == FL_OK) rc = fl_json_field_num(c->body, "min_p", 0, 1, &s->min_p, f);
  if (rc == FL_OK) rc = fl_json_field_num(c->body, "repeat_penalty", 0.1, 4, &s->repeat_penalty, f);
  if (rc == FL_OK) rc = fl_json_field_num(c->body, "presence_penalty", -2, 2, &s->presence, f);
  if (rc == FL_OK) rc = fl_json_field_num(c->body, "frequency_penalty", -2, 2, &s->frequency, f);
  if (rc == FL_OK) rc = fl_json_field_u64(c->body, "seed", &c->seed, &c->seed_given, f);
  if (s->top_p == 0) s->top_k = 1; /* no mass at all: the likeliest token */
  if (s->top_p == 0) s->top_p = 1;
  return rc;
}

int fl_call_bias(fl_call *c, fl_api_error *f) {
  const fl_json *o = NULL;
  int rc = fl_json_field_obj(c->body, "logit_bias", &o, f);
  const size_t n = rc == FL_OK && o != NULL ? fl_json_len(o) : 0;
  if (n == 0) return rc;
  if (n > FL_CALL_BIASES)
    return fl_api_error_set(f, 400, "invalid_value", "logit_bias",
                            "logit_bias has more than %d tokens", FL_CALL_BIASES);
  c->bias = fl_calloc(n, sizeof *c->bias);
  if (c->bias == NULL) return no_memory(f);
  c->sampling.bias = c->bias;
  for (const fl_json *v = fl_json_first(o); v != NULL; v = fl_json_next(v)) {
    const char *key = fl_json_key(v);
    const size_t digits = strspn(key, "0123456789");
    double x;
    if (digits == 0 || digits > 9 || key[digits] != '\0' || !fl_json_as_num(v, &x) ||
        !(x >= -100 && x <= 100))
      return fl_api_error_set(f, 400, "invalid_value", "logit_bias",
                              "logit_bias has to give token ids "
                              "numbers from -100 to 100");
    c->bias[c->sampling.n_bias++] = (fl_logit_bias){ (int32_t)strtol(key, NULL, 10), (float)x };
  }
  return FL_OK;
}

int fl_call_stops(fl_call *c, const char *key, fl_api_error *f) {
  const fl_json *v = fl_field(c->body, key);
  if (v == NULL) return FL_OK;
  const char *one = fl_json_as_str(v);
  if (one == NULL && !fl_json_is_arr(v))
    return fl_api_error_set(f, 400, "invalid_type", key,
                            "%s has to be a string or an array of strings", key);
  if (one == NULL && fl_json_len(v) > FL_CALL_STOPS)
    return fl_api_error_set(f, 400, "invalid_value", key, "%s has more than %d strings", key,
                            FL_CALL_STOPS);
  if (one != NULL) c->stop[c->n_stop++] = one;
  for (const fl_json *s = one == NULL ? fl_json_first(v) : NULL; s != NULL; s = fl_json_next(s))
    c->stop[c->n_stop++] = fl_json_as_str(s);
  for (size_t i = 0; i < c->n_stop; i++)
    if (c->stop[i] == NULL || c->stop[i][0] == '\0')
      return fl_api_error_set(f, 400, "invalid_value", key,
                              "%s has to hold strings that are not empty", key);
  return FL_OK;
}

static int documents(fl_call *c, const fl_json *list, fl_api_error *f) {
  if (fl_json_len(list) > FL_CALL_DOCS)
    return fl_api_error_set(f, 400, "invalid_value", "flotilla",
                            "flotilla.documents has more than %d "
                            "names",
                            FL_CALL_DOCS);
  for (const fl_json *v = fl_json_first(list); v != NULL; v = fl_json_next(v)) {
    const char *name = fl_json_as_str(v);
    if (name == NULL || name[0] == '\0')
      return fl_api_error_set(f, 400, "invalid_type", "flotilla",
                              "flotilla.documents has to hold names");
    c->docs[c->n_docs++] = name;
  }
  c->rag = c->n_docs > 0 ? FL_RAG_NAMED : FL_RAG_NONE;
  return FL_OK;
}

int fl_call_extension(fl_call *c, fl_api_error *f) {
  static const char *const known[] = { "documents", "retrieval", "conversation" };
  const fl_json *x = NULL, *docs = NULL;
  const char *mode = NULL;
  int rc = fl_json_field_obj(c->body, "flotilla", &x, f);
  if (rc != FL_OK || x == NULL) return rc;
  rc = fl_json_field_only(x, "flotilla", known, sizeof known / sizeof *known, f);
  if (rc == FL_OK) rc = fl_json_field_str(x, "retrieval", &mode, f);
  if (rc == FL_OK) rc = fl_json_field_str(x, "conversation", &c->conversation, f);
  if (rc == FL_OK) rc = fl_json_field_arr(x, "documents", &docs, f);
  if (rc != FL_OK) return rc;
  if (mode != NULL && strcmp(mode, "auto") != 0 && strcmp(mode, "none") != 0)
    return fl_api_error_set(f, 400, "invalid_value", "flotilla",
                            "flotilla.retrieval is auto or none");
  if (mode != NULL && strcmp(mode, "none") == 0) c->rag = FL_RAG_NONE;
  if (docs != NULL && mode != NULL && fl_json_len(docs) > 0)
    return fl_api_error_set(f, 400, "invalid_value", "flotilla",
                            "flotilla.documents names the documents;"
                            " leave flotilla.retrieval out");
  return docs != NULL ? documents(c, docs, f) : FL_OK;
}

/* --- the whole --- */

int fl_call_finish(fl_call *c, const fl_call_defaults *d, fl_api_error *f) {
  if (c->conversation != NULL && strlen(c->conversation) >= FL_CALL_ID)
    return fl_api_error_set(f, 400, "invalid_value", "conversation",
                            "a conversation's id has at most %d "
                            "bytes",
                            FL_CALL_ID - 1);
  if (c->n_msgs == 0)
    return fl_api_error_set(f, 400, "empty_array", "messages", "there are no messages");
  if (c->msgs[c->n_msgs - 1].role != FL_ROLE_USER)
    return fl_api_error_set(f, 400, "invalid_value", "messages",
                            "the last message has to be the user's "
                            "or a tool's; this server does not continue an answer");
  if (c->n_tools == 0 || c->tools_off) return FL_OK;
  if (!d->tools)
    return fl_api_error_set(f, 400, "unsupported_parameter", "tools",
                            "the model's chat template has no "
                            "convention for tools; leave tools out");
  return fl_call_declare(c, f);
}

void fl_call_job(const fl_call *c, uint32_t owner, uint64_t number, fl_job_request *out) {
  *out = (fl_job_request){ .msgs = c->msgs,
                           .n_msgs = c->n_msgs,
                           .thinking = c->thinking,
                           .sampling = c->sampling,
                           .seed = c->seed_given ? c->seed : c->seed + number,
                           .max_new = c->max_new,
                           .stop = c->stop,
                           .n_stop = c->n_stop,
                           .logprobs = c->logprobs,
                           .top_logprobs = c->top_logprobs,
                           .rag = c->rag,
                           .docs = c->docs,
                           .n_docs = c->n_docs,
                           .conversation = c->conversation,
                           .owner = owner };
}
