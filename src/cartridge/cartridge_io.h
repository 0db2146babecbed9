/* cartridge_io.h - cartridges in safetensors, moments in .fza (flotilla-formats(5)).
 *
 * Tensors of layer i, F32: `layers.i.k_sink`, `layers.i.v_sink` [frozen, kv_heads, head_dim]
 * (absent when nothing is frozen), `layers.i.k`, `layers.i.v` [n_rows - frozen, kv_heads,
 * head_dim]. Layers without rows of their own have none; in the families that share K/V those come
 * last, so i counts from 0 without gaps. Metadata, all text: model_name, model_hash,
 * tokenizer_hash, doc_name, doc_hash, version, p, frozen, steps, generation, seed. Slots of the
 * moments: `layers.i.k`, `layers.i.v`, rows = n_rows - frozen, cols = kv_heads * head_dim.
 */
#ifndef FL_CARTRIDGE_CARTRIDGE_IO_H
#define FL_CARTRIDGE_CARTRIDGE_IO_H

#include "cartridge/adam.h"
#include "cartridge/cartridge.h"

/* Provenance; strings borrowed on writing, owned (fl_provenance_release) after reading. Missing
 * ones are NULL (files by other programs carry none). */
typedef struct fl_provenance {
  char *model_name, *model_hash, *tokenizer_hash, *doc_name, *doc_hash, *version;
  uint64_t steps, generation, seed;
} fl_provenance;
void fl_provenance_release(fl_provenance *p);

/* Writes a new file, fsynced. */
int fl_cartridge_write(const char *path, const fl_cartridge *c, const fl_provenance *prov,
                       fl_err *err);
/* Reads and checks everything: names consecutive, shapes consistent, finite values, geometry
 * against hp (NULL: not checked, e.g. for info). Draft references of other programs are accepted
 * and ignored. prov may be NULL. steps come from the metadata when present. */
int fl_cartridge_read(fl_cartridge *out, fl_provenance *prov, const char *path,
                      const fl_hparams *hp, fl_err *err);
int fl_adam_write(const char *path, const fl_adam *a, const fl_cartridge *c, fl_err *err);
/* FL_ENOENT when the file is missing. */
int fl_adam_read(fl_adam *out, const char *path, const fl_cartridge *c, fl_err *err);

#endif
