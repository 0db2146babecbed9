/* events_file.c - see events_file.h. */
#include "base/events_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"

enum {
  LOCK_TRIES = 250, /* a millisecond apart; after that a holder is taken to be stopped */
  MOVES_MAX = 4,    /* times that the part may change under a writer before it writes anyway */
  RETRY_S = 10      /* between attempts to turn a part that could not be turned */
};

struct fl_events_file {
  char *path, *older; /* links followed */
  int fd;
  bool regular;         /* else there are no parts: a pipe, a device */
  bool cut;             /* a write ended inside a line */
  bool impatient;       /* the last lock was not to be had */
  bool told, turn_told; /* of lines that are missing; of a part that cannot be turned */
  double next_turn;     /* fl_now_s() */
  uint64_t limit;       /* bytes of a part */
  uint64_t head_bytes;  /* of our head in the current part */
  uint64_t missing;     /* lines since the last that was written */
  atomic_ullong lost;   /* lines in all; any thread */
  _Atomic(fl_events_head_fn *) head;
  void *head_ctx;
};

/* --- names --- */

char *fl_events_older(const char *path) {
  static const char suffix[] = ".jsonl";
  char *at = fl_fs_real(path);
  if (at == NULL) return NULL;
  size_t n = strlen(at), s = sizeof suffix - 1;
  const bool has = n > s && memcmp(at + n - s, suffix, s) == 0;
  char *out = has ? fl_asprintf("%.*s.1%s", (int)(n - s), at, suffix) : fl_asprintf("%s.1", at);
  fl_free(at);
  return out;
}

/* --- the open part --- */

static void take_fd(fl_events_file *f, int fd, const struct stat *st) {
  if (f->fd >= 0) close(f->fd); /* the lock goes with it */
  f->fd = fd;
  f->regular = S_ISREG(st->st_mode);
  f->cut = false;
  f->head_bytes = 0;
}

/* Opens what the path names, made if it is missing; 0, or an errno with the old part still open. */
static int open_part(fl_events_file *f) {
  struct stat st;
  char last = '\n';
  int fd = open(f->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd < 0) return errno;
  if (fstat(fd, &st) != 0) {
    const int why = errno;
    close(fd);
    return why;
  }
  take_fd(f, fd, &st);
  if (f->regular && st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1)
    f->cut = last != '\n'; /* by a crash */
  return 0;
}

/* A holder that is stopped, or anybody who may read the file, must not stop the log for ever. */
static bool lock_part(fl_events_file *f) {
  const struct timespec nap = { .tv_nsec = 1000000 };
  for (int left = f->impatient ? 1 : LOCK_TRIES; left > 0; left--) {
    if (flock(f->fd, LOCK_EX | LOCK_NB) == 0) {
      f->impatient = false;
      return true;
    }
    /* Without locks nobody else can be told from us; a second writer there is not expected. */
    if (errno != EWOULDBLOCK && errno != EINTR) return true;
    nanosleep(&nap, NULL);
  }
  f->impatient = true;
  return false;
}

static void leave(const fl_events_file *f) { (void)flock(f->fd, LOCK_UN); }

/* Goes to the part that the path names now. True when it is locked; *fresh is set when it is
 * another one than before. Where it cannot be opened the old one is kept, unlocked. */
static bool enter(fl_events_file *f, bool *fresh) {
  for (int moves = 0; moves < MOVES_MAX; moves++) {
    const bool locked = lock_part(f);
    if (!f->regular || fl_fs_is_named(f->fd, f->path)) return locked;
    if (open_part(f) != 0) {
      if (locked) leave(f);
      break;
    }
    *fresh = true;
  }
  return false;
}

/* --- turning parts --- */

static int fail_turn(fl_events_file *f, int why) {
  f->next_turn = fl_now_s() + RETRY_S;
  if (!f->turn_told)
    fl_warn("%s: cannot be renamed to %s (%s); it grows to twice its size, then events are left "
            "out",
            f->path, f->older, fl_fs_reason(why));
  f->turn_told = true;
  return why;
}

/* The locked part becomes the older one, and a new one begins, open to the same people. */
static int turn(fl_events_file *f) {
  struct stat old, st;
  if (fstat(f->fd, &old) != 0 || rename(f->path, f->older) != 0) return fail_turn(f, errno);
  int fd = open(f->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, old.st_mode & 0777);
  if (fd < 0 || fstat(fd, &st) != 0) {
    const int why = errno;
    if (fd >= 0) close(fd);
    else (void)rename(f->older, f->path);
    return fail_turn(f, why);
  }
  if (st.st_uid != old.st_uid || st.st_gid != old.st_gid) /* root may give it away */
    (void)!fchown(fd, old.st_uid, old.st_gid);
  (void)fchmod(fd, old.st_mode & 0777);
  take_fd(f, fd, &st);
  f->turn_told = false;
  return 0;
}

