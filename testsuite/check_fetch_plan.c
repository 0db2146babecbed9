/* check_fetch_plan.c - what an answer needs from the disk: what is listed, read apart from the
 * fleet, and given back. */
#include "answer_util.h"

static still_fleet s;
static void setup(void) { still_begin(&s); }
static void teardown(void) { still_end(&s); }

static fl_fetch_plan *plan_of(const size_t *docs, size_t n, size_t text_tokens) {
  fl_fetch_plan *p = fl_calloc(1, sizeof *p);
  fl_err err = { 0 };
  ck_assert_msg(fl_fetch_plan_list(p, &s.f, docs, n, text_tokens, &err) == FL_OK, "%s", err.text);
  ck_assert_uint_eq(p->n, n);
  return p;
}

/* A cartridge in memory is not read again; texts are, until their tokens pass the limit, and one
 * that fits behind one that did not. */
START_TEST(what_is_listed) {
  static const size_t docs[] = { 2, 0, 5, 1 }; /* 30, 10, 60 and 20 tokens */
  const fl_cartridge *c = NULL;
  ck_assert_int_eq(fl_fleet_cartridge(&s.f, 0, &c, NULL), FL_OK);
  fl_fetch_plan *p = plan_of(docs, 4, 60);
  for (size_t i = 0; i < 4; i++) {
    ck_assert_str_eq(p->doc[i].doc.cart_file, s.file[docs[i]]);
    ck_assert(p->doc[i].wanted == (docs[i] != 0));
    ck_assert(p->doc[i].text_wanted == (docs[i] != 5));
  }
  ck_assert_uint_eq(p->to_read, 6);
  ck_assert_uint_eq(p->bytes, 3 * fl_rows_bytes(s.r.hp, ROWS));
  fl_fetch_plan_free(p);
  p = plan_of(docs, 4, 0); /* no drafts */
  ck_assert_uint_eq(p->to_read, 3);
  fl_fetch_plan_free(p);
}
END_TEST

/* The plan has copies: the fleet may have moved on when it is read. */
START_TEST(what_is_read_is_kept) {
  static const size_t docs[] = { 3, 1 };
  fl_err err = { 0 };
  fl_kv_pool *pool = rig_pool(&s.r, FL_KV_F32);
  fl_seq *seq = rig_seq(pool);
  fl_fetch_plan *p = plan_of(docs, 2, 1000);
  ck_assert_int_eq(fl_fetch_plan_compose(p, &s.f, seq, 3, &err), FL_EBUSY);
  ck_assert_ptr_nonnull(strstr(err.text, "d3.md"));
  s.f.m.n = 0;
  fl_fetch_plan_read(p);
  ck_assert_msg(p->rc == FL_OK, "%s", p->err.text);
  s.f.m.n = DOCS;
  for (size_t i = 0; i < 2; i++) {
    is_document(&s, &p->doc[i].cart, docs[i]);
    ck_assert_str_eq(p->doc[i].text.data, s.text[docs[i]]);
  }
  ck_assert_int_eq(fl_fetch_plan_compose(p, &s.f, seq, 3, &err), FL_OK);
  ck_assert_uint_eq(fl_seq_rows(seq), ROWS);
  fl_fetch_plan_keep(p, &s.f);
  ck_assert(fl_cache_has(&s.f, 3) && fl_cache_has(&s.f, 1) && !fl_cache_has(&s.f, 2));
  is_document(&s, fl_cache_find(&s.f, 3), 3);
  ck_assert(!p->doc[0].read); /* it is the cache's now, which composes as well */
  ck_assert_int_eq(fl_fetch_plan_compose(p, &s.f, seq, 1, &err), FL_OK);
  fl_fetch_plan_free(p);
  is_document(&s, fl_cache_find(&s.f, 1), 1);
  fl_seq_free(seq);
  fl_kv_pool_free(pool);
}
END_TEST

/* A text that is gone or has changed costs the drafts alone; a cartridge that is gone is told. */
START_TEST(what_is_missing) {
  static const size_t docs[] = { 0, 2, DOCS - 1 };
  char another[] = "xxh3:0000000000000000";
  unlink(s.name[0]);
  s.doc[2].hash = another;
  fl_fetch_plan *p = plan_of(docs, 2, 1000);
  fl_fetch_plan_read(p);
  ck_assert_msg(p->rc == FL_OK, "%s", p->err.text);
  for (size_t i = 0; i < 2; i++) {
    ck_assert(p->doc[i].read);
    ck_assert_uint_eq(p->doc[i].text.len, 0);
  }
  fl_fetch_plan_free(p);
  s.doc[2].hash = NULL;
  p = plan_of(docs, 3, 0);
  fl_fetch_plan_read(p);
  ck_assert_int_eq(p->rc, FL_ENOENT);
  fl_fetch_plan_free(p);
  fl_fetch_plan_free(NULL);
}
END_TEST

Suite *suite_fetch_plan(void);
Suite *suite_fetch_plan(void) {
  Suite *suite = suite_create("fetch_plan");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, what_is_listed);
  tcase_add_test(t, what_is_read_is_kept);
  tcase_add_test(t, what_is_missing);
  suite_add_tcase(suite, t);
  return suite;
}
