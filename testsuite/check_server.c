/* check_server.c - a server on the embedded model, met over raw sockets: routes, who may ask,
 * limits, clients that dawdle, vanish or come in crowds, and the stop. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "http/server.h"
#include "scratch.h"
#include "suite.h"

enum { PATIENCE_MS = 20000 }; /* only a failure waits this long */

static fl_team *team;
static fl_model *model;
static fl_engine *engine;
static fl_server *server;
static fl_server_options options;
static fl_engine_options engine_options;

static void defaults(void) {
  fl_engine_options_default(&engine_options);
  engine_options.n_slots = 4;
  engine_options.max_bytes = (uint64_t)256 << 20;
  engine_options.reload_s = 0;
  fl_server_options_default(&options);
  options.port = 0;
  options.model_name = "tiny";
  options.defaults.tools = true;
}

static void up(void) {
  fl_err err = { 0 };
  ck_assert_msg(fl_team_new(&team, 2, &err) == FL_OK, "%s", err.text);
  ck_assert_msg(fl_model_open(&model, fixture("embedded/model.gguf"), NULL, team, &err) == FL_OK,
                "%s", err.text);
  ck_assert_msg(fl_engine_start(&engine, NULL, model, team, &engine_options, NULL, &err) == FL_OK,
                "%s", err.text);
  ck_assert_msg(fl_server_start(&server, engine, model, &options, NULL, &err) == FL_OK, "%s",
                err.text);
}

static void down(double grace_s) {
  fl_server_stop(server, grace_s);
  fl_engine_stop(engine, 0);
  fl_model_close(model);
  fl_team_free(team);
}

/* --- a client --- */

static int dial(void) {
  struct sockaddr_in a = { .sin_family = AF_INET,
                           .sin_port = htons(fl_server_port(server)),
                           .sin_addr = { htonl(INADDR_LOOPBACK) } };
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
  return fd;
}

static void put(int fd, const char *s, size_t len) {
  while (len > 0) {
    const ssize_t n = send(fd, s, len, MSG_NOSIGNAL);
    if (n <= 0) return; /* the server may close first */
    s += n;
    len -= (size_t)n;
  }
}

/* Reads until the server closes, or until `until` has come. False: neither within patience. */
static bool get(int fd, fl_buf *out, const char *until) {
  char block[4096];
  for (;;) {
    struct pollfd p = { .fd = fd, .events = POLLIN };
    if (until != NULL && out->data != NULL && strstr(out->data, until) != NULL) return true;
    if (poll(&p, 1, PATIENCE_MS) <= 0) return false;
    const ssize_t n = recv(fd, block, sizeof block, 0);
    if (n <= 0) return until == NULL;
    fl_buf_append(out, block, (size_t)n);
  }
}

static void send_request(int fd, const char *method, const char *path, const char *headers,
                         const char *body) {
  fl_buf b = { 0 };
  fl_buf_printf(&b, "%s %s HTTP/1.1\r\nConnection: close\r\n%s", method, path, headers);
  if (strcasestr(headers, "host:") == NULL) fl_buf_puts(&b, "Host: localhost\r\n");
  if (body != NULL) fl_buf_printf(&b, "Content-Length: %zu\r\n", strlen(body));
  fl_buf_printf(&b, "\r\n%s", body != NULL ? body : "");
  put(fd, b.data, b.len);
  fl_buf_release(&b);
}

/* One request on a connection of its own; the whole reply in *out. The status. */
static int ask(const char *method, const char *path, const char *headers, const char *body,
               fl_buf *out) {
  const int fd = dial();
  int status = 0;
  fl_buf_reset(out);
  send_request(fd, method, path, headers, body);
  ck_assert(get(fd, out, NULL));
  close(fd);
  if (out->data != NULL) (void)sscanf(out->data, "HTTP/1.1 %d", &status);
  return status;
}

static bool has(const fl_buf *b, const char *s) { return strstr(b->data, s) != NULL; }

