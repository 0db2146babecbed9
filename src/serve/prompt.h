/* prompt.h - from messages to the token ids that follow the rows of the documents.
 *
 * The next question of a conversation must begin with exactly the ids whose rows its slot holds, or
 * those rows could not be used again. So earlier answers are rendered as they were generated:
 * behind the opener, with the closed empty think block when thinking is off, and with the ids that
 * were sampled where they are remembered (fl_answers); the tokenizer might give others for the same
 * text. fl_chat continues in the same way.
 */
#ifndef FL_SERVE_PROMPT_H
#define FL_SERVE_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "model/model.h"

/* Answers, found by what stood before them and their text; those unused for longest go first. */
typedef struct fl_answer {
  char key[FL_HASH_TEXT];
  int32_t *ids;
  size_t n;
  uint64_t used;
} fl_answer;
enum { FL_SCOPE_TEXT = FL_HASH_TEXT + 16 };
typedef struct fl_answers {
  fl_answer *entry;
  size_t n, cap, tokens, max_tokens;
  uint64_t clock;
} fl_answers;

/* Answers are found again behind the same rows, by the same owner. */
void fl_answers_scope(char out[FL_SCOPE_TEXT], const char *digest, uint32_t owner);
int fl_answers_init(fl_answers *a, size_t max_entries, size_t max_tokens);
void fl_answers_release(fl_answers *a);
/* `ids` were the answer with `text`, given after the ids `before` in this scope. Without memory for
 * it the answer is not remembered. */
void fl_answers_add(fl_answers *a, const char *scope, const fl_ids *before, const char *text,
                    size_t len, const int32_t *ids, size_t n);
const fl_answer *fl_answers_find(fl_answers *a, const char *scope, const fl_ids *before,
                                 const char *text, size_t len);

/* Assistant's openers as the template has them; made once. */
typedef struct fl_prompter {
  const fl_model *model;
  fl_ids opener[2]; /* by thinking */
} fl_prompter;
int fl_prompter_init(fl_prompter *r, const fl_model *m, fl_err *err);
void fl_prompter_release(fl_prompter *r);

typedef struct fl_prompt {
  const fl_message *msgs; /* ends with a user's message */
  size_t n_msgs;
  bool thinking;
  bool behind_rows;    /* cartridges stand before: no BOS, the opening is theirs */
  fl_answers *answers; /* may be NULL */
  const char *scope;
} fl_prompt;
/* Appends the ids. FL_EINPUT: the template cannot show this conversation. */
int fl_prompt_ids(const fl_prompter *r, const fl_prompt *c, fl_ids *out, fl_err *err);

/* What a conversation is known by without an id: all messages up to and including the first of the
 * user's. */
void fl_opening_hash(const fl_message *msgs, size_t n, char out[FL_HASH_TEXT]);

#endif
