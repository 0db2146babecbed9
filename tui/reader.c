/* reader.c - the tail of an event log. */
#include "tui/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/events.h"
#include "base/mem.h"

enum { BLOCK = 1 << 18 };
#define OFFSET_MAX ((1ull << 38) - 1)

int tui_reader_open(tui_reader *r, const char *path) {
  *r = (tui_reader){ 0 };
  r->path = fl_strdup(path);
  r->buf = fl_malloc(BLOCK);
  if (!r->path || !r->buf) {
    tui_reader_close(r);
    return FL_ENOMEM;
  }
  r->cap = BLOCK;
  return FL_OK;
}

static void close_files(tui_reader *r) {
  for (size_t i = 0; i < r->n_files; i++)
    if (r->fd[i] >= 0) close(r->fd[i]);
  r->n_files = 0;
}

void tui_reader_close(tui_reader *r) {
  close_files(r);
  fl_free(r->path);
  fl_free(r->buf);
  *r = (tui_reader){ 0 };
}

static void start_file(tui_reader *r) {
  r->len = 0;
  r->offset = r->size = 0;
  r->skipping = r->last_look = false;
}

static bool was_read(const tui_reader *r, const struct stat *st) {
  for (size_t i = 0; i < r->n_files; i++) {
    struct stat have;
    if (fstat(r->fd[i], &have) == 0 && have.st_dev == st->st_dev && have.st_ino == st->st_ino)
      return true;
  }
  return false;
}

static void follow(tui_reader *r, int fd, const struct stat *st) {
  if (r->n_files == TUI_FILES_MAX) {
    /* The last place is used again; what it held can no longer be read. */
    close(r->fd[TUI_FILES_MAX - 1]);
    r->n_files--;
  }
  r->fd[r->n_files++] = fd;
  r->dev = st->st_dev;
  r->ino = st->st_ino;
  start_file(r);
}

/* Without waiting: a pipe or a device under this name would block or never end. */
static int open_quick(const char *path) {
  return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Follows the older part if it was not read yet; *done tells. */
static int open_older(tui_reader *r, bool *done, fl_err *err) {
  struct stat st;
  char *older = fl_events_older(r->path);
  if (!older) return fl_fail(err, FL_ENOMEM, "%s: no memory to read it", r->path);
  int fd = open_quick(older);
  fl_free(older);
  *done = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !was_read(r, &st);
  if (*done) follow(r, fd, &st);
  else if (fd >= 0) close(fd);
  return FL_OK;
}

/* Opens the next file to follow: the older part, or what the path names now. Only regular ones. */
static int open_next(tui_reader *r, fl_err *err) {
  bool done = false;
  struct stat st;
  int rc = open_older(r, &done, err);
  if (rc != FL_OK || done) return rc;
  int fd = open_quick(r->path);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return FL_OK; /* between two names of a rotation */
    return fl_fail(err, FL_EFAIL, "%s: %s; check its permissions", r->path, strerror(errno));
  }
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    close(fd);
    return fl_fail(err, FL_EINPUT, "%s: is not a regular file; give a fleet folder", r->path);
  }
  follow(r, fd, &st);
  return FL_OK;
}

static bool rotated(const tui_reader *r) {
  struct stat st; /* absent: not yet, the old file may still grow */
  return stat(r->path, &st) == 0 && (st.st_dev != r->dev || st.st_ino != r->ino);
}

static int make_room(tui_reader *r) {
  if (r->cap - r->len >= BLOCK / 2) return FL_OK;
  size_t cap = r->cap * 2;
  char *buf = fl_reallocarray(r->buf, cap, 1);
  if (!buf) return FL_ENOMEM;
  r->buf = buf;
  r->cap = cap;
  return FL_OK;
}

