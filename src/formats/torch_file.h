/* torch_file.h - tensors in a file of torch.save: a zip without compression, with a pickle
 * (data.pkl) and the values of each storage (data/0, data/1, ...) in one folder.
 *
 * Read are dicts of lists of tensors, ParameterLists and Parameters included; types float32,
 * float16 and bfloat16; of zip files those under 4 GiB. Nothing that a pickle asks for is ever
 * called. */
#ifndef FL_FORMATS_TORCH_FILE_H
#define FL_FORMATS_TORCH_FILE_H

#include "formats/dtype.h"
#include "base/err.h"

typedef struct fl_torch_tensor {
  const fl_dtype_traits *type;
  const uint8_t *data; /* element 0, in the mapping, at any address; all elements are in it */
  size_t n_dims;
  size_t dim[4], stride[4]; /* strides in elements */
} fl_torch_tensor;

typedef struct fl_torch fl_torch;

/* FL_EINPUT with a sentence on what is no such file. */
int fl_torch_open(fl_torch **out, const char *path, fl_err *err);
void fl_torch_close(fl_torch *t);
/* Tensors under a name of the dict at the top; 0: no such name, or no list of that name. */
size_t fl_torch_count(const fl_torch *t, const char *name);
/* The i-th of them, i < fl_torch_count. FL_EINPUT: none, or of another type, or outside the
 * file. */
int fl_torch_get(fl_torch_tensor *out, const fl_torch *t, const char *name, size_t i, fl_err *err);

#endif