#define QUESTION                                                                                   \
  "{\"messages\":[{\"role\":\"user\",\"content\":\"Who is there?\"}],\"max_tokens\":8"

/* Polls the engine's counts; no time is assumed, only that it happens. */
static bool eventually(bool (*holds)(const fl_engine_stats *s)) {
  const struct timespec nap = { .tv_nsec = 2000000 };
  const double until = fl_now_s() + PATIENCE_MS / 1e3;
  fl_engine_stats s;
  do {
    fl_engine_stats_get(engine, &s);
    if (holds(&s)) return true;
    nanosleep(&nap, NULL);
  } while (fl_now_s() < until);
  return false;
}

/* --- tests --- */

START_TEST(routes) {
  fl_buf b = { 0 };
  defaults();
  up();
  ck_assert_int_eq(ask("GET", "/health", "", NULL, &b), 200);
  ck_assert(has(&b, "\"status\":\"ok\""));
  ck_assert_int_eq(ask("HEAD", "/health", "", NULL, &b), 200);
  ck_assert_int_eq(ask("GET", "/v1/models?x=1", "", NULL, &b), 200);
  ck_assert(has(&b, "\"id\":\"tiny\"") && has(&b, "X-Request-Id: "));
  ck_assert_int_eq(ask("GET", "/models/tiny", "", NULL, &b), 200);
  ck_assert_int_eq(ask("GET", "/v1/models/other", "", NULL, &b), 404);
  ck_assert(has(&b, "model_not_found"));
  ck_assert_int_eq(ask("GET", "/v1/nothing", "", NULL, &b), 404);
  ck_assert_int_eq(ask("GET", "/v1/../etc/passwd", "", NULL, &b), 404);
  ck_assert_int_eq(ask("POST", "/v1/messages/count_tokens", "", "{}", &b), 404);
  ck_assert(has(&b, "{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\""));
  ck_assert_int_eq(ask("GET", "/v1/chat/completions", "", NULL, &b), 405);
  ck_assert(has(&b, "Allow: POST"));
  ck_assert_int_eq(ask("POST", "/v1/chat/completions", "", QUESTION "}", &b), 200);
  ck_assert(has(&b, "\"object\":\"chat.completion\""));
  ck_assert_int_eq(ask("POST", "/chat/completions", "", QUESTION ",\"stream\":true}", &b), 200);
  ck_assert(has(&b, "text/event-stream") && has(&b, "data: [DONE]"));
  ck_assert_int_eq(ask("POST", "/v1/chat/completions", "", "{", &b), 400);
  ck_assert(has(&b, "\"type\":\"invalid_request_error\""));
  ck_assert_int_eq(ask("POST", "/v1/chat/completions", "", "[]", &b), 400);
  ck_assert_int_eq(ask("POST", "/v1/chat/completions", "", "", &b), 400);
  ck_assert_int_eq(ask("POST", "/v1/embeddings", "", "{\"input\":[\"a\",\"b\"]}", &b), 200);
  ck_assert(has(&b, "\"index\":1"));
  ck_assert_int_eq(ask("POST", "/v1/embeddings", "", "{\"input\":[[1,2]]}", &b), 400);
  ck_assert_int_eq(ask("POST", "/v1/chat/completions", "",
                       QUESTION ",\"flotilla\":{\"documents\":[\"x\"]}}", &b),
                   404);
  ck_assert_int_eq(ask("GET", "/metrics", "", NULL, &b), 200);
  ck_assert(has(&b, "flotilla_http_replies_total{route=\"chat\",status=\"4xx\"}"));
  down(5);
  fl_buf_release(&b);
}
END_TEST

