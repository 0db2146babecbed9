/* mem.h - every allocation of the program goes through here.
 *
 * Sizes are products that are checked; a failed or overflowing request gives NULL, never a short
 * block. All blocks are released with fl_free(), which also takes what a library function allocated
 * with malloc for its caller. Test hooks: a fault after N allocations, and a guard that
 * counts allocations made while a hot path (a decoding or training step) runs.
 */
#ifndef FL_BASE_MEM_H
#define FL_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_ALIGN 64 /* bytes; one cache line, one AVX-512 vector */

void *fl_malloc(size_t n_bytes) __attribute__((malloc, warn_unused_result));
void *fl_calloc(size_t n, size_t size) __attribute__((malloc, warn_unused_result));
void *fl_reallocarray(void *p, size_t n, size_t size) __attribute__((warn_unused_result));
/* FL_ALIGN-aligned and zeroed; or not written at all, for the caller to write whole: large blocks
 * are in huge pages, and one that is written in part would hold more memory than was written. */
void *fl_aligned_calloc(size_t n, size_t size) __attribute__((malloc, warn_unused_result));
void *fl_aligned_malloc(size_t n, size_t size) __attribute__((malloc, warn_unused_result));
char *fl_strdup(const char *s) __attribute__((malloc, warn_unused_result));
char *fl_strndup(const char *s, size_t n) __attribute__((malloc, warn_unused_result));
char *fl_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2), warn_unused_result));
void fl_free(void *p);

/* From now on large blocks go back to the system when they are freed, whatever was freed before.
 * For programs, before their first thread. */
void fl_mem_return_large(void);
/* For a server, whose connections are threads, before the first of them: few heaps, because each
 * keeps what was in use in it at most. */
void fl_mem_share_heaps(void);
/* What is free inside the heaps goes back to the system: what a busy hour took, once it is over.
 * What the C library keeps for each thread that lives, some 40 KB, is not reached. */
void fl_mem_trim(void);

/* *out = a * b (or a + b); false and *out unset on overflow. */
static inline bool fl_mul_size(size_t a, size_t b, size_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}
static inline bool fl_add_size(size_t a, size_t b, size_t *out) {
  return !__builtin_add_overflow(a, b, out);
}

/* An arena: one block sized before use, carved in FL_ALIGN steps.
 * fl_arena_take() gives memory that is not zeroed; NULL when the block is used up.
 * Measuring: an arena with base == NULL and cap == SIZE_MAX hands out NULL but counts `used`
 * (fl_arena_measure()), so that one carve function both sizes and lays out a workspace. */
typedef struct fl_arena {
  uint8_t *base;
  size_t cap, used;
  bool measuring;
} fl_arena;

int fl_arena_init(fl_arena *a, size_t n_bytes); /* FL_OK or FL_ENOMEM */
void fl_arena_measure(fl_arena *a);
void *fl_arena_take(fl_arena *a, size_t n, size_t size);
/* Arrays that live and die together: `carve` takes them from a, once to measure and once for good.
 * They are zeroed. FL_OK or FL_ENOMEM, after which they are NULL and there is nothing to release.
 */
int fl_arena_lay_out(fl_arena *a, void (*carve)(fl_arena *a, void *ctx), void *ctx);
/* Takes the memory from the system now, not when it is first written. The content is lost. */
void fl_arena_touch(fl_arena *a);
/* The content from byte `from` on is lost; its memory goes back to the system until it is written
 * again. */
void fl_arena_forget(fl_arena *a, size_t from);
void fl_arena_release(fl_arena *a);

/* Test hooks (thread-local). fl_mem_fault_after(n): the n-th allocation from now fails, and every
 * later one, until fl_mem_fault_after(0). */
void fl_mem_fault_after(size_t n);
/* Between enter and leave (they nest) allocations of this thread are counted as hits; the count
 * only grows, so a test compares it before and after. */
void fl_mem_guard_enter(void);
void fl_mem_guard_leave(void);
size_t fl_mem_guard_hits(void);

#endif
