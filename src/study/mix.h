/* mix.h - which kinds of conversations are made, and in which proportion.
 *
 * A block of as many draws of a document as the weights add up to holds each kind as often as its
 * weight says, in an order drawn anew for every block. Nothing is remembered: the kind of a draw,
 * and how many of the same kind came before, follow from the draw alone.
 */
#ifndef FL_STUDY_MIX_H
#define FL_STUDY_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef enum fl_way {
  FL_WAY_SEEDS,    /* bot A asks about a chunk by one of the seed instructions, bot B answers */
  FL_WAY_QUOTE,    /* the document's own words from a place on */
  FL_WAY_CLOZE,    /* a sentence with a term missing, and the term */
  FL_WAY_SENTENCE, /* bot A asks about a sentence that it sees alone, bot B answers */
  FL_N_WAYS
} fl_way;

enum { FL_MAX_WEIGHT = 20 };

/* Zeroed is the seeds alone. */
typedef struct fl_mix {
  uint32_t weight[FL_N_WAYS];
} fl_mix;

const char *fl_way_name(fl_way w); /* "seeds", "quote", "cloze", "sentence" */

/* "quote=3,cloze=3,seeds=1"; a kind without a number counts once. FL_EUSAGE with a sentence on
 * anything else, weights over FL_MAX_WEIGHT and all of them 0 included. */
int fl_mix_parse(fl_mix *out, const char *text, fl_err *err);
/* Appends it in that form, kinds of weight 0 left out. */
void fl_mix_print(fl_buf *out, const fl_mix *m);
/* Whether it holds kinds other than the seeds. */
bool fl_mix_is_anchored(const fl_mix *m);

typedef struct fl_mix_draw {
  fl_way way;
  uint32_t nth; /* draws before it that were seeds where this one is, anchored ones otherwise */
} fl_mix_draw;

fl_mix_draw fl_mix_at(const fl_mix *m, uint64_t seed, uint32_t doc, uint32_t draw);

#endif