START_TEST(who_may_ask) {
  static const char *const hosts[] = { "team.example" }, *const cors[] = { "https://a.example" };
  static const char keys[] = "the-first-key\nthe-second-key\n";
  fl_buf b = { 0 };
  defaults();
  scratch_put(scratch("keys"), keys, sizeof keys - 1);
  options.keys_file = scratch("keys");
  options.allow_hosts = hosts;
  options.n_allow_hosts = 1;
  options.cors = cors;
  options.n_cors = 1;
  up();
  ck_assert_int_eq(ask("GET", "/v1/models", "", NULL, &b), 401);
  ck_assert(has(&b, "WWW-Authenticate: Bearer") && has(&b, "invalid_api_key"));
  ck_assert_int_eq(ask("GET", "/v1/models", "Authorization: Bearer the-first-key\r\n", NULL, &b),
                   200);
  ck_assert_int_eq(ask("GET", "/v1/models", "X-Api-Key: the-second-key\r\n", NULL, &b), 200);
  ck_assert_int_eq(ask("GET", "/v1/models", "X-Api-Key: the-third-key\r\n", NULL, &b), 401);
  ck_assert_int_eq(ask("GET", "/metrics", "", NULL, &b), 401);
  ck_assert_int_eq(ask("GET", "/health", "", NULL, &b), 200);
  ck_assert_int_eq(ask("POST", "/v1/messages", "", "{}", &b), 401);
  ck_assert(has(&b, "{\"type\":\"error\",\"error\":{\"type\":\"authentication_error\""));
  ck_assert_int_eq(ask("GET", "/health", "Host: evil.example\r\n", NULL, &b), 403);
  ck_assert_int_eq(ask("GET", "/health", "Host: localhost.evil.example\r\n", NULL, &b), 403);
  ck_assert_int_eq(ask("GET", "/health", "Host: TEAM.example:8080\r\n", NULL, &b), 200);
  ck_assert_int_eq(ask("GET", "/health", "Host: [::1]:9\r\n", NULL, &b), 200);
  ck_assert_int_eq(ask("GET", "/health", "Origin: https://b.example\r\n", NULL, &b), 403);
  ck_assert_int_eq(ask("GET", "/health", "Origin: https://a.example\r\n", NULL, &b), 200);
  ck_assert(has(&b, "Access-Control-Allow-Origin: https://a.example"));
  ck_assert_int_eq(
      ask("OPTIONS", "/v1/chat/completions", "Origin: https://a.example\r\n", NULL, &b), 204);
  ck_assert(has(&b, "Access-Control-Allow-Headers"));
  ck_assert_int_eq(ask("OPTIONS", "/v1/chat/completions", "Origin: null\r\n", NULL, &b), 403);
  down(5);
  fl_buf_release(&b);
}
END_TEST

START_TEST(sizes) {
  fl_buf b = { 0 }, long_head = { 0 };
  char *body = fl_calloc(1, 5000);
  defaults();
  options.max_body = 4096;
  options.max_head = 8192;
  up();
  memset(body, ' ', 4999);
  ck_assert_int_eq(ask("POST", "/v1/chat/completions", "", body, &b), 413);
  ck_assert_int_eq(ask("POST", "/v1/messages", "", body, &b), 413);
  ck_assert(has(&b, "request_too_large"));
  ck_assert_int_eq(ask("POST", "/v1/chat/completions", "Expect: 100-continue\r\n", body, &b), 413);
  const int fd = dial(); /* nothing is declared, the body just goes on */
  send_request(fd, "POST", "/v1/chat/completions", "Transfer-Encoding: chunked\r\n", NULL);
  for (int i = 0; i < 3; i++) {
    put(fd, "7d0\r\n", 5);
    put(fd, body, 2000);
    put(fd, "\r\n", 2);
  }
  put(fd, "0\r\n\r\n", 5);
  fl_buf_reset(&b);
  ck_assert(get(fd, &b, NULL));
  ck_assert(has(&b, "HTTP/1.1 413"));
  close(fd);
  fl_buf_puts(&long_head, "X-Long: ");
  for (int i = 0; i < 9000; i++) fl_buf_putc(&long_head, 'x');
  fl_buf_puts(&long_head, "\r\n");
  const int status = ask("GET", "/health", long_head.data, NULL, &b);
  ck_assert(status == 431 || status == 0); /* refused, or closed on what was never read */
  ck_assert_int_eq(ask("GET", "/health", "", NULL, &b), 200);
  down(5);
  fl_buf_release(&long_head);
  fl_buf_release(&b);
  fl_free(body);
}
END_TEST

