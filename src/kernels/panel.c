/* panel.c - packing of weights into panels (layout in panel.h). */
#include "kernels/panel.h"

#include <string.h>

#include "base/mem.h"

typedef struct pack_job {
  fl_panels *w;
  const void *const *data;
  const size_t *n_out; /* of each part */
  size_t n_parts, row_bytes;
} pack_job;

/* Row `o` of the parts laid one after the other; NULL past the end. */
static const uint8_t *row_of(const pack_job *job, size_t o) {
  for (size_t i = 0; i < job->n_parts; i++) {
    if (o < job->n_out[i]) return (const uint8_t *)job->data[i] + o * job->row_bytes;
    o -= job->n_out[i];
  }
  return NULL;
}

static void pack_lane_32(uint8_t *panel, const uint8_t *row, size_t lane, size_t nr, size_t n) {
  for (size_t k = 0; k < n; k++) memcpy(panel + (k * nr + lane) * 4, row + k * 4, 4);
}

static void pack_lane_16(uint8_t *panel, const uint8_t *row, size_t lane, size_t nr, size_t n) {
  for (size_t k = 0; k < n; k++) memcpy(panel + (k * nr + lane) * 2, row + k * 2, 2);
}

static void pack_lane_q8_0(uint8_t *panel, const uint8_t *row, size_t lane, size_t nr, size_t n) {
  const size_t block = FL_Q8_BLOCK + 2;
  for (size_t b = 0; b < n / FL_Q8_BLOCK; b++) {
    uint8_t *to = panel + b * block * nr;
    const uint8_t *from = row + b * block;
    memcpy(to + lane * 2, from, 2);
    for (size_t i = 0; i < FL_Q8_BLOCK; i++) to[2 * nr + i * nr + lane] = from[2 + i];
  }
}

static void pack_lane_raw(const fl_panels *w, uint8_t *panel, const uint8_t *row, size_t lane) {
  for (size_t k = 0; k < w->n_in; k += FL_KC) {
    size_t len = w->n_in - k < FL_KC ? w->n_in - k : FL_KC;
    size_t bytes = len / w->traits->block * w->traits->bytes;
    size_t at = k / w->traits->block * w->traits->bytes;
    memcpy(panel + at * w->nr + lane * bytes, row + at, bytes);
  }
}

static void pack_lane(const fl_panels *w, uint8_t *panel, const uint8_t *row, size_t lane) {
  switch (w->traits->type) {
  case FL_F32: pack_lane_32(panel, row, lane, w->nr, w->n_in); break;
  case FL_F16:
  case FL_BF16: pack_lane_16(panel, row, lane, w->nr, w->n_in); break;
  case FL_Q8_0: pack_lane_q8_0(panel, row, lane, w->nr, w->n_in); break;
  default: pack_lane_raw(w, panel, row, lane); break;
  }
}

static void pack_panels(void *ctx, unsigned rank, unsigned n_ranks) {
  const pack_job *job = ctx;
  const fl_panels *w = job->w;
  size_t p0, p1;
  fl_share(w->n_panels, rank, n_ranks, &p0, &p1);
  for (size_t p = p0; p < p1; p++)
    for (size_t lane = 0; lane < w->nr; lane++) {
      const uint8_t *row = row_of(job, p * w->nr + lane);
      if (row) pack_lane(w, w->data + p * w->panel_bytes, row, lane);
    }
}

static bool is_raw(fl_dtype type) {
  return type != FL_F32 && type != FL_F16 && type != FL_BF16 && type != FL_Q8_0;
}

