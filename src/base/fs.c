/* fs.c - mapping, reading, folders, locks. What writes is in fs_sink.c. */
#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static const struct reason {
  int number;
  const char *what, *remedy;
} reasons[] = {
  { ENOSPC, "no space left on the disk", "free some space and repeat" },
  { EDQUOT, "the disk quota is used up", "free some space and repeat" },
  { EFBIG, "the file would grow over the allowed size", "raise the limit (ulimit -f) and repeat" },
  { EIO, "the disk reported an input/output error", "check the disk" },
  { EROFS, "the disk is mounted read-only", "choose another folder" },
  { EACCES, "permission denied", "check its permissions" },
  { EPERM, "permission denied", "check its permissions" },
  { ENOENT, "no such file or folder", "check the name" },
  { ENOTDIR, "a part of the path is not a folder", "check the name" },
  { EISDIR, "it is a folder", "name a file" },
  { ENAMETOOLONG, "the name is too long", "shorten it" },
  { EMFILE, "too many open files", "raise the limit (ulimit -n) and repeat" },
  { ENFILE, "too many open files", "close other programs and repeat" },
  { ENOMEM, "not enough memory", "close other programs and repeat" },
};

static const struct reason *find_reason(int number) {
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
    if (reasons[i].number == number) return &reasons[i];
  return NULL;
}

const char *fl_fs_reason(int errno_value) {
  const struct reason *r = find_reason(errno_value);
  if (r != NULL) return r->what;
  const char *text = strerrordesc_np(errno_value);
  return text != NULL ? text : "unknown reason";
}

int fl_fs_fail_errno(fl_err *err, const char *path, const char *done, int errno_value) {
  const struct reason *r = find_reason(errno_value);
  int code = errno_value == ENOENT   ? FL_ENOENT
             : errno_value == ENOMEM ? FL_ENOMEM
             : errno_value == EISDIR ? FL_EINPUT
                                     : FL_EFAIL;
  return fl_fail(err, code, "%s: cannot be %s: %s; %s", path, done, fl_fs_reason(errno_value),
                 r != NULL ? r->remedy : "check the path");
}

/* Opens a regular file for reading; anything else that has the name is refused. */
static int open_regular(int *out, uint64_t *size, const char *path, fl_err *err) {
  struct stat st;
  /* O_NONBLOCK: opening a named pipe must not wait for a writer. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fl_fs_fail_errno(err, path, "opened", errno);
  if (fstat(fd, &st) != 0) {
    int number = errno;
    close(fd);
    return fl_fs_fail_errno(err, path, "opened", number);
  }
  if (!S_ISREG(st.st_mode)) {
    close(fd);
    if (S_ISDIR(st.st_mode)) return fl_fs_fail_errno(err, path, "read", EISDIR);
    return fl_fail(err, FL_EINPUT, "%s: not a regular file; name a file", path);
  }
  *out = fd;
  *size = (uint64_t)st.st_size;
  return FL_OK;
}

int fl_map_open(fl_map *out, const char *path, fl_err *err) {
  int fd;
  uint64_t size;
  int rc = open_regular(&fd, &size, path, err);
  if (rc != FL_OK) return rc;
  if (size == 0) {
    close(fd);
    *out = (fl_map){ .data = (const uint8_t *)"", .size = 0 };
    return FL_OK;
  }
  if (size > PTRDIFF_MAX) {
    close(fd);
    return fl_fail(err, FL_EINPUT, "%s: too large for this machine's addresses", path);
  }
  void *p = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
  int number = errno;
  close(fd);
  if (p == MAP_FAILED) return fl_fs_fail_errno(err, path, "mapped into memory", number);
  *out = (fl_map){ .data = p, .size = (size_t)size };
  return FL_OK;
}

void fl_map_close(fl_map *m) {
  /* The cast only takes the const off that the mapping carries for its users. */
  if (m->size > 0) munmap((void *)(uintptr_t)m->data, m->size);
  *m = (fl_map){ 0 };
}