static int take_line(tui_reader *r, tui_store *store, const char *line, size_t len, uint64_t at) {
  if (r->skipping) {
    r->skipping = false;
    return FL_OK;
  }
  if (len > TUI_LINE_MAX || at > OFFSET_MAX) {
    r->n_too_long++;
    return FL_OK;
  }
  if (len == 0) return FL_OK;
  tui_line_ref where = { .offset = at & OFFSET_MAX,
                         .len = len & TUI_LINE_MAX,
                         .file = (r->n_files - 1) & (TUI_FILES_MAX - 1) };
  return tui_store_add(store, line, len, where);
}

/* Hands the whole lines of the buffer over and moves the rest to its front. */
static int take_lines(tui_reader *r, tui_store *store, size_t fresh) {
  size_t start = 0, look = fresh;
  int rc = FL_OK;
  while (rc == FL_OK) {
    const char *nl = memchr(r->buf + look, '\n', r->len - look);
    if (!nl) break;
    size_t end = (size_t)(nl - r->buf);
    rc = take_line(r, store, r->buf + start, end - start, r->offset + start);
    start = look = end + 1;
  }
  if (start < r->len) memmove(r->buf, r->buf + start, r->len - start);
  r->offset += start;
  r->len -= start;
  if (r->len > TUI_LINE_MAX) {
    /* What was read of it is dropped at once: memory stays bounded whatever the file is. */
    if (!r->skipping) r->n_too_long++;
    r->skipping = true;
    r->offset += r->len;
    r->len = 0;
  }
  return rc;
}

int tui_reader_poll(tui_reader *r, tui_store *store, double seconds, tui_reader_state *state,
                    fl_err *err) {
  double until = fl_now_s() + seconds;
  *state = TUI_READER_IDLE;
  if (r->n_files == 0) {
    int rc = open_next(r, err);
    if (rc != FL_OK || r->n_files == 0) return rc;
  }
  for (;;) {
    struct stat st;
    int fd = r->fd[r->n_files - 1];
    if (fstat(fd, &st) != 0)
      return fl_fail(err, FL_EFAIL, "%s: %s; read it again later", r->path, strerror(errno));
    r->size = (uint64_t)st.st_size;
    if (r->size < r->offset + r->len) {
      close_files(r);
      start_file(r);
      *state = TUI_READER_RESET;
      return FL_OK;
    }
    int rc = make_room(r);
    if (rc != FL_OK) return fl_fail(err, rc, "%s: no memory for a line of the log", r->path);
    ssize_t n = pread(fd, r->buf + r->len, r->cap - r->len, (off_t)(r->offset + r->len));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return fl_fail(err, FL_EFAIL, "%s: %s; read it again later", r->path, strerror(errno));
    if (n == 0) {
      if (!r->last_look && !rotated(r)) return FL_OK;
      if (!r->last_look) { /* what came between the end and the rename */
        r->last_look = true;
        continue;
      }
      if (r->len > 0 && !r->skipping) store->n_damaged++; /* it will never be completed */
      rc = open_next(r, err);
      if (rc != FL_OK) return rc;
      continue;
    }
    size_t fresh = r->len;
    r->len += (size_t)n;
    rc = take_lines(r, store, fresh);
    if (rc != FL_OK) return fl_fail(err, rc, "%s: no memory for its events", r->path);
    if (fl_now_s() >= until) {
      *state = r->offset + r->len < r->size ? TUI_READER_MORE : TUI_READER_IDLE;
      return FL_OK;
    }
  }
}

bool tui_reader_line(const tui_reader *r, tui_line_ref where, fl_buf *out) {
  fl_buf_reset(out);
  if (where.file >= r->n_files || where.len == 0) return false;
  char *copy = fl_malloc(where.len);
  if (!copy) return false;
  ssize_t n = pread(r->fd[where.file], copy, where.len, (off_t)where.offset);
  if (n == (ssize_t)where.len) fl_buf_append(out, copy, where.len);
  fl_free(copy);
  return n == (ssize_t)where.len && !out->oom;
}

double tui_reader_progress(const tui_reader *r) {
  if (r->size == 0) return 1;
  double part = (double)(r->offset + r->len) / (double)r->size;
  return part > 1 ? 1 : part;
}
