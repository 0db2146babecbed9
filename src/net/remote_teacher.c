/* remote_teacher.c - the teacher's rows of a given answer, computed here: the chunk and the
 * conversation go through the model once. */
#include "base/mem.h"
#include "cartridge/cartridge.h"
#include "net/remote_reply.h"

enum { ROWS_AT_ONCE = 8 };

/* Adds the teacher's entries of the rows [first, end) that are in the slice from `at` of n rows. */
static void add_rows(fl_target_room *room, fl_pass *pass, size_t at, size_t n, size_t first,
                     size_t end, float *logits, double mass) {
  const fl_model *m = fl_pass_model(pass);
  const size_t n_vocab = fl_model_hparams(m)->n_vocab;
  size_t row[ROWS_AT_ONCE], held = 0;
  for (size_t r = at > first ? at : first; r < at + n && r < end; r++) {
    row[held++] = r - at;
    if (held < ROWS_AT_ONCE && r + 1 < at + n && r + 1 < end) continue;
    fl_pass_logits(pass, row, held, logits);
    for (size_t i = 0; i < held; i++)
      fl_target_room_add(room, fl_model_kernels(m), logits + i * n_vocab, n_vocab, mass);
    held = 0;
  }
}

int fl_teach_here(fl_target_room *room, const fl_ids *prompt, const fl_ids *answer,
                  const char *text, size_t len, const fl_study_options *o, fl_pass *pass,
                  fl_kv_pool *pool, fl_err *err) {
  const fl_model *m = fl_pass_model(pass);
  const size_t slice = fl_pass_max_rows(pass);
  fl_ids ids = { 0 };
  fl_seq *seq = NULL;
  float *logits = fl_calloc(ROWS_AT_ONCE, fl_model_hparams(m)->n_vocab * sizeof *logits);
  int rc = logits ? fl_wrapped_system(&ids, m, text, len, 0, err) : FL_ENOMEM;
  const size_t first = ids.len + prompt->len - 1; /* the row that predicts the first token */
  fl_ids_append(&ids, prompt->data, prompt->len);
  fl_ids_append(&ids, answer->data, answer->len);
  if (rc == FL_OK && ids.oom) rc = FL_ENOMEM;
  if (rc == FL_ENOMEM) rc = fl_fail(err, rc, "not enough memory for the teacher's rows");
  if (rc == FL_OK) rc = fl_seq_new(&seq, pool, err);
  for (size_t at = 0; at < ids.len && rc == FL_OK; at += slice) {
    const size_t n = ids.len - at < slice ? ids.len - at : slice;
    if (o->cancelled && o->cancelled(o->cancel_ctx)) rc = fl_fail(err, FL_EINTR, "stopped");
    if (rc != FL_OK) break;
    const size_t before = first > at ? first - at : 0;
    const fl_span span = {
      .seq = seq, .tokens = ids.data + at, .n_rows = n, .n_no_output = before < n ? before : n
    };
    rc = fl_pass_forward(pass, &span, 1, err);
    if (rc == FL_OK) add_rows(room, pass, at, n, first, ids.len, logits, o->top_mass);
  }
  if (seq) fl_seq_free(seq);
  fl_ids_release(&ids);
  fl_free(logits);
  return rc;
}
