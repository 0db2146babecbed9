/* doc_choice.h - a question to a fleet: which documents, by retrieval or by name, and the answers.
 * Shared by ask, chat and eval. */
#ifndef FL_COMMANDS_DOC_CHOICE_H
#define FL_COMMANDS_DOC_CHOICE_H

#include "base/json.h"
#include "commands/sampling.h"
#include "fleet/fleet.h"

typedef struct selection {
  fl_hits hits; /* empty when the documents were named and nothing was searched */
  bool named;   /* the scores of hits are not those of docs */
  size_t *docs; /* indices in the fleet */
  size_t n_docs;
} selection;

/* By retrieval. Nothing above the floor: n_docs is 0. FL_ENOENT becomes a sentence that says how to
 * make an index. */
int selection_retrieve(selection *out, fl_fleet *f, const char *query, const fl_rag_options *o,
                       fl_err *err);
/* By names (exact, base name or stem). FL_EUSAGE for an unknown one. */
int selection_named(selection *out, fl_fleet *f, const opt_list *names, fl_err *err);
void selection_release(selection *s);
/* Members of a row that say why a document was found: score, and what each ranking says. */
void hit_json(fl_json *row, const fl_hits *h, const fl_hit *hit);
/* [{name, score, rows, tokens}]; no score for named documents. */
fl_json *selection_json(const selection *s, const fl_fleet *f);
/* Lines on stdout: name, score, rows. */
void selection_print(const selection *s, const fl_fleet *f);

/* on_token hook that writes to stdout at once; true once a signal came. */
bool stream_token(void *ctx, const char *piece, size_t len);

/* {arm, docs, text, rows, prompt_tokens, tokens, ttft_s, seconds_s, stop} */
fl_json *reply_json(const fl_reply *r, fl_arm arm);

#endif
