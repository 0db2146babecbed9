/* rotate.h - who leaves memory and who comes, whose turn it is: pure functions of the documents'
 * counters, so that a resumed run decides as the uninterrupted one did. All arrays are in the order
 * of the manifest; ties go to the lower id. */
#ifndef FL_TRAINER_ROTATE_H
#define FL_TRAINER_ROTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fl_rot_doc {
  uint32_t id;
  uint64_t steps;    /* optimizer steps since birth */
  uint64_t targeted; /* rounds in which it was the target */
  uint64_t tokens;
  uint64_t bytes; /* memory it takes while resident */
  bool resident;
  bool marked; /* by the user: comes first, leaves last */
} fl_rot_doc;

typedef struct fl_rot_limits {
  size_t budget;         /* residents at most, >= 1 */
  uint64_t budget_bytes; /* sum of bytes at most; 0: no limit. One resident always fits */
} fl_rot_limits;

/* in[0..*n_in) = positions of absent documents to load so that the budget is used: fewest steps
 * first. `in` has room for n. */
void fl_rotate_fill(const fl_rot_doc *d, size_t n, const fl_rot_limits *l, size_t *in,
                    size_t *n_in);

/* out[0..*n_out) = positions of residents that must leave so that the limits hold (they may have
 * been lowered since they came): those with most steps. `out` has room for n; ascending. */
void fl_rotate_trim(const fl_rot_doc *d, size_t n, const fl_rot_limits *l, size_t *out,
                    size_t *n_out);

/* A rotation: the ceil(evict_frac * residents) with most steps leave, then the pool is refilled to
 * the budget, first with those that were absent before, then, where these do not suffice, with
 * those just chosen to leave, fewest steps first. Documents that would leave and come straight back
 * are in neither list. Both arrays have room for n; positions ascending. */
void fl_rotate(const fl_rot_doc *d, size_t n, const fl_rot_limits *l, double evict_frac,
               size_t *out, size_t *n_out, size_t *in, size_t *n_in);

/* The document of the next round: the resident with the smallest (targeted + 1) / max(1, tokens),
 * so that in the long run a document's share of rounds is its share of tokens. Returns n when there
 * is no resident. */
size_t fl_rotate_target(const fl_rot_doc *d, size_t n);

#endif
