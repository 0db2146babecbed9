/* fs_sink.c - writing files so that they survive a crash, or are not there.
 *
 * A sink collects small writes in one buffer. Its first failure sticks: later writes do nothing,
 * and closing reports it and removes the file, so that no cut file is ever left under a name. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

#define SINK_BUFFER 65536

struct fl_sink {
  int fd;
  int code;     /* FL_OK or what sticks */
  int number;   /* errno of the first failure */
  bool regular; /* devices are neither synced nor removed */
  char *path;
  size_t len;
  char buffer[SINK_BUFFER];
};

/* Wraps an open descriptor; on failure closes it. Takes `path` over in any case. */
static int sink_new(fl_sink **out, int fd, char *path, fl_err *err) {
  struct stat st;
  fl_sink *s = fl_calloc(1, sizeof *s);
  if (s == NULL) {
    close(fd);
    unlink(path);
    int rc = fl_fs_fail_errno(err, path, "written", ENOMEM);
    fl_free(path);
    return rc;
  }
  s->fd = fd;
  s->path = path;
  s->regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  *out = s;
  return FL_OK;
}

int fl_sink_open(fl_sink **out, const char *path, fl_err *err) {
  char *copy = fl_strdup(path);
  if (copy == NULL) return fl_fs_fail_errno(err, path, "written", ENOMEM);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    int rc = fl_fs_fail_errno(err, path, "written", errno);
    fl_free(copy);
    return rc;
  }
  return sink_new(out, fd, copy, err);
}

int fl_fs_check_replaceable(const char *path, fl_err *err) {
  struct stat st;
  /* Opening says what else is wrong. */
  if (lstat(path, &st) != 0 || S_ISREG(st.st_mode)) return FL_OK;
  return fl_fail(err, FL_EFAIL, "%s: cannot be written: it is a %s; name a file", path,
                 S_ISDIR(st.st_mode)   ? "folder"
                 : S_ISLNK(st.st_mode) ? "link, which would be lost"
                                       : "device, pipe or socket");
}

int fl_fs_open_temp(fl_sink **out, const char *path, fl_err *err) {
  int rc = fl_fs_check_replaceable(path, err);
  if (rc != FL_OK) return rc;
  for (int attempt = 0; attempt < 1000; attempt++) {
    char *temp = fl_asprintf("%s.tmp-%ld-%d", path, (long)getpid(), attempt);
    if (temp == NULL) return fl_fs_fail_errno(err, path, "written", ENOMEM);
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      struct stat st; /* a file that its owner closed to others stays closed */
      if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) fchmod(fd, st.st_mode & 0777);
      return sink_new(out, fd, temp, err);
    }
    int number = errno;
    fl_free(temp);
    if (number != EEXIST) return fl_fs_fail_errno(err, path, "written", number);
  }
  return fl_fail(err, FL_EFAIL, "%s: too many temporary files beside it; remove %s.tmp-*", path,
                 path);
}

static int sink_stick(fl_sink *s, int number) {
  s->code = number == ENOMEM ? FL_ENOMEM : FL_EFAIL;
  s->number = number;
  return s->code;
}

int fl_fs_write(int fd, const void *data, size_t n_bytes) {
  for (const char *at = data; n_bytes > 0;) {
    const ssize_t done = write(fd, at, n_bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : ENOSPC;
    at += done;
    n_bytes -= (size_t)done;
  }
  return 0;
}

int fl_fs_append(int fd, size_t at, const void *data, size_t n_bytes) {
  if (lseek(fd, (off_t)at, SEEK_SET) < 0) return errno;
  int number = fl_fs_write(fd, data, n_bytes);
  if (number == 0 && fdatasync(fd) != 0) number = errno;
  if (number != 0 && ftruncate(fd, (off_t)at) != 0) { /* who reads it has to know a cut end */
  }
  return number;
}

static int write_out(fl_sink *s, const char *data, size_t n) {
  const int number = fl_fs_write(s->fd, data, n);
  return number == 0 ? FL_OK : sink_stick(s, number);
}

static int sink_flush(fl_sink *s) {
  size_t n = s->len;
  s->len = 0;
  return s->code != FL_OK ? s->code : write_out(s, s->buffer, n);
}

int fl_sink_write(fl_sink *s, const void *data, size_t n_bytes) {
  if (s->code != FL_OK) return s->code;
  if (n_bytes > SINK_BUFFER - s->len) {
    if (sink_flush(s) != FL_OK) return s->code;
    if (n_bytes >= SINK_BUFFER) return write_out(s, data, n_bytes);
  }
  if (n_bytes > 0) memcpy(s->buffer + s->len, data, n_bytes);
  s->len += n_bytes;
  return FL_OK;
}

const char *fl_sink_settle(fl_sink *s) { return sink_flush(s) == FL_OK ? s->path : NULL; }

static void sink_free(fl_sink *s) {
  fl_free(s->path);
  fl_free(s);
}

/* Everything of close but the release. */
static int sink_finish(fl_sink *s, fl_err *err) {
  sink_flush(s);
  if (s->code == FL_OK && s->regular && fsync(s->fd) != 0) sink_stick(s, errno);
  /* After close() the descriptor is gone even when it fails, so there is no second try. */
  if (close(s->fd) != 0 && s->code == FL_OK) sink_stick(s, errno);
  if (s->code == FL_OK) return FL_OK;
  if (s->regular) unlink(s->path);
  int rc = s->code;
  fl_fs_fail_errno(err, s->path, "written", s->number);
  return rc;
}

int fl_sink_close(fl_sink *s, fl_err *err) {
  int rc = sink_finish(s, err);
  sink_free(s);
  return rc;
}

void fl_sink_abandon(fl_sink *s) {
  if (s == NULL) return;
  close(s->fd);
  if (s->regular) unlink(s->path);
  sink_free(s);
}

int fl_fs_sync_dir(const char *dir, fl_err *err) {
  int fd = open(*dir != '\0' ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return fl_fs_fail_errno(err, dir, "synced", errno);
  /* Some file systems cannot sync a folder and say EINVAL; there is nothing more to do there. */
  int number = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
  close(fd);
  return number == 0 ? FL_OK : fl_fs_fail_errno(err, dir, "synced", number);
}

int fl_fs_sync_parent(const char *path, fl_err *err) {
  char *copy = fl_strdup(path);
  if (copy == NULL) return fl_fs_fail_errno(err, path, "synced", ENOMEM);
  int rc = fl_fs_sync_dir(dirname(copy), err);
  fl_free(copy);
  return rc;
}

int fl_fs_commit_temp(fl_sink *s, const char *path, fl_err *err) {
  int rc = sink_finish(s, err);
  if (rc == FL_OK && rename(s->path, path) != 0) {
    rc = fl_fs_fail_errno(err, path, "replaced", errno);
    unlink(s->path);
  }
  sink_free(s);
  return rc == FL_OK ? fl_fs_sync_parent(path, err) : rc;
}

int fl_fs_replace(const char *path, const void *data, size_t n_bytes, fl_err *err) {
  fl_sink *s;
  int rc = fl_fs_open_temp(&s, path, err);
  if (rc != FL_OK) return rc;
  fl_sink_write(s, data, n_bytes); /* its failure is reported by the commit */
  return fl_fs_commit_temp(s, path, err);
}