static uint64_t part_size(const fl_events_file *f) {
  struct stat st;
  return f->regular && fstat(f->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Enters the part that `len` bytes are to go to; true when it is locked. */
static bool enter_with_room(fl_events_file *f, size_t len, bool *fresh) {
  bool locked = enter(f, fresh);
  for (int moves = 0; locked && moves < MOVES_MAX; moves++) {
    const uint64_t size = part_size(f);
    if (size <= f->head_bytes || (size < f->limit && len <= f->limit - size)) break;
    if (fl_now_s() < f->next_turn || turn(f) != 0) break;
    *fresh = true;
    locked = enter(f, fresh);
  }
  return locked;
}

/* --- writing --- */

uint64_t fl_events_count(const char *text, size_t len) {
  uint64_t n = 0;
  for (const char *at = text, *end = text + len; at < end; n++) {
    at = memchr(at, '\n', (size_t)(end - at));
    if (at == NULL) break;
    at++;
  }
  return n;
}

static void miss(fl_events_file *f, uint64_t n, int why) {
  f->missing += n;
  atomic_fetch_add(&f->lost, n);
  if (!f->told)
    fl_warn("%s: cannot be written (%s); events are missing from now on", f->path,
            fl_fs_reason(why));
  f->told = true;
}

/* Appends what a new part begins with, unless that would take half of it. */
static void put_head(fl_events_file *f, fl_buf *out) {
  fl_events *to = NULL;
  fl_events_head_fn *const head = atomic_load(&f->head);
  if (head == NULL || fl_events_memory(&to, NULL) != FL_OK) return;
  head(f->head_ctx, to);
  const fl_buf *lines = fl_events_lines(to);
  if (!lines->oom && lines->len > 0 && lines->len <= f->limit / 2) {
    fl_buf_append(out, lines->data, lines->len);
    f->head_bytes = lines->len;
  }
  fl_events_close(to);
}

/* How many lines are missing, for whoever reads the log. */
static void put_missing(const fl_events_file *f, fl_buf *out) {
  fl_event e;
  char text[80];
  snprintf(text, sizeof text, "%llu events before this one could not be written",
           (unsigned long long)f->missing);
  fl_event_begin(&e, "error");
  fl_event_str(&e, "text", text);
  fl_event_int(&e, "lost", (int64_t)f->missing);
  fl_buf_puts(&e.text, "}\n");
  if (!e.text.oom) fl_buf_append(out, e.text.data, e.text.len);
  fl_buf_release(&e.text);
}

/* All of it by one write(2); what a full disk cuts is completed with a newline by the next one. */
static void put(fl_events_file *f, const fl_buf *before, const char *lines, size_t len) {
  fl_buf all = { 0 };
  const char *text = lines;
  size_t n = len;
  if (before->len > 0) {
    fl_buf_append(&all, before->data, before->len);
    fl_buf_append(&all, lines, len);
    if (!all.oom) text = all.data, n = all.len;
  }
  ssize_t done;
  do done = write(f->fd, text, n);
  while (done < 0 && errno == EINTR);
  const int why = done < 0 ? errno : ENOSPC;
  const size_t whole = done > 0 ? (size_t)done : 0, front = n - len;
  if (whole > 0) f->cut = text[whole - 1] != '\n';
  const uint64_t noted = front > 0 && whole >= front ? f->missing : 0;
  f->missing -= noted;
  if (whole < n) {
    const size_t kept = whole > front ? whole - front : 0;
    miss(f, fl_events_count(lines + kept, len - kept), why);
  } else if (noted > 0) {
    fl_warn("%s: is written again; %llu events are missing", f->path, (unsigned long long)noted);
    f->told = false;
  }
  fl_buf_release(&all);
}

void fl_events_file_write(fl_events_file *f, const char *lines, size_t len) {
  fl_buf before = { 0 };
  bool fresh = false;
  const bool locked = enter_with_room(f, len, &fresh);
  const uint64_t size = part_size(f);
  if (size > f->limit && size - f->limit >= f->limit) {
    miss(f, fl_events_count(lines, len), EFBIG); /* it cannot be turned, and must not grow on */
  } else {
    if (f->cut) fl_buf_putc(&before, '\n');
    if (fresh) put_head(f, &before);
    if (f->missing > 0) put_missing(f, &before);
    put(f, &before, lines, len);
  }
  if (locked) leave(f);
  fl_buf_release(&before);
}

/* --- the object --- */

int fl_events_file_open(fl_events_file **out, const char *path, uint64_t part_bytes, fl_err *err) {
  int rc = FL_ENOMEM;
  fl_events_file *f = fl_calloc(1, sizeof *f);
  if (f == NULL || (f->path = fl_strdup(path)) == NULL) goto oom;
  f->fd = -1;
  f->limit = part_bytes > 0 ? part_bytes : FL_EVENTS_PART_BYTES;
  const int why = open_part(f);
  if (why != 0) {
    rc = fl_fs_fail_errno(err, path, "opened for appending", why);
    goto done;
  }
  /* The file that a link names is turned, beside itself, and the link stays. */
  char *copy = fl_fs_real(path);
  if (copy == NULL) goto oom;
  fl_free(f->path);
  f->path = copy;
  f->older = fl_events_older(f->path);
  if (f->older == NULL) goto oom;
  *out = f;
  return FL_OK;
oom:
  fl_fail(err, rc, "%s: no memory to open the event log", path);
done:
  fl_events_file_close(f);
  return rc;
}

void fl_events_file_close(fl_events_file *f) {
  if (f == NULL) return;
  if (f->missing > 0)
    fl_warn("%s: its last %llu events could not be written", f->path,
            (unsigned long long)f->missing);
  if (f->fd >= 0) close(f->fd);
  fl_free(f->path);
  fl_free(f->older);
  fl_free(f);
}

const char *fl_events_file_path(const fl_events_file *f) { return f->path; }

void fl_events_file_head(fl_events_file *f, fl_events_head_fn *head, void *ctx) {
  f->head_ctx = ctx;
  atomic_store(&f->head, head);
}

void fl_events_file_missed(fl_events_file *f, uint64_t n_lines) {
  f->missing += n_lines;
  f->told = true;
  atomic_fetch_add(&f->lost, n_lines);
}

uint64_t fl_events_file_lost(const fl_events_file *f) { return atomic_load(&f->lost); }
