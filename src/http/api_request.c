/* api_request.c - see api_request.h. */
#include "http/api_request.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* --- fields --- */

static bool is_null(const fl_json *obj, const char *key, const fl_json *v) {
  bool b;
  double d;
  return fl_json_as_str(v) == NULL && !fl_json_as_num(v, &d) && !fl_json_is_obj(v) &&
         !fl_json_is_arr(v) && !fl_json_get_bool(obj, key, &b);
}

const fl_json *fl_json_field(const fl_json *obj, const char *key) {
  const fl_json *v = fl_json_get(obj, key);
  return v != NULL && !is_null(obj, key, v) ? v : NULL;
}

int fl_json_field_num(const fl_json *obj, const char *key, double min, double max, double *out,
                      fl_api_error *f) {
  const fl_json *v = fl_json_field(obj, key);
  double d;
  if (v == NULL) return FL_OK;
  if (!fl_json_as_num(v, &d) || !(d >= min && d <= max))
    return fl_api_refuse(f, "invalid_value", key, "%s has to be a number from %g to %g", key, min,
                         max);
  *out = d;
  return FL_OK;
}

int fl_json_field_size(const fl_json *obj, const char *key, uint64_t min, uint64_t max, size_t *out,
                       fl_api_error *f) {
  const fl_json *v = fl_json_field(obj, key);
  uint64_t u;
  if (v == NULL) return FL_OK;
  if (!fl_json_get_u64(obj, key, &u) || u < min || u > max)
    return fl_api_refuse(f, "invalid_value", key, "%s has to be an integer from %llu to %llu", key,
                         (unsigned long long)min, (unsigned long long)max);
  *out = (size_t)u;
  return FL_OK;
}

int fl_json_field_u64(const fl_json *obj, const char *key, uint64_t *out, bool *given,
                      fl_api_error *f) {
  if (fl_json_field(obj, key) == NULL) return FL_OK;
  if (!fl_json_get_u64(obj, key, out))
    return fl_api_refuse(f, "invalid_value", key, "%s has to be an integer, 0 or more", key);
  *given = true;
  return FL_OK;
}

int fl_json_field_bool(const fl_json *obj, const char *key, bool *out, fl_api_error *f) {
  if (fl_json_field(obj, key) == NULL || fl_json_get_bool(obj, key, out)) return FL_OK;
  return fl_api_refuse(f, "invalid_type", key, "%s has to be true or false", key);
}

int fl_json_field_str(const fl_json *obj, const char *key, const char **out, fl_api_error *f) {
  if (fl_json_field(obj, key) == NULL || fl_json_get_str(obj, key, out)) return FL_OK;
  return fl_api_refuse(f, "invalid_type", key, "%s has to be a string", key);
}

int fl_json_field_obj(const fl_json *obj, const char *key, const fl_json **out, fl_api_error *f) {
  const fl_json *v = fl_json_field(obj, key);
  if (v != NULL && !fl_json_is_obj(v))
    return fl_api_refuse(f, "invalid_type", key, "%s has to be an object", key);
  if (v != NULL) *out = v;
  return FL_OK;
}

int fl_json_field_arr(const fl_json *obj, const char *key, const fl_json **out, fl_api_error *f) {
  const fl_json *v = fl_json_field(obj, key);
  if (v != NULL && !fl_json_is_arr(v))
    return fl_api_refuse(f, "invalid_type", key, "%s has to be an array", key);
  if (v != NULL) *out = v;
  return FL_OK;
}

int fl_json_field_refuse(const fl_json *obj, const char *const *names, size_t n, fl_api_error *f) {
  for (size_t i = 0; i < n; i++) {
    const fl_json *v = fl_json_field(obj, names[i]);
    if (v == NULL) continue;
    if ((fl_json_is_arr(v) || fl_json_is_obj(v)) && fl_json_len(v) == 0) continue;
    return fl_api_refuse(f, "unsupported_parameter", names[i],
                         "%s is not supported by this server; leave it out", names[i]);
  }
  return FL_OK;
}

int fl_json_field_only(const fl_json *obj, const char *where, const char *const *names, size_t n,
                       fl_api_error *f) {
  for (const fl_json *v = fl_json_first(obj); v != NULL; v = fl_json_next(v)) {
    size_t i = 0;
    while (i < n && strcmp(names[i], fl_json_key(v)) != 0) i++;
    if (i == n)
      return fl_api_refuse(f, "unknown_parameter", where, "%s.%.64s is unknown", where,
                           fl_json_key(v));
  }
  return FL_OK;
}

/* --- a request --- */

void fl_request_init(fl_api_request *c, fl_json *body, const fl_request_defaults *d) {
  *c = (fl_api_request){ .body = body,
                         .chat = { .sampling = d->sampling,
                                   .max_new = d->max_new,
                                   .seed = d->seed,
                                   .thinking = d->thinking } };
}

void fl_request_release(fl_api_request *c) {
  fl_chat_request_release(&c->chat);
  fl_buf_release(&c->tool_text);
  fl_json_free(c->body);
  *c = (fl_api_request){ 0 };
}

