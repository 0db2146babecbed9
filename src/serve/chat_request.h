/* chat_request.h - a conversation that is to be answered, and how: the one shape of a request
 * between whoever receives it and the thread that answers it.
 *
 * The HTTP layer fills one from a body, the control socket from a question; fl_engine_submit takes
 * it over. It owns all its memory and is constant from then on, so that both sides may read it as
 * long as they hold the job (fl_job_request).
 */
#ifndef FL_SERVE_CHAT_REQUEST_H
#define FL_SERVE_CHAT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/generate.h"
#include "text/chat.h"

enum { FL_REQUEST_STOPS = 16, FL_REQUEST_DOCS = 64, FL_REQUEST_TOP_LOGPROBS = 20 };

typedef enum fl_rag_mode { FL_RAG_AUTO, FL_RAG_NONE, FL_RAG_NAMED } fl_rag_mode;

/* Zeroed it is empty and greedy, with retrieval. */
typedef struct fl_chat_request {
  fl_message *msgs; /* the last one has to be the user's */
  size_t n_msgs, cap;
  bool thinking;
  fl_sampling sampling; /* its biases are `bias` */
  fl_logit_bias *bias;
  uint64_t seed;
  size_t max_new;
  char *stop[FL_REQUEST_STOPS]; /* none of them empty */
  size_t n_stop;
  bool logprobs;
  size_t top_logprobs; /* of each token, FL_REQUEST_TOP_LOGPROBS at most */
  fl_rag_mode rag;
  char *docs[FL_REQUEST_DOCS]; /* FL_RAG_NAMED: names */
  size_t n_docs;
  char *conversation; /* id that documents are chosen once for; NULL: hash of the whole opening */
  uint32_t owner;     /* rows, answers and choices are shared among equal ones only */
} fl_chat_request;

void fl_chat_request_release(fl_chat_request *r);
/* Appends a message with a copy of the text. FL_ENOMEM leaves it as it was, here and below. */
int fl_chat_request_say(fl_chat_request *r, fl_role role, const char *text, size_t len);
/* Appends a line break and the text to the last message. */
int fl_chat_request_go_on(fl_chat_request *r, const char *text, size_t len);
/* A copy of the string at the end of such a list, which has room. */
int fl_chat_request_list(char **list, size_t *n, const char *text);

#endif
