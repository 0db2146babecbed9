/* sort.h - arrays of names in byte order. */
#ifndef FL_BASE_SORT_H
#define FL_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>

/* Sorts v[0..n) in place; returns a name that stands in it twice, the first in order, or NULL. */
const char *fl_sort_names(const char **v, size_t n);
/* Whether a sorted array has the name. */
bool fl_sorted_has(const char *const *v, size_t n, const char *name);

#endif
