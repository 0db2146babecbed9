/* fetch.c - see fetch.h. One multi handle; a request waits, flies or is done. */
#include "net/fetch.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#ifndef HAVE_LIBCURL

int fl_fetch_new(fl_fetch **out, const fl_fetch_options *o, fl_err *err) {
  (void)out;
  return fl_fail(err, FL_EUSAGE,
                 "%s: this program was built without libcurl; install its "
                 "development package and build again",
                 o->url);
}

void fl_fetch_free(fl_fetch *f) { (void)f; }

int fl_fetch_run(fl_fetch *f, fl_request *r, size_t n, fl_err *err) {
  (void)f;
  (void)r;
  (void)n;
  return fl_fail(err, FL_EUSAGE, "built without libcurl");
}

#else

#include <curl/curl.h>
#include <stdio.h>

enum { POLL_MS = 100 };
static const double first_pause_s = 0.25, longest_pause_s = 60;

struct fl_fetch {
  char *url;
  fl_fetch_options o;
  CURLM *multi;
  struct curl_slist *headers;
  bool global; /* libcurl's own start, which counts */
};

typedef struct flight {
  fl_fetch *f;
  fl_request *r;
  CURL *easy; /* while it flies */
  size_t tried;
  double not_before; /* clock; of the next try */
  bool done, too_long;
  char why[CURL_ERROR_SIZE];
} flight;

void fl_fetch_free(fl_fetch *f) {
  if (!f) return;
  if (f->multi) curl_multi_cleanup(f->multi);
  if (f->global) curl_global_cleanup();
  curl_slist_free_all(f->headers);
  fl_free(f->url);
  fl_free(f);
}

static bool append_header(fl_fetch *f, const char *text) {
  struct curl_slist *grown = curl_slist_append(f->headers, text);
  if (grown) f->headers = grown;
  return grown != NULL;
}

static bool set_headers(fl_fetch *f, const char *key) {
  bool ok = append_header(f, "Content-Type: application/json") && append_header(f, "Expect:");
  if (!ok || !key) return ok;
  char *line = fl_asprintf("Authorization: Bearer %s", key);
  ok = line && append_header(f, line);
  fl_free(line);
  return ok;
}

static bool clean(const char *s) { /* nothing that could end a header or a URL */
  for (; *s; s++)
    if ((unsigned char)*s <= 0x20 || (unsigned char)*s == 0x7f) return false;
  return true;
}

int fl_fetch_new(fl_fetch **out, const fl_fetch_options *o, fl_err *err) {
  if ((strncmp(o->url, "http://", 7) != 0 && strncmp(o->url, "https://", 8) != 0) ||
      strstr(o->url, "//")[2] == '\0' || strstr(o->url, "//")[2] == '/' || !clean(o->url) ||
      strchr(o->url, '?') || strchr(o->url, '#'))
    return fl_fail(err, FL_EUSAGE, "%s: no address of a server; give http://HOST:PORT", o->url);
  if (o->key && (!*o->key || !clean(o->key)))
    return fl_fail(err, FL_EUSAGE, "the key for %s is empty or has blanks in it", o->url);
  fl_fetch *f = fl_calloc(1, sizeof *f);
  if (f) {
    f->o = *o;
    f->url = fl_strdup(o->url);
    f->global = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    f->multi = f->global ? curl_multi_init() : NULL;
  }
  if (!f || !f->url || !f->multi || !set_headers(f, o->key)) {
    fl_fetch_free(f);
    return fl_fail(err, FL_ENOMEM, "not enough memory to reach %s", o->url);
  }
  for (size_t n = strlen(f->url); n > 0 && f->url[n - 1] == '/'; n--) f->url[n - 1] = '\0';
  *out = f;
  return FL_OK;
}

static size_t on_data(char *data, size_t size, size_t n, void *ctx) {
  flight *x = ctx;
  if (size * n > x->f->o.max_bytes - x->r->reply.len) {
    x->too_long = true;
    return 0;
  }
  fl_buf_append(&x->r->reply, data, size * n);
  return x->r->reply.oom ? 0 : size * n;
}

static CURLcode only_http(CURL *e) {
#if LIBCURL_VERSION_NUM >= 0x075500
  return curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  return curl_easy_setopt(e, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static bool set_options(const flight *x, const char *url) {
  CURL *e = x->easy;
  const fl_fetch_options *o = &x->f->o;
  return curl_easy_setopt(e, CURLOPT_URL, url) == CURLE_OK && only_http(e) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_HTTPHEADER, x->f->headers) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_POSTFIELDS, x->r->body) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(x->r->body)) ==
             CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)(o->timeout_s * 1000)) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_ERRORBUFFER, x->why) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_WRITEDATA, x) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_PRIVATE, x) == CURLE_OK;
}

