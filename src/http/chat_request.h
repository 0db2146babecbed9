/* chat_request.h - a request for an answer, the same for the three dialects: messages, sampling,
 * tools, the extension object. A dialect reads its body into a call; the call becomes the engine's
 * request. */
#ifndef FL_HTTP_CHAT_REQUEST_H
#define FL_HTTP_CHAT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "http/json_fields.h"
#include "serve/engine.h"

/* What a server gives to requests that name nothing themselves. */
typedef struct fl_call_defaults {
  fl_sampling sampling;
  uint64_t seed; /* mixed with the request's number */
  size_t max_new;
  bool thinking, tools; /* tools: the model's template is one of their convention */
} fl_call_defaults;

enum {
  FL_CALL_MESSAGES = 4096,
  FL_CALL_STOPS = 16,
  FL_CALL_DOCS = 64,
  FL_CALL_TOOLS = 256,
  FL_CALL_ID = 256,
  FL_CALL_BIASES = 1024
};

typedef struct fl_call {
  fl_json *body;    /* strings below point into it; owned */
  fl_message *msgs; /* texts owned */
  size_t n_msgs, cap;
  const char *stop[FL_CALL_STOPS];
  size_t n_stop;
  const char *docs[FL_CALL_DOCS];
  size_t n_docs;
  fl_rag_mode rag;
  const char *conversation;
  fl_sampling sampling; /* its biases are `bias` */
  fl_logit_bias *bias;  /* owned */
  uint64_t seed;
  bool seed_given;
  size_t max_new;
  bool thinking, stream, include_usage, logprobs;
  size_t top_logprobs;
  const char *tool[FL_CALL_TOOLS]; /* names */
  size_t n_tools;
  bool tools_off;   /* tool_choice none: declared, but not shown to the model */
  fl_buf tool_text; /* declarations, one JSON object a line */
} fl_call;

void fl_call_init(fl_call *c, fl_json *body, const fl_call_defaults *d);
void fl_call_release(fl_call *c);

/* Appends a message; text is copied. A message that has the role of the last one and `joins` is
 * appended to it behind a line break. */
int fl_call_message(fl_call *c, fl_role role, const char *text, size_t len, bool joins,
                    fl_api_error *f);
/* Text of a content field: a string, or an array of parts whose type is one of `types`
 * (NULL-terminated). `where` names it in faults. Appends to *out. */
int fl_call_content(fl_buf *out, const fl_json *content, const char *const *types,
                    const char *where, fl_api_error *f);
/* temperature, top_p, top_k, min_p, repeat_penalty, presence_penalty, frequency_penalty, seed. */
int fl_call_sampling(fl_call *c, double max_temperature, fl_api_error *f);
/* logit_bias: an object from token ids to numbers from -100 to 100. */
int fl_call_bias(fl_call *c, fl_api_error *f);
/* A string or an array of non-empty strings. */
int fl_call_stops(fl_call *c, const char *key, fl_api_error *f);
/* The `flotilla` object: documents, retrieval, conversation. */
int fl_call_extension(fl_call *c, fl_api_error *f);

/* A tool's declaration in the form that the template shows. */
int fl_call_tool(fl_call *c, const char *name, const char *description, const fl_json *parameters,
                 fl_api_error *f);
/* Puts the declarations into the system message in front. */
int fl_call_declare(fl_call *c, fl_api_error *f);
bool fl_call_knows(const fl_call *c, const char *name);
/* "<tool_call>...</tool_call>" and "<tool_response>..." as they stand in a conversation. */
void fl_call_put_tool_call(fl_buf *out, const char *name, const char *args, size_t len);
void fl_call_put_tool_response(fl_buf *out, const char *text, size_t len);

/* Checks the whole and puts the tools' text into the system message; then the call is ready. */
int fl_call_finish(fl_call *c, const fl_call_defaults *d, fl_api_error *f);
/* Borrows from the call. */
void fl_call_job(const fl_call *c, uint32_t owner, uint64_t number, fl_job_request *out);

#endif
