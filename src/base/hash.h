/* hash.h - content identity: XXH3, 128 bits, over libxxhash. Detects change, not malice.
 * Text form: "xxh3:" and 32 hexadecimal digits. */
#ifndef FL_BASE_HASH_H
#define FL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define FL_HASH_TEXT 40 /* bytes, with the NUL */

void fl_hash_bytes(char out[FL_HASH_TEXT], const void *data, size_t n_bytes);

typedef struct fl_hasher fl_hasher;
fl_hasher *fl_hasher_new(void); /* NULL on lack of memory */
void fl_hasher_add(fl_hasher *h, const void *data, size_t n_bytes);
void fl_hasher_text(const fl_hasher *h, char out[FL_HASH_TEXT]);
void fl_hasher_free(fl_hasher *h);

#endif
