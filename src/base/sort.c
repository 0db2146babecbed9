/* sort.c - see sort.h. */
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *fl_sort_names(const char **v, size_t n) {
  if (n < 2) return NULL;
  qsort(v, n, sizeof *v, by_bytes);
  for (size_t i = 1; i < n; i++)
    if (strcmp(v[i - 1], v[i]) == 0) return v[i];
  return NULL;
}

bool fl_sorted_has(const char *const *v, size_t n, const char *name) {
  return n > 0 && bsearch(&name, v, n, sizeof *v, by_bytes) != NULL;
}
