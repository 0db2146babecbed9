/* replay.c - see replay.h. */
#include "trainer/replay.h"

#include <string.h>

#include "base/fs.h"
#include "base/mem.h"

#define MAX_FILE_BYTES ((size_t)1 << 30)

void fl_replay_release(fl_replay *k) {
  for (size_t i = 0; i < k->n; i++) fl_conv_release(&k->conv[i]);
  fl_free(k->conv);
  *k = (fl_replay){ 0 };
}

int fl_replay_push(fl_replay *k, fl_conv *c) {
  if (k->conv == NULL) {
    k->conv = fl_calloc(FL_REPLAY_MAX, sizeof *k->conv);
    if (k->conv == NULL) return FL_ENOMEM;
  }
  if (k->n == FL_REPLAY_MAX) {
    fl_conv_release(&k->conv[0]);
    memmove(&k->conv[0], &k->conv[1], (FL_REPLAY_MAX - 1) * sizeof k->conv[0]);
    k->n--;
  }
  k->conv[k->n++] = *c;
  *c = (fl_conv){ 0 };
  return FL_OK;
}

int fl_replay_write(const char *path, const fl_replay *k, const fl_conv_label *label, fl_err *err) {
  fl_sink *s = NULL;
  fl_buf line = { 0 };
  int rc = fl_sink_open(&s, path, err);
  if (rc != FL_OK) return rc;
  for (size_t i = 0; i < k->n && !line.oom; i++) {
    fl_conv_label l = *label;
    l.index = (uint32_t)i;
    fl_buf_reset(&line);
    fl_conv_print(&line, &k->conv[i], &l);
    if (!line.oom) (void)fl_sink_write(s, line.data, line.len);
  }
  if (line.oom) {
    fl_sink_abandon(s);
    rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory to write it", path);
  } else {
    rc = fl_sink_close(s, err);
  }
  fl_buf_release(&line);
  return rc;
}

static int read_line(fl_replay *k, const char *line, size_t len, const fl_conv_limits *limits) {
  fl_json *o = NULL;
  fl_conv c = { 0 };
  int rc = k->n < FL_REPLAY_MAX ? fl_json_parse(&o, line, len, NULL) : FL_EINPUT;
  if (rc == FL_OK) rc = fl_conv_parse(&c, o, limits);
  if (rc == FL_OK) rc = fl_replay_push(k, &c);
  fl_conv_release(&c);
  fl_json_free(o);
  return rc;
}

int fl_replay_read(fl_replay *out, const char *path, const fl_conv_limits *limits, fl_err *err) {
  fl_buf text = { 0 };
  fl_replay k = { 0 };
  int rc = fl_fs_read(&text, path, MAX_FILE_BYTES, err);
  size_t number = 1;
  for (size_t at = 0; rc == FL_OK && at < text.len; number++) {
    const char *line = text.data + at;
    const char *end = memchr(line, '\n', text.len - at);
    size_t len = end != NULL ? (size_t)(end - line) : 0;
    rc = end != NULL ? read_line(&k, line, len, limits) : FL_EINPUT;
    if (rc == FL_EINPUT)
      fl_fail(err, rc,
              "%s: line %zu is damaged, or longer than --max-q, --max-a and --turns allow "
              "now; restore the file or the flags",
              path, number);
    if (rc == FL_ENOMEM) fl_fail(err, rc, "%s: not enough memory to read it", path);
    at += len + 1;
  }
  fl_buf_release(&text);
  if (rc != FL_OK) {
    fl_replay_release(&k);
    return rc;
  }
  *out = k;
  return FL_OK;
}
