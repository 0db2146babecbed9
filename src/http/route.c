/* route.c - see route.h. The table of routes is the whole map of the server. */
#include "http/route.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/json_writer.h"

#define JSON "application/json"

typedef enum kind { ANSWER, EMBEDDINGS, MODELS, HEALTH, METRICS } kind;

struct fl_route {
  const char *path; /* without a leading /v1 */
  const char *name;
  kind kind;
  const char *method;
  const fl_protocol *protocol;
  bool open; /* needs no key */
};

static const fl_route routes[] = {
  { "/chat/completions", "chat", ANSWER, "POST", &fl_protocol_chat, false },
  { "/responses", "responses", ANSWER, "POST", &fl_protocol_responses, false },
  { "/messages", "messages", ANSWER, "POST", &fl_protocol_messages, false },
  { "/embeddings", "embeddings", EMBEDDINGS, "POST", NULL, false },
  { "/models", "models", MODELS, "GET", NULL, false },
  { "/health", "health", HEALTH, "GET", NULL, true },
  { "/metrics", "metrics", METRICS, "GET", NULL, false },
};
enum { N_ROUTES = sizeof routes / sizeof *routes };
_Static_assert((int)N_ROUTES < (int)FL_ROUTES, "one row is for other paths");

static const char *without_version(const char *path) {
  return strncmp(path, "/v1/", 4) == 0 ? path + 3 : path;
}

const fl_route *fl_route_find(const char *path) {
  path = without_version(path);
  for (size_t i = 0; i < N_ROUTES; i++)
    if (strcmp(routes[i].path, path) == 0) return &routes[i];
  if (strncmp(path, "/models/", 8) == 0) return fl_route_find("/models");
  return NULL;
}

fl_api_family fl_route_family(const char *path) {
  const char *p = without_version(path);
  return strcmp(p, "/messages") == 0 || strncmp(p, "/messages/", 10) == 0 ? FL_API_ANTHROPIC
                                                                          : FL_API_OPENAI;
}

size_t fl_route_index(const fl_route *r) {
  return r != NULL ? (size_t)(r - routes) : FL_ROUTES - 1;
}

const char *fl_route_name(size_t i) { return i < N_ROUTES ? routes[i].name : "other"; }

void fl_route_error(fl_http_reply *reply, const fl_api_error *f, fl_api_family family,
                    const char *id) {
  fl_buf_reset(&reply->body);
  reply->status = f->status;
  reply->type = JSON;
  reply->retry_after_s = f->retry_after_s;
  fl_api_error_body(&reply->body, f, family, id);
}

/* --- before the body --- */

/* The name in a Host header without its port; brackets stay. */
static size_t host_len(const char *host) {
  if (host[0] == '[') {
    const char *end = strchr(host, ']');
    return end != NULL ? (size_t)(end - host) + 1 : strlen(host);
  }
  return strcspn(host, ":");
}

static bool is_name(const char *host, size_t len, const char *name) {
  return strlen(name) == len && strncasecmp(host, name, len) == 0;
}

/* A page of another site may send a browser here under its own name (DNS rebinding). */
static bool host_allowed(const fl_server_options *o, const char *host) {
  static const char *const loopback[] = { "localhost", "127.0.0.1", "[::1]" };
  if (o->any_host) return true;
  if (host == NULL) return false;
  const size_t len = host_len(host);
  for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++)
    if (is_name(host, len, loopback[i])) return true;
  for (size_t i = 0; i < o->n_allow_hosts; i++)
    if (is_name(host, len, o->allow_hosts[i])) return true;
  return false;
}

static bool same_site(const char *origin, const char *host) {
  const char *at = strstr(origin, "://");
  return at != NULL && host != NULL && strcasecmp(at + 3, host) == 0;
}

/* Sets the origin to allow. False: a page of a site that may not ask. */
static bool origin_allowed(const fl_server_options *o, const fl_http_request *a,
                           fl_http_reply *reply) {
  if (a->origin == NULL) return true;
  for (size_t i = 0; i < o->n_cors; i++)
    if (strcmp(o->cors[i], "*") == 0 || strcmp(o->cors[i], a->origin) == 0) {
      reply->cors = a->origin;
      return true;
    }
  return same_site(a->origin, a->host);
}

static int key_of(const fl_http *e, const fl_http_request *a) {
  const char *shown = fl_auth_bearer(a->authorization);
  if (shown == NULL) shown = a->x_api_key;
  if (e->keys == NULL) return 0;
  return fl_keys_find(e->keys, shown, shown != NULL ? strlen(shown) : 0);
}