static int no_memory(fl_api_error *f) {
  return fl_api_error_set(f, 503, "unavailable", NULL, "not enough memory for the request");
}

/* --- messages --- */

int fl_request_message(fl_api_request *c, fl_role role, const char *text, size_t len, bool joins,
                       fl_api_error *f) {
  fl_chat_request *r = &c->chat;
  if (joins && r->n_msgs > 0 && r->msgs[r->n_msgs - 1].role == role)
    return fl_chat_request_go_on(r, text, len) == FL_OK ? FL_OK : no_memory(f);
  if (r->n_msgs == FL_REQUEST_MESSAGES)
    return fl_api_refuse(f, "too_many", "messages", "more than %d messages; send fewer",
                         FL_REQUEST_MESSAGES);
  return fl_chat_request_say(r, role, text, len) == FL_OK ? FL_OK : no_memory(f);
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
    return fl_api_refuse(f, "invalid_type", where, "a part of %s has no type", where);
  if (!one_of(type, types))
    return fl_api_error_set(
        f, 400, "unsupported_content", where,
        "%s has a part of type %.64s, which this server does not take; send text", where, type);
  if (!fl_json_get_str(part, "text", &text))
    return fl_api_refuse(f, "invalid_type", where, "a part of %s has no text", where);
  fl_buf_puts(out, text);
  return FL_OK;
}

int fl_request_content(fl_buf *out, const fl_json *content, const char *const *types,
                       const char *where, fl_api_error *f) {
  const char *s = content != NULL ? fl_json_as_str(content) : NULL;
  int rc = FL_OK;
  if (s != NULL) {
    fl_buf_puts(out, s);
  } else if (content != NULL && fl_json_is_arr(content)) {
    for (const fl_json *p = fl_json_first(content); rc == FL_OK && p != NULL; p = fl_json_next(p))
      rc = put_part(out, p, types, where, f);
  } else {
    rc = fl_api_refuse(f, "invalid_type", where, "%s has to be a string or an array of parts",
                       where);
  }
  return rc == FL_OK && out->oom ? no_memory(f) : rc;
}

/* --- what protocols have in common --- */

int fl_request_sampling(fl_api_request *c, double max_temperature, fl_api_error *f) {
  fl_sampling *s = &c->chat.sampling;
  int rc = fl_json_field_num(c->body, "temperature", 0, max_temperature, &s->temperature, f);
  if (rc == FL_OK) rc = fl_json_field_num(c->body, "top_p", 0, 1, &s->top_p, f);
  if (rc == FL_OK) rc = fl_json_field_size(c->body, "top_k", 0, 1000000, &s->top_k, f);
  if (rc == FL_OK) rc = fl_json_field_num(c->body, "min_p", 0, 1, &s->min_p, f);
  if (rc == FL_OK) rc = fl_json_field_num(c->body, "repeat_penalty", 0.1, 4, &s->repeat_penalty, f);
  if (rc == FL_OK) rc = fl_json_field_num(c->body, "presence_penalty", -2, 2, &s->presence, f);
  if (rc == FL_OK) rc = fl_json_field_num(c->body, "frequency_penalty", -2, 2, &s->frequency, f);
  if (rc == FL_OK) rc = fl_json_field_u64(c->body, "seed", &c->chat.seed, &c->seed_given, f);
  if (s->top_p == 0) s->top_k = 1; /* no mass at all: the likeliest token */
  if (s->top_p == 0) s->top_p = 1;
  return rc;
}

int fl_request_bias(fl_api_request *c, fl_api_error *f) {
  const fl_json *o = NULL;
  int rc = fl_json_field_obj(c->body, "logit_bias", &o, f);
  const size_t n = rc == FL_OK && o != NULL ? fl_json_len(o) : 0;
  if (n == 0) return rc;
  if (n > FL_REQUEST_BIASES)
    return fl_api_refuse(f, "invalid_value", "logit_bias", "logit_bias has more than %d tokens",
                         FL_REQUEST_BIASES);
  fl_logit_bias *bias = fl_calloc(n, sizeof *bias);
  if (bias == NULL) return no_memory(f);
  c->chat.sampling.bias = c->chat.bias = bias;
  for (const fl_json *v = fl_json_first(o); v != NULL; v = fl_json_next(v)) {
    const char *key = fl_json_key(v);
    const size_t digits = strspn(key, "0123456789");
    double x;
    if (digits == 0 || digits > 9 || key[digits] != '\0' || !fl_json_as_num(v, &x) ||
        !(x >= -100 && x <= 100))
      return fl_api_refuse(f, "invalid_value", "logit_bias",
                           "logit_bias has to give token ids numbers from -100 to 100");
    bias[c->chat.sampling.n_bias++] = (fl_logit_bias){ (int32_t)strtol(key, NULL, 10), (float)x };
  }
  return FL_OK;
}

