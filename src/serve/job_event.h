/* job_event.h - what happened to a job: the one shape in which the engine tells it, a queue keeps
 * it and a reader takes it.
 *
 * An event may be several at once: they are merged while nobody reads. It owns all its memory;
 * zeroed it is nothing.
 */
#ifndef FL_SERVE_JOB_EVENT_H
#define FL_SERVE_JOB_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "retrieval/hits.h"

typedef struct fl_job_doc {
  uint32_t id;
  char *name;
  fl_evidence why; /* zeros when it was named */
  size_t rows;
} fl_job_doc;

typedef struct fl_job_token {
  int32_t id; /* -1: there are not so many */
  float logprob;
  size_t at, len; /* its bytes in the event's `bytes` */
} fl_job_token;

typedef enum fl_finish {
  FL_FINISH_STOP,
  FL_FINISH_LENGTH,
  FL_FINISH_CANCELLED,
  FL_FINISH_ERROR
} fl_finish;

/* The job has its slot. */
typedef struct fl_job_start {
  fl_job_doc *docs;
  size_t n_docs, rows;                 /* cartridge rows before the prompt */
  size_t prompt_tokens, cached_tokens; /* tokens; cartridge rows are counted in neither */
  double queue_s;
} fl_job_start;

typedef struct fl_job_end {
  fl_finish finish;
  char *stop_string; /* which one, or NULL */
  size_t completion_tokens, drafted, accepted;
  double ttft_s, seconds;
  int code;    /* FL_OK, or with FL_FINISH_ERROR: FL_EINPUT the conversation does not fit the
                  context, or the memory even alone, behind its documents; FL_ENOMEM; FL_EFAIL the
                  documents could not be had; FL_EFULL too many wait for a disk that does not answer
                  (say 429) */
  char *error; /* one sentence with code < 0 */
} fl_job_end;

typedef struct fl_job_event {
  bool started, ended; /* once each; an end is the last */
  bool lost;           /* some of it, for lack of memory */
  fl_job_start start;  /* with `started` */
  /* The next piece of the answer: whole UTF-8, never past a stop string, never a prefix of one that
   * may yet complete. Tokens when their log probabilities were asked for, with alternatives. */
  fl_buf text;
  fl_job_token *token, *top; /* [n_tokens], [n_tokens * n_top] */
  size_t n_tokens, n_top, cap;
  fl_buf bytes;
  fl_job_end end; /* with `ended` */
} fl_job_event;

void fl_job_event_release(fl_job_event *e);
/* Empty again, with memory for the next piece. */
void fl_job_event_reset(fl_job_event *e);
/* Adds what happened later to *to and leaves `later` empty. What there is no memory for is `lost`.
 */
void fl_job_event_merge(fl_job_event *to, fl_job_event *later);
/* Room for so many more tokens; false: no memory. */
bool fl_job_event_reserve(fl_job_event *e, size_t n_tokens, size_t n_top);
void fl_job_event_forget_tokens(fl_job_event *e);

#endif
