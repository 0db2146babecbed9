/* hash.c - XXH3 with 128 bits; the only file that includes xxhash. */
#include "base/hash.h"

#define XXH_STATIC_LINKING_ONLY /* the state by value, so that its memory is ours */
#include <xxhash.h>

#include <stdio.h>

#include "base/mem.h"

struct fl_hasher {
  XXH3_state_t state; /* needs 64-byte alignment */
};

static void put_text(char out[FL_HASH_TEXT], XXH128_hash_t h) {
  snprintf(out, FL_HASH_TEXT, "xxh3:%016llx%016llx", (unsigned long long)h.high64,
           (unsigned long long)h.low64);
}

void fl_hash_bytes(char out[FL_HASH_TEXT], const void *data, size_t n_bytes) {
  put_text(out, XXH3_128bits(n_bytes > 0 ? data : "", n_bytes));
}

fl_hasher *fl_hasher_new(void) {
  fl_hasher *h = fl_aligned_calloc(1, sizeof *h);
  if (h != NULL) XXH3_128bits_reset(&h->state);
  return h;
}

void fl_hasher_add(fl_hasher *h, const void *data, size_t n_bytes) {
  if (n_bytes > 0) XXH3_128bits_update(&h->state, data, n_bytes);
}

void fl_hasher_text(const fl_hasher *h, char out[FL_HASH_TEXT]) {
  put_text(out, XXH3_128bits_digest(&h->state));
}

void fl_hasher_free(fl_hasher *h) { fl_free(h); }