static int stop_at(fl_api_request *c, const char *key, const char *s, fl_api_error *f) {
  if (s == NULL || s[0] == '\0')
    return fl_api_refuse(f, "invalid_value", key, "%s has to hold strings that are not empty", key);
  return fl_chat_request_list(c->chat.stop, &c->chat.n_stop, s) == FL_OK ? FL_OK : no_memory(f);
}

int fl_request_stops(fl_api_request *c, const char *key, fl_api_error *f) {
  const fl_json *v = fl_json_field(c->body, key);
  if (v == NULL) return FL_OK;
  const char *one = fl_json_as_str(v);
  if (one == NULL && !fl_json_is_arr(v))
    return fl_api_refuse(f, "invalid_type", key, "%s has to be a string or an array of strings",
                         key);
  if (one == NULL && fl_json_len(v) > FL_REQUEST_STOPS)
    return fl_api_refuse(f, "invalid_value", key, "%s has more than %d strings", key,
                         FL_REQUEST_STOPS);
  if (one != NULL) return stop_at(c, key, one, f);
  int rc = FL_OK;
  for (const fl_json *s = fl_json_first(v); rc == FL_OK && s != NULL; s = fl_json_next(s))
    rc = stop_at(c, key, fl_json_as_str(s), f);
  return rc;
}

static int documents(fl_api_request *c, const fl_json *list, fl_api_error *f) {
  if (fl_json_len(list) > FL_REQUEST_DOCS)
    return fl_api_refuse(f, "invalid_value", "flotilla",
                         "flotilla.documents has more than %d names", FL_REQUEST_DOCS);
  for (const fl_json *v = fl_json_first(list); v != NULL; v = fl_json_next(v)) {
    const char *name = fl_json_as_str(v);
    if (name == NULL || name[0] == '\0')
      return fl_api_refuse(f, "invalid_type", "flotilla", "flotilla.documents has to hold names");
    if (fl_chat_request_list(c->chat.docs, &c->chat.n_docs, name) != FL_OK) return no_memory(f);
  }
  c->chat.rag = c->chat.n_docs > 0 ? FL_RAG_NAMED : FL_RAG_NONE;
  return FL_OK;
}

int fl_request_extension(fl_api_request *c, fl_api_error *f) {
  static const char *const known[] = { "documents", "retrieval", "conversation" };
  const fl_json *x = NULL, *docs = NULL;
  const char *mode = NULL, *id = NULL;
  int rc = fl_json_field_obj(c->body, "flotilla", &x, f);
  if (rc != FL_OK || x == NULL) return rc;
  rc = fl_json_field_only(x, "flotilla", known, sizeof known / sizeof *known, f);
  if (rc == FL_OK) rc = fl_json_field_str(x, "retrieval", &mode, f);
  if (rc == FL_OK) rc = fl_json_field_str(x, "conversation", &id, f);
  if (rc == FL_OK) rc = fl_request_conversation(c, id, f);
  if (rc == FL_OK) rc = fl_json_field_arr(x, "documents", &docs, f);
  if (rc != FL_OK) return rc;
  if (mode != NULL && strcmp(mode, "auto") != 0 && strcmp(mode, "none") != 0)
    return fl_api_refuse(f, "invalid_value", "flotilla", "flotilla.retrieval is auto or none");
  if (mode != NULL && strcmp(mode, "none") == 0) c->chat.rag = FL_RAG_NONE;
  if (docs != NULL && mode != NULL && fl_json_len(docs) > 0)
    return fl_api_refuse(f, "invalid_value", "flotilla",
                         "flotilla.documents names the documents; leave flotilla.retrieval out");
  return docs != NULL ? documents(c, docs, f) : FL_OK;
}

/* --- the whole --- */

int fl_request_conversation(fl_api_request *c, const char *id, fl_api_error *f) {
  if (id == NULL || c->chat.conversation != NULL) return FL_OK;
  c->chat.conversation = fl_strdup(id);
  return c->chat.conversation != NULL ? FL_OK : no_memory(f);
}

int fl_request_finish(fl_api_request *c, const fl_request_defaults *d, fl_api_error *f) {
  const fl_chat_request *r = &c->chat;
  if (r->conversation != NULL && strlen(r->conversation) >= FL_REQUEST_ID)
    return fl_api_refuse(f, "invalid_value", "conversation",
                         "a conversation's id has at most %d bytes", FL_REQUEST_ID - 1);
  if (r->n_msgs == 0) return fl_api_refuse(f, "empty_array", "messages", "there are no messages");
  if (r->msgs[r->n_msgs - 1].role != FL_ROLE_USER)
    return fl_api_refuse(f, "invalid_value", "messages",
                         "the last message has to be the user's or a tool's; this server does not "
                         "continue an answer");
  if (c->n_tools == 0 || c->tools_off) return FL_OK;
  if (!d->tools)
    return fl_api_refuse(f, "unsupported_parameter", "tools",
                         "the model's chat template has no convention for tools; leave tools out");
  return fl_request_declare(c, f);
}

void fl_request_identify(fl_api_request *c, uint32_t owner, uint64_t number) {
  c->chat.owner = owner;
  if (!c->seed_given) c->chat.seed += number;
}
