/* reject.h - which requests and answers are not worth learning from. */
#ifndef FL_STUDY_REJECT_H
#define FL_STUDY_REJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fl_reject {
  FL_REJECT_NOT,
  FL_REJECT_EMPTY,
  FL_REJECT_CUT,
  FL_REJECT_LONG,
  FL_REJECT_REPETITIVE,
  FL_REJECT_FOREIGN, /* a request that asks nothing, or a text with no word of what it is about */
  FL_REJECT_ECHO,    /* an answer that says nothing beyond its request */
  FL_REJECT_UNSURE,  /* a given answer that the teacher does not believe */
  FL_REJECT_SAME     /* a request that was there before */
} fl_reject;

/* "empty", "cut", "long", "repetitive", "foreign", "echo", "unsure", "same" as in the event log;
 * NULL for FL_REJECT_NOT. */
const char *fl_reject_name(fl_reject r);

/* What a bot wrote, its reasoning and surrounding white space taken off. */
typedef struct fl_written {
  const int32_t *ids; /* the tokens of the text */
  size_t n_ids;
  size_t len;        /* bytes of the text */
  size_t max_tokens; /* the limit it was written under */
  bool cut;          /* the limit ended it */
} fl_written;

/* The first four of these alone, in this order: empty, cut, long (over 16 bytes for every token
 * allowed), repetitive. */
fl_reject fl_reject_judge(const fl_written *w);

/* A loop: 16 tokens or more of which one 4-gram, counted without overlap, makes up over half; or
 * 8 tokens or more that stand three times in a row. */
bool fl_reject_repetitive(const int32_t *ids, size_t n);

#endif
