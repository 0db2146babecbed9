/* check_replay.c - conversations as JSON lines: the same floats come back; damage is refused. */
#include <math.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/rng.h"
#include "trainer/replay.h"
#include "fleet_util.h"
#include "suite.h"

static const fl_conv_limits limits = { .n_vocab = 1000, .max_tokens = 50, .max_sup = 20 };

static void *room(size_t n, size_t size) {
  void *p = fl_calloc(n, size);
  ck_assert_ptr_nonnull(p);
  return p;
}

/* A conversation of random content; probabilities are any floats in (0, 1]. */
static fl_conv random_conv(uint32_t number) {
  fl_rng r = fl_rng_stream(9, FL_RNG_TEST, number, 0, 0);
  fl_conv c = { .kind = (uint32_t)fl_rng_below(&r, FL_N_SEED_KINDS), .first = 10, .end = 90 };
  for (int i = 0; i < 30; i++) fl_ids_push(&c.tokens, (int32_t)fl_rng_below(&r, 1000));
  c.targets.n_rows = 7;
  c.sup = room(7, sizeof *c.sup);
  c.targets.first = room(8, sizeof *c.targets.first);
  c.targets.id = room(7 * 5, sizeof *c.targets.id);
  c.targets.prob = room(7 * 5, sizeof *c.targets.prob);
  uint32_t used = 0;
  for (uint32_t i = 0; i < 7; i++) {
    c.sup[i] = 20 + i;
    for (uint64_t k = 1 + fl_rng_below(&r, 5); k > 0; k--, used++) {
      c.targets.id[used] = (int32_t)fl_rng_below(&r, 1000);
      c.targets.prob[used] = (float)exp(-20 * fl_rng_unit(&r));
    }
    c.targets.first[i + 1] = used;
  }
  c.request = fl_strdup("What is \"it\"?\n\xC3\xA9");
  c.answer = fl_strdup("A lamp.");
  return c;
}

static void same_conv(const fl_conv *a, const fl_conv *b) {
  ck_assert_uint_eq(a->tokens.len, b->tokens.len);
  ck_assert_mem_eq(a->tokens.data, b->tokens.data, a->tokens.len * sizeof(int32_t));
  ck_assert_uint_eq(a->targets.n_rows, b->targets.n_rows);
  size_t n = a->targets.first[a->targets.n_rows];
  ck_assert_mem_eq(a->sup, b->sup, a->targets.n_rows * sizeof(uint32_t));
  ck_assert_mem_eq(a->targets.first, b->targets.first, (a->targets.n_rows + 1) * sizeof(uint32_t));
  ck_assert_mem_eq(a->targets.id, b->targets.id, n * sizeof(int32_t));
  ck_assert_mem_eq(a->targets.prob, b->targets.prob, n * sizeof(float)); /* to the bit */
  ck_assert_uint_eq(a->kind, b->kind);
  ck_assert_uint_eq(a->first, b->first);
  ck_assert_uint_eq(a->end, b->end);
  ck_assert_str_eq(a->request, b->request);
  ck_assert_str_eq(a->answer, b->answer);
}

static const fl_conv_label label = { .doc = 3, .name = "d\".md", .hash = "xxh3:0", .index = 1 };

START_TEST(a_line_comes_back_to_the_bit) {
  for (uint32_t k = 0; k < 20; k++) {
    fl_conv c = random_conv(k), back = { 0 };
    fl_buf b = { 0 };
    fl_json *o = NULL;
    fl_conv_print(&b, &c, &label);
    ck_assert_int_eq(b.data[b.len - 1], '\n');
    ck_assert_ptr_eq(memchr(b.data, '\n', b.len), b.data + b.len - 1);
    ck_assert_int_eq(fl_json_parse(&o, b.data, b.len, NULL), FL_OK);
    ck_assert_int_eq(fl_conv_parse(&back, o, &limits), FL_OK);
    same_conv(&c, &back);
    fl_json_free(o);
    fl_buf_release(&b);
    fl_conv_release(&c);
    fl_conv_release(&back);
  }
}
END_TEST

static const char good[] =
    "{\"doc\":0,\"name\":\"a\",\"hash\":\"h\",\"index\":0,\"kind\":\"question\",\"first\":0,"
    "\"end\":9,\"request\":\"q\",\"answer\":\"a\",\"tokens\":[5,6,7],\"sup\":[1,2],"
    "\"targets\":[[5,0.5,6,0.25],[7,1]]}";

