/* fs.h - files: mapping, whole reads, durable writes, atomic replacement, locks, listing.
 *
 * Durability rules used by every writer of the program:
 *   - a new file under a name nobody refers to yet: fl_sink_open, fl_sink_write, fl_sink_close
 *     (which fsyncs), then fl_fs_sync_dir;
 *   - replacing a file that is referred to: fl_fs_replace (temporary file beside it, fsync, rename,
 *     fsync of the folder): a reader sees the old content or the new, whole.
 * A failed write removes what it began and reports the reason (a full disk by that name).
 * The program ignores SIGXFSZ, so that a size limit shows as such a reason and not as its death.
 */
#ifndef FL_BASE_FS_H
#define FL_BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct fl_map {
  const uint8_t *data; /* read-only private mapping; an empty file maps to data = "", size = 0 */
  size_t size;
} fl_map;

int fl_map_open(fl_map *out, const char *path, fl_err *err);
void fl_map_close(fl_map *m);
/* Tells the system that [offset, offset + size) is not needed soon (resident memory goes down). */
void fl_map_drop(const fl_map *m, size_t offset, size_t size);

/* Reads a whole regular file into *out (emptied first). More than max_bytes: FL_EINPUT that names
 * the limit. Missing: FL_ENOENT. */
int fl_fs_read(fl_buf *out, const char *path, size_t max_bytes, fl_err *err);

typedef struct fl_sink fl_sink;
/* Creates or truncates `path` for writing, buffered. */
int fl_sink_open(fl_sink **out, const char *path, fl_err *err);
/* Errors stick; the first is reported by close. Returns the sticking code. */
int fl_sink_write(fl_sink *s, const void *data, size_t n_bytes);
/* Flushes, fsyncs, closes. On any failure the file is removed. Always frees `s`. */
int fl_sink_close(fl_sink *s, fl_err *err);
/* Closes and removes the file. */
void fl_sink_abandon(fl_sink *s);

int fl_fs_replace(const char *path, const void *data, size_t n_bytes, fl_err *err);
/* Only a regular file may be replaced: a rename over a device, a pipe or a link would put a file in
 * its place. FL_OK where nothing is there. */
int fl_fs_check_replaceable(const char *path, fl_err *err);
/* Opens a sink on a fresh temporary file beside `path`, PATH.tmp-PID-N, with the permissions of
 * `path` when that exists (a crash may leave such a file behind); fl_fs_commit_temp
 * closes it, renames it to `path` and syncs the folder. The way to replace large files. */
int fl_fs_open_temp(fl_sink **out, const char *path, fl_err *err);
int fl_fs_commit_temp(fl_sink *s, const char *path, fl_err *err);
/* Writes all of it, in as many calls as that takes. 0 or an errno. */
int fl_fs_write(int fd, const void *data, size_t n_bytes);
/* Writes all of it behind the first `at` bytes of a file and syncs. 0 or an errno; then the file
 * has those bytes alone, as far as its disk allows. */
int fl_fs_append(int fd, size_t at, const void *data, size_t n_bytes);
/* Hands all that was written to the system and gives the file's path, for reading it back before
 * it is committed; NULL once a write has failed (the commit says why). */
const char *fl_sink_settle(fl_sink *s);

int fl_fs_sync_dir(const char *dir, fl_err *err);
int fl_fs_sync_parent(const char *path, fl_err *err); /* the folder that a file lies in */
int fl_fs_mkdir(const char *path, fl_err *err);       /* with parents; existing folder is FL_OK */
/* The same; *made = the first folder of the path that was not there, NULL: all were (fl_free). */
int fl_fs_mkdir_made(char **made, const char *path, fl_err *err);
/* Takes that back: removes the folders from `path` up to `made`, as far as they are empty. */
void fl_fs_unmake_dir(const char *path, const char *made);
bool fl_fs_exists(const char *path);
bool fl_fs_is_dir(const char *path);
bool fl_fs_same_file(const char *a, const char *b); /* both names lead to one that is there */
/* Whether the path names the open file now. */
bool fl_fs_is_named(int fd, const char *path);
int fl_fs_remove(const char *path); /* missing is FL_OK */
int fl_fs_size(uint64_t *out, const char *path, fl_err *err);
/* dir + "/" + name, allocated. */
char *fl_fs_join(const char *dir, const char *name);
/* The path of what a path leads to, from the root and without links; where nothing is there, the
 * path as it is. For fl_free; NULL: no memory. */
char *fl_fs_real(const char *path);
/* True for a plain file name: 1 to 255 bytes, no '/', neither "." nor "..". */
bool fl_fs_is_plain_name(const char *name);

/* A file of folder dir that nobody else can open and that ends with its last user; -1 with errno.
 * Where the file system has no files without names, one whose name goes at once: what is left of it
 * by a kill in between begins with FL_FS_NAMELESS. */
#define FL_FS_NAMELESS ".nameless.tmp-"
int fl_fs_nameless(const char *dir);

/* Names of a folder's entries in byte order, without "." and "..". fl_fs_list_free frees both. */
int fl_fs_list(char ***names, size_t *n, const char *dir, fl_err *err);
void fl_fs_list_free(char **names, size_t n);

/* An exclusive advisory lock (flock) on `path`, created if missing; FL_EBUSY with the pid of the
 * holder where it is known. The lock goes with the process, crash included. */
typedef struct fl_lock fl_lock;
int fl_lock_take(fl_lock **out, const char *path, fl_err *err);
void fl_lock_drop(fl_lock *l);
void fl_lock_remove(fl_lock *l, const char *path); /* drops it and removes its file */

/* The reason that an errno value stands for, as a phrase ("no space left on the disk"). */
const char *fl_fs_reason(int errno_value);
/* Fails with "PATH: cannot be DONE: reason; remedy". FL_ENOENT for ENOENT, FL_ENOMEM for ENOMEM,
 * FL_EINPUT for EISDIR, FL_EFAIL otherwise. */
int fl_fs_fail_errno(fl_err *err, const char *path, const char *done, int errno_value);

#endif
