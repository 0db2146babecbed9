/* remote_reply.h - reading what a server answers. Private to the remote files. */
#ifndef FL_NET_REMOTE_REPLY_H
#define FL_NET_REMOTE_REPLY_H

#include "base/json.h"
#include "study/conv.h"
#include "net/remote.h"

/* Spelling of every token of a vocabulary to its id. */
typedef struct fl_spellings fl_spellings;
int fl_spellings_new(fl_spellings **out, const fl_tokenizer *t, fl_err *err);
void fl_spellings_free(fl_spellings *s);
/* -1: no token is spelled so. Names of control tokens count. */
int32_t fl_spellings_find(const fl_spellings *s, const char *bytes, size_t len);
bool fl_spellings_is(const fl_spellings *s, int32_t id, const char *bytes, size_t len);

typedef struct fl_reply_text {
  char *text; /* content, NUL-terminated; owned */
  size_t len;
  bool stopped;            /* by itself, not by the limit */
  fl_json *root;           /* owned; logprobs borrows from it */
  const fl_json *logprobs; /* array of tokens, or NULL */
} fl_reply_text;
/* FL_EINPUT with a sentence on what is missing. */
int fl_reply_text_read(fl_reply_text *out, const fl_buf *reply, fl_err *err);
void fl_reply_text_release(fl_reply_text *r);

/* The tokens of an answer and the teacher's rows for them. *stop is the end token that the reply
 * lists, with its row, or -1. Some servers spell control tokens, and parts of characters, as
 * nothing: the last one of an answer that stopped by itself is its end; with another the answer is
 * of no use, FL_EFAIL. FL_EINPUT: not this vocabulary's tokens, or no probabilities. */
int fl_reply_text_tokens(fl_ids *ids, fl_target_room *room, int32_t *stop, const fl_reply_text *r,
                         const fl_spellings *s, const fl_model *m, double mass, fl_err *err);

/* One row that holds one entry. */
void fl_target_room_certain(fl_target_room *r, int32_t id);

/* Rows for `answer` and the end token behind `prompt` in a system message around text[0..len). */
int fl_teach_here(fl_target_room *room, const fl_ids *prompt, const fl_ids *answer,
                  const char *text, size_t len, const fl_study_options *o, fl_pass *pass,
                  fl_kv_pool *pool, fl_err *err);

#endif
