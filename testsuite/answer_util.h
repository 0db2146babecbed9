/* answer_util.h - a fleet of a few documents as answers see it: a manifest in memory, cartridges in
 * a scratch folder that this file wrote, nobody who trains. */
#ifndef FL_TESTSUITE_ANSWER_UTIL_H
#define FL_TESTSUITE_ANSWER_UTIL_H

#include "answer/cartridge_cache.h"
#include "answer/fetch_plan.h"
#include "cart_util.h"
#include "scratch.h"

enum { DOCS = 7, ROWS = 3 };

typedef struct still_fleet {
  fl_fleet f;
  fl_doc_entry doc[DOCS];
  char name[DOCS][600], file[DOCS][40], text[DOCS][40];
  rig r;
} still_fleet;

/* The embedded model, and DOCS documents of 10, 20, 30 ... tokens, each with its text and, but for
 * the last, its cartridge on disk. */
static inline void still_begin(still_fleet *s) {
  memset(s, 0, sizeof *s);
  scratch_begin();
  s->r = rig_open("embedded/model.gguf", 1);
  s->f.dir = scratch_dir;
  s->f.model = s->r.m;
  s->f.m.doc = s->doc;
  s->f.m.n = DOCS;
  s->f.m.p = ROWS;
  for (size_t i = 0; i < DOCS; i++) {
    snprintf(s->name[i], sizeof s->name[i], "%s/d%zu.md", scratch_dir, i);
    snprintf(s->file[i], sizeof s->file[i], "doc-%zu.safetensors", i);
    snprintf(s->text[i], sizeof s->text[i], "The text of document %zu.", i);
    s->doc[i] = (fl_doc_entry){ .id = (uint32_t)i,
                                .name = s->name[i],
                                .cart_file = s->file[i],
                                .tokens = 10 * (i + 1),
                                .rows = ROWS,
                                .steps = i,
                                .born = true };
    scratch_put(s->name[i], s->text[i], strlen(s->text[i]));
    if (i == DOCS - 1) continue;
    fl_cartridge c = some_cartridge(s->r.hp, ROWS, 0, (uint32_t)i);
    fl_err err = { 0 };
    ck_assert_msg(fl_cartridge_write(scratch(s->file[i]), &c, &(fl_provenance){ 0 }, &err) == FL_OK,
                  "%s", err.text);
    fl_cartridge_release(&c);
  }
}

static inline void still_end(still_fleet *s) {
  for (int i = 0; i < FL_N_ATTACHED; i++) fl_fleet_attach(&s->f, (fl_attached)i, NULL, NULL);
  rig_close(&s->r);
  scratch_end();
}

/* Asserts that c is document i's. */
static inline void is_document(const still_fleet *s, const fl_cartridge *c, size_t i) {
  fl_cartridge want = some_cartridge(s->r.hp, ROWS, 0, (uint32_t)i);
  ck_assert_ptr_nonnull(c);
  ck_assert(rows_equal(&c->rows, &want.rows));
  ck_assert_uint_eq(c->steps, i);
  fl_cartridge_release(&want);
}

#endif
