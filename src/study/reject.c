/* reject.c - finding loops, blanks and texts that the limits ended. */
#include "study/reject.h"

#include <string.h>

enum { GRAM = 4, GRAM_MIN_TOKENS = 16, LOOP_MIN = 8, LOOP_TIMES = 3, MAX_BYTES_PER_TOKEN = 16 };

const char *fl_reject_name(fl_reject r) {
  switch (r) {
  case FL_REJECT_NOT: return NULL;
  case FL_REJECT_EMPTY: return "empty";
  case FL_REJECT_CUT: return "cut";
  case FL_REJECT_LONG: return "long";
  case FL_REJECT_REPETITIVE: return "repetitive";
  case FL_REJECT_FOREIGN: return "foreign";
  case FL_REJECT_ECHO: return "echo";
  case FL_REJECT_UNSURE: return "unsure";
  case FL_REJECT_SAME: return "same";
  }
  return NULL;
}

static size_t count_gram(const int32_t *ids, size_t n, size_t at) {
  size_t count = 1, i = at + GRAM;
  while (i + GRAM <= n) {
    if (memcmp(ids + at, ids + i, GRAM * sizeof *ids) == 0) {
      count++;
      i += GRAM;
    } else {
      i++;
    }
  }
  return count;
}

/* Texts are at most a few thousand tokens: the square of that is milliseconds. */
static bool gram_dominates(const int32_t *ids, size_t n) {
  if (n < GRAM_MIN_TOKENS) return false;
  /* A first occurrence past the middle cannot cover half. */
  for (size_t i = 0; 2 * (n - i) > n; i++)
    if (2 * GRAM * count_gram(ids, n, i) > n) return true;
  return false;
}

/* A stretch of `period` tokens that stands LOOP_TIMES times in a row. */
static bool loops(const int32_t *ids, size_t n, size_t period) {
  size_t run = 0;
  for (size_t i = 0; i + period < n; i++) {
    run = ids[i] == ids[i + period] ? run + 1 : 0;
    if (run >= (LOOP_TIMES - 1) * period) return true;
  }
  return false;
}

bool fl_reject_repetitive(const int32_t *ids, size_t n) {
  if (gram_dominates(ids, n)) return true;
  for (size_t period = LOOP_MIN; LOOP_TIMES * period <= n; period++)
    if (loops(ids, n, period)) return true;
  return false;
}

fl_reject fl_reject_judge(const fl_written *w) {
  if (w->len == 0) return FL_REJECT_EMPTY;
  if (w->cut) return FL_REJECT_CUT;
  if (w->len / MAX_BYTES_PER_TOKEN > w->max_tokens) return FL_REJECT_LONG;
  return fl_reject_repetitive(w->ids, w->n_ids) ? FL_REJECT_REPETITIVE : FL_REJECT_NOT;
}
