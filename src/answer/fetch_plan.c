/* fetch_plan.c - see fetch_plan.h. */
#include "answer/fetch_plan.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "answer/cartridge_cache.h"

static void doc_release(fl_fetch_plan_doc *d) {
  fl_free(d->doc.name);
  fl_free(d->doc.hash);
  fl_free(d->doc.cart_file);
  fl_cartridge_release(&d->cart);
  fl_buf_release(&d->text);
}

static void release(fl_fetch_plan *s) {
  for (size_t i = 0; i < s->n; i++) doc_release(&s->doc[i]);
  for (size_t i = 0; i < s->n_members; i++) {
    fl_free(s->member[i].name);
    fl_free(s->member[i].hash);
  }
  fl_free(s->doc);
  fl_free(s->member);
  fl_free(s->dir);
  fl_free(s->model_hash);
  *s = (fl_fetch_plan){ 0 };
}

void fl_fetch_plan_free(fl_fetch_plan *s) {
  if (s == NULL) return;
  release(s);
  fl_free(s);
}

/* --- what is needed --- */

static bool copy_doc(fl_doc_entry *to, const fl_doc_entry *from) {
  to->id = from->id;
  to->rows = from->rows;
  to->steps = from->steps;
  to->born = from->born;
  return fl_set_string(&to->name, from->name) && fl_set_string(&to->hash, from->hash) &&
         fl_set_string(&to->cart_file, from->cart_file);
}

static bool copy_members(fl_fetch_plan *s, const fl_manifest *m) {
  s->member = fl_calloc(m->n_members + 1, sizeof *s->member);
  if (s->member == NULL) return false;
  for (; s->n_members < m->n_members; s->n_members++) {
    fl_member *to = &s->member[s->n_members];
    const fl_member *from = &m->member[s->n_members];
    if (fl_set_string(&to->name, from->name) && fl_set_string(&to->hash, from->hash)) continue;
    fl_free(to->name);
    return false;
  }
  return true;
}

static bool add_doc(fl_fetch_plan *s, const fl_fleet *f, size_t at, bool text) {
  fl_fetch_plan_doc *d = &s->doc[s->n++];
  const fl_doc_entry *m = &f->m.doc[at];
  if (!copy_doc(&d->doc, m)) return false;
  d->wanted = !fl_cache_has(f, at);
  d->text_wanted = text;
  s->to_read += (size_t)d->wanted + (size_t)text;
  if (d->wanted)
    s->bytes += fl_rows_bytes(fl_model_hparams(f->model), m->rows > 0 ? m->rows : f->m.p);
  return true;
}

int fl_fetch_plan_list(fl_fetch_plan *s, const fl_fleet *f, const size_t *docs, size_t n,
                       size_t text_tokens, fl_err *err) {
  uint64_t tokens = 0;
  *s = (fl_fetch_plan){ .generation = fl_fleet_generation(f) };
  s->doc = fl_calloc(n + 1, sizeof *s->doc);
  bool ok = s->doc != NULL && fl_set_string(&s->dir, f->dir) &&
            fl_set_string(&s->model_hash, f->m.model_hash) &&
            (f->m.n_members == 0 || copy_members(s, &f->m));
  for (size_t i = 0; ok && i < n; i++) {
    const uint64_t more = f->m.doc[docs[i]].tokens;
    const bool text = tokens <= text_tokens && more <= text_tokens - tokens && text_tokens > 0;
    ok = add_doc(s, f, docs[i], text);
    if (text) tokens += more;
  }
  if (ok) return FL_OK;
  release(s);
  return fl_fail(err, FL_ENOMEM, "%s: not enough memory", f->dir);
}

/* --- reading --- */

static void read_text(const fl_fetch_plan *s, fl_fetch_plan_doc *d) {
  fl_err why = { 0 };
  int rc = fl_doc_entry_text(&d->doc, s->member, s->n_members, &d->text, &why);
  if (rc == FL_OK && !d->text.oom) return;
  fl_debug("no drafts from %s: %s", d->doc.name, why.text);
  fl_buf_release(&d->text);
}

void fl_fetch_plan_read(fl_fetch_plan *s) {
  for (size_t i = 0; s->rc == FL_OK && i < s->n; i++) {
    fl_fetch_plan_doc *d = &s->doc[i];
    if (!d->wanted) continue;
    s->rc = fl_doc_entry_read_cartridge(&d->doc, s->dir, s->model_hash, NULL, &d->cart, &s->err);
    d->read = s->rc == FL_OK;
  }
  for (size_t i = 0; s->rc == FL_OK && i < s->n; i++)
    if (s->doc[i].text_wanted) read_text(s, &s->doc[i]);
}

/* --- with the fleet again --- */

static const fl_cartridge *fetched(const fl_fetch_plan *s, const char *file) {
  for (size_t i = 0; i < s->n; i++)
    if (s->doc[i].read && strcmp(s->doc[i].doc.cart_file, file) == 0) return &s->doc[i].cart;
  return NULL;
}

int fl_fetch_plan_compose(const fl_fetch_plan *s, fl_fleet *f, fl_seq *seq, size_t i, fl_err *err) {
  const fl_cartridge *c = fl_cache_find(f, i);
  if (c == NULL) c = fetched(s, f->m.doc[i].cart_file);
  if (c == NULL) return fl_fail(err, FL_EBUSY, "%s: not read yet", f->m.doc[i].name);
  return fl_compose(seq, &c, 1, f->opts.positions, err);
}

void fl_fetch_plan_keep(fl_fetch_plan *s, fl_fleet *f) {
  fl_cartridge_cache *x = NULL;
  if (fl_cache_of(&x, f, NULL) != FL_OK) return;
  for (size_t i = 0; i < s->n; i++) {
    fl_fetch_plan_doc *d = &s->doc[i];
    if (!d->read || fl_cache_holds(x, d->doc.cart_file)) continue;
    fl_cache_put(x, &d->cart, &d->doc.cart_file);
    d->read = false;
  }
}
