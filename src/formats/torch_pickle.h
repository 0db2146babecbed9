/* torch_pickle.h - the pickle in a file of torch.save, as plain values. Private to torch_file.c.
 *
 * A pickle is a program for a machine with a stack, which may call anything. Ours knows the steps
 * of protocol 2 that tensors in lists and dicts need, and calls nothing: what torch would rebuild
 * by a call becomes a value that says what it is, other objects become empty ones. Values lie in
 * one array and name each other by index, so that no cycle can do harm. */
#ifndef FL_FORMATS_TORCH_PICKLE_H
#define FL_FORMATS_TORCH_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef enum fl_pkind {
  FL_P_NONE,    /* also truth values, numbers with a fraction */
  FL_P_INT,     /* num */
  FL_P_TEXT,    /* text, len */
  FL_P_NAME,    /* text, len: "module\nname" */
  FL_P_LIST,    /* items; tuples too */
  FL_P_DICT,    /* items: key, value, key, value */
  FL_P_STORAGE, /* items: name of its class, key, device, number of values; as torch writes them */
  FL_P_TENSOR,  /* items: storage, offset, sizes, strides, ...; as torch writes them */
  FL_P_OBJECT   /* item 0: what it was built with, if it was */
} fl_pkind;

typedef struct fl_pvalue {
  fl_pkind kind;
  int64_t num;
  const char *text; /* in the pickle; no NUL behind it */
  size_t len;
  uint32_t *item;
  size_t n, cap;
} fl_pvalue;

typedef struct fl_pickle {
  fl_pvalue *value;
  size_t n, cap;
  uint32_t root;
} fl_pickle;

/* FL_EINPUT with a sentence fragment on any step that is not known or has not its operands. The
 * bytes must outlive it. */
int fl_pickle_read(fl_pickle *out, const uint8_t *data, size_t len, fl_err *err);
void fl_pickle_release(fl_pickle *p);
/* The value of a text key in a dict; NULL: none, or v is no dict. */
const fl_pvalue *fl_pickle_get(const fl_pickle *p, const fl_pvalue *v, const char *key);
bool fl_pvalue_is(const fl_pvalue *v, fl_pkind kind, const char *text);

#endif