void fl_map_drop(const fl_map *m, size_t offset, size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), end;
  if (!fl_add_size(offset, size, &end) || end > m->size) return;
  size_t first = (offset + page - 1) / page * page; /* only pages that lie inside whole */
  size_t last = end == m->size ? end : end / page * page;
  if (first < last) madvise((void *)(uintptr_t)(m->data + first), last - first, MADV_DONTNEED);
}

int fl_fs_read(fl_buf *out, const char *path, size_t max_bytes, fl_err *err) {
  int fd;
  uint64_t size;
  fl_buf_reset(out);
  int rc = open_regular(&fd, &size, path, err);
  if (rc != FL_OK) return rc;
  fl_buf_append(out, "", 0);
  char piece[16384];
  for (;;) {
    /* The size is looked at as it is read: files of /proc say 0, and a file may grow. */
    if (size > max_bytes || out->len > max_bytes) {
      rc = fl_fail(err, FL_EINPUT, "%s: larger than the limit of %zu bytes", path, max_bytes);
      break;
    }
    ssize_t n = read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) rc = fl_fs_fail_errno(err, path, "read", errno);
    if (n <= 0) break;
    fl_buf_append(out, piece, (size_t)n);
    if (out->oom) {
      rc = fl_fs_fail_errno(err, path, "read", ENOMEM);
      break;
    }
  }
  close(fd);
  if (rc != FL_OK) fl_buf_reset(out);
  return rc;
}

int fl_fs_mkdir(const char *path, fl_err *err) {
  char *made = NULL;
  int rc = fl_fs_mkdir_made(&made, path, err);
  fl_free(made);
  return rc;
}

int fl_fs_mkdir_made(char **made, const char *path, fl_err *err) {
  char *copy = fl_strdup(path);
  *made = NULL;
  if (copy == NULL) return fl_fs_fail_errno(err, path, "created", ENOMEM);
  int rc = FL_OK;
  for (char *at = copy + (*copy == '/'); rc == FL_OK; at++) {
    if (*at != '/' && *at != '\0') continue;
    char held = *at;
    *at = '\0';
    if (*copy != '\0' && mkdir(copy, 0777) != 0) {
      int number = errno;
      /* A parent may exist where we may not create: only "it is not there" is an error. */
      if (!fl_fs_is_dir(copy))
        rc = fl_fs_fail_errno(err, copy, "created", number == EEXIST ? ENOTDIR : number);
    } else if (*copy != '\0' && *made == NULL) {
      *made = fl_strdup(copy);
    }
    *at = held;
    if (held == '\0') break;
  }
  fl_free(copy);
  return rc;
}

void fl_fs_unmake_dir(const char *path, const char *made) {
  char *at = fl_strdup(path);
  for (size_t n = at != NULL ? strlen(at) : 0; n > 0; n--) {
    if (at[n - 1] != '/' && (at[n] == '/' || at[n] == '\0')) {
      at[n] = '\0';
      if (rmdir(at) != 0 || strcmp(at, made) == 0) break;
    }
  }
  fl_free(at);
}

bool fl_fs_exists(const char *path) {
  struct stat st;
  return stat(path, &st) == 0;
}