static int admit(fl_http *e, const fl_http_request *a, fl_http_reply *reply, int *key,
                 fl_api_error *f) {
  const fl_route *r = fl_route_find(a->path);
  if (!host_allowed(e->o, a->host))
    return fl_api_error_set(
        f, 403, "host_not_allowed", NULL,
        "the Host header names %.200s, which this server does not answer to; see --allow-host",
        a->host != NULL ? a->host : "nothing");
  if (!origin_allowed(e->o, a, reply))
    return fl_api_error_set(f, 403, "origin_not_allowed", NULL,
                            "pages of %.200s may not ask this server; see --cors-origin",
                            a->origin);
  if (strcmp(a->method, "OPTIONS") == 0) {
    reply->status = 204;
    return FL_EINPUT;
  }
  *key = key_of(e, a);
  if (*key < 0 && (r == NULL || !r->open))
    return fl_api_error_set(
        f, 401, "invalid_api_key", NULL,
        "a valid API key is needed, as Authorization: Bearer KEY or x-api-key: KEY");
  if (r == NULL)
    return fl_api_error_set(f, 404, "not_found", NULL, "there is nothing at %.200s", a->path);
  const bool head = strcmp(a->method, "HEAD") == 0 && strcmp(r->method, "GET") == 0;
  if (strcmp(a->method, r->method) != 0 && !head) {
    reply->allow = r->method;
    return fl_api_error_set(f, 405, "method_not_allowed", NULL, "%.200s takes %s", a->path,
                            r->method);
  }
  if (atomic_load(&e->stopping) && !r->open)
    return fl_api_error_set(f, 503, "unavailable", NULL, "the server is stopping");
  return FL_OK;
}

bool fl_route_admit(fl_http *e, const fl_http_request *a, fl_http_reply *reply, int *key) {
  fl_api_error f = { 0 };
  if (admit(e, a, reply, key, &f) == FL_OK) return true;
  if (f.status != 0) fl_route_error(reply, &f, fl_route_family(a->path), a->id);
  return false;
}

/* --- answers --- */

static int parse(fl_http *e, const fl_http_request *a, const fl_protocol *d, fl_response *t,
                 fl_api_error *f) {
  fl_json *body = NULL;
  fl_err err = { 0 };
  if (fl_json_parse(&body, a->body != NULL ? a->body : "", a->len, &err) != FL_OK)
    return err.code == FL_EINPUT
               ? fl_api_refuse(f, "invalid_json", NULL, "the body is no JSON: %s", err.text)
               : fl_api_error_from(f, &err);
  fl_request_init(&t->request, body, &e->o->defaults);
  if (!fl_json_is_obj(body)) return fl_api_refuse(f, NULL, NULL, "the body has to be an object");
  int rc = d->parse(&t->request, f);
  if (rc == FL_OK) rc = fl_request_extension(&t->request, f);
  const int named = fl_request_conversation(&t->request, a->conversation, f);
  if (rc == FL_OK) rc = named;
  return rc == FL_OK ? fl_request_finish(&t->request, &e->o->defaults, f) : rc;
}

/* Waits for the end, or in a stream until it is known that there will be one. */
static void await_answer(fl_http *e, const fl_http_request *a, fl_response *t,
                         fl_http_reply *reply) {
  fl_wait w = FL_WAIT_EVENTS;
  while (!t->ended && w != FL_WAIT_GONE) {
    w = fl_response_advance(t, a->client, e->stop_fd, e->o->heartbeat_s);
    if (t->request.stream && (t->told.started || w == FL_WAIT_TIME)) break;
  }
  reply->gone = w == FL_WAIT_GONE;
}

static void answer(fl_http *e, const fl_http_request *a, int key, const fl_protocol *d,
                   fl_http_reply *reply) {
  fl_api_error f = { 0 };
  fl_response *t = fl_calloc(1, sizeof *t);
  if (t == NULL) {
    fl_api_error_set(&f, 503, "unavailable", NULL, "not enough memory for the request");
    fl_route_error(reply, &f, d->family, a->id);
    return;
  }
  t->protocol = d;
  t->chat = &t->request.chat;
  t->model = e->o->model_name;
  t->created = (uint64_t)fl_wall_s();
  memcpy(t->id, a->id, sizeof t->id);
  reply->response = t;
  int rc = parse(e, a, d, t, &f);
  const uint32_t owner = e->keys != NULL ? fl_keys_owner(e->keys, key) : 0;
  if (rc == FL_OK) rc = fl_response_start(t, e->engine, owner, a->number, e->o->unread, &f);
  if (rc == FL_OK) await_answer(e, a, t, reply);
  if (rc == FL_OK && reply->gone) return;
  if (rc == FL_OK && t->error.status != 0) f = t->error;
  if (f.status != 0) {
    fl_route_error(reply, &f, d->family, a->id);
  } else if (t->request.stream) {
    reply->status = 200;
    reply->type = "text/event-stream";
    fl_response_stream(t);
  } else {
    reply->status = 200;
    reply->type = JSON;
    d->whole(t);
    reply->body = t->out;
    t->out = (fl_buf){ 0 };
  }
}

