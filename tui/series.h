/* series.h - one curve: points in the order of x, with a pyramid of summaries, so that drawing
 * costs as much as the screen is wide and not as much as the run is long.
 *
 * Invariants: x strictly grows. Level L has ceil(n / 16^(L+1)) buckets, bucket i summing up the
 * points [i * 16^(L+1), (i + 1) * 16^(L+1)) as far as they exist.
 */
#ifndef TUI_SERIES_H
#define TUI_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TUI_SERIES_LEVELS = 3, TUI_SERIES_FAN = 16 };

typedef struct tui_point {
  uint32_t x;
  float y; /* finite */
} tui_point;

typedef struct tui_bucket {
  uint32_t x0;
  float min, max, mean;
} tui_bucket;

typedef struct tui_series {
  tui_point *point;
  size_t n, cap;
  struct {
    tui_bucket *bucket;
    size_t cap;
  } level[TUI_SERIES_LEVELS];
} tui_series;

/* What one column of a plot shows. */
typedef struct tui_column {
  float min, max, mean; /* of the points in the column; valid when n > 0 */
  float smooth;         /* exponential mean up to here; valid when any point came before */
  size_t n;
} tui_column;

/* Appends a point; a NaN or an infinity is left out. An x that is not beyond the last one first
 * takes back what lies at x and later (a run that went on from an older state). FL_OK or FL_ENOMEM,
 * then the series is unchanged. */
int tui_series_push(tui_series *s, uint32_t x, double y);
/* Drops the points with x > last. */
void tui_series_truncate(tui_series *s, uint32_t last);
void tui_series_reset(tui_series *s); /* keeps memory */
void tui_series_release(tui_series *s);

/* The value at the greatest point with x <= at; NaN if there is none. */
double tui_series_at(const tui_series *s, uint32_t at);

/* Summaries of [x0, x1) in n_cols equal columns. half_life: points after which the weight of a
 * point in `smooth` has halved; 0: smooth = mean. */
void tui_series_columns(const tui_series *s, double x0, double x1, double half_life,
                        tui_column *col, size_t n_cols);

/* A curve that is only ever drawn as a whole: at most TUI_THIN_POINTS points, each the mean of as
 * many values as that takes, at the x of the last of them. `s` is read like any other series. */
enum { TUI_THIN_POINTS = 4096 };
typedef struct tui_thin {
  tui_series s;
  size_t stride, n; /* values a point (0 counts as 1); values in `sum`, not yet a point */
  double sum;
} tui_thin;

int tui_thin_push(tui_thin *t, uint32_t x, double y); /* as tui_series_push */
void tui_thin_truncate(tui_thin *t, uint32_t last);

#endif