int fl_panels_pack(fl_panels **out, const fl_kernels *kern, fl_team *team, fl_dtype type,
                   const void *const *data, const size_t *n_out, size_t n_parts, size_t n_in,
                   fl_err *err) {
  pack_job job = { .data = data, .n_out = n_out, .n_parts = n_parts };
  const fl_dtype_traits *traits = fl_dtype_get(type);
  if (!traits || n_in == 0 || !fl_dtype_row_bytes(traits, n_in, &job.row_bytes))
    return fl_fail(err, FL_EINPUT, "a matrix of type %s cannot have rows of %zu values",
                   fl_dtype_any_name(type), n_in);
  size_t total = 0, padded, bytes;
  for (size_t i = 0; i < n_parts; i++)
    if (!fl_add_size(total, n_out[i], &total)) total = 0;
  const size_t nr = kern->ukr.nr;
  if (total == 0 || !fl_add_size(total, nr - 1, &padded) ||
      !fl_mul_size(padded / nr * nr, job.row_bytes, &bytes))
    return fl_fail(err, FL_EINPUT, "a matrix of %zu rows of %zu values is empty or too large",
                   total, n_in);
  fl_panels *w = fl_calloc(1, sizeof *w);
  uint8_t *block = w ? fl_aligned_calloc(bytes, 1) : NULL;
  if (!block) {
    fl_free(w);
    return fl_fail(err, FL_ENOMEM, "no memory for %zu bytes of packed weights", bytes);
  }
  *w = (fl_panels){ .kern = kern, .traits = traits, .n_out = total, .n_in = n_in, .nr = nr,
                    .n_panels = padded / nr, .panel_bytes = job.row_bytes * nr,
                    .raw = is_raw(type), .data = block };
  job.w = w;
  fl_team_run(team, pack_panels, &job);
  *out = w;
  return FL_OK;
}

void fl_panels_free(fl_panels *w) {
  if (!w) return;
  fl_free(w->data);
  fl_free(w);
}

size_t fl_panels_n_out(const fl_panels *w) { return w->n_out; }
size_t fl_panels_n_in(const fl_panels *w) { return w->n_in; }
size_t fl_panels_bytes(const fl_panels *w) { return w->n_panels * w->panel_bytes; }
fl_dtype fl_panels_type(const fl_panels *w) { return w->traits->type; }
size_t fl_panels_nr(const fl_panels *w) { return w->nr; }

float fl_panel_value(const fl_panels *w, size_t panel, size_t k, size_t lane) {
  const uint8_t *base = fl_panel_base(w, panel);
  uint16_t half;
  float f;
  switch (w->traits->type) {
  case FL_F32:
    memcpy(&f, base + (k * w->nr + lane) * sizeof f, sizeof f);
    return f;
  case FL_F16:
    memcpy(&half, base + (k * w->nr + lane) * sizeof half, sizeof half);
    return fl_f16_to_f32(half);
  case FL_BF16:
    memcpy(&half, base + (k * w->nr + lane) * sizeof half, sizeof half);
    return fl_bf16_to_f32(half);
  default: { /* Q8_0 */
    const uint8_t *block = base + k / FL_Q8_BLOCK * w->nr * (FL_Q8_BLOCK + 2);
    memcpy(&half, block + lane * sizeof half, sizeof half);
    int8_t q = (int8_t)block[2 * w->nr + k % FL_Q8_BLOCK * w->nr + lane];
    return fl_f16_to_f32(half) * (float)q;
  }
  }
}

void fl_panels_row(const fl_panels *w, float *out, size_t i) {
  const size_t panel = i / w->nr, lane = i % w->nr;
  if (!w->raw) {
    for (size_t k = 0; k < w->n_in; k++) out[k] = fl_panel_value(w, panel, k, lane);
    return;
  }
  for (size_t k = 0; k < w->n_in; k += FL_KC) {
    size_t len = w->n_in - k < FL_KC ? w->n_in - k : FL_KC;
    size_t bytes = len / w->traits->block * w->traits->bytes;
    const uint8_t *at = fl_panel_base(w, panel) + k / w->traits->block * w->traits->bytes * w->nr;
    w->traits->dequantise(out + k, at + lane * bytes, len);
  }
}
