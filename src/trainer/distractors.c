/* distractors.c - see distractors.h. */
#include "trainer/distractors.h"

#include "base/rng.h"

size_t fl_distractors_draw(const fl_distractor_options *o, uint32_t doc, uint32_t round,
                           uint32_t conv, size_t target, size_t n, uint32_t *parts) {
  fl_rng r = fl_rng_stream(o->seed, FL_RNG_VISIBLE, doc, round, conv);
  /* Always drawn, so that what follows does not depend on how many are resident. */
  double u = fl_rng_unit(&r);
  size_t most = o->distract_max < n - 1 ? o->distract_max : n - 1;
  if (u < o->p_iso || most == 0) {
    parts[0] = (uint32_t)target;
    return 1;
  }
  size_t k = 1 + (size_t)fl_rng_below(&r, most);
  size_t others = 0;
  for (size_t i = 0; i < n; i++)
    if (i != target) parts[others++] = (uint32_t)i;
  fl_rng_shuffle(&r, parts, others);
  parts[k] = (uint32_t)target;
  fl_rng_shuffle(&r, parts, k + 1);
  return k + 1;
}
