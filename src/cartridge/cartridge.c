/* cartridge.c - birth, capture and composition of cartridges.
 *
 * A cartridge is born from the model's own K/V over the opening of its document, wrapped as the
 * system message that self-study shows to both bots: it starts as an honest, short context and is
 * trained from there (arXiv 2506.06266, section 3.2).
 */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "cartridge/cartridge.h"

const char fl_wrap_head[] =
    "Everything you know about the user's documents is below.\n\n<document>\n";
const char fl_wrap_tail[] = "\n</document>";

void fl_cartridge_release(fl_cartridge *c) {
  fl_rows_release(&c->rows);
  *c = (fl_cartridge){ 0 };
}

static int closing_ids(fl_ids *out, const fl_model *m, fl_err *err) {
  const fl_tokenizer *t = fl_model_tokenizer(m);
  int rc = fl_tokenize(t, out, fl_wrap_tail, sizeof fl_wrap_tail - 1, 0, err);
  if (rc == FL_OK) rc = fl_chat_system_close(out, fl_model_template(m), t, err);
  return rc;
}

/* Cuts ids[first..) to max_ids, the last of them the closing ids. */
static int cut_wrapped(fl_ids *ids, size_t first, const fl_model *m, size_t max_ids, fl_err *err) {
  fl_ids close = { 0 };
  int rc = closing_ids(&close, m, err);
  if (rc != FL_OK) goto done;
  if (close.oom) {
    rc = fl_fail(err, FL_ENOMEM, "out of memory for a system message");
    goto done;
  }
  if (close.len >= max_ids) {
    rc = fl_fail(err, FL_EUSAGE,
                 "%zu rows have no room for a document, its closing marker takes %zu; use more "
                 "(--p)",
                 max_ids, close.len);
    goto done;
  }
  ids->len = first + max_ids;
  memcpy(ids->data + ids->len - close.len, close.data, close.len * sizeof *close.data);
done:
  fl_ids_release(&close);
  return rc;
}

int fl_wrapped_system(fl_ids *out, const fl_model *m, const char *doc, size_t doc_len,
                      size_t max_ids, fl_err *err) {
  const size_t first = out->len;
  fl_buf text = { 0 };
  int rc = FL_OK;
  fl_buf_puts(&text, fl_wrap_head);
  fl_buf_append(&text, doc, doc_len);
  fl_buf_puts(&text, fl_wrap_tail);
  if (!text.oom)
    rc = fl_chat_system(out, fl_model_template(m), fl_model_tokenizer(m), text.data, text.len, err);
  if (rc == FL_OK && (text.oom || out->oom))
    rc = fl_fail(err, FL_ENOMEM, "out of memory for a document of %zu bytes", doc_len);
  if (rc == FL_OK && max_ids > 0 && out->len - first > max_ids)
    rc = cut_wrapped(out, first, m, max_ids, err);
  if (rc != FL_OK) out->len = first;
  fl_buf_release(&text);
  return rc;
}

int fl_cartridge_capture(fl_cartridge *out, const fl_hparams *hp, const fl_seq *seq, size_t first,
                         size_t n, size_t frozen, fl_err *err) {
  fl_cartridge c = { .frozen = frozen, .first = first };
  assert(first <= fl_seq_rows(seq) && n <= fl_seq_rows(seq) - first);
  if (frozen >= n)
    return fl_fail(err, FL_EINPUT,
                   "a cartridge of %zu rows cannot keep %zu frozen; lower --frozen or raise --p", n,
                   frozen);
  int rc = fl_rows_init(&c.rows, hp, n, err);
  if (rc != FL_OK) return rc;
  for (size_t l = 0; l < c.rows.n_layers; l++)
    if (c.rows.width[l] > 0) fl_seq_read(seq, l, first, n, c.rows.k[l], c.rows.v[l]);
  *out = c;
  return FL_OK;
}

