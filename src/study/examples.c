/* examples.c - see examples.h. The examples are of a prose sentence, an option of a program, a row
 * of a table and a rule, each under its headings, so that what is asked names them. */
#include "study/examples.h"

#include <string.h>

const char fl_sentence_instruction[] =
    "Write one question that the document answers. Name who or what it is about. Give the question "
    "alone.";

static const char rules[] =
    "You write questions for a quiz. You are given a few words from a document. Write one question "
    "that they answer. Name what it is about, since nobody who takes the quiz sees these words.";

typedef struct example {
  const char *shown, *question;
} example;

static const example examples[] = {
  { "\"Tolm Railway\", under \"History\":\n\nThe line over the pass was opened on 3 May 1911. Its "
    "builder, Ada Rehn, had drawn it in one winter.",
    "Who built the line of the Tolm Railway over the pass?" },
  { "\"shear\", under \"OPTIONS\":\n\n-w, --width N\n  Cut every line after N columns; the default "
    "is 72.",
    "What does the option -w of shear do?" },
  { "\"Harbour fees\", under \"Small boats\":\n\n| length | fee |\n| 6 to 8 m | 14 crowns |",
    "How much is the harbour fee for a boat of 6 to 8 m?" },
  { "\"Frame format\":\n\nA receiver that finds a wrong checksum must drop the frame and must not "
    "answer it.",
    "What must a receiver do with a frame whose checksum is wrong?" },
};
enum { N_EXAMPLES = sizeof examples / sizeof *examples };

static fl_message message(fl_role role, const char *text) {
  return (fl_message){ .role = role, .text = text, .len = strlen(text) };
}

int fl_examples_render(fl_ids *out, const fl_model *m, const char *shown, fl_err *err) {
  fl_message msgs[2 * N_EXAMPLES + 2];
  size_t n = 0;
  msgs[n++] = message(FL_ROLE_SYSTEM, rules);
  for (size_t i = 0; i < N_EXAMPLES; i++) {
    msgs[n++] = message(FL_ROLE_USER, examples[i].shown);
    msgs[n++] = message(FL_ROLE_ASSISTANT, examples[i].question);
  }
  msgs[n++] = message(FL_ROLE_USER, shown);
  int rc = fl_chat_render(out, fl_model_template(m), fl_model_tokenizer(m), msgs, n, false, err);
  if (rc == FL_OK && out->oom) rc = fl_fail(err, FL_ENOMEM, "out of memory for a prompt");
  return rc;
}