/* Half a head, half a body, no head at all: each is cut off by its deadline, others are served. */
START_TEST(dawdlers) {
  static const char *const begun[] = {
    "", "GET /health HTTP/1.1\r\nHost: local",
    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"mess"
  };
  fl_buf b = { 0 };
  int fd[3];
  defaults();
  options.head_s = 0.2;
  options.body_s = 0.2;
  up();
  for (int i = 0; i < 3; i++) {
    fd[i] = dial();
    put(fd[i], begun[i], strlen(begun[i]));
  }
  ck_assert_int_eq(ask("GET", "/health", "", NULL, &b), 200);
  for (int i = 0; i < 3; i++) {
    fl_buf_reset(&b);
    ck_assert_msg(get(fd[i], &b, NULL), "number %d was not cut off", i);
    close(fd[i]);
  }
  down(5);
  fl_buf_release(&b);
}
END_TEST

static bool one_cancelled(const fl_engine_stats *s) {
  return s->jobs_cancelled >= 1 && s->slots_busy == 0;
}

/* The answer would go on for as long as the context lasts. */
#define LONG                                                                                       \
  "{\"messages\":[{\"role\":\"user\",\"content\":\"Tell a long story\"}],\"max_tokens\":1000000,"  \
  "\"temperature\":2,\"min_p\":0,\"stream\":true,\"seed\":"

START_TEST(vanished) {
  fl_buf b = { 0 };
  defaults();
  engine_options.n_slots = 1;
  up();
  /* A sampled answer may end by itself: until one was caught in the middle. */
  for (int i = 0; i < 50; i++) {
    char body[256];
    fl_engine_stats s;
    snprintf(body, sizeof body, LONG "%d}", i);
    const int fd = dial();
    send_request(fd, "POST", "/v1/chat/completions", "", body);
    fl_buf_reset(&b);
    ck_assert(get(fd, &b, "delta"));
    close(fd);
    fl_engine_stats_get(engine, &s);
    if (s.jobs_cancelled > 0 || s.slots_busy > 0) break;
  }
  ck_assert(eventually(one_cancelled));
  ck_assert_int_eq(ask("GET", "/health", "", NULL, &b), 200);
  down(5);
  fl_buf_release(&b);
}
END_TEST

/* More than slots and queue hold, all at once: every reply is 200 or 429, none is lost, and the
 * refused ones are told when to come again. */
START_TEST(crowd) {
  enum { CROWD = 24 };
  int fd[CROWD], ok = 0, full = 0;
  defaults();
  engine_options.n_slots = 1;
  engine_options.queue = 1;
  up();
  for (int i = 0; i < CROWD; i++) fd[i] = dial();
  for (int i = 0; i < CROWD; i++) {
    char body[256];
    snprintf(body, sizeof body, LONG "%d}", i);
    send_request(fd[i], "POST", "/v1/chat/completions", "", body);
  }
  for (int i = 0; i < CROWD; i++) {
    fl_buf b = { 0 };
    ck_assert(get(fd[i], &b, NULL));
    close(fd[i]);
    if (has(&b, "HTTP/1.1 200") && has(&b, "data: [DONE]")) ok++;
    if (has(&b, "HTTP/1.1 429") && has(&b, "Retry-After: ") && has(&b, "rate_limit_exceeded"))
      full++;
    fl_buf_release(&b);
  }
  ck_assert_int_eq(ok + full, CROWD);
  ck_assert_int_ge(ok, 1);
  ck_assert_int_ge(full, 1);
  down(5);
}
END_TEST