int fl_cartridge_birth(fl_cartridge *out, fl_pass *pass, fl_kv_pool *pool, const char *doc,
                       size_t doc_len, size_t p, size_t frozen, fl_err *err) {
  const fl_model *m = fl_pass_model(pass);
  fl_ids ids = { 0 };
  fl_seq *seq = NULL;
  assert(fl_kv_pool_type(pool) == FL_KV_F32);
  int rc = fl_wrapped_system(&ids, m, doc, doc_len, p, err);
  if (rc != FL_OK) goto done;
  rc = fl_seq_new(&seq, pool, err);
  if (rc != FL_OK) goto done;
  rc = fl_pass_prefill(pass, seq, ids.data, ids.len, NULL, err);
  if (rc != FL_OK) goto done;
  rc = fl_cartridge_capture(out, fl_model_hparams(m), seq, 0, ids.len, frozen, err);
done:
  fl_seq_free(seq);
  fl_ids_release(&ids);
  return rc;
}

/* What the pool wants at a layer, 0 heads where the layer keeps no rows. */
static bool layer_fits(const fl_rows *r, size_t l, bool owned, size_t heads, size_t head_dim) {
  if (!owned) return r->width[l] == 0;
  return r->kv_heads[l] == heads && r->width[l] == heads * head_dim;
}

int fl_cartridge_fits(const fl_cartridge *c, const fl_hparams *hp, const char *what, fl_err *err) {
  if (c->rows.n_layers != hp->n_layers)
    return fl_fail(err, FL_EINPUT,
                   "%s: has %zu layers where the model has %zu; use the model it "
                   "was trained on",
                   what, c->rows.n_layers, hp->n_layers);
  for (size_t l = 0; l < hp->n_layers; l++) {
    const fl_layer_hparams *lh = &hp->layer[l];
    const bool owned = lh->kv_from >= 0 && (size_t)lh->kv_from == l;
    if (!layer_fits(&c->rows, l, owned, lh->kv_heads, lh->head_dim))
      return fl_fail(err, FL_EINPUT,
                     "%s: layer %zu has %zu heads, %zu values a row, where the "
                     "model has %zu heads of %zu; use the model it was trained on",
                     what, l, c->rows.kv_heads[l], c->rows.width[l], owned ? lh->kv_heads : 0,
                     lh->head_dim);
  }
  if (c->rows.n_rows > hp->n_ctx)
    return fl_fail(err, FL_EINPUT,
                   "%s: has %zu rows, more than the model's context of %zu; use a "
                   "smaller one",
                   what, c->rows.n_rows, hp->n_ctx);
  return FL_OK;
}

static int part_fits(const fl_cartridge *c, size_t index, const fl_kv_pool *pool, fl_err *err) {
  bool ok = c->rows.n_layers == fl_kv_n_layers(pool);
  for (size_t l = 0; ok && l < c->rows.n_layers; l++) {
    const fl_kv_layer *kl = fl_kv_layer_at(pool, l);
    ok = layer_fits(&c->rows, l, kl->owned, kl->kv_heads, kl->head_dim);
  }
  if (ok) return FL_OK;
  return fl_fail(err, FL_EINPUT,
                 "cartridge %zu of a composition has other layers than the model; "
                 "use the model it was trained on",
                 index + 1);
}

size_t fl_position_after(const fl_cartridge *c, size_t here, fl_positions positions) {
  const size_t end = c->first + c->rows.n_rows;
  if (positions == FL_POS_SEQUENTIAL) return here + c->rows.n_rows;
  return here > end ? here : end;
}

int fl_compose(fl_seq *seq, const fl_cartridge *const *parts, size_t n_parts,
               fl_positions positions, fl_err *err) {
  size_t total = fl_seq_rows(seq);
  for (size_t i = 0; i < n_parts; i++) {
    int rc = part_fits(parts[i], i, fl_seq_pool(seq), err);
    if (rc != FL_OK) return rc;
    if (!fl_add_size(total, parts[i]->rows.n_rows, &total))
      return fl_fail(err, FL_EINPUT, "too many cartridge rows in one composition; use fewer parts");
  }
  int rc = fl_seq_reserve(seq, total, err);
  if (rc != FL_OK) return rc;
  for (size_t i = 0; i < n_parts; i++) {
    const fl_rows *r = &parts[i]->rows;
    const size_t first = fl_seq_rows(seq);
    const size_t next = fl_position_after(parts[i], fl_seq_position(seq), positions);
    for (size_t l = 0; l < r->n_layers; l++)
      if (r->width[l] > 0) fl_seq_write(seq, l, first, r->n_rows, r->k[l], r->v[l]);
    fl_seq_advance(seq, r->n_rows);
    if (positions == FL_POS_SHARED) fl_seq_place(seq, next);
  }
  return FL_OK;
}