bool fl_fs_is_dir(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool fl_fs_same_file(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && is_same(&x, &y);
}

bool fl_fs_is_named(int fd, const char *path) {
  struct stat x, y;
  return fstat(fd, &x) == 0 && stat(path, &y) == 0 && is_same(&x, &y);
}

int fl_fs_remove(const char *path) {
  return unlink(path) == 0 || errno == ENOENT ? FL_OK : FL_EFAIL;
}

int fl_fs_size(uint64_t *out, const char *path, fl_err *err) {
  struct stat st;
  if (stat(path, &st) != 0) return fl_fs_fail_errno(err, path, "read", errno);
  *out = (uint64_t)st.st_size;
  return FL_OK;
}

char *fl_fs_join(const char *dir, const char *name) {
  size_t len = strlen(dir);
  const char *slash = len == 0 || dir[len - 1] == '/' ? "" : "/";
  return fl_asprintf("%s%s%s", dir, slash, name);
}

char *fl_fs_real(const char *path) {
  char *real = realpath(path, NULL); /* allocated by libc */
  return real != NULL ? real : fl_strdup(path);
}

int fl_fs_nameless(const char *dir) {
  int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  char *path = fl_fs_join(dir, FL_FS_NAMELESS "XXXXXX");
  if (path == NULL) {
    errno = ENOMEM;
    return -1;
  }
  fd = mkostemp(path, O_CLOEXEC);
  if (fd >= 0) (void)unlink(path);
  fl_free(path);
  return fd;
}

bool fl_fs_is_plain_name(const char *name) {
  size_t len = strlen(name);
  if (len == 0 || len > 255 || strchr(name, '/') != NULL) return false;
  return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

int fl_fs_list(char ***names, size_t *n, const char *dir, fl_err *err) {
  char **list = NULL;
  size_t len = 0, cap = 0;
  int rc = FL_OK;
  DIR *d = opendir(dir);
  if (d == NULL) return fl_fs_fail_errno(err, dir, "listed", errno);
  for (;;) {
    errno = 0;
    const struct dirent *entry = readdir(d);
    if (entry == NULL) {
      if (errno != 0) rc = fl_fs_fail_errno(err, dir, "listed", errno);
      break;
    }
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (len == cap) {
      cap = cap == 0 ? 16 : cap * 2;
      char **more = fl_reallocarray(list, cap, sizeof *list);
      if (more == NULL) goto oom;
      list = more;
    }
    list[len] = fl_strdup(entry->d_name);
    if (list[len] == NULL) goto oom;
    len++;
  }
  goto done;
oom:
  rc = fl_fs_fail_errno(err, dir, "listed", ENOMEM);
done:
  closedir(d);
  if (rc != FL_OK) {
    fl_fs_list_free(list, len);
    return rc;
  }
  if (len > 0) qsort(list, len, sizeof *list, by_bytes);
  *names = list;
  *n = len;
  return FL_OK;
}

void fl_fs_list_free(char **names, size_t n) {
  for (size_t i = 0; i < n; i++) fl_free(names[i]);
  fl_free(names);
}

struct fl_lock {
  int fd;
};

static int lock_busy(int fd, const char *path, fl_err *err) {
  char text[32] = "";
  ssize_t n = pread(fd, text, sizeof text - 1, 0);
  long pid = n > 0 ? strtol(text, NULL, 10) : 0;
  if (pid > 0)
    return fl_fail(err, FL_EBUSY, "%s: held by process %ld; wait for it or stop it", path, pid);
  return fl_fail(err, FL_EBUSY, "%s: held by another process; wait for it or stop it", path);
}

int fl_lock_take(fl_lock **out, const char *path, fl_err *err) {
  fl_lock *l = fl_calloc(1, sizeof *l);
  if (l == NULL) return fl_fs_fail_errno(err, path, "locked", ENOMEM);
  l->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  int rc;
  if (l->fd < 0) {
    rc = fl_fs_fail_errno(err, path, "opened", errno);
    goto done;
  }
  if (flock(l->fd, LOCK_EX | LOCK_NB) != 0) {
    rc = errno == EWOULDBLOCK ? lock_busy(l->fd, path, err)
                              : fl_fs_fail_errno(err, path, "locked", errno);
    goto done;
  }
  /* Its holder may have removed the file in between (fl_lock_remove). */
  if (!fl_fs_is_named(l->fd, path)) {
    rc = lock_busy(l->fd, path, err);
    goto done;
  }
  /* The number is a courtesy to whoever finds the lock taken; the lock holds without it. */
  if (ftruncate(l->fd, 0) == 0) dprintf(l->fd, "%ld\n", (long)getpid());
  *out = l;
  return FL_OK;
done:
  if (l->fd >= 0) close(l->fd);
  fl_free(l);
  return rc;
}

void fl_lock_drop(fl_lock *l) {
  if (l == NULL) return;
  /* The file stays, as other programs that lock it may look at less than fl_lock_take. */
  if (ftruncate(l->fd, 0) != 0) { /* an old number is harmless */
  }
  close(l->fd);
  fl_free(l);
}

void fl_lock_remove(fl_lock *l, const char *path) {
  if (l == NULL) return;
  (void)unlink(path); /* while it is held: who had it open already finds it nameless */
  fl_lock_drop(l);
}
