/* api_request.h - a body in one of the three protocols, on its way to the engine's request.
 *
 * A protocol reads its body into `chat`, which the engine takes over at the end, and into what
 * concerns the reply alone. The helpers below are what the protocols have in common.
 */
#ifndef FL_HTTP_API_REQUEST_H
#define FL_HTTP_API_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "http/api_error.h"
#include "serve/engine.h"

/* What a server gives to requests that name nothing themselves. */
typedef struct fl_request_defaults {
  fl_sampling sampling;
  uint64_t seed; /* mixed with the request's number */
  size_t max_new;
  bool thinking, tools; /* tools: the model's template is one of their convention */
} fl_request_defaults;

enum {
  FL_REQUEST_MESSAGES = 4096,
  FL_REQUEST_TOOLS = 256,
  FL_REQUEST_ID = 256, /* bytes of a conversation's id, with its NUL */
  FL_REQUEST_BIASES = 1024
};

typedef struct fl_api_request {
  fl_json *body; /* the tools' names point into it; owned */
  fl_chat_request chat;
  bool seed_given, stream, include_usage;
  const char *tool[FL_REQUEST_TOOLS]; /* names */
  size_t n_tools;
  bool tools_off;   /* tool_choice none: declared, but not shown to the model */
  fl_buf tool_text; /* declarations, one JSON object a line */
} fl_api_request;

/* Fields of a body, or of an object in it: type and range are checked, the error names the field.
 * An absent field and an explicit null are the same and leave *out as it is. */
/* NULL: absent or null. */
const fl_json *fl_json_field(const fl_json *obj, const char *key);
int fl_json_field_num(const fl_json *obj, const char *key, double min, double max, double *out,
                      fl_api_error *f);
int fl_json_field_size(const fl_json *obj, const char *key, uint64_t min, uint64_t max, size_t *out,
                       fl_api_error *f);
int fl_json_field_u64(const fl_json *obj, const char *key, uint64_t *out, bool *given,
                      fl_api_error *f);
int fl_json_field_bool(const fl_json *obj, const char *key, bool *out, fl_api_error *f);
int fl_json_field_str(const fl_json *obj, const char *key, const char **out, fl_api_error *f);
int fl_json_field_obj(const fl_json *obj, const char *key, const fl_json **out, fl_api_error *f);
int fl_json_field_arr(const fl_json *obj, const char *key, const fl_json **out, fl_api_error *f);
/* Refuses each named field that is given; empty arrays and objects pass. */
int fl_json_field_refuse(const fl_json *obj, const char *const *names, size_t n, fl_api_error *f);
/* Refuses every field that is not named. */
int fl_json_field_only(const fl_json *obj, const char *where, const char *const *names, size_t n,
                       fl_api_error *f);

void fl_request_init(fl_api_request *c, fl_json *body, const fl_request_defaults *d);
void fl_request_release(fl_api_request *c);

/* Appends a message; text is copied. A message that has the role of the last one and `joins` is
 * appended to it behind a line break. */
int fl_request_message(fl_api_request *c, fl_role role, const char *text, size_t len, bool joins,
                       fl_api_error *f);
/* Text of a content field: a string, or an array of parts whose type is one of `types`
 * (NULL-terminated). `where` names it in errors. Appends to *out. */
int fl_request_content(fl_buf *out, const fl_json *content, const char *const *types,
                       const char *where, fl_api_error *f);
/* temperature, top_p, top_k, min_p, repeat_penalty, presence_penalty, frequency_penalty, seed. */
int fl_request_sampling(fl_api_request *c, double max_temperature, fl_api_error *f);
/* logit_bias: an object from token ids to numbers from -100 to 100. */
int fl_request_bias(fl_api_request *c, fl_api_error *f);
/* A string or an array of non-empty strings. */
int fl_request_stops(fl_api_request *c, const char *key, fl_api_error *f);
/* The `flotilla` object: documents, retrieval, conversation. */
int fl_request_extension(fl_api_request *c, fl_api_error *f);

/* OpenAI's tool_choice: auto or none. */
int fl_request_tool_choice(fl_api_request *c, fl_api_error *f);
/* A tool's declaration in the form that the template shows. */
int fl_request_tool(fl_api_request *c, const char *name, const char *description,
                    const fl_json *parameters, fl_api_error *f);
/* Puts the declarations into the system message in front. */
int fl_request_declare(fl_api_request *c, fl_api_error *f);
bool fl_request_knows(const fl_api_request *c, const char *name);
/* A call of a tool in the conversation, its arguments as JSON text; `where` names the field. */
int fl_request_past_call(fl_buf *out, const char *name, const char *args, const char *where,
                         fl_api_error *f);
/* "<tool_call>...</tool_call>" and "<tool_response>..." as they stand in a conversation. */
void fl_request_put_tool_call(fl_buf *out, const char *name, const char *args, size_t len);
void fl_request_put_tool_response(fl_buf *out, const char *text, size_t len);

/* Checks the whole and puts the tools' text into the system message; then `chat` is ready. */
int fl_request_finish(fl_api_request *c, const fl_request_defaults *d, fl_api_error *f);
/* Whose it is, and which one: requests that name no seed differ by their number. */
void fl_request_identify(fl_api_request *c, uint32_t owner, uint64_t number);
/* An id that came beside the body, unless the body has one. NULL: none. */
int fl_request_conversation(fl_api_request *c, const char *id, fl_api_error *f);

#endif
