/* cmd_serve.c - serve: the HTTP server on a fleet, or on a bare model. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "commands/command.h"
#include "commands/runtime.h"
#include "cli/report.h"
#include "commands/sampling.h"
#include "commands/serve_control.h"
#include "cli/signals.h"
#include "cli/watchdog.h"
#include "http/server.h"

typedef struct serve_args {
  common_args common;
  engine_args engine;
  sampling_args sampling;
  retrieval_args retrieval;
  fl_engine_options serve;
  fl_server_options http;
  opt_list allow_hosts, cors;
  const char *name;
  size_t port;
  uint64_t max_head, max_body, log_bytes;
  double grace_s;
  bool no_speculate;
} serve_args;

enum {
  LOG_S = 5,             /* at the stop, for the disk to take the last events */
  STOP_S = 20,           /* beyond the grace, for everything to end */
  LOG_WAITING = 4 << 20, /* bytes of events that may wait for the disk */
  TRIM_S = 20            /* between looks at what the heaps hold for nothing */
};

static const opt_spec http_specs[] = {
  { .name = "host",
    .letter = 'H',
    .type = OPT_TEXT,
    .meta = "ADDRESS",
    .offset = offsetof(serve_args, http.host),
    .help = "address to listen on" },
  { .name = "port",
    .letter = 'p',
    .type = OPT_COUNT,
    .meta = "N",
    .min = 0,
    .max = 65535,
    .offset = offsetof(serve_args, port),
    .help = "port to listen on; 0: one that is free" },
  { .name = "keys",
    .letter = 'k',
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(serve_args, http.keys_file),
    .help = "API keys, one a line" },
  { .name = "allow-host",
    .type = OPT_LIST,
    .meta = "NAME",
    .offset = offsetof(serve_args, allow_hosts),
    .help = "a name beside the loopback ones that clients may call the server; repeatable" },
  { .name = "cors-origin",
    .type = OPT_LIST,
    .meta = "ORIGIN",
    .offset = offsetof(serve_args, cors),
    .help = "pages of this origin may ask; * for all; repeatable" },
  { .name = "name",
    .type = OPT_TEXT,
    .meta = "NAME",
    .offset = offsetof(serve_args, name),
    .help = "the model's name for clients" },
  { 0 }
};

static const opt_spec limit_specs[] = {
  { .name = "conns",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = 4096,
    .offset = offsetof(serve_args, http.conns),
    .help = "connections at once" },
  { .name = "queue",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = 4096,
    .offset = offsetof(serve_args, serve.queue),
    .help = "requests that may wait for a slot" },
  { .name = "max-head",
    .type = OPT_BYTES,
    .meta = "SIZE",
    .min = 4096,
    .max = 1 << 20,
    .offset = offsetof(serve_args, max_head),
    .help = "size of a request's head at most" },
  { .name = "max-body",
    .type = OPT_BYTES,
    .meta = "SIZE",
    .min = 1024,
    .max = 1 << 30,
    .offset = offsetof(serve_args, max_body),
    .help = "size of a request's body at most" },
  { .name = "head-time",
    .type = OPT_SECONDS,
    .meta = "TIME",
    .min = 0.1,
    .max = 3600,
    .offset = offsetof(serve_args, http.head_s),
    .help = "time for a request's head" },
  { .name = "body-time",
    .type = OPT_SECONDS,
    .meta = "TIME",
    .min = 0.1,
    .max = 3600,
    .offset = offsetof(serve_args, http.body_s),
    .help = "time for a request's body" },
  { .name = "write-time",
    .type = OPT_SECONDS,
    .meta = "TIME",
    .min = 0.1,
    .max = 3600,
    .offset = offsetof(serve_args, http.write_s),
    .help = "time for a client to take a piece of a reply" },
  { .name = "heartbeat",
    .type = OPT_SECONDS,
    .meta = "TIME",
    .min = 0.1,
    .max = 3600,
    .offset = offsetof(serve_args, http.heartbeat_s),
    .help = "silence in a stream that is filled with a comment" },
  { .name = "log-size",
    .type = OPT_BYTES,
    .meta = "SIZE",
    .min = 1 << 16,
    .max = 1e15,
    .offset = offsetof(serve_args, log_bytes),
    .help = "size at which the event log is put aside and the part before it dropped" },
  { .name = "grace",
    .type = OPT_SECONDS,
    .meta = "TIME",
    .min = 0,
    .max = 3600,
    .offset = offsetof(serve_args, grace_s),
    .help = "time for running answers when the server is asked to stop" },
  { 0 }
};