static bool start(flight *x) {
  char *url = fl_asprintf("%s%s", x->f->url, x->r->path);
  x->easy = curl_easy_init();
  x->why[0] = '\0';
  x->too_long = false;
  fl_buf_reset(&x->r->reply);
  bool ok = url && x->easy && set_options(x, url) &&
            curl_multi_add_handle(x->f->multi, x->easy) == CURLM_OK;
  fl_free(url); /* libcurl has a copy */
  if (!ok && x->easy) {
    curl_easy_cleanup(x->easy);
    x->easy = NULL;
  }
  x->tried++;
  return ok;
}

static void land(flight *x) {
  curl_multi_remove_handle(x->f->multi, x->easy);
  curl_easy_cleanup(x->easy);
  x->easy = NULL;
}

static bool worth_another_try(const flight *x, CURLcode code) {
  int s = x->r->status;
  if (x->too_long || x->r->reply.oom) return false;
  if (code != CURLE_OK) return code != CURLE_UNSUPPORTED_PROTOCOL && code != CURLE_URL_MALFORMAT;
  return s == 408 || s == 429 || (s >= 500 && s <= 599);
}

static void finish(flight *x, CURLcode code) {
  long status = 0;
  curl_off_t after = 0;
  curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(x->easy, CURLINFO_RETRY_AFTER, &after);
  fl_request *r = x->r;
  r->status = code == CURLE_OK ? (int)status : 0;
  r->reason[0] = '\0';
  if (x->too_long)
    snprintf(r->reason, sizeof r->reason, "an answer over %zu bytes", x->f->o.max_bytes);
  else if (code != CURLE_OK)
    snprintf(r->reason, sizeof r->reason, "%s", x->why[0] ? x->why : curl_easy_strerror(code));
  else if (r->status != 200)
    snprintf(r->reason, sizeof r->reason, "status %d: %.160s", r->status,
             r->reply.data && r->reply.len > 0 ? r->reply.data : "");
  if (x->too_long) r->status = 0;
  land(x);
  x->done = !worth_another_try(x, code) || x->tried >= x->f->o.tries;
  double pause = first_pause_s * (double)((size_t)1 << (x->tried - 1 < 8 ? x->tried - 1 : 8));
  if (after > 0) pause = (double)after;
  x->not_before = fl_now_s() + (pause < longest_pause_s ? pause : longest_pause_s);
}

static size_t take_off(flight *x, size_t n, size_t in_flight, size_t limit, size_t *left) {
  double now = fl_now_s();
  *left = 0;
  for (size_t i = 0; i < n; i++) {
    if (x[i].done) continue;
    ++*left;
    if (x[i].easy || in_flight >= limit || x[i].not_before > now) continue;
    if (start(&x[i])) {
      in_flight++;
    } else {
      snprintf(x[i].r->reason, sizeof x[i].r->reason, "the request could not be made");
      x[i].done = true;
    }
  }
  return in_flight;
}

static void collect(fl_fetch *f) {
  int queued;
  for (CURLMsg *m; (m = curl_multi_info_read(f->multi, &queued)) != NULL;) {
    flight *x = NULL;
    if (m->msg != CURLMSG_DONE) continue;
    CURLcode code = m->data.result;
    if (curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&x) == CURLE_OK && x)
      finish(x, code);
  }
}

static size_t count_flying(const flight *x, size_t n) {
  size_t flying = 0;
  for (size_t i = 0; i < n; i++) flying += x[i].easy != NULL;
  return flying;
}

int fl_fetch_run(fl_fetch *f, fl_request *r, size_t n, fl_err *err) {
  flight *x = fl_calloc(n + 1, sizeof *x);
  int rc = x ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory for %zu requests", n);
  size_t left = n;
  for (size_t i = 0; x && i < n; i++) x[i] = (flight){ .f = f, .r = &r[i] };
  while (rc == FL_OK && left > 0) {
    int running;
    if (f->o.stop && f->o.stop()) {
      rc = fl_fail(err, FL_EINTR, "stopped");
      break;
    }
    take_off(x, n, count_flying(x, n), f->o.in_flight, &left);
    if (curl_multi_perform(f->multi, &running) != CURLM_OK ||
        curl_multi_poll(f->multi, NULL, 0, POLL_MS, NULL) != CURLM_OK) {
      rc = fl_fail(err, FL_EFAIL, "%s: the transfers failed", f->url);
      break;
    }
    collect(f);
  }
  for (size_t i = 0; x && i < n; i++)
    if (x[i].easy) land(&x[i]);
  fl_free(x);
  return rc;
}

#endif
