/* http.c - see server.h. The only file that knows libmicrohttpd.
 *
 * An exchange is one request and its reply on a connection:
 *   head read -> admitted or refused -> body gathered (or swallowed) -> answered -> completed
 * A refused one still has its body read, up to a limit: closing with unread bytes would reset the
 * connection before the client has seen why.
 */
#include <errno.h>
#include <math.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/conns.h"
#include "http/listen.h"
#include "http/route.h"

enum {
  SPARE_CONNS = 32,   /* beyond the limit, to be told so */
  CONN_REPLIES = 100, /* on a connection */
  SWALLOW = 64 << 20, /* bytes of a refused body, beyond those allowed */
  THREAD_STACK = 1 << 20,
  STREAM_BLOCK = 16384,
  FLUSH_S = 5 /* at the stop, for replies to reach their clients */
};

struct fl_server {
  fl_server_options o;
  fl_http shared;
  fl_conns *conns;
  struct MHD_Daemon *daemon;
  uint16_t port;
  uint64_t run; /* in ids of requests: tells two runs apart */
  atomic_size_t exchanges;
};

typedef struct exchange {
  fl_server *s;
  fl_conn *conn;
  fl_http_request request;
  fl_http_reply reply;
  fl_buf body;
  size_t seen; /* bytes of body */
  int key;
  bool refused, counted, sent;
  double began;
} exchange;

/* --- replies --- */

static void add_headers(struct MHD_Response *r, const exchange *x) {
  char text[64];
  const fl_http_reply *reply = &x->reply;
  MHD_add_response_header(r, "X-Request-Id", x->request.id);
  MHD_add_response_header(r, "Request-Id", x->request.id);
  MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(r, "Cache-Control", "no-store");
  if (reply->type != NULL) MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, reply->type);
  if (reply->allow != NULL) MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, reply->allow);
  if (reply->status == 401) MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
  if (reply->status == 429 || reply->status == 503) {
    snprintf(text, sizeof text, "%.0f", ceil(fmin(fmax(reply->retry_after_s, 1), 600)));
    MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, text);
  }
  if (reply->cors != NULL) {
    MHD_add_response_header(r, "Access-Control-Allow-Origin", reply->cors);
    MHD_add_response_header(r, "Vary", "Origin");
  }
  if (reply->cors != NULL && reply->status == 204) {
    MHD_add_response_header(r, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    MHD_add_response_header(r, "Access-Control-Allow-Headers",
                            "*, Authorization, X-Api-Key, Content-Type, X-Conversation-Id");
    MHD_add_response_header(r, "Access-Control-Max-Age", "600");
  }
  /* The C library keeps freed blocks for each thread, of all the sizes that it ever had: a thread
   * that goes now and then gives them back. */
  const bool last = fl_conn_count(x->conn) >= CONN_REPLIES;
  if (last || reply->close || atomic_load(&x->s->shared.stopping))
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
}

/* The next bytes of a stream; waits for them. */
static ssize_t next_bytes(void *cls, uint64_t pos, char *buf, size_t max) {
  exchange *x = cls;
  fl_response *t = x->reply.response;
  const fl_server_options *o = &x->s->o;
  (void)pos;
  fl_conns_phase(x->s->conns, x->conn, 0);
  while (t->out_at == t->out.len) {
    fl_buf_reset(&t->out);
    t->out_at = 0;
    if (t->ended)
      return t->out.oom ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    if (fl_response_advance(t, x->request.client, x->s->shared.stop_fd, o->heartbeat_s) ==
        FL_WAIT_GONE)
      return MHD_CONTENT_READER_END_WITH_ERROR;
  }
  const size_t left = t->out.len - t->out_at, n = left < max ? left : max;
  memcpy(buf, t->out.data + t->out_at, n);
  t->out_at += n;
  fl_conns_phase(x->s->conns, x->conn, o->write_s);
  return (ssize_t)n;
}

static enum MHD_Result send_reply(struct MHD_Connection *c, exchange *x) {
  fl_http_reply *reply = &x->reply;
  struct MHD_Response *r;
  if (reply->gone) return MHD_NO;
  if (reply->response != NULL && reply->response->streaming) {
    r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, next_bytes, x, NULL);
  } else {
    r = MHD_create_response_from_buffer(reply->body.len,
                                        reply->body.data != NULL ? reply->body.data : "",
                                        MHD_RESPMEM_PERSISTENT); /* lives as long as x */
  }
  if (r == NULL) return MHD_NO;
  add_headers(r, x);
  fl_conns_phase(x->s->conns, x->conn, x->s->o.write_s);
  const enum MHD_Result rc = MHD_queue_response(c, (unsigned)reply->status, r);
  MHD_destroy_response(r);
  x->sent = rc == MHD_YES;
  return rc;
}