static const opt_spec serve_specs[] = {
  { .name = "slots",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = 64,
    .offset = offsetof(serve_args, serve.n_slots),
    .help = "conversations answered at once" },
  { .name = "ctx",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 0,
    .max = 1 << 24,
    .offset = offsetof(serve_args, serve.ctx),
    .help = "rows of a slot, cartridges included; 0: as the model" },
  { .name = "kv-bytes",
    .type = OPT_BYTES,
    .meta = "SIZE",
    .min = 0,
    .max = 1e15,
    .offset = offsetof(serve_args, serve.max_bytes),
    .help = "memory for keys and values; 0: half of what is free" },
  { .name = "spill-dir",
    .type = OPT_TEXT,
    .meta = "DIR",
    .offset = offsetof(serve_args, serve.spill_dir),
    .help = "folder for slots that are put out of memory" },
  { .name = "spill-files",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = 1e6,
    .offset = offsetof(serve_args, serve.spill_files),
    .help = "of them at most" },
  { .name = "no-speculate",
    .type = OPT_ON,
    .offset = offsetof(serve_args, no_speculate),
    .help = "no drafts; the answers are the same" },
  { .name = "reload",
    .type = OPT_SECONDS,
    .meta = "TIME",
    .min = 0,
    .max = 86400,
    .offset = offsetof(serve_args, serve.reload_s),
    .help = "how often to look for a new generation of the fleet; 0: when a file is missed" },
  { .name = "rag-adaptive",
    .type = OPT_ON,
    .offset = offsetof(serve_args, serve.adaptive),
    .help = "a follow-up may change the documents" },
  { .name = "rag-margin",
    .type = OPT_REAL,
    .meta = "X",
    .min = 0,
    .max = 2,
    .offset = offsetof(serve_args, serve.margin),
    .help = "by how much better others must score for that" },
  { .name = "thinking",
    .type = OPT_ON,
    .offset = offsetof(serve_args, http.defaults.thinking),
    .help = "let the model think where a request says nothing of it" },
  { 0 }
};

static const opt_group groups[] = {
  { "Network", http_specs, 0 },
  { "Limits", limit_specs, 0 },
  { "Serving", serve_specs, 0 },
  { "Model", engine_options, offsetof(serve_args, engine) },
  { "Retrieval", retrieval_specs, offsetof(serve_args, retrieval) },
  { "Generation, where a request says nothing", sampling_specs, offsetof(serve_args, sampling) },
  { "Common options", common_json_options, 0 },
  { 0 }
};

static void init(void *args) {
  serve_args *a = args;
  sampling_default(&a->sampling);
  retrieval_default(&a->retrieval);
  fl_engine_options_default(&a->serve);
  fl_server_options_default(&a->http);
  a->sampling.max_new = a->http.defaults.max_new;
  a->port = a->http.port;
  a->max_head = a->http.max_head;
  a->max_body = a->http.max_body;
  a->grace_s = 30;
  a->log_bytes = FL_EVENTS_PART_BYTES;
}

static void fill(serve_args *a, const fl_model *m, bool fleet) {
  fl_server_options *h = &a->http;
  fl_engine_options *s = &a->serve;
  h->port = (uint16_t)a->port;
  h->max_head = (size_t)a->max_head;
  h->max_body = (size_t)a->max_body;
  h->allow_hosts = a->allow_hosts.v;
  h->n_allow_hosts = a->allow_hosts.n;
  h->any_host = !fl_server_is_loopback(h->host) && a->allow_hosts.n == 0;
  h->cors = a->cors.v;
  h->n_cors = a->cors.n;
  h->model_name = a->name != NULL ? a->name : fl_model_name(m);
  h->fleet = fleet;
  h->defaults.sampling = a->sampling.sampling;
  h->defaults.max_new = a->sampling.max_new;
  h->defaults.seed = a->sampling.seed;
  h->defaults.tools = fl_model_template(m) == FL_TEMPLATE_CHATML;
  s->kv = (fl_kv_type)a->sampling.kv;
  s->rag = a->retrieval.rag;
  s->speculate = !a->no_speculate;
}

