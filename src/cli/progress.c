/* progress.c - see progress.h. */
#include "cli/progress.h"

#include <stdio.h>

#include "base/log.h"
#include "base/units.h"

void progress_line(void *ctx, const fl_progress *p) {
  (void)ctx;
  if (fl_log_level() < 0) return;
  char left[32];
  if (p->note) {
    fprintf(stderr, "%s", p->note);
    if (p->of > 0) fprintf(stderr, " %zu/%zu", p->at, p->of);
    if (p->of > 0 && p->left_s > 0)
      fprintf(stderr, "  %s left", fl_format_seconds(left, p->left_s));
    fprintf(stderr, "%s%s\n", p->doc ? ": " : "", p->doc ? p->doc : "");
    return;
  }
  if (p->tokens == 0) {
    fprintf(stderr, "round %llu/%llu  no conversation came out  %s left  %s\n",
            (unsigned long long)p->round, (unsigned long long)p->rounds_total,
            fl_format_seconds(left, p->left_s), p->doc ? p->doc : "");
    return;
  }
  double rate = p->round_s > 0 ? (double)p->tokens / p->round_s : 0;
  fprintf(stderr,
          "round %llu/%llu  loss %.4f (teacher %.4f)  lr %.3g  %zu tokens, %.0f/s  %s left  %s\n",
          (unsigned long long)p->round, (unsigned long long)p->rounds_total, p->loss, p->teacher,
          p->lr, p->tokens, rate, fl_format_seconds(left, p->left_s), p->doc ? p->doc : "");
}
