/* fza.c - Adam moments on disk. Reading goes over the file twice: first everything is checked and
 * each slot of the caller is paired with its place in the file, then the values are copied, so that
 * a damaged file leaves the caller as it was. */
#include "formats/fza.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"

static int write_slot(fl_sink *s, const fl_fza_slot *slot, const char *path, fl_err *err) {
  size_t len = strlen(slot->name), n_bytes;
  if (len == 0 || len > UINT16_MAX)
    return fl_fail(err, FL_EFAIL, "%s: a slot's name of %zu bytes cannot be written", path, len);
  if (!fl_mul_size((size_t)slot->rows, (size_t)slot->cols, &n_bytes) ||
      !fl_mul_size(n_bytes, sizeof(float), &n_bytes))
    return fl_fail(err, FL_EFAIL, "%s: slot '%.80s' is too large to be written", path, slot->name);
  const uint16_t name_len = (uint16_t)len;
  const uint64_t sizes[3] = { slot->rows, slot->cols, slot->step };
  fl_sink_write(s, &name_len, sizeof name_len);
  fl_sink_write(s, slot->name, len);
  fl_sink_write(s, sizes, sizeof sizes);
  fl_sink_write(s, slot->m, n_bytes);
  fl_sink_write(s, slot->v, n_bytes); /* a failure sticks and is reported by close */
  return FL_OK;
}

int fl_fza_write(const char *path, const fl_fza_slot *slots, size_t n, fl_err *err) {
  fl_sink *s;
  if (n > UINT32_MAX) return fl_fail(err, FL_EFAIL, "%s: too many slots to be written", path);
  int rc = fl_sink_open(&s, path, err);
  if (rc != FL_OK) return rc;
  const uint32_t count = (uint32_t)n;
  fl_sink_write(s, "FZA3", 4);
  fl_sink_write(s, &count, sizeof count);
  for (size_t i = 0; i < n; i++) {
    rc = write_slot(s, &slots[i], path, err);
    if (rc != FL_OK) {
      fl_sink_abandon(s);
      return rc;
    }
  }
  return fl_sink_close(s, err);
}

/* Where a slot of the caller stands in the file. */
typedef struct place {
  const uint8_t *m, *v; /* unaligned; NULL until found */
  uint64_t step;
} place;

typedef struct reader {
  const uint8_t *data;
  size_t size, at;
  const char *path;
  fl_err *err;
} reader;

static int bad(const reader *r, const char *what) {
  return fl_fail(r->err, FL_EINPUT,
                 "%s: %s at byte %zu; restore it, or remove it to go on with "
                 "fresh moments",
                 r->path, what, r->at);
}

static const void *take(reader *r, size_t n) {
  if (n > r->size - r->at) return NULL;
  const void *p = r->data + r->at;
  r->at += n;
  return p;
}

static bool all_finite(const uint8_t *p, size_t n, bool from_zero) {
  for (size_t i = 0; i < n; i++) {
    float f;
    memcpy(&f, p + i * sizeof f, sizeof f);
    if (!isfinite(f) || (from_zero && f < 0)) return false;
  }
  return true;
}

static size_t find(const fl_fza_slot *slots, size_t n, const char *name, size_t len) {
  for (size_t i = 0; i < n; i++)
    if (strlen(slots[i].name) == len && memcmp(slots[i].name, name, len) == 0) return i;
  return n;
}

static int read_slot(reader *r, const fl_fza_slot *slots, size_t n, place *places) {
  uint16_t len;
  uint64_t sizes[3];
  const void *p = take(r, sizeof len);
  if (p == NULL) return bad(r, "cut short");
  memcpy(&len, p, sizeof len);
  const char *name = take(r, len);
  if (name == NULL) return bad(r, "cut short");
  size_t i = find(slots, n, name, len);
  if (i == n) return bad(r, "a slot that the cartridge does not have, before");
  if (places[i].m != NULL) return bad(r, "a slot that stands twice, before");
  p = take(r, sizeof sizes);
  if (p == NULL) return bad(r, "cut short");
  memcpy(sizes, p, sizeof sizes);
  if (sizes[0] != slots[i].rows || sizes[1] != slots[i].cols)
    return bad(r, "a slot of another size than the cartridge's, before");
  /* The caller holds arrays of this size, so the product does not overflow. */
  const size_t count = (size_t)(slots[i].rows * slots[i].cols), n_bytes = count * sizeof(float);
  const uint8_t *m = take(r, n_bytes);
  const uint8_t *v = m != NULL ? take(r, n_bytes) : NULL;
  if (v == NULL) return bad(r, "cut short");
  if (!all_finite(m, count, false)) return bad(r, "a first moment that is no number, before");
  if (!all_finite(v, count, true)) return bad(r, "a second moment that is no number >= 0, before");
  places[i] = (place){ .m = m, .v = v, .step = sizes[2] };
  return FL_OK;
}

static int read_all(reader *r, const fl_fza_slot *slots, size_t n, place *places) {
  uint32_t count;
  const void *p = take(r, 4 + sizeof count);
  if (p == NULL || memcmp(p, "FZA", 3) != 0) return bad(r, "no FZA3 file: wrong first bytes");
  if (((const char *)p)[3] != '3') return bad(r, "another version than FZA3");
  memcpy(&count, (const uint8_t *)p + 4, sizeof count);
  if (count != n) return bad(r, "another number of slots than the cartridge has");
  for (size_t i = 0; i < n; i++) {
    int rc = read_slot(r, slots, n, places);
    if (rc != FL_OK) return rc;
  }
  return r->at == r->size ? FL_OK : bad(r, "more bytes than the slots need");
}

int fl_fza_read(const char *path, fl_fza_slot *slots, size_t n, fl_err *err) {
  fl_map map = { 0 };
  place *places = fl_calloc(n, sizeof *places);
  if (places == NULL) return fl_fail(err, FL_ENOMEM, "%s: no memory to read it", path);
  int rc = fl_map_open(&map, path, err);
  if (rc != FL_OK) goto done;
  reader r = { .data = map.data, .size = map.size, .path = path, .err = err };
  rc = read_all(&r, slots, n, places);
  if (rc != FL_OK) goto done;
  for (size_t i = 0; i < n; i++) {
    const size_t n_bytes = (size_t)(slots[i].rows * slots[i].cols) * sizeof(float);
    if (n_bytes > 0) {
      memcpy(slots[i].m, places[i].m, n_bytes);
      memcpy(slots[i].v, places[i].v, n_bytes);
    }
    slots[i].step = places[i].step;
  }
done:
  fl_map_close(&map);
  fl_free(places);
  return rc;
}
