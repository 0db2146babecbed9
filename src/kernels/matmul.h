/* matmul.h - products with frozen weights, packed once into panels of NR outputs by k.
 *
 * A weight matrix W is [n_out, n_in] row-major in the file (GGUF dim[0] = n_in). fl_panels holds it
 * in its own type; there is no f32 copy. Products:
 *     forward   Y [m, n_out]  =  X [m, n_in] . W^T        (n_in in k-blocks of FL_KC, ascending)
 *     backward  dX [m, n_in]  =  dY [m, n_out] . W        (n_out in blocks of FL_KC, ascending)
 * For every output the arithmetic is: within a k-block a chain acc = fma(x, w, acc) from 0 in
 * ascending k; y = block_0, then y = y + block_1, ... This is what BLIS's micro-kernel computes
 * for beta = 0 and 1; the few-row route computes the same by hand. fl_matmul_probe() checks that
 * they agree to the bit on this machine; where they did not, the few-row route is not used. Where
 * the machine has AVX-512 and BLIS's kernel is one for AVX2, it takes any number of rows.
 */
#ifndef FL_KERNELS_MATMUL_H
#define FL_KERNELS_MATMUL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/kernels.h"

typedef struct fl_panels fl_panels;

/* Packs n_out rows of `type` (row stride = fl_dtype_row_bytes(n_in)) from `data`. Several matrices
 * that share their input (q, k, v; gate, up) may be packed as one by calling with n_parts > 1: rows
 * of part 0, then part 1, ... ; parts must share the type. */
int fl_panels_pack(fl_panels **out, const fl_kernels *kern, fl_team *team, fl_dtype type,
                   const void *const *data, const size_t *n_out, size_t n_parts, size_t n_in,
                   fl_err *err);
/* The same without a packed copy: the rows are used where they lie, in the file's layout, and must
 * outlive *out. One or two parts. Every product has the bits of the packed matrix; it is slower by
 * the gathering of rows, and holds no memory of its own. */
int fl_panels_map(fl_panels **out, const fl_kernels *kern, fl_dtype type, const void *const *data,
                  const size_t *n_out, size_t n_parts, size_t n_in, fl_err *err);
void fl_panels_free(fl_panels *w);
size_t fl_panels_n_out(const fl_panels *w);
size_t fl_panels_n_in(const fl_panels *w);
size_t fl_panels_bytes(const fl_panels *w);
fl_dtype fl_panels_type(const fl_panels *w);
/* out [n_in] = row `i` of W, dequantised: what the panels hold, for tests. */
void fl_panels_row(const fl_panels *w, float *out, size_t i);

/* Bytes of scratch that either product needs for up to m rows with this team. */
size_t fl_matmul_scratch(const fl_panels *w, const fl_team *team, size_t m);

/* y [m rows, stride ldy] = x [m rows, stride ldx] . W^T */
void fl_matmul(const fl_panels *w, fl_team *team, float *y, size_t ldy, const float *x, size_t ldx,
               size_t m, void *scratch);
/* As fl_matmul for outputs [out0, out0 + n) only, out0 a multiple of fl_panels_nr(w): vocabulary
 * blocks. y has n columns. Bits equal the whole product's. */
void fl_matmul_cols(const fl_panels *w, fl_team *team, float *y, size_t ldy, const float *x,
                    size_t ldx, size_t m, size_t out0, size_t n, void *scratch);
/* dx [m, n_in] (+)= dy [m, n_out] . W. add = false overwrites. */
void fl_matmul_dx(const fl_panels *w, fl_team *team, float *dx, size_t lddx, const float *dy,
                  size_t lddy, size_t m, bool add, void *scratch);

size_t fl_panels_nr(const fl_panels *w);
/* True if the few-row route equals the micro-kernel bit for bit here (also what selects it). */
bool fl_matmul_probe(const fl_kernels *kern);

/* Plain C twins, same arithmetic in the same order, for tests: w is [n_out, n_in] f32. */
void fl_matmul_ref(float *y, size_t ldy, const float *x, size_t ldx, const float *w, size_t m,
                   size_t n_out, size_t n_in, bool use_fma);
void fl_matmul_dx_ref(float *dx, size_t lddx, const float *dy, size_t lddy, const float *w,
                      size_t m, size_t n_out, size_t n_in, bool add, bool use_fma);

#endif
