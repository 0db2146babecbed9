/* remote.h - self-study with the bots elsewhere: an OpenAI-compatible server writes requests and
 * answers, and gives the teacher's probabilities of its own tokens unless they are computed here.
 *
 * What goes over the wire is the caller's business (`post`): this layer makes bodies of chat
 * completions and reads the replies, which it trusts in nothing. Conversations are those of
 * study.h: the same chunks and instructions for the same plans, refused and drawn again by the same
 * rules.
 */
#ifndef FL_NET_REMOTE_H
#define FL_NET_REMOTE_H

#include "study/study.h"

typedef struct fl_exchange {
  char *body;       /* JSON; owned by the layer that made it */
  fl_buf reply;     /* filled by post */
  int status;       /* 200, another, or 0: no answer */
  char reason[256]; /* why it is not 200 */
} fl_exchange;

typedef struct fl_remote_options {
  const char *model;  /* what the server calls it; NULL: nothing is said */
  bool local_teacher; /* probabilities from a pass here: any server, any tokenizer there */
  /* Sends the bodies to a path of the server, several at a time, and fills the replies. What it
   * returns other than FL_OK ends the call. */
  int (*post)(void *ctx, const char *path, fl_exchange *x, size_t n, fl_err *err);
  void *ctx;
} fl_remote_options;

typedef struct fl_remote fl_remote;
/* Unless the teacher is local: reads the vocabulary, and compares tokens where the server has
 * /tokenize. FL_EINPUT when they differ. The model must outlive it. */
int fl_remote_new(fl_remote **out, const fl_remote_options *o, const fl_model *model, fl_err *err);
void fl_remote_free(fl_remote *r);
/* Tokens of the first answered prompt by the server's count and by ours; false before there is one,
 * with a local teacher, or from a server that does not count. Other numbers mean another chat
 * template there: its probabilities are then those of another prompt than the student sees. */
bool fl_remote_prompt_tokens(const fl_remote *r, size_t *there, size_t *here);

/* As fl_study_make, one turn each. FL_EFAIL when no reply of a stage can be used, with the reason
 * of the first; FL_EINPUT when a reply holds a token that the vocabulary has not. */
int fl_remote_make(fl_conv *out, bool *ok, const fl_conv_plan *plans,
                   const fl_doc_text *const *docs, size_t n, const fl_study_options *o,
                   fl_remote *r, fl_pass *pass, fl_kv_pool *pool, fl_events *log,
                   fl_study_stats *stats, fl_err *err);

#endif
