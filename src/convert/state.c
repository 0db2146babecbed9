/* state.c - a cartridge as a file that a llama.cpp server restores into a slot.
 *
 *   "qsgg", u32 version, u32 n, i32 ids[n]: -1, 1, rows, a placeholder for each row, 0
 *   then a cache of the layers that see all rows and, in models with a sliding window, one of those
 *   that see the last rows:
 *     u32 streams = 1, u32 cells, for each cell i32 position, u32 sequences = 1, i32 sequence
 *     u32 values transposed = 0, u32 layers, in version 4 u32 0, u32 0
 *     for K and then V, for each layer: i32 type, u64 bytes of a row, the rows
 * Rows are head after head, keys rotated, as ours are. The server takes the rows for a prompt that
 * begins with as many placeholders, given as token ids. */
#include <math.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "convert/convert.h"
#include "convert/shape.h"

/* Rows of a sliding window that are kept beyond it: a server that finds just the window wants more
 * and reads the prompt again. */
enum { PLACEHOLDER = 0, WINDOW_SPARE = 64, TYPE_F32 = 0, TYPE_F16 = 1 };

typedef struct state {
  fl_sink *out;
  const fl_hparams *hp;
  const fl_rows *rows;
  uint32_t version;
  bool half;       /* rows as f16 */
  uint8_t *narrow; /* one row */
} state;

static void put_u32(const state *s, uint32_t v) { fl_sink_write(s->out, &v, sizeof v); }

static void put_head(const state *s) {
  const uint32_t n = (uint32_t)s->rows->n_rows;
  fl_sink_write(s->out, "qsgg", 4);
  put_u32(s, s->version);
  put_u32(s, n + 4);
  put_u32(s, UINT32_MAX);
  put_u32(s, 1);
  put_u32(s, n);
  for (uint32_t i = 0; i < n; i++) put_u32(s, PLACEHOLDER);
  put_u32(s, 0);
}

static void put_rows(const state *s, const float *rows, size_t width, size_t first) {
  const uint64_t row_bytes = width * (s->half ? 2 : 4);
  put_u32(s, s->half ? TYPE_F16 : TYPE_F32);
  fl_sink_write(s->out, &row_bytes, sizeof row_bytes);
  for (size_t r = first; r < s->rows->n_rows; r++) {
    const void *row = rows + r * width;
    if (s->half) {
      fl_dtype_get(FL_F16)->quantise(s->narrow, row, width);
      row = s->narrow;
    }
    fl_sink_write(s->out, row, (size_t)row_bytes);
  }
}

/* The cache of the layers with a window, or of those without. */
static void put_cache(const state *s, bool windowed) {
  size_t first = 0, n_layers = 0, n = s->rows->n_rows;
  for (size_t l = 0; l < s->rows->n_layers; l++) {
    const size_t window = s->hp->layer[l].window;
    if (s->rows->width[l] == 0 || (window != 0) != windowed) continue;
    n_layers++;
    if (windowed && n > window + WINDOW_SPARE) first = n - window - WINDOW_SPARE;
  }
  put_u32(s, 1);
  put_u32(s, (uint32_t)(n - first));
  for (size_t i = first; i < n; i++) {
    put_u32(s, (uint32_t)i);
    put_u32(s, 1);
    put_u32(s, 0);
  }
  put_u32(s, 0);
  put_u32(s, (uint32_t)n_layers);
  for (uint32_t i = 3; i < s->version; i++) {
    put_u32(s, 0);
    put_u32(s, 0);
  }
  for (int v = 0; v < 2; v++)
    for (size_t l = 0; l < s->rows->n_layers; l++)
      if (s->rows->width[l] != 0 && (s->hp->layer[l].window != 0) == windowed)
        put_rows(s, v ? s->rows->v[l] : s->rows->k[l], s->rows->width[l], first);
}

/* A value beyond f16's would become infinite. */
static int check_range(const fl_rows *r, const char *path, fl_err *err) {
  for (size_t i = 0; i < r->n_values; i++)
    if (!(fabsf(r->block[i]) < 65520.0f))
      return fl_fail(err, FL_EINPUT, "%s: holds a value too large for f16; use --kv f32", path);
  return FL_OK;
}

static int write_state(const convert_job *a, const convert_state_options *o, const fl_hparams *hp,
                       const fl_cartridge *c, fl_err *err) {
  state s = { .hp = hp, .rows = &c->rows, .half = o->half, .version = o->version };
  bool windowed = false;
  size_t widest = 1;
  for (size_t l = 0; l < c->rows.n_layers; l++) {
    windowed |= hp->layer[l].window != 0;
    if (c->rows.width[l] > widest) widest = c->rows.width[l];
  }
  s.narrow = fl_malloc(widest * 2);
  if (s.narrow == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory");
  int rc = fl_fs_open_temp(&s.out, a->out, err);
  if (rc == FL_OK) {
    put_head(&s);
    put_cache(&s, false);
    if (windowed) put_cache(&s, true);
    rc = fl_fs_commit_temp(s.out, a->out, err);
  }
  fl_free(s.narrow);
  return rc;
}

int convert_state(fl_json *out, const convert_job *a, const convert_state_options *o, fl_err *err) {
  model_shape shape = { 0 };
  fl_cartridge c = { 0 };
  int rc = model_shape_open(&shape, a->model, err);
  if (rc == FL_OK) rc = model_shape_cartridge(&c, &shape, a->source, err);
  if (rc == FL_OK && o->half) rc = check_range(&c.rows, a->source, err);
  if (rc == FL_OK) rc = write_state(a, o, shape.hp, &c, err);
  if (rc == FL_OK) {
    fl_json_set_str(out, "out", a->out);
    fl_json_set_str(out, "type", "llama-state");
    fl_json_set_u64(out, "rows", c.rows.n_rows);
    fl_json_set_u64(out, "placeholder_token", PLACEHOLDER);
    fl_json_set_str(out, "kv", o->half ? "f16" : "f32");
    fl_json_set_u64(out, "state_version", o->version);
  }
  fl_cartridge_release(&c);
  model_shape_close(&shape);
  return rc;
}
