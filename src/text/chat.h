/* chat.h - chat templates: ChatML, Llama 3, Gemma 4, Gemma 1-3; recognised from the marker strings
 * in the file's template (tried in that order), or named by the user.
 *
 * Rendering goes to token ids, not to text: markers are pushed as the control tokens they are,
 * contents are tokenised without FL_TOK_SPECIAL, so a marker inside a document or a question stays
 * text. BOS stands exactly once, at the very start (where the file's policy has one).
 * Llama 3 renders as in 3.0: without the date lines that later templates put into a system turn.
 */
#ifndef FL_TEXT_CHAT_H
#define FL_TEXT_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/tokenizer.h"

typedef enum fl_template {
  FL_TEMPLATE_NONE,
  FL_TEMPLATE_CHATML,
  FL_TEMPLATE_LLAMA3,
  FL_TEMPLATE_GEMMA4,
  FL_TEMPLATE_GEMMA,
  FL_TEMPLATE_PLAIN /* no markers: "{system}\n\nQuestion: {user}\nAnswer:" for base models */
} fl_template;

const char *fl_template_name(fl_template t);
bool fl_template_by_name(fl_template *out, const char *name);
/* From tokenizer.chat_template; FL_TEMPLATE_NONE when the file has none or an unknown one. */
fl_template fl_template_detect(const fl_gguf *g, const fl_tokenizer *t);

typedef enum fl_role { FL_ROLE_SYSTEM, FL_ROLE_USER, FL_ROLE_ASSISTANT } fl_role;
typedef struct fl_message {
  fl_role role;
  const char *text;
  size_t len;
} fl_message;

/* A conversation in pieces that concatenate to the whole: BOS/system first, then turns. Rendering
 * piecewise and rendering at once give the same ids (turns meet at control tokens). */

/* Appends what opens a conversation: BOS by policy, and the system turn when `system` != NULL.
 * In Gemma 1-3, which has no system role, the text is folded into the first user turn: then this
 * emits BOS and the opening of that turn with the text, and the next fl_chat_user continues it. */
int fl_chat_system(fl_ids *out, fl_template tpl, const fl_tokenizer *t, const char *system,
                   size_t len, fl_err *err);
/* Appends a user turn and the assistant's opener (with the closed empty think block / empty thought
 * channel where the template has one and `thinking` is false). after_system: fl_chat_system with a
 * text directly precedes. Published templates show past answers without the empty block: before an
 * fl_chat_assistant pass `thinking` true, so that the pieces equal fl_chat_render. */
int fl_chat_user(fl_ids *out, fl_template tpl, const fl_tokenizer *t, const char *user, size_t len,
                 bool after_system, bool thinking, fl_err *err);
/* Appends the assistant's text as a past answer and closes its turn (a leading think block and
 * leading white space are dropped from `text`). */
int fl_chat_assistant(fl_ids *out, fl_template tpl, const fl_tokenizer *t, const char *text,
                      size_t len, fl_err *err);
/* The ids after the content of a system turn (close marker and what follows up to the next turn):
 * what must stay when a system turn is cut to p rows. */
int fl_chat_system_close(fl_ids *out, fl_template tpl, const fl_tokenizer *t, fl_err *err);
/* A whole conversation that ends with a user message, opener included. ChatML and Llama 3 take a
 * system message anywhere; elsewhere several may lead (joined by an empty line) and later ones are
 * FL_EUSAGE. Thinking also puts Gemma 4's think marker into the system turn. */
int fl_chat_render(fl_ids *out, fl_template tpl, const fl_tokenizer *t, const fl_message *msgs,
                   size_t n, bool thinking, fl_err *err);
/* The end-of-turn id that closes an assistant turn; -1 for PLAIN (then "\n" stops, and EOS). */
int32_t fl_chat_end_of_turn(fl_template tpl, const fl_tokenizer *t);
/* True when generation stops at `id`: the template's end of turn or any end-of-generation id. */
bool fl_chat_stops(fl_template tpl, const fl_tokenizer *t, int32_t id);

/* Byte length of a leading reasoning block ("<think>...</think>" with surrounding white space, or
 * Gemma 4's thought channel with its markers: detokenise with `special` to keep those) in
 * text[0..len); 0 if there is none or it is not closed. */
size_t fl_chat_think_span(const char *text, size_t len);

#endif