/* The address on standard output, so that a script can wait for the line and use it. */
static int announce(const serve_args *a, const fl_server *s, fl_err *err) {
  const char *host = a->http.host;
  const bool v6 = strchr(host, ':') != NULL;
  char *url = fl_asprintf("http://%s%s%s:%u/v1", v6 ? "[" : "", host, v6 ? "]" : "",
                          (unsigned)fl_server_port(s));
  int rc = FL_OK;
  if (url == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory");
  if (a->common.json) {
    fl_json *out = fl_json_object();
    fl_json_set_str(out, "url", url);
    fl_json_set_str(out, "model", a->http.model_name);
    rc = report_print(out, true, err);
    fl_json_free(out);
  } else {
    printf("%s\n", url);
  }
  fl_free(url);
  fflush(stdout);
  return rc;
}

static void warn_if_open(const serve_args *a) {
  if (a->http.keys_file == NULL && !fl_server_is_loopback(a->http.host))
    fl_warn("--host %s: everybody who reaches this address may ask; --keys FILE would change that",
            a->http.host);
}

/* Until a signal comes, or the control socket says so. */
static void wait_for_stop(serve_control *c) {
  const struct timespec t = { .tv_nsec = 100000000 };
  double trimmed = fl_now_s();
  bool stop = false;
  while (!signals_stop() && !stop) {
    if (c != NULL) stop = serve_control_poll(c, 100);
    else nanosleep(&t, NULL);
    if (fl_now_s() - trimmed < TRIM_S) continue;
    fl_mem_trim();
    trimmed = fl_now_s();
  }
}

static void log_end(fl_events *log, bool well, double seconds) {
  fl_event ev;
  fl_event_begin(&ev, "end");
  fl_event_str(&ev, "status", !well ? "error" : signals_stop() ? "signal" : "done");
  fl_event_int(&ev, "round", 0);
  fl_event_num(&ev, "seconds", seconds);
  fl_event_emit(log, &ev);
}

/* Requests wait for no disk, so what the log could not take by now is given up. */
static int drain(fl_events *log, const char *dir, fl_err *err) {
  const unsigned long long left = fl_events_drain(log, LOG_S);
  if (left == 0) return FL_OK;
  return fl_fail(err, FL_EFAIL,
                 "%s: its disk did not take the last %llu events within %d s, so "
                 "they are not in the event log; see whether it answers",
                 dir, left, LOG_S);
}

static int serve(serve_args *a, fl_engine *e, const fl_model *m, const char *dir, fl_events *log,
                 stop_guard **guard, fl_err *err) {
  const serve_control_options o = { .sampling = a->sampling.sampling,
                                    .max_new = a->sampling.max_new,
                                    .log = log };
  const double began = fl_now_s();
  serve_control *control = NULL;
  fl_server *s = NULL;
  int rc = fl_server_start(&s, e, m, &a->http, log, err);
  if (rc == FL_OK) rc = announce(a, s, err);
  if (rc == FL_OK) {
    warn_if_open(a);
    fl_info("serving %s", a->http.model_name);
    control = dir != NULL ? serve_control_open(dir, e, &o) : NULL;
    wait_for_stop(control);
    *guard = stop_guard_start(a->grace_s + STOP_S, log);
    serve_control_close(control);
    fl_info("stopping; running answers have %.0f s", a->grace_s);
  }
  if (s != NULL) fl_server_stop(s, a->grace_s);
  log_end(log, rc == FL_OK, fl_now_s() - began);
  const int drained = drain(log, dir, rc == FL_OK ? err : NULL);
  stop_guard_forget_log(*guard);
  return rc == FL_OK ? drained : rc;
}

/* From now on no request waits for the disk that the log is on. */
static int log_requests(fl_fleet *f, const char *dir, fl_err *err) {
  fl_events *log = fl_fleet_events(f);
  if (log == NULL) {
    fl_warn("%s: its event log cannot be written; requests are not noted", dir);
    return FL_OK;
  }
  const int rc = fl_events_behind(log, LOG_WAITING, err);
  if (rc == FL_OK) fl_fleet_log_run(f, "serve", 0);
  return rc;
}

static int run(const opt_parsed *p, fl_err *err) {
  serve_args *a = p->args;
  const char *dir = p->n_operands > 0 ? p->operand[0] : NULL;
  engine e = { 0 };
  fl_fleet *f = NULL;
  fl_engine *served = NULL;
  fl_events *log = NULL;
  stop_guard *guard = NULL;
  fl_open_options how = { .read_only = true, .log_events = true, .log_bytes = a->log_bytes };
  fl_mem_share_heaps();
  signals_catch();
  int rc = engine_open(&e, &a->engine, dir, err);
  if (rc == FL_OK && dir != NULL)
    rc = fl_fleet_open(&f, dir, e.model, e.team, NULL, NULL, &how, err);
  if (rc == FL_OK) {
    fill(a, e.model, f != NULL);
    log = f != NULL ? fl_fleet_events(f) : NULL;
    if (f != NULL) rc = log_requests(f, dir, err);
  }
  if (rc == FL_OK) {
    rc = fl_engine_start(&served, f, e.model, e.team, &a->serve, log, err);
    if (rc == FL_OK) f = NULL; /* the engine's now */
  }
  if (rc == FL_OK) rc = serve(a, served, e.model, dir, log, &guard, err);
  if (served != NULL) fl_engine_stop(served, 0);
  if (f != NULL) fl_fleet_close(f);
  engine_close(&e);
  stop_guard_dismiss(guard);
  return rc;
}

const command cmd_serve = { .name = "serve",
                            .operands = "[FLEET]",
                            .summary = "Serves a fleet over HTTP to OpenAI and Anthropic clients",
                            .min_operands = 0,
                            .max_operands = 1,
                            .groups = groups,
                            .args_size = sizeof(serve_args),
                            .init = init,
                            .run = run };
