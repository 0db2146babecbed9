/* part.c - see part.h. */
#include "study/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"

struct fl_part {
  char *file, *path;
  char study[FL_HASH_TEXT];
  int fd;
  size_t size; /* bytes up to the end of the last mark */
  fl_part_count held;
};

#define MARK_HEAD "{\"name\":\"\",\"hash\":\"\",\"skipped\":true,"
#define SUM_HEAD ",\"sum\":\""

char *fl_part_path(const char *file) { return fl_asprintf("%s.part", file); }

/* --- reading --- */

static bool is_mark(const char *line, size_t len) {
  return len >= sizeof MARK_HEAD - 1 && memcmp(line, MARK_HEAD, sizeof MARK_HEAD - 1) == 0;
}

/* Takes the counts of a mark; its batch begins at `batch`. False: it does not hold. *same becomes
 * false where it is of another study. */
static bool read_mark(fl_part *p, bool *same, const char *batch, const char *line, size_t len) {
  fl_json *o = NULL;
  uint64_t tried = 0, written = 0;
  const char *of = "", *sum = "";
  const char *end = memmem(line, len, SUM_HEAD, sizeof SUM_HEAD - 1);
  char want[FL_HASH_TEXT];
  if (end == NULL) return false;
  fl_hash_bytes(want, batch, (size_t)(end - batch));
  const bool ok = fl_json_parse(&o, line, len, NULL) == FL_OK &&
                  fl_json_get_u64(o, "tried", &tried) && fl_json_get_u64(o, "written", &written) &&
                  fl_json_get_str(o, "study", &of) && fl_json_get_str(o, "sum", &sum) &&
                  strcmp(sum, want) == 0 && written <= tried && tried >= p->held.tried;
  if (ok) p->held = (fl_part_count){ (size_t)tried, (size_t)written };
  if (ok && strcmp(of, p->study) != 0) *same = false;
  fl_json_free(o);
  return ok;
}

/* Finds the last mark that holds: p->size and p->held. */
static int read_marks(fl_part *p, fl_err *err) {
  fl_map map;
  int rc = fl_map_open(&map, p->path, err);
  if (rc != FL_OK) return rc;
  const char *data = (const char *)map.data, *end;
  bool same = true;
  for (size_t at = 0; at < map.size; at = (size_t)(end - data) + 1) {
    end = memchr(data + at, '\n', map.size - at);
    if (end == NULL) break;
    const size_t len = (size_t)(end - data) - at;
    if (!is_mark(data + at, len)) continue;
    if (!read_mark(p, &same, data + p->size, data + at, len)) break;
    p->size = (size_t)(end - data) + 1;
  }
  if (map.size > 0 && p->size == 0)
    rc = fl_fail(err, FL_EINPUT, "%s: is not what a study left behind; move it away", p->path);
  else if (!same)
    rc = fl_fail(err, FL_EINPUT,
                 "%s: holds %zu conversations of a study with another model, other "
                 "documents or other options; finish that one, or move the file away",
                 p->path, p->held.written);
  fl_map_close(&map);
  return rc;
}

/* --- writing --- */

int fl_part_add(fl_part *p, const fl_buf *lines, const fl_part_count *now, fl_err *err) {
  char sum[FL_HASH_TEXT];
  fl_buf text = { 0 };
  if (lines->oom) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", p->path);
  if (lines->len > 0) fl_buf_append(&text, lines->data, lines->len);
  fl_buf_printf(&text, MARK_HEAD "\"study\":\"%s\",\"tried\":%zu,\"written\":%zu", p->study,
                now->tried, now->written);
  if (!text.oom) fl_hash_bytes(sum, text.data, text.len);
  if (!text.oom) fl_buf_printf(&text, SUM_HEAD "%s\"}\n", sum);
  const int why = text.oom ? ENOMEM : fl_fs_append(p->fd, p->size, text.data, text.len);
  if (why == 0) {
    p->size += text.len;
    p->held = *now;
  }
  fl_buf_release(&text);
  return why == 0 ? FL_OK : fl_fs_fail_errno(err, p->path, "written", why);
}

int fl_part_publish(fl_part *p, fl_err *err) {
  fl_map map;
  fl_sink *out;
  int rc = fl_map_open(&map, p->path, err);
  if (rc != FL_OK) return rc;
  rc = fl_fs_open_temp(&out, p->file, err);
  if (rc == FL_OK) {
    const char *data = (const char *)map.data;
    const size_t size = map.size < p->size ? map.size : p->size;
    for (size_t at = 0, len; at < size; at += len) {
      const char *end = memchr(data + at, '\n', size - at);
      len = end != NULL ? (size_t)(end - (data + at)) + 1 : size - at;
      if (!is_mark(data + at, len)) (void)fl_sink_write(out, data + at, len); /* sticks */
    }
    rc = fl_fs_commit_temp(out, p->file, err);
  }
  fl_map_close(&map);
  return rc;
}

/* --- opening and closing --- */

static void part_free(fl_part *p) {
  if (p->fd >= 0) close(p->fd); /* the lock goes with it */
  fl_free(p->file);
  fl_free(p->path);
  fl_free(p);
}

/* The lock lies on the file itself, so that a kill leaves no other file behind. */
static int open_locked(fl_part *p, fl_err *err) {
  int rc = fl_fs_check_replaceable(p->path, err);
  if (rc != FL_OK) return rc;
  p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (p->fd < 0) return fl_fs_fail_errno(err, p->path, "written", errno);
  const bool locked = flock(p->fd, LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno != EWOULDBLOCK) return fl_fs_fail_errno(err, p->path, "locked", errno);
  /* Its holder may have removed the file in between. */
  if (locked && fl_fs_is_named(p->fd, p->path)) return FL_OK;
  return fl_fail(err, FL_EBUSY,
                 "%s: another process is writing it; wait for that one, or give "
                 "--out another name",
                 p->path);
}

/* An empty file becomes a part of nothing. */
static int begin(fl_part *p, fl_err *err) {
  struct stat st;
  if (stat(p->file, &st) == 0) (void)fchmod(p->fd, (st.st_mode & 0777) | S_IRUSR | S_IWUSR);
  int rc = fl_part_add(p, &(fl_buf){ 0 }, &(fl_part_count){ 0 }, err);
  return rc == FL_OK ? fl_fs_sync_parent(p->path, err) : rc;
}

int fl_part_open(fl_part **out, fl_part_count *held, const char *file, const char *study,
                 fl_err *err) {
  int rc = fl_fs_check_replaceable(file, err);
  if (rc != FL_OK) return rc;
  fl_part *p = fl_calloc(1, sizeof *p);
  if (p == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", file);
  p->fd = -1;
  p->file = fl_strdup(file);
  p->path = fl_part_path(file);
  snprintf(p->study, sizeof p->study, "%s", study);
  if (p->file == NULL || p->path == NULL)
    rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory", file);
  if (rc == FL_OK) rc = open_locked(p, err);
  if (rc == FL_OK) rc = read_marks(p, err);
  if (rc == FL_OK && p->size == 0) rc = begin(p, err);
  if (rc == FL_OK && ftruncate(p->fd, (off_t)p->size) != 0)
    rc = fl_fs_fail_errno(err, p->path, "written", errno);
  if (rc != FL_OK) {
    part_free(p);
    return rc;
  }
  *held = p->held;
  *out = p;
  return FL_OK;
}

void fl_part_close(fl_part *p, bool done) {
  if (p == NULL) return;
  if (done || p->held.tried == 0) (void)fl_fs_remove(p->path);
  part_free(p);
}
