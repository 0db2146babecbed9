/* transcode.h - a GGUF file with its matrices in another type, everything else in it as it was.
 *
 * Converted are tensors of two and more dimensions whose names end in ".weight" and speak of no
 * norm; routers of experts (".ffn_gate_inp.") only to f32. Rows that are no whole number of the new
 * type's blocks keep their type. Of the metadata general.file_type is set, and
 * general.quantization_version is added for a quantised type when it is absent.
 */
#ifndef FL_FORMATS_TRANSCODE_H
#define FL_FORMATS_TRANSCODE_H

#include "formats/gguf.h"

typedef struct fl_transcode_report {
  size_t converted; /* tensors in the new type that were in another */
  size_t same;      /* that had it already */
  size_t kept;      /* norms, vectors, tables, routers */
  size_t ragged;    /* matrices whose rows do not fit the type's blocks */
  uint64_t file_bytes;
} fl_transcode_report;

/* Writes `out` (replaced as a whole or not at all) and compares what stands on the disk with the
 * source, converted once more, before the old file goes. `to` is a type that can be written
 * (traits->quantise). FL_EINPUT, naming the tensor, for a type that cannot be read and for values
 * that are not finite or that the new type cannot hold. `poll` may be NULL; what it returns ends
 * the work. */
int fl_transcode(const fl_gguf *g, const fl_dtype_traits *to, const char *out,
                 int (*poll)(void *ctx), void *ctx, fl_transcode_report *report, fl_err *err);

#endif
