/* fza.h - Adam moments in the FZA3 layout, little-endian: magic "FZA3", u32 slot count; per slot
 * u16 name length, name bytes, u64 rows, u64 cols, u64 step, first moment f32[rows*cols], second
 * moment f32[rows*cols]. Trailing bytes are an error here. */
#ifndef FL_FORMATS_FZA_H
#define FL_FORMATS_FZA_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct fl_fza_slot {
  const char *name; /* NUL-terminated */
  uint64_t rows, cols, step;
  float *m, *v; /* rows * cols values each */
} fl_fza_slot;

int fl_fza_write(const char *path, const fl_fza_slot *slots, size_t n, fl_err *err);

/* Fills the caller's slots by name: names, rows and cols given, m and v point to room, step is set.
 * Unknown, missing, duplicate names, other sizes, values that are not finite, second moments below
 * zero and trailing bytes are FL_EINPUT; a missing file FL_ENOENT. Staged: on failure nothing of
 * the caller's changed. */
int fl_fza_read(const char *path, fl_fza_slot *slots, size_t n, fl_err *err);

#endif
