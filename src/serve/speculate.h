/* speculate.h - drafts of the next tokens, and whether they are worth their time.
 *
 * A suffix index holds a list of tokens and finds in it the longest match with the end of another
 * list; the tokens that followed the match are the draft. Sources are the conversation itself, the
 * texts of the chosen documents and earlier answers from the same documents. A draft is a guess: it
 * is verified in one forward together with the row that is due, and every token is sampled from the
 * logits of its own row, with one draw each. By the row rule these are the tokens, and the
 * draws, of decoding row by row; only the time differs.
 *
 * Whether a draft is tried, and how long, is decided by the measured time of steps by their number
 * of rows (fl_cost) and by how many of this job's drafted tokens were right (fl_gate).
 */
#ifndef FL_SERVE_SPECULATE_H
#define FL_SERVE_SPECULATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum {
  FL_MATCH_MIN = 2,  /* tokens that must agree before a draft is made */
  FL_MATCH_MAX = 32, /* longer agreements count as this */
  FL_DRAFT_MAX = 15  /* tokens of a draft */
};

/* Tokens with chains of positions by their last two. Zeroed is empty. A negative id separates
 * texts: nothing matches across it and a draft ends at it. */
typedef struct fl_suffix {
  fl_ids ids;
  uint32_t *head; /* [1 << bits] newest position + 1 of a hash; 0: none */
  uint32_t *prev; /* [cap] older position + 1 of the same hash */
  size_t cap;
  unsigned bits;
} fl_suffix;

/* FL_ENOMEM leaves the index as it was. */
int fl_suffix_append(fl_suffix *s, const int32_t *ids, size_t n);
void fl_suffix_release(fl_suffix *s);
/* Takes the memory for n tokens of an empty index and touches it: filling it up takes no more then.
 * FL_ENOMEM leaves it zeroed. */
int fl_suffix_reserve(fl_suffix *s, size_t n);
void fl_suffix_reset(fl_suffix *s); /* empty; keeps its memory */
/* Longest agreement of the end of tail[0..n) with s->ids[0..*next), *next < s->ids.len; the newest
 * of equals. Returns its length, 0 when under FL_MATCH_MIN. With s holding `tail` itself as its end
 * the trivial match is left out. */
size_t fl_suffix_match(const fl_suffix *s, const int32_t *tail, size_t n, size_t *next);

typedef struct fl_draft {
  int32_t token[FL_DRAFT_MAX];
  size_t n, match;
} fl_draft;
/* Longest match wins, of equals the first source. Sources may be NULL. */
void fl_draft_make(fl_draft *d, const fl_suffix *const *source, size_t n_sources,
                   const int32_t *tail, size_t n_tail, size_t max);

/* Seconds of a step by its number of rows, as measured: smoothed over time, interpolated between.
 * A number of rows that was measured fewer than FL_COST_SURE times costs no more than its
 * neighbours suggest: otherwise one slow step, beside other work, would keep drafts of that length
 * from ever being tried again. */
enum { FL_COST_ROWS = 192, FL_COST_SURE = 2 };
typedef struct fl_cost {
  float seconds[FL_COST_ROWS + 1]; /* 0: not measured */
  uint8_t n[FL_COST_ROWS + 1];     /* how often, up to FL_COST_SURE */
} fl_cost;
void fl_cost_learn(fl_cost *c, size_t rows, double seconds);
/* Before the first measurement in an arbitrary unit. */
double fl_cost_of(const fl_cost *c, size_t rows);

/* What one job's drafts have been worth so far. */
enum { FL_GATE_CLASSES = 3 };
typedef struct fl_gate {
  double hit[FL_GATE_CLASSES]; /* share of drafted tokens that were right, by length of the match */
  unsigned wait[FL_GATE_CLASSES];  /* chances to skip before the next probe */
  unsigned pause[FL_GATE_CLASSES]; /* what `wait` is set to after a probe that failed */
} fl_gate;
void fl_gate_init(fl_gate *g);
/* How many tokens of a draft are worth verifying in a step that holds `rows` rows for `jobs` jobs
 * already, this job's due row included: 0..max. Counts down to probes, so call it once a step. */
size_t fl_gate_length(fl_gate *g, const fl_cost *c, size_t match, size_t rows, size_t jobs,
                      size_t max);
void fl_gate_learn(fl_gate *g, size_t match, size_t drafted, size_t accepted);

#endif
