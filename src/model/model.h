/* model.h - a frozen language model: weights packed for the kernels, its tokenizer, its template.
 *
 * Immutable after opening; one model may serve several passes. It owns the GGUF mapping, the
 * tokenizer and the packed weights.
 */
#ifndef FL_MODEL_MODEL_H
#define FL_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "formats/gguf.h"
#include "kernels/kernels.h"
#include "model/hparams.h"
#include "text/chat.h"

typedef struct fl_model fl_model;

typedef struct fl_model_options {
  fl_template force_template; /* FL_TEMPLATE_NONE: recognise it from the file */
  bool pack_experts; /* a packed copy of the experts: faster; else they are used in the mapping */
} fl_model_options;

/* opt may be NULL. The team is used for packing only. */
int fl_model_open(fl_model **out, const char *path, const fl_model_options *opt, fl_team *team,
                  fl_err *err);
void fl_model_close(fl_model *m);

const fl_hparams *fl_model_hparams(const fl_model *m);
const fl_tokenizer *fl_model_tokenizer(const fl_model *m);
fl_template fl_model_template(const fl_model *m);
const fl_kernels *fl_model_kernels(const fl_model *m);
const fl_gguf *fl_model_gguf(const fl_model *m);
const char *fl_model_path(const fl_model *m);
const char *fl_model_name(const fl_model *m); /* general.name or the file's name */
const char *fl_model_hash(const fl_model *m); /* fl_gguf_fingerprint */
const char *fl_model_tokenizer_hash(const fl_model *m);
/* Packed weights held in memory; experts used in the mapping are not among them. */
size_t fl_model_weight_bytes(const fl_model *m);
/* GB/s at which the team streams through packed weights, some tens of ms: the bound of everything
 * that reads them. 0: no memory. */
double fl_model_read_rate(const fl_model *m, fl_team *team);

#endif