static void refuse(exchange *x, int status, const char *code, const char *text) {
  fl_api_error f = { 0 };
  fl_api_error_set(&f, status, code, NULL, "%s", text);
  fl_route_error(&x->reply, &f, fl_route_family(x->request.path), x->request.id);
  x->refused = true;
  x->reply.close = true;
}

/* --- requests --- */

static const char *header(struct MHD_Connection *c, const char *name) {
  return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static fl_conn *conn_of(struct MHD_Connection *c) {
  const union MHD_ConnectionInfo *i =
      MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return i != NULL ? i->socket_context : NULL;
}

static bool declared_too_long(const exchange *x, struct MHD_Connection *c) {
  const char *s = header(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
  unsigned long long n = 0;
  return s != NULL && sscanf(s, "%llu", &n) == 1 && n > x->s->o.max_body;
}

static exchange *begin(fl_server *s, struct MHD_Connection *c, const char *url,
                       const char *method) {
  exchange *x = fl_calloc(1, sizeof *x);
  if (x == NULL) return NULL;
  x->s = s;
  x->conn = conn_of(c);
  x->began = fl_now_s();
  x->request = (fl_http_request){ .method = method,
                                  .path = url,
                                  .host = header(c, "Host"),
                                  .origin = header(c, "Origin"),
                                  .authorization = header(c, "Authorization"),
                                  .x_api_key = header(c, "X-Api-Key"),
                                  .conversation = header(c, "X-Conversation-Id"),
                                  .client = fl_conn_fd(x->conn),
                                  .number = atomic_fetch_add(&s->shared.requests, 1) };
  snprintf(x->request.id, sizeof x->request.id, "%08llx%06llx",
           (unsigned long long)s->run & 0xffffffffu, (unsigned long long)x->request.number);
  atomic_fetch_add(&s->exchanges, 1);
  fl_conns_phase(s->conns, x->conn, s->o.body_s);
  if (fl_conn_surplus(x->conn)) {
    refuse(x, 503, "unavailable", "too many connections; try again later");
  } else if (!fl_route_admit(&s->shared, &x->request, &x->reply, &x->key)) {
    x->refused = true;
  } else if (declared_too_long(x, c)) {
    refuse(x, 413, "request_too_large",
           "the body is longer than this server takes; see --max-body");
  }
  return x;
}

/* False: it goes on for too long and the connection is to be dropped. */
static bool gather(exchange *x, const char *data, size_t n) {
  x->seen += n;
  if (x->refused) return x->seen <= SWALLOW + x->s->o.max_body;
  if (x->seen > x->s->o.max_body) {
    fl_buf_release(&x->body);
    refuse(x, 413, "request_too_large",
           "the body is longer than this server takes; see --max-body");
    return true;
  }
  fl_buf_append(&x->body, data, n);
  return true;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **con_cls) {
  exchange *x = *con_cls;
  (void)version;
  if (x == NULL) {
    x = *con_cls = begin(cls, c, url, method);
    if (x == NULL) return MHD_NO;
    const char *expect = header(c, "Expect"); /* the body is not on its way: say no at once */
    return x->refused && expect != NULL ? send_reply(c, x) : MHD_YES;
  }
  if (*size > 0) {
    const bool go_on = gather(x, data, *size);
    *size = 0;
    return go_on ? MHD_YES : MHD_NO;
  }
  if (x->sent) return MHD_YES;
  fl_conns_phase(x->s->conns, x->conn, 0);
  if (!x->refused && x->body.oom)
    refuse(x, 503, "unavailable", "not enough memory for the request");
  if (!x->refused) {
    x->request.body = x->body.data;
    x->request.len = x->body.len;
    fl_route_answer(&x->s->shared, &x->request, x->key, &x->reply);
    x->counted = x->reply.response != NULL && x->reply.response->streaming;
    if (x->counted) atomic_fetch_add(&x->s->shared.tallies.streams, 1);
  }
  return send_reply(c, x);
}

enum { STATUS_GONE = 499 }; /* nobody was there to be answered */

static void on_completed(void *cls, struct MHD_Connection *c, void **con_cls,
                         enum MHD_RequestTerminationCode how) {
  exchange *x = *con_cls;
  fl_server *s = cls;
  (void)c;
  if (x == NULL) return;
  const bool whole = how == MHD_REQUEST_TERMINATED_COMPLETED_OK && !x->reply.gone;
  fl_route_done(&s->shared, &x->request, whole ? x->reply.status : STATUS_GONE, x->reply.response,
                fl_now_s() - x->began);
  if (x->counted) atomic_fetch_sub(&s->shared.tallies.streams, 1);
  if (x->reply.response != NULL) {
    fl_response_release(x->reply.response);
    fl_free(x->reply.response);
  }
  fl_buf_release(&x->reply.body);
  fl_buf_release(&x->body);
  fl_conns_phase(s->conns, x->conn, s->o.head_s);
  fl_free(x);
  *con_cls = NULL;
  atomic_fetch_sub(&s->exchanges, 1);
}

static void on_connection(void *cls, struct MHD_Connection *c, void **context,
                          enum MHD_ConnectionNotificationCode what) {
  fl_server *s = cls;
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    const size_t before = atomic_fetch_add(&s->shared.tallies.connections, 1);
    *context =
        i != NULL ? fl_conns_add(s->conns, i->connect_fd, before >= s->o.conns, s->o.head_s) : NULL;
  } else {
    fl_conns_remove(s->conns, *context);
    *context = NULL;
    atomic_fetch_sub(&s->shared.tallies.connections, 1);
  }
}

__attribute__((format(printf, 2, 0))) static void on_log(void *cls, const char *fmt, va_list ap) {
  char text[512];
  (void)cls;
  vsnprintf(text, sizeof text, fmt, ap);
  text[strcspn(text, "\n")] = '\0';
  fl_debug("http: %s", text);
}

/* --- start and stop --- */

void fl_server_options_default(fl_server_options *o) {
  *o = (fl_server_options){ .host = "127.0.0.1",
                            .port = 8080,
                            .conns = 256,
                            .max_head = 32768,
                            .max_body = 8u << 20,
                            .head_s = 30,
                            .body_s = 60,
                            .write_s = 30,
                            .heartbeat_s = 10,
                            .unread = 1u << 20,
                            .model_name = "flotilla",
                            .defaults = { .sampling = FL_SAMPLING_GREEDY, .max_new = 1024 } };
}

static void server_free(fl_server *s) {
  if (s->conns != NULL) fl_conns_stop(s->conns);
  if (s->shared.keys != NULL) fl_keys_close(s->shared.keys);
  if (s->shared.stop_fd >= 0) close(s->shared.stop_fd);
  fl_free(s);
}

static int start_daemon(fl_server *s, int fd, fl_err *err) {
  s->daemon = MHD_start_daemon(
      MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC |
          MHD_USE_ERROR_LOG,
      0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
      MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
      (unsigned)(s->o.conns + SPARE_CONNS), MHD_OPTION_CONNECTION_MEMORY_LIMIT, s->o.max_head,
      MHD_OPTION_CONNECTION_TIMEOUT, 0u, /* conns.h watches */
      MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
      s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
  if (s->daemon != NULL) return FL_OK;
  return fl_fail(err, FL_EFAIL, "the HTTP server cannot start: %s", strerror(errno));
}

int fl_server_start(fl_server **out, fl_engine *e, const fl_model *model,
                    const fl_server_options *o, fl_events *log, fl_err *err) {
  int fd = -1, rc;
  fl_server *s = fl_calloc(1, sizeof *s);
  if (s == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for the server");
  s->o = *o;
  s->port = o->port;
  s->run = (uint64_t)(fl_wall_s() * 16) ^ (uint64_t)getpid() << 20;
  s->shared = (fl_http){ .engine = e,
                         .model = model,
                         .o = &s->o,
                         .log = log,
                         .started = (uint64_t)fl_wall_s(),
                         .d_model = fl_model_hparams(model)->d_model };
  s->shared.stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  rc = s->shared.stop_fd >= 0 ? FL_OK : fl_fail(err, FL_EFAIL, "the system gives no descriptor");
  if (rc == FL_OK && o->keys_file != NULL) rc = fl_keys_open(&s->shared.keys, o->keys_file, err);
  if (rc == FL_OK) rc = fl_conns_start(&s->conns, err);
  if (rc == FL_OK) rc = fl_listen(&fd, o->host, &s->port, err);
  if (rc == FL_OK) rc = start_daemon(s, fd, err);
  if (rc != FL_OK) {
    if (fd >= 0) close(fd);
    server_free(s);
    return rc;
  }
  *out = s;
  return FL_OK;
}

uint16_t fl_server_port(const fl_server *s) { return s->port; }

static void nap(void) {
  const struct timespec t = { .tv_nsec = 20000000 };
  nanosleep(&t, NULL);
}

static void wait_until_quiet(fl_server *s, double seconds_s) {
  const double until = fl_now_s() + seconds_s;
  while (atomic_load(&s->exchanges) > 0 && fl_now_s() < until) nap();
}

void fl_server_stop(fl_server *s, double grace_s) {
  const uint64_t one = 1;
  if (s == NULL) return;
  atomic_store(&s->shared.stopping, true);
  const int fd = MHD_quiesce_daemon(s->daemon);
  if (fd >= 0) close(fd);
  wait_until_quiet(s, grace_s);
  while (write(s->shared.stop_fd, &one, sizeof one) < 0 && errno == EINTR) {}
  wait_until_quiet(s, FLUSH_S);
  fl_conns_shut_all(s->conns);
  MHD_stop_daemon(s->daemon);
  server_free(s);
}