static const char *model_id(const char *path) {
  path = without_version(path);
  return strncmp(path, "/models/", 8) == 0 ? path + 8 : NULL;
}

void fl_route_answer(fl_http *e, const fl_http_request *a, int key, fl_http_reply *reply) {
  const fl_route *r = fl_route_find(a->path);
  fl_api_error f = { 0 };
  int rc = FL_OK;
  reply->status = 200;
  reply->type = JSON;
  switch (r->kind) {
  case ANSWER: answer(e, a, key, r->protocol, reply); break;
  case EMBEDDINGS: rc = fl_api_embeddings(e, a, &reply->body, &f); break;
  case MODELS: rc = fl_api_models(e, model_id(a->path), &reply->body, &f); break;
  case HEALTH:
    fl_api_health(e, &reply->body);
    if (atomic_load(&e->stopping)) reply->status = 503;
    break;
  case METRICS:
    reply->type = "text/plain; version=0.0.4; charset=utf-8";
    fl_prometheus(e, &reply->body);
    break;
  }
  if (rc == FL_OK && reply->body.oom)
    rc = fl_api_error_set(&f, 503, "unavailable", NULL, "not enough memory for the reply");
  if (f.status == 499) reply->gone = true;
  if (rc != FL_OK) fl_route_error(reply, &f, FL_API_OPENAI, a->id);
}

/* --- afterwards --- */

static void add_us(atomic_ullong *to, double seconds) {
  if (seconds > 0) atomic_fetch_add(to, (unsigned long long)(seconds * 1e6));
}

static void put_documents(fl_event *ev, const fl_response *t) {
  fl_jsonw_open(&ev->text, "docs", '[');
  for (size_t i = 0; i < t->told.start.n_docs; i++)
    fl_jsonw_str(&ev->text, NULL, t->told.start.docs[i].name);
  fl_jsonw_close(&ev->text, ']');
}

static void put_answer(fl_event *ev, const fl_response *t) {
  if (t->chat->conversation != NULL) fl_event_str(ev, "conv", t->chat->conversation);
  fl_event_int(ev, "prompt_tokens", (int64_t)t->told.start.prompt_tokens);
  fl_event_int(ev, "cached_tokens", (int64_t)t->told.start.cached_tokens);
  fl_event_int(ev, "completion_tokens", (int64_t)t->told.end.completion_tokens);
  fl_event_int(ev, "rows", (int64_t)t->told.start.rows);
  put_documents(ev, t);
  fl_event_num(ev, "queue_s", t->told.start.queue_s);
  fl_event_num(ev, "ttft_s", t->told.end.ttft_s);
  fl_event_int(ev, "drafted", (int64_t)t->told.end.drafted);
  fl_event_int(ev, "accepted", (int64_t)t->told.end.accepted);
  fl_event_bool(ev, "stream", t->request.stream);
}

void fl_route_done(fl_http *e, const fl_http_request *a, int status, const fl_response *t,
                   double seconds) {
  const fl_route *r = fl_route_find(a->path);
  const size_t at = fl_route_index(r);
  fl_event ev;
  const int class = status / 100 < 6 ? status / 100 : 5;
  atomic_fetch_add(&e->tallies.replies[at][class], 1);
  if (r != NULL && (r->kind == HEALTH || r->kind == METRICS)) return; /* polled all the time */
  if (t != NULL && t->ended && t->error.status == 0 && status == 200) {
    atomic_fetch_add(&e->tallies.answers, 1);
    add_us(&e->tallies.seconds_us, seconds);
    add_us(&e->tallies.ttft_us, t->told.end.ttft_s);
    add_us(&e->tallies.queue_us, t->told.start.queue_s);
  }
  fl_event_begin(&ev, "request");
  fl_event_str(&ev, "id", a->id);
  fl_event_str(&ev, "route", fl_route_name(at));
  fl_event_int(&ev, "status", status);
  if (t != NULL) put_answer(&ev, t);
  fl_event_num(&ev, "seconds", seconds);
  if (t != NULL && t->ended)
    fl_event_str(&ev, "finish", t->error.status != 0 ? "error" : fl_response_finish(t));
  if (t != NULL && t->error.status != 0) fl_event_str(&ev, "error", t->error.message);
  fl_event_emit(e->log, &ev);
}