START_TEST(connections) {
  static const char kept[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
  fl_buf b = { 0 };
  int fd[4];
  defaults();
  options.conns = 4;
  up();
  for (int i = 0; i < 4; i++) {
    fd[i] = dial();
    put(fd[i], kept, sizeof kept - 1);
    fl_buf_reset(&b);
    ck_assert(get(fd[i], &b, "queue_depth"));
  }
  ck_assert_int_eq(ask("GET", "/health", "", NULL, &b), 503);
  ck_assert(has(&b, "Retry-After"));
  put(fd[0], kept, sizeof kept - 1); /* those that are in are served on */
  fl_buf_reset(&b);
  ck_assert(get(fd[0], &b, "queue_depth"));
  ck_assert(has(&b, "HTTP/1.1 200"));
  for (int i = 0; i < 4; i++) close(fd[i]);
  down(5);
  fl_buf_release(&b);
}
END_TEST

/* All at once on one connection: the hundredth reply is the last, and says so. */
START_TEST(a_hundred_replies) {
  static const char one[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
  fl_buf b = { 0 }, all = { 0 };
  size_t replies = 0;
  defaults();
  up();
  const int fd = dial();
  for (int i = 0; i < 100; i++) fl_buf_puts(&all, one);
  put(fd, all.data, all.len);
  ck_assert(get(fd, &b, NULL));
  close(fd);
  const char *last = b.data;
  for (const char *at = b.data; (at = strstr(at, "HTTP/1.1 200")) != NULL; at++) {
    last = at;
    replies++;
  }
  ck_assert_uint_eq(replies, 100);
  const char *said = strcasestr(b.data, "connection: close");
  ck_assert_ptr_nonnull(said);
  ck_assert(said > last);
  down(5);
  fl_buf_release(&b);
  fl_buf_release(&all);
}
END_TEST

/* At the stop a running stream ends with a frame that says so, and new requests find nobody. */
START_TEST(stops_in_the_middle) {
  fl_buf b = { 0 };
  defaults();
  up();
  const int idle = dial();
  const int fd = dial();
  send_request(fd, "POST", "/v1/messages", "",
               "{\"model\":\"m\",\"max_tokens\":1000000,\"stream\":true,\"temperature\":1,"
               "\"messages\":[{\"role\":\"user\",\"content\":\"Tell a long story\"}]}");
  ck_assert(get(fd, &b, "message_start"));
  down(0);
  ck_assert(get(fd, &b, NULL));
  ck_assert(has(&b, "message_stop") || has(&b, "overloaded_error"));
  close(fd);
  fl_buf_reset(&b);
  ck_assert(get(idle, &b, NULL));
  close(idle);
  fl_buf_release(&b);
}
END_TEST

START_TEST(refuses_to_start) {
  fl_server *second = NULL;
  fl_err err = { 0 };
  defaults();
  up();
  options.port = fl_server_port(server);
  ck_assert_int_eq(fl_server_start(&second, engine, model, &options, NULL, &err), FL_EFAIL);
  ck_assert_ptr_nonnull(strstr(err.text, "--port"));
  options.host = "no.such.host.invalid";
  err = (fl_err){ 0 };
  ck_assert_int_eq(fl_server_start(&second, engine, model, &options, NULL, &err), FL_EUSAGE);
  options.keys_file = "/nonexistent/keys";
  err = (fl_err){ 0 };
  ck_assert_int_eq(fl_server_start(&second, engine, model, &options, NULL, &err), FL_ENOENT);
  ck_assert_ptr_null(second);
  down(0);
}
END_TEST

Suite *suite_server(void) {
  Suite *s = suite_create("server");
  TCase *t = tcase_create("server");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, scratch_begin, scratch_end);
  tcase_add_test(t, routes);
  tcase_add_test(t, who_may_ask);
  tcase_add_test(t, sizes);
  tcase_add_test(t, dawdlers);
  tcase_add_test(t, vanished);
  tcase_add_test(t, crowd);
  tcase_add_test(t, connections);
  tcase_add_test(t, a_hundred_replies);
  tcase_add_test(t, stops_in_the_middle);
  tcase_add_test(t, refuses_to_start);
  suite_add_tcase(s, t);
  return s;
}
