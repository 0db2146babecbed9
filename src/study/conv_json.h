/* conv_json.h - conversations as JSON lines: kept ones of a document, held-out ones, study files.
 *
 * One object a line:
 *   {"doc":3,"name":"docs/a.md","hash":"xxh3:...","index":0,"of":2,"kind":"question","first":0,
 *    "end":256,"request":"...","answer":"...","tokens":[...],"sup":[...],
 *    "targets":[[id,p,id,p,...],...]}
 * Probabilities are printed so that the same float comes back. Lines that only say that a
 * conversation did not come out have "skipped":true and neither tokens nor targets.
 */
#ifndef FL_STUDY_CONV_JSON_H
#define FL_STUDY_CONV_JSON_H

#include "base/json.h"
#include "study/study.h"

typedef struct fl_conv_label {
  uint32_t doc;            /* the manifest's id */
  const char *name, *hash; /* of the document */
  const char *tokenizer;   /* its hash, in files that travel; NULL: not said */
  uint32_t index, of;      /* the how-manieth of how many; of 0: not said */
} fl_conv_label;

/* What a conversation may be: everything beyond is refused. */
typedef struct fl_conv_limits {
  size_t n_vocab, max_tokens, max_sup;
} fl_conv_limits;

/* Appends the line of c, or of a skipped one when c == NULL. */
void fl_conv_print(fl_buf *out, const fl_conv *c, const fl_conv_label *label);
/* FL_EINPUT without a sentence of its own ("what" of the caller names the file). */
int fl_conv_parse(fl_conv *out, const fl_json *line, const fl_conv_limits *limits);

/* Whether c keeps within the limits (a conversation that was just made). */
bool fl_conv_within(const fl_conv *c, const fl_conv_limits *limits);

#endif