static const struct {
  const char *from, *to;
} faults[] = {
  { "\"tokens\":[5,6,7]", "\"tokens\":[]" },
  { "\"tokens\":[5,", "\"tokens\":[1000," },
  { "\"tokens\":[5,", "\"tokens\":[-1," },
  { "\"tokens\":[5,", "\"tokens\":[5.5," },
  { "\"sup\":[1,2]", "\"sup\":[1,3]" },
  { "\"sup\":[1,2]", "\"sup\":[2,1]" },
  { "\"sup\":[1,2]", "\"sup\":[1,1]" },
  { "\"sup\":[1,2]", "\"sup\":[]" },
  { "\"sup\":[1,2]", "\"sup\":[1]" },
  { "[7,1]]", "[7]]" },
  { "[7,1]]", "[]]" },
  { "[7,1]]", "[7,0]]" },
  { "[7,1]]", "[7,1.5]]" },
  { "[7,1]]", "[1000,1]]" },
  { "[7,1]]", "[7,1],[7,1]]" },
  { "[7,1]]", "7]" },
  { "\"question\"", "\"\"" },
  { "\"end\":9", "\"end\":-9" },
  { "\"first\":0", "\"first\":10" },
  { "\"targets\"", "\"target\"" },
};

START_TEST(damage_is_refused) {
  char text[1024];
  fl_json *o = NULL;
  fl_conv c = { 0 };
  ck_assert_int_eq(fl_json_parse(&o, good, strlen(good), NULL), FL_OK);
  ck_assert_int_eq(fl_conv_parse(&c, o, &limits), FL_OK);
  fl_conv_release(&c);
  fl_json_free(o);
  const char *at = strstr(good, faults[_i].from);
  ck_assert_ptr_nonnull(at);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, faults[_i].to,
           at + strlen(faults[_i].from));
  ck_assert_int_eq(fl_json_parse(&o, text, strlen(text), NULL), FL_OK);
  ck_assert_msg(fl_conv_parse(&c, o, &limits) == FL_EINPUT, "%s", text);
  ck_assert_ptr_null(c.tokens.data);
  fl_json_free(o);
}
END_TEST

START_TEST(the_last_ones_are_kept_and_come_back) {
  fl_replay k = { 0 }, back = { 0 };
  char *path = fl_asprintf("%s/kept", docs_dir);
  for (uint32_t i = 0; i < FL_REPLAY_MAX + 9; i++) {
    fl_conv c = random_conv(i);
    ck_assert_int_eq(fl_replay_push(&k, &c), FL_OK);
    ck_assert_ptr_null(c.tokens.data);
  }
  ck_assert_uint_eq(k.n, FL_REPLAY_MAX);
  ck_assert_int_eq(fl_replay_write(path, &k, &label, NULL), FL_OK);
  ck_assert_int_eq(fl_replay_read(&back, path, &limits, NULL), FL_OK);
  ck_assert_uint_eq(back.n, k.n);
  for (size_t i = 0; i < k.n; i++) same_conv(&k.conv[i], &back.conv[i]);
  fl_conv ninth = random_conv(9);
  same_conv(&k.conv[0], &ninth);
  fl_conv_release(&ninth);
  fl_replay_release(&k);
  fl_replay_release(&back);
  fl_free(path);
}
END_TEST

START_TEST(a_damaged_file_names_its_line) {
  static const char *const tails[] = { "{\"doc\":0", "no json\n", "{}\n", "\n" };
  for (size_t i = 0; i < 4; i++) {
    fl_buf b = { 0 };
    fl_replay k = { 0 };
    fl_err err = { 0 };
    char *path = fl_asprintf("%s/kept", docs_dir);
    fl_buf_printf(&b, "%s\n%s", good, tails[i]);
    ck_assert_int_eq(fl_fs_replace(path, b.data, b.len, NULL), FL_OK);
    ck_assert_int_eq(fl_replay_read(&k, path, &limits, &err), FL_EINPUT);
    ck_assert_msg(strstr(err.text, "line 2") != NULL, "%s", err.text);
    ck_assert_ptr_null(k.conv);
    fl_buf_release(&b);
    fl_free(path);
  }
}
END_TEST

Suite *suite_replay(void);
Suite *suite_replay(void) {
  Suite *s = suite_create("replay");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, fleet_setup, fleet_teardown);
  tcase_add_test(t, a_line_comes_back_to_the_bit);
  tcase_add_test(t, the_last_ones_are_kept_and_come_back);
  tcase_add_loop_test(t, damage_is_refused, 0, sizeof faults / sizeof faults[0]);
  tcase_add_test(t, a_damaged_file_names_its_line);
  suite_add_tcase(s, t);
  return s;
}
