/* answer.h - one question or a conversation, behind documents held in one of four ways. */
#ifndef FL_ANSWER_ANSWER_H
#define FL_ANSWER_ANSWER_H

#include "model/generate.h"
#include "retrieval/retrieval.h"

typedef enum fl_arm { FL_ARM_CARTRIDGE, FL_ARM_BARE, FL_ARM_CONTEXT, FL_ARM_TEXT } fl_arm;
const char *fl_arm_name(fl_arm a);
typedef struct fl_ask_options {
  fl_arm arm;
  const size_t *docs; /* documents (indices) to use; cartridge and context arms */
  size_t n_docs;
  const fl_hits *hits; /* text arm: pieces whose text is read */
  fl_sampling sampling;
  uint64_t seed;
  size_t max_new;
  fl_kv_type kv;
  /* Streaming, whole characters only; may be NULL; true stops. */
  bool (*on_token)(void *ctx, const char *piece, size_t len);
  void *ctx;
} fl_ask_options;
typedef struct fl_reply {
  char *text;
  size_t rows; /* key/value rows held before the question */
  size_t prompt_tokens, tokens;
  double ttft_s, seconds;
  fl_stop stop;
} fl_reply;
void fl_reply_release(fl_reply *r);
int fl_fleet_ask(fl_fleet *f, const char *question, size_t len, const fl_ask_options *o,
                 fl_reply *out, fl_err *err);

/* Appends the cartridges of the documents to seq, in order: what the cartridge arm stands behind.
 * Cartridges are read from disk once and kept in a small cache. */
int fl_fleet_compose(fl_fleet *f, fl_seq *seq, const size_t *docs, size_t n, fl_err *err);

/* A conversation with a fixed selection of documents: its sequence keeps its rows between turns. */
typedef struct fl_chat fl_chat;
int fl_chat_new(fl_chat **out, fl_fleet *f, const fl_ask_options *o, fl_err *err);
int fl_chat_turn(fl_chat *c, const char *user, size_t len, fl_reply *out, fl_err *err);
void fl_chat_free(fl_chat *c);

#endif
