/* events.c - the event log. O_APPEND and one write(2) a line keep lines of several threads whole
 * without a lock. */
#include "base/events.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

struct fl_events {
  int fd;            /* -1: kept in memory */
  atomic_bool quiet; /* a write failed; nothing more is tried */
  char *path;
  fl_buf lines;      /* in memory */
};

/* The last line of a log that a crash cut gets its newline, so that the next line stands alone. */
static bool mend_last_line(int fd) {
  struct stat st;
  char last;
  if (fstat(fd, &st) != 0) return false;
  if (!S_ISREG(st.st_mode) || st.st_size == 0) return true;
  if (pread(fd, &last, 1, st.st_size - 1) != 1) return false;
  return last == '\n' || write(fd, "\n", 1) == 1;
}

int fl_events_open(fl_events **out, const char *path, fl_err *err) {
  int rc = FL_ENOMEM;
  fl_events *log = fl_calloc(1, sizeof *log);
  char *name = fl_strdup(path);
  int fd = -1;
  if (log == NULL || name == NULL) {
    fl_fail(err, rc, "%s: no memory to open the event log", path);
    goto done;
  }
  fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0 || !mend_last_line(fd)) {
    rc = fl_fs_fail_errno(err, path, "opened for appending", errno);
    goto done;
  }
  log->fd = fd;
  log->path = name;
  *out = log;
  return FL_OK;
done:
  if (fd >= 0) close(fd);
  fl_free(name);
  fl_free(log);
  return rc;
}

int fl_events_memory(fl_events **out, fl_err *err) {
  fl_events *log = fl_calloc(1, sizeof *log);
  if (log == NULL) return fl_fail(err, FL_ENOMEM, "no memory to keep events");
  log->fd = -1;
  *out = log;
  return FL_OK;
}

const fl_buf *fl_events_lines(const fl_events *log) { return &log->lines; }

void fl_events_close(fl_events *log) {
  if (log == NULL) return;
  if (log->fd >= 0) close(log->fd);
  fl_buf_release(&log->lines);
  fl_free(log->path);
  fl_free(log);
}

void fl_event_begin(fl_event *e, const char *kind) {
  long long ms = llround(fl_wall_s() * 1000);
  *e = (fl_event){0};
  fl_buf_printf(&e->text, "{\"t\":%lld.%03lld,\"ev\":", ms / 1000, ms % 1000);
  fl_json_escape(&e->text, kind, strlen(kind));
}

static void put_key(fl_event *e, const char *key) {
  fl_buf_putc(&e->text, ',');
  fl_json_escape(&e->text, key, strlen(key));
  fl_buf_putc(&e->text, ':');
}

void fl_event_strn(fl_event *e, const char *key, const char *value, size_t len) {
  put_key(e, key);
  fl_json_escape(&e->text, value, len);
}

void fl_event_str(fl_event *e, const char *key, const char *value) {
  fl_event_strn(e, key, value, strlen(value));
}

void fl_event_int(fl_event *e, const char *key, int64_t value) {
  put_key(e, key);
  fl_buf_printf(&e->text, "%lld", (long long)value);
}

void fl_event_num(fl_event *e, const char *key, double value) {
  put_key(e, key);
  fl_json_number_text(&e->text, value);
}

void fl_event_bool(fl_event *e, const char *key, bool value) {
  put_key(e, key);
  fl_buf_puts(&e->text, value ? "true" : "false");
}

void fl_event_raw(fl_event *e, const char *key, const char *json) {
  put_key(e, key);
  fl_buf_puts(&e->text, json);
}

/* 0 or an errno; a short write means that the disk is full. */
static int write_lines(int fd, const char *lines, size_t len) {
  ssize_t n;
  do n = write(fd, lines, len);
  while (n < 0 && errno == EINTR);
  if (n < 0) return errno;
  return (size_t)n < len ? ENOSPC : 0;
}

void fl_events_append(fl_events *log, const char *lines, size_t len) {
  if (log == NULL || len == 0 || atomic_load(&log->quiet)) return;
  if (log->fd < 0) {
    fl_buf_append(&log->lines, lines, len);
    return;
  }
  const int failed = write_lines(log->fd, lines, len);
  if (failed != 0 && !atomic_exchange(&log->quiet, true))
    fl_warn("%s: cannot be written (%s); the event log stops here", log->path,
            fl_fs_reason(failed));
}

void fl_event_emit(fl_events *log, fl_event *e) {
  fl_buf_puts(&e->text, "}\n");
  if (!e->text.oom) {
    fl_events_append(log, e->text.data, e->text.len);
  } else if (log != NULL && !atomic_exchange(&log->quiet, true)) {
    fl_warn("%s: no memory for an event; the event log stops here",
            log->path != NULL ? log->path : "events");
  }
  fl_buf_release(&e->text);
}
