/* spillable.c - see spillable.h. */
#include "base/spillable.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fs.h"

/* It is a saving of memory and must not be what fills a disk: it takes a small part of what is
 * free, and nothing of file systems that lie in memory. */
static bool has_plenty(int fd, size_t n_bytes) {
  enum { PART = 16 };
  struct statfs fs;
  if (fstatfs(fd, &fs) != 0 || fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC) return false;
  return (double)fs.f_bavail * (double)fs.f_bsize >= PART * (double)n_bytes;
}

void *fl_spillable_new(const char *dir, size_t n_bytes) {
  if (n_bytes == 0 || n_bytes > PTRDIFF_MAX) return NULL;
  int fd = fl_fs_nameless(dir);
  if (fd < 0) return NULL;
  /* All blocks at once: a disk that fills up later must not show as a fault at an address. */
  void *p = MAP_FAILED;
  if (has_plenty(fd, n_bytes) && posix_fallocate(fd, 0, (off_t)n_bytes) == 0)
    p = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return p == MAP_FAILED ? NULL : p;
}

void fl_spillable_evict_pages(void *p, size_t n_bytes) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)p & ~(page - 1);
  if (p != NULL) madvise((void *)first, (uintptr_t)p - first + n_bytes, MADV_DONTNEED);
}

void fl_spillable_free(void *p, size_t n_bytes) {
  if (p != NULL) munmap(p, n_bytes);
}
