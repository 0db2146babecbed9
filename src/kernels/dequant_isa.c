/* dequant_isa.c - panels of any weight type to f32, one build per level. */
#include "kernels/dequant_isa.h"

#include "kernels/mapped_isa.h"
#include "kernels/dequant_read.h"

/* kind and G (vectors in a panel's width) are constants wherever this is inlined. */
FL_VEC void dequant_width(fl_panel_kind kind, const fl_panel_format *f, size_t G, float *out,
                          size_t ld, const uint8_t *panel, size_t k0, size_t n) {
  const size_t nr = G * VF;
  for (size_t k = k0; k < k0 + n;) {
    const run r = run_at(kind, f, panel, nr, k, k0 + n);
    affine a[4];
#pragma GCC unroll 4
    for (size_t g = 0; g < G; g++) a[g] = affine_at(kind, f, panel, nr, k, g * VF);
    for (size_t i = 0; i < r.n; i += step_of(kind))
#pragma GCC unroll 8
      for (size_t u = 0; u < step_of(kind); u++, out += ld)
#pragma GCC unroll 4
        for (size_t g = 0; g < G; g++)
          vf_store(out + g * VF, value_at(kind, r.base, nr, r.i + i, u, g * VF, a[g]));
    k += r.n;
  }
}

FL_VEC void dequant_kind(fl_panel_kind kind, const fl_panels *w, float *out, size_t ld,
                         const uint8_t *panel, size_t k0, size_t n) {
  if (w->nr == WIDE) dequant_width(kind, w->format, WIDE / VF, out, ld, panel, k0, n);
  else dequant_width(kind, w->format, NARROW / VF, out, ld, panel, k0, n);
}

static void dequant_lanes(const fl_panels *w, float *out, size_t ld, size_t panel, size_t k0,
                          size_t n) {
  for (size_t k = k0; k < k0 + n; k++)
    for (size_t l = 0; l < w->nr; l++) out[(k - k0) * ld + l] = fl_panel_value(w, panel, k, l);
}

static void dequant(const fl_panels *w, float *out, size_t ld, size_t panel, size_t k0, size_t n) {
  if (!w->data) {
    w->kern->mapped->dequant(w, out, ld, panel, k0, n);
    return;
  }
  const uint8_t *at = fl_panel_base(w, panel);
  if (!fits(w->nr)) {
    dequant_lanes(w, out, ld, panel, k0, n);
    return;
  }
  switch (w->format->kind) {
  case FL_PANEL_F32: dequant_kind(FL_PANEL_F32, w, out, ld, at, k0, n); break;
  case FL_PANEL_F16: dequant_kind(FL_PANEL_F16, w, out, ld, at, k0, n); break;
  case FL_PANEL_BF16: dequant_kind(FL_PANEL_BF16, w, out, ld, at, k0, n); break;
  case FL_PANEL_I8: dequant_kind(FL_PANEL_I8, w, out, ld, at, k0, n); break;
  case FL_PANEL_4BIT: dequant_kind(FL_PANEL_4BIT, w, out, ld, at, k0, n); break;
  case FL_PANEL_5BIT: dequant_kind(FL_PANEL_5BIT, w, out, ld, at, k0, n); break;
  case FL_PANEL_6BIT: dequant_kind(FL_PANEL_6BIT, w, out, ld, at, k0, n); break;
  }
}

const struct fl_dequant_ops FL_ISA_TABLE(fl_dequant_ops) = { .dequant = dequant };
