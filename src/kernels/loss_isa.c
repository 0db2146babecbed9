/* loss_isa.c - scans over a vocabulary, compiled once per instruction-set level. */
#include "kernels/loss_isa.h"

#include "kernels/simd.h"
#include "kernels/table.h"

static int any(vi mask) {
  int32_t m = 0;
  for (int i = 0; i < VF; i++) m |= mask[i];
  return m != 0;
}

/* Four vectors are asked at once: on a vocabulary nearly every answer is no. */
static size_t next_above(const float *x, size_t from, size_t n, float bar) {
  size_t i = from;
  for (vf b = vf_set1(bar); n - i >= 4 * VF; i += 4 * VF) {
    vi lo = (vf_load(x + i) > b) | (vf_load(x + i + VF) > b);
    vi hi = (vf_load(x + i + 2 * VF) > b) | (vf_load(x + i + 3 * VF) > b);
    if (any(lo | hi)) break;
  }
  while (i < n && !(x[i] > bar)) i++;
  return i;
}

extern const struct fl_loss_ops FL_ISA_TABLE(fl_loss_ops);
const struct fl_loss_ops FL_ISA_TABLE(fl_loss_ops) = { .next_above = next_above };
