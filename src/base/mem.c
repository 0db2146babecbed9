/* mem.c - the only file that calls the C library's allocator.
 *
 * Every block passes admit(), where the two test hooks live: the fault that makes the n-th request
 * fail, and the guard that counts requests made inside a hot path. Both are per thread, so a test
 * in one thread does not disturb another. */
#include "base/mem.h"

#if defined __GLIBC__
#include <malloc.h>
#endif
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"

enum { HUGE_PAGE = 2 << 20 };

static _Thread_local struct {
  size_t fault_in; /* requests until the failing one; 0: no fault planned; 1: this one and later */
  size_t guard_depth, guard_hits;
} hooks;

static bool admit(void) {
  if (hooks.guard_depth > 0) hooks.guard_hits++;
  if (hooks.fault_in == 0) return true;
  if (hooks.fault_in == 1) return false;
  hooks.fault_in--;
  return true;
}

void *fl_malloc(size_t n_bytes) {
  if (n_bytes > PTRDIFF_MAX || !admit()) return NULL;
  return malloc(n_bytes > 0 ? n_bytes : 1);
}

void *fl_calloc(size_t n, size_t size) {
  size_t total;
  if (!fl_mul_size(n, size, &total) || total > PTRDIFF_MAX || !admit()) return NULL;
  return calloc(total > 0 ? total : 1, 1);
}

void *fl_reallocarray(void *p, size_t n, size_t size) {
  size_t total;
  if (!fl_mul_size(n, size, &total) || total > PTRDIFF_MAX || !admit()) return NULL;
  return realloc(p, total > 0 ? total : 1);
}

/* Uninitialised, aligned; *rounded = its size, a multiple of FL_ALIGN. */
static void *aligned_block(size_t n, size_t size, size_t align, size_t *rounded) {
  size_t total;
  if (!fl_mul_size(n, size, &total) || total > PTRDIFF_MAX - FL_ALIGN || !admit()) return NULL;
  *rounded = total > 0 ? (total + FL_ALIGN - 1) / FL_ALIGN * FL_ALIGN : FL_ALIGN;
  /* aligned_alloc() takes multiples of the alignment only. */
  void *p = NULL;
  return posix_memalign(&p, *rounded < align ? FL_ALIGN : align, *rounded) == 0 ? p : NULL;
}

/* Large blocks hold weights, which are read from end to end over and over: in huge pages, where the
 * system has them, that costs a fraction of the address translations. */
static void *large_block(size_t n, size_t size, size_t *rounded) {
  void *p = aligned_block(n, size, HUGE_PAGE, rounded);
#if defined MADV_HUGEPAGE
  if (p != NULL && *rounded >= HUGE_PAGE)
    madvise(p, *rounded / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
  return p;
}

void *fl_aligned_malloc(size_t n, size_t size) {
  size_t rounded;
  return large_block(n, size, &rounded);
}

void *fl_aligned_calloc(size_t n, size_t size) {
  size_t rounded;
  void *p = large_block(n, size, &rounded);
  if (p != NULL) memset(p, 0, rounded);
  return p;
}

void fl_mem_return_large(void) {
#if defined M_MMAP_THRESHOLD
  enum { LARGE = 1 << 20 };
  mallopt(M_MMAP_THRESHOLD, LARGE); /* the C library would raise it with every block freed */
#endif
}

void fl_mem_share_heaps(void) {
#if defined M_ARENA_MAX
  enum { HEAPS = 4 };
  mallopt(M_ARENA_MAX, HEAPS); /* the C library would make as many as eight times the cores */
#endif
}

void fl_mem_trim(void) {
#if defined __GLIBC__
  (void)malloc_trim(0);
#endif
}

static char *copy_text(const char *s, size_t len) {
  char *out = fl_malloc(len + 1);
  if (out == NULL) return NULL;
  memcpy(out, s, len);
  out[len] = '\0';
  return out;
}

char *fl_strdup(const char *s) { return copy_text(s, strlen(s)); }

char *fl_strndup(const char *s, size_t n) { return copy_text(s, strnlen(s, n)); }

char *fl_asprintf(const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  char *out = NULL;
  int len = vsnprintf(NULL, 0, fmt, ap);
  if (len >= 0) out = fl_malloc((size_t)len + 1);
  if (out != NULL) vsnprintf(out, (size_t)len + 1, fmt, again);
  va_end(again);
  va_end(ap);
  return out;
}

void fl_free(void *p) { free(p); }

int fl_arena_init(fl_arena *a, size_t n_bytes) {
  size_t rounded;
  uint8_t *base = aligned_block(n_bytes, 1, FL_ALIGN, &rounded);
  if (base == NULL) return FL_ENOMEM;
  *a = (fl_arena){ .base = base, .cap = rounded };
  return FL_OK;
}

void fl_arena_measure(fl_arena *a) { *a = (fl_arena){ .cap = SIZE_MAX, .measuring = true }; }

void *fl_arena_take(fl_arena *a, size_t n, size_t size) {
  size_t total, end;
  bool fits = fl_mul_size(n, size, &total) && fl_add_size(total, FL_ALIGN - 1, &total);
  total = total / FL_ALIGN * FL_ALIGN;
  fits = fits && fl_add_size(a->used, total, &end) && end <= a->cap;
  if (!fits) {
    /* An unmeasurable sum must not look like a small one: the arena of this size then fails. */
    if (a->measuring) a->used = SIZE_MAX;
    return NULL;
  }
  void *p = a->measuring ? NULL : a->base + a->used;
  a->used = end;
  return p;
}

int fl_arena_lay_out(fl_arena *a, void (*carve)(fl_arena *a, void *ctx), void *ctx) {
  fl_arena_measure(a);
  carve(a, ctx);
  const size_t n_bytes = a->used;
  *a = (fl_arena){ 0 };
  if (fl_arena_init(a, n_bytes) < 0) return FL_ENOMEM;
  memset(a->base, 0, a->cap);
  carve(a, ctx);
  return FL_OK;
}

void fl_arena_touch(fl_arena *a) { memset(a->base, 0, a->cap); }

void fl_arena_forget(fl_arena *a, size_t from) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const uintptr_t base = (uintptr_t)a->base, end = (base + a->cap) / page * page;
  const uintptr_t first = (base + from + page - 1) / page * page; /* whole pages only */
  if (first < end) madvise(a->base + (first - base), end - first, MADV_DONTNEED);
}

void fl_arena_release(fl_arena *a) {
  free(a->base);
  *a = (fl_arena){ 0 };
}

void fl_mem_fault_after(size_t n) { hooks.fault_in = n; }

void fl_mem_guard_enter(void) { hooks.guard_depth++; }

void fl_mem_guard_leave(void) {
  if (hooks.guard_depth > 0) hooks.guard_depth--;
}

size_t fl_mem_guard_hits(void) { return hooks.guard_hits; }
