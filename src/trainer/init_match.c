/* init_match.c - see init_match.h. */
#include "trainer/init_match.h"

#include "base/mem.h"
#include "cartridge/match.h"
#include "study/retell.h"
#include "trainer/dataset.h"

enum {
  PIECE = 32,       /* tokens of the text that are repeated at a time: short ones ask best */
  MAX_PIECES = 32,  /* with what asks for them, some 2000 rows */
  GIVEN_ROWS = 4096 /* of conversations from a study file, at most */
};

/* What asks: conversations of either sort, and the list of both. */
typedef struct asking {
  fl_conv *given;
  size_t n_given;
  fl_retold retold;
  fl_match_conv *list;
  size_t n;
} asking;

static void asking_release(asking *a) {
  for (size_t i = 0; i < a->n_given; i++) fl_conv_release(&a->given[i]);
  fl_free(a->given);
  fl_retold_release(&a->retold);
  fl_free(a->list);
}

static int read_given(asking *a, const fl_fleet *f, size_t i, fl_err *err) {
  const fl_hparams *hp = fl_model_hparams(f->model);
  const fl_dataset *given = fl_fleet_attachment(f, FL_WITH_DATASET);
  const size_t room = hp->n_ctx > f->m.p ? hp->n_ctx - (size_t)f->m.p : 1;
  const fl_conv_limits limits = { .n_vocab = hp->n_vocab, .max_tokens = room, .max_sup = room };
  if (fl_dataset_count(given, i) == 0) return FL_OK;
  return fl_dataset_read(given, i, &limits, &a->given, &a->n_given, err);
}

static int retell(asking *a, const fl_fleet *f, const char *text, size_t len, fl_err *err) {
  const fl_tokenizer *t = fl_model_tokenizer(f->model);
  const fl_retell_options o = { .piece = PIECE, .max_pieces = MAX_PIECES };
  fl_doc_text doc = { 0 };
  int rc = fl_doc_text_init(&doc, t, text, len, err);
  if (rc == FL_OK) rc = fl_retell(&a->retold, &doc, t, fl_model_template(f->model), &o, err);
  fl_doc_text_release(&doc);
  return rc;
}

static int list_all(asking *a, fl_err *err) {
  a->list = fl_calloc(a->n_given + a->retold.n + 1, sizeof *a->list);
  if (a->list == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for conversations");
  for (size_t i = 0; i < a->retold.n; i++)
    a->list[a->n++] = (fl_match_conv){ a->retold.conv[i].data, a->retold.conv[i].len };
  for (size_t i = 0, rows = 0; i < a->n_given; i++) {
    const fl_ids *ids = &a->given[i].tokens;
    if (rows + ids->len > GIVEN_ROWS) break;
    rows += ids->len;
    a->list[a->n++] = (fl_match_conv){ ids->data, ids->len };
  }
  return FL_OK;
}

int fl_fleet_init_match(fl_cartridge *out, fl_fleet *f, size_t i, const char *text, size_t len,
                        fl_err *err) {
  asking a = { 0 };
  int rc = read_given(&a, f, i, err);
  if (rc == FL_OK) rc = retell(&a, f, text, len, err);
  if (rc == FL_OK) rc = list_all(&a, err);
  const fl_match_options o = {
    .p = (size_t)f->m.p, .frozen = (size_t)f->m.frozen, .convs = a.list, .n_convs = a.n
  };
  if (rc == FL_OK)
    rc = fl_cartridge_match(out, f->pass, f->pool[FL_KV_F32], f->team, text, len, &o, err);
  asking_release(&a);
  return rc;
}
