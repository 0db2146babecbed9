/* study_remote.c - see study_remote.h. */
#include "commands/study_remote.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cli/signals.h"
#include "net/fetch.h"

static const char *const teacher_names[] = { "remote", "local", NULL };
static const size_t reply_max_bytes = (size_t)64 << 20, key_max_bytes = 4096;

const opt_spec remote_specs[] = {
  { .name = "generator",
    .letter = 'g',
    .type = OPT_TEXT,
    .meta = "URL",
    .offset = offsetof(remote_args, url),
    .help = "an OpenAI-compatible server that writes the conversations" },
  { .name = "generator-model",
    .type = OPT_TEXT,
    .meta = "NAME",
    .offset = offsetof(remote_args, model),
    .help = "what it calls the model" },
  { .name = "generator-key-file",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(remote_args, key_file),
    .help = "its key; else FLOTILLA_GENERATOR_KEY of the environment" },
  { .name = "teacher",
    .type = OPT_CHOICE,
    .meta = "WHERE",
    .choices = teacher_names,
    .offset = offsetof(remote_args, teacher),
    .help = "where probabilities come from" },
  { .name = "in-flight",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = 64,
    .offset = offsetof(remote_args, in_flight),
    .help = "requests to it at a time" },
  { .name = "tries",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = 16,
    .offset = offsetof(remote_args, tries),
    .help = "of a request before it is given up" },
  { .name = "timeout",
    .type = OPT_SECONDS,
    .meta = "TIME",
    .min = 0.1,
    .max = 86400,
    .offset = offsetof(remote_args, timeout_s),
    .help = "for an answer" },
  { 0 }
};

void remote_default(remote_args *a) {
  *a = (remote_args){ .in_flight = 8, .tries = 5, .timeout_s = 120 };
}

struct study_wire {
  fl_fetch *fetch;
  fl_remote *remote;
};

static int post(void *ctx, const char *path, fl_exchange *x, size_t n, fl_err *err) {
  study_wire *w = ctx;
  fl_request *r = fl_calloc(n, sizeof *r);
  if (!r) return fl_fail(err, FL_ENOMEM, "not enough memory for %zu requests", n);
  for (size_t i = 0; i < n; i++) r[i] = (fl_request){ .path = path, .body = x[i].body };
  int rc = fl_fetch_run(w->fetch, r, n, err);
  for (size_t i = 0; i < n; i++) {
    x[i].reply = r[i].reply;
    x[i].status = r[i].status;
    memcpy(x[i].reason, r[i].reason, sizeof x[i].reason);
  }
  fl_free(r);
  return rc;
}

/* The first line of the file, without the blanks behind it. */
static int read_key(fl_buf *out, const char *path, fl_err *err) {
  int rc = fl_fs_read(out, path, key_max_bytes, err);
  if (rc != FL_OK) return rc;
  size_t len = out->data ? strcspn(out->data, "\r\n") : 0;
  while (len > 0 && out->data[len - 1] == ' ') len--;
  if (len == 0)
    return fl_fail(err, FL_EINPUT, "%s: no key in it; write it on the first line", path);
  out->data[len] = '\0';
  return FL_OK;
}

int study_wire_open(study_wire **out, const remote_args *a, const fl_model *model, fl_err *err) {
  const char *env = getenv("FLOTILLA_GENERATOR_KEY");
  fl_buf key = { 0 };
  study_wire *w = fl_calloc(1, sizeof *w);
  int rc = w ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK && a->key_file) rc = read_key(&key, a->key_file, err);
  const fl_fetch_options fo = { .url = a->url,
                                .key = a->key_file   ? key.data
                                       : env && *env ? env
                                                     : NULL,
                                .in_flight = a->in_flight,
                                .tries = a->tries,
                                .timeout_s = a->timeout_s,
                                .max_bytes = reply_max_bytes,
                                .stop = signals_stop };
  if (rc == FL_OK) rc = fl_fetch_new(&w->fetch, &fo, err);
  const fl_remote_options ro = {
    .model = a->model, .local_teacher = a->teacher == 1, .post = post, .ctx = w
  };
  if (rc == FL_OK) rc = fl_remote_new(&w->remote, &ro, model, err);
  fl_buf_release(&key);
  if (rc != FL_OK) {
    fl_err_prefix(err, "--generator");
    study_wire_close(w);
    return rc;
  }
  *out = w;
  return FL_OK;
}

void study_wire_close(study_wire *w) {
  if (!w) return;
  fl_remote_free(w->remote);
  fl_fetch_free(w->fetch);
  fl_free(w);
}

fl_remote *study_wire_remote(study_wire *w) { return w->remote; }
