/* panel.c - packing of weights into panels (layout in panel.h). */
#include "kernels/panel.h"

#include <string.h>

#include "base/mem.h"

static const fl_panel_format forms[] = {
  { FL_F32, FL_PANEL_F32, 1, 0, 4, 1 },         { FL_F16, FL_PANEL_F16, 1, 0, 2, 1 },
  { FL_BF16, FL_PANEL_BF16, 1, 0, 2, 1 },       { FL_Q8_0, FL_PANEL_I8, 32, 2, 34, 32 },
  { FL_Q4_0, FL_PANEL_4BIT, 32, 2, 18, 32 },    { FL_Q4_1, FL_PANEL_4BIT, 32, 4, 20, 32 },
  { FL_Q5_0, FL_PANEL_5BIT, 32, 2, 22, 32 },    { FL_Q5_1, FL_PANEL_5BIT, 32, 4, 24, 32 },
  { FL_Q4_K, FL_PANEL_4BIT, 256, 20, 148, 32 }, { FL_Q5_K, FL_PANEL_5BIT, 256, 20, 180, 32 },
  { FL_Q6_K, FL_PANEL_6BIT, 256, 18, 210, 16 },
};

const fl_panel_format *fl_panel_format_of(fl_dtype type) {
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (forms[i].type == type) return &forms[i];
  return NULL;
}

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
  enum { BLOCK = 32, BYTES = BLOCK + 2 };
  for (size_t b = 0; b < n / BLOCK; b++) {
    uint8_t *to = panel + b * BYTES * nr;
    const uint8_t *from = row + b * BYTES;
    memcpy(to + lane * 2, from, 2);
    for (size_t i = 0; i < BLOCK; i += 4) memcpy(to + (2 + i) * nr + 4 * lane, from + 2 + i, 4);
  }
}

static void pack_lane(const fl_panels *w, uint8_t *panel, const uint8_t *row, size_t lane) {
  switch (w->format->kind) {
  case FL_PANEL_F32: pack_lane_32(panel, row, lane, w->nr, w->n_in); break;
  case FL_PANEL_F16:
  case FL_PANEL_BF16: pack_lane_16(panel, row, lane, w->nr, w->n_in); break;
  case FL_PANEL_I8: pack_lane_q8_0(panel, row, lane, w->nr, w->n_in); break;
  default: fl_panel_pack_bits(w, panel, row, lane); break;
  }
}

static void pack_panels(void *ctx, unsigned rank, unsigned n_ranks) {
  const pack_job *job = ctx;
  const fl_panels *w = job->w;
  size_t p0, p1;
  fl_thread_range(w->n_panels, rank, n_ranks, &p0, &p1);
  for (size_t p = p0; p < p1; p++) {
    uint8_t *panel = w->data + p * w->panel_bytes;
    memset(panel, 0, w->panel_bytes); /* here, so that the threads share the system's part too */
    for (size_t lane = 0; lane < w->nr; lane++) {
      const uint8_t *row = row_of(job, p * w->nr + lane);
      if (row) pack_lane(w, panel, row, lane);
    }
  }
}

/* Panels begin at cache lines, and not at multiples of a large power of two from one another: the
 * products read many panels side by side, which then would all fall into the same cache sets. */
static bool panel_stride(size_t n_bytes, size_t *out) {
  size_t most;
  if (!fl_add_size(n_bytes, 2 * FL_ALIGN, &most)) return false;
  size_t lines = (n_bytes + FL_ALIGN - 1) / FL_ALIGN;
  *out = (lines % 8 == 0 ? lines + 1 : lines) * FL_ALIGN;
  return true;
}

int fl_panels_pack(fl_panels **out, const fl_kernels *kern, fl_team *team, fl_dtype type,
                   const void *const *data, const size_t *n_out, size_t n_parts, size_t n_in,
                   fl_err *err) {
  pack_job job = { .data = data, .n_out = n_out, .n_parts = n_parts };
  const fl_dtype_traits *traits = fl_dtype_get(type);
  const fl_panel_format *format = fl_panel_format_of(type);
  if (!traits || !format || n_in == 0 || !fl_dtype_row_bytes(traits, n_in, &job.row_bytes))
    return fl_fail(err, FL_EINPUT, "a matrix of type %s cannot have rows of %zu values",
                   fl_dtype_any_name(type), n_in);
  size_t total = 0, padded, panel_bytes, bytes;
  for (size_t i = 0; i < n_parts; i++)
    if (!fl_add_size(total, n_out[i], &total)) total = 0;
  const size_t nr = kern->ukr.nr;
  if (total == 0 || !fl_add_size(total, nr - 1, &padded) ||
      !fl_mul_size(n_in / format->block, format->bytes * nr, &panel_bytes) ||
      !panel_stride(panel_bytes, &panel_bytes) || !fl_mul_size(padded / nr, panel_bytes, &bytes))
    return fl_fail(err, FL_EINPUT, "a matrix of %zu rows of %zu values is empty or too large",
                   total, n_in);
  fl_panels *w = fl_calloc(1, sizeof *w);
  uint8_t *block = w ? fl_aligned_malloc(bytes, 1) : NULL;
  if (!block) {
    fl_free(w);
    return fl_fail(err, FL_ENOMEM, "no memory for %zu bytes of packed weights", bytes);
  }
  *w = (fl_panels){ .kern = kern,
                    .format = format,
                    .n_out = total,
                    .n_in = n_in,
                    .nr = nr,
                    .n_panels = padded / nr,
                    .panel_bytes = panel_bytes,
                    .data = block };
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
fl_dtype fl_panels_type(const fl_panels *w) { return w->format->type; }
size_t fl_panels_nr(const fl_panels *w) { return w->nr; }

float fl_panel_value(const fl_panels *w, size_t panel, size_t k, size_t lane) {
  if (!w->data) return fl_mapped_value(w, panel * w->nr + lane, k);
  const fl_panel_format *f = w->format;
  const uint8_t *block = fl_panel_base(w, panel) + k / f->block * f->bytes * w->nr;
  uint16_t half;
  float value;
  switch (f->kind) {
  case FL_PANEL_F32: memcpy(&value, block + lane * sizeof value, sizeof value); return value;
  case FL_PANEL_F16:
    memcpy(&half, block + lane * sizeof half, sizeof half);
    return fl_f16_to_f32(half);
  case FL_PANEL_BF16:
    memcpy(&half, block + lane * sizeof half, sizeof half);
    return fl_bf16_to_f32(half);
  case FL_PANEL_I8:
    memcpy(&half, block + lane * sizeof half, sizeof half);
    block += (f->head + k % f->block / 4 * 4) * w->nr + 4 * lane;
    return fl_f16_to_f32(half) * (float)(int8_t)block[k % 4];
  default: return fl_panel_value_bits(w, block, k % f->block, lane);
  }
}

void fl_panels_row(const fl_panels *w, float *out, size_t i) {
  for (size_t k = 0; k < w->n_in; k++) out[k] = fl_panel_value(w, i / w->nr, k, i % w->nr);
}
