/* check_cartridge_io.c - files of cartridges and moments: round trips, and what is refused. */
#include "cartridge/cartridge_io.h"
#include "cart_util.h"
#include "formats/fza.h"

static fl_provenance some_provenance(void) {
  return (fl_provenance){ .model_name = (char *)"a model",
                          .model_hash = (char *)"xxh3:00",
                          .tokenizer_hash = (char *)"xxh3:11",
                          .doc_name = (char *)"docs/ä.md",
                          .doc_hash = (char *)"xxh3:22",
                          .version = (char *)"0.1.0",
                          .generation = 7,
                          .seed = 42 };
}

START_TEST(cartridges_come_back_whole) {
  const char *path = temp_path("c.safetensors");
  fl_hparams *hp = some_geometry();
  const size_t frozen = (size_t)_i;
  fl_cartridge c = some_cartridge(hp, 5, frozen, 1), d;
  fl_provenance p = some_provenance(), q;
  c.steps = 12;
  ck_assert_int_eq(fl_cartridge_write(path, &c, &p, NULL), FL_OK);
  ck_assert_int_eq(fl_cartridge_read(&d, &q, path, hp, NULL), FL_OK);
  ck_assert(rows_equal(&c.rows, &d.rows));
  ck_assert_uint_eq(d.frozen, frozen);
  ck_assert_uint_eq(d.steps, 12);
  ck_assert_str_eq(q.model_name, p.model_name);
  ck_assert_str_eq(q.model_hash, p.model_hash);
  ck_assert_str_eq(q.tokenizer_hash, p.tokenizer_hash);
  ck_assert_str_eq(q.doc_name, p.doc_name);
  ck_assert_str_eq(q.doc_hash, p.doc_hash);
  ck_assert_str_eq(q.version, p.version);
  ck_assert_uint_eq(q.generation, 7);
  ck_assert_uint_eq(q.seed, 42);
  ck_assert_uint_eq(q.steps, 12);
  fl_cartridge_release(&d);
  ck_assert_int_eq(fl_cartridge_read(&d, NULL, path, NULL, NULL), FL_OK); /* without a model */
  ck_assert_uint_eq(d.rows.n_layers, 3);
  ck_assert_uint_eq(d.rows.n_rows, 5);
  ck_assert(memcmp(d.rows.block, c.rows.block, c.rows.n_values * sizeof(float)) == 0);
  fl_provenance_release(&q);
  fl_cartridge_release(&c);
  fl_cartridge_release(&d);
  fl_free(hp);
  unlink(path);
}
END_TEST

/* The names and shapes other programs look for. */
START_TEST(tensors_have_the_agreed_names) {
  const char *path = temp_path("n.safetensors");
  fl_hparams *hp = some_geometry();
  fl_cartridge c = some_cartridge(hp, 5, 2, 1);
  fl_safetensors *st;
  ck_assert_int_eq(fl_cartridge_write(path, &c, NULL, NULL), FL_OK);
  ck_assert_int_eq(fl_safetensors_open(&st, path, NULL), FL_OK);
  ck_assert_uint_eq(fl_safetensors_count(st), 12);
  const fl_st_tensor *t = fl_safetensors_get(st, "layers.2.v");
  ck_assert_ptr_nonnull(t);
  ck_assert_uint_eq(t->n_dims, 3);
  ck_assert_uint_eq(t->dim[0], 3);
  ck_assert_uint_eq(t->dim[1], 4);
  ck_assert_uint_eq(t->dim[2], 8);
  ck_assert(memcmp(t->data, c.rows.v[2] + 2 * 32, t->n_bytes) == 0);
  t = fl_safetensors_get(st, "layers.1.k_sink");
  ck_assert_ptr_nonnull(t);
  ck_assert_uint_eq(t->dim[0], 2);
  ck_assert(memcmp(t->data, c.rows.k[1], t->n_bytes) == 0);
  ck_assert_str_eq(fl_safetensors_meta(st, "p"), "5");
  ck_assert_str_eq(fl_safetensors_meta(st, "frozen"), "2");
  ck_assert_str_eq(fl_safetensors_meta(st, "steps"), "0");
  fl_safetensors_close(st);
  fl_cartridge_release(&c);
  fl_free(hp);
  unlink(path);
}
END_TEST

/* --- files by others, and broken ones --------------------------------------------------------- */

enum { N_TENSORS = 9 };
static float zeros[4096];

/* Two layers of two heads of 8, three rows of which one is frozen, and room for one more tensor. */
static void plain_file(fl_st_out t[N_TENSORS]) {
  static const char *const names[8] = { "layers.0.k",      "layers.0.v",     "layers.0.k_sink",
                                        "layers.0.v_sink", "layers.1.k",     "layers.1.v",
                                        "layers.1.k_sink", "layers.1.v_sink" };
  for (size_t i = 0; i < 8; i++)
    t[i] = (fl_st_out){ .name = names[i],
                        .type = FL_ST_F32,
                        .n_dims = 3,
                        .dim = { strstr(names[i], "sink") ? 1 : 2, 2, 8 },
                        .data = zeros };
}

static int read_file(const fl_st_out *t, size_t n, const fl_st_meta *meta, size_t n_meta,
                     const fl_hparams *hp, fl_cartridge *out) {
  const char *path = temp_path("bad.safetensors");
  fl_err err = { 0 };
  ck_assert_int_eq(fl_safetensors_write(path, t, n, meta, n_meta, NULL), FL_OK);
  int rc = fl_cartridge_read(out, NULL, path, hp, &err);
  ck_assert(rc == FL_OK || strstr(err.text, path)); /* the sentence names the file */
  unlink(path);
  return rc;
}

static int refuse_file(const fl_st_out *t, size_t n) {
  fl_cartridge c = { 0 };
  int rc = read_file(t, n, NULL, 0, NULL, &c);
  ck_assert(rc == FL_OK || !c.rows.block); /* set on success only */
  fl_cartridge_release(&c);
  return rc;
}

START_TEST(files_without_metadata_and_with_drafts_are_read) {
  static const int64_t draft[3] = { 1, 2, 3 };
  fl_st_out t[N_TENSORS];
  fl_cartridge c;
  plain_file(t);
  t[8] = (fl_st_out){
    .name = "draft_reference", .type = FL_ST_I64, .n_dims = 1, .dim = { 3 }, .data = draft
  };
  ck_assert_int_eq(read_file(t, 9, NULL, 0, NULL, &c), FL_OK);
  ck_assert_uint_eq(c.rows.n_rows, 3);
  ck_assert_uint_eq(c.frozen, 1);
  ck_assert_uint_eq(c.steps, 0);
  fl_cartridge_release(&c);
}
END_TEST

START_TEST(unsound_tensors_are_refused) {
  fl_st_out t[N_TENSORS];
  plain_file(t);
  ck_assert_int_eq(refuse_file(t, 8), FL_OK);         /* sound as it stands */
  ck_assert_int_eq(refuse_file(t, 7), FL_EINPUT);     /* half a sink */
  ck_assert_int_eq(refuse_file(t + 1, 7), FL_EINPUT); /* no layers.0.k */
  ck_assert_int_eq(refuse_file(t + 4, 4), FL_EINPUT); /* begins at layer 1 */
  t[8] =
      (fl_st_out){ .name = "other", .type = FL_ST_F32, .n_dims = 1, .dim = { 1 }, .data = zeros };
  ck_assert_int_eq(refuse_file(t, 9), FL_EINPUT); /* an unknown name */
  t[8].name = "layers.3.k";                       /* a gap */
  t[8].n_dims = 3;
  t[8].dim[1] = t[8].dim[2] = 1;
  ck_assert_int_eq(refuse_file(t, 9), FL_EINPUT);
  plain_file(t);
  t[4].dim[0] = t[5].dim[0] = 3; /* layer 1 has more rows */
  ck_assert_int_eq(refuse_file(t, 8), FL_EINPUT);
  plain_file(t);
  t[5].dim[1] = 1; /* k and v differ */
  ck_assert_int_eq(refuse_file(t, 8), FL_EINPUT);
  plain_file(t);
  t[6].dim[2] = t[7].dim[2] = 16; /* the sink has another width */
  ck_assert_int_eq(refuse_file(t, 8), FL_EINPUT);
  plain_file(t);
  t[0].n_dims = t[1].n_dims = 2; /* rank */
  ck_assert_int_eq(refuse_file(t, 8), FL_EINPUT);
  plain_file(t);
  t[0].type = FL_ST_I64; /* type; 32 values of 8 bytes fit in zeros */
  ck_assert_int_eq(refuse_file(t, 8), FL_EINPUT);
  plain_file(t);
  t[0].dim[0] = t[1].dim[0] = 0; /* empty */
  ck_assert_int_eq(refuse_file(t, 8), FL_EINPUT);
}
END_TEST

START_TEST(values_that_are_not_finite_are_refused) {
  static float bad[32];
  static const float kinds[3] = { NAN, INFINITY, -INFINITY };
  for (size_t at = 0; at < 8; at++) {
    fl_st_out t[N_TENSORS];
    plain_file(t);
    t[at].data = bad;
    bad[at % 16] = kinds[at % 3];
    ck_assert_int_eq(refuse_file(t, 8), FL_EINPUT);
    bad[at % 16] = 0;
    ck_assert_int_eq(refuse_file(t, 8), FL_OK);
  }
}
END_TEST

START_TEST(metadata_must_agree_with_the_tensors) {
  static const fl_st_meta good[] = { { "p", "3" }, { "frozen", "1" }, { "steps", "9" } };
  static const fl_st_meta bad[][1] = { { { "p", "4" } },
                                       { { "frozen", "0" } },
                                       { { "steps", "-1" } },
                                       { { "p", "three" } },
                                       { { "steps", "99999999999999999999" } } };
  fl_st_out t[N_TENSORS];
  fl_cartridge c;
  plain_file(t);
  ck_assert_int_eq(read_file(t, 8, good, 3, NULL, &c), FL_OK);
  ck_assert_uint_eq(c.steps, 9);
  fl_cartridge_release(&c);
  for (size_t i = 0; i < 5; i++) ck_assert_int_eq(read_file(t, 8, bad[i], 1, NULL, &c), FL_EINPUT);
}
END_TEST

START_TEST(another_model_is_refused) {
  const char *path = temp_path("g.safetensors");
  fl_hparams *hp = some_geometry();
  fl_cartridge c = some_cartridge(hp, 5, 1, 1), d = { 0 };
  ck_assert_int_eq(fl_cartridge_write(path, &c, NULL, NULL), FL_OK);
  hp->layer[1].kv_heads = 2;
  hp->layer[1].head_dim = 8; /* the same number of values a row */
  ck_assert_int_eq(fl_cartridge_read(&d, NULL, path, hp, NULL), FL_EINPUT);
  hp->layer[1].kv_heads = 1;
  hp->layer[1].head_dim = 16;
  hp->n_layers = 3; /* all its tensors are there, the fourth layer had none */
  ck_assert_int_eq(fl_cartridge_read(&d, NULL, path, hp, NULL), FL_OK);
  fl_cartridge_release(&d);
  hp->n_layers = 2; /* tensors are left over */
  ck_assert_int_eq(fl_cartridge_read(&d, NULL, path, hp, NULL), FL_EINPUT);
  hp->n_layers = 5; /* a layer is missing */
  hp->layer[4] = (fl_layer_hparams){ .kv_heads = 1, .head_dim = 8, .kv_from = 4 };
  ck_assert_int_eq(fl_cartridge_read(&d, NULL, path, hp, NULL), FL_EINPUT);
  ck_assert_ptr_null(d.rows.block);
  ck_assert_int_eq(fl_cartridge_read(&d, NULL, "no-such-file", hp, NULL), FL_ENOENT);
  fl_cartridge_release(&c);
  fl_free(hp);
  unlink(path);
}
END_TEST

static void write_bytes(const char *path, const uint8_t *data, size_t n) {
  unlink(path);
  FILE *f = fopen(path, "wb");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fwrite(data, 1, n, f), n);
  fclose(f);
}

/* Whatever a cut or a turned bit leaves, reading ends in an error or in a sound cartridge. */
START_TEST(cut_and_damaged_files_are_survived) {
  const char *path = temp_path("d.safetensors");
  fl_hparams *hp = some_geometry();
  fl_cartridge c = some_cartridge(hp, 3, 1, 1), d = { 0 };
  fl_buf whole = { 0 };
  ck_assert_int_eq(fl_cartridge_write(path, &c, NULL, NULL), FL_OK);
  ck_assert_int_eq(fl_fs_read(&whole, path, 1 << 20, NULL), FL_OK);
  const size_t header = 8 + (size_t)(uint8_t)whole.data[0] + 256 * (size_t)(uint8_t)whole.data[1];
  ck_assert_uint_lt(header, whole.len);
  for (size_t n = 0; n < whole.len; n += n < header ? 1 : 61) {
    write_bytes(path, (uint8_t *)whole.data, n);
    ck_assert_int_eq(fl_cartridge_read(&d, NULL, path, hp, NULL), FL_EINPUT);
  }
  for (size_t i = 0; i < header; i++) {
    whole.data[i] = (char)(whole.data[i] ^ (1 << i % 8));
    write_bytes(path, (uint8_t *)whole.data, whole.len);
    int rc = fl_cartridge_read(&d, NULL, path, hp, NULL);
    ck_assert(rc == FL_OK || rc == FL_EINPUT);
    if (rc == FL_OK) fl_cartridge_release(&d);
    whole.data[i] = (char)(whole.data[i] ^ (1 << i % 8));
  }
  fl_buf_release(&whole);
  fl_cartridge_release(&c);
  fl_free(hp);
  unlink(path);
}
END_TEST

/* --- moments -------------------------------------------------------------------------------- */

static fl_adam some_adam(const fl_hparams *hp, const fl_cartridge *c, uint64_t step) {
  fl_adam a;
  ck_assert_int_eq(fl_adam_init(&a, hp, c, NULL), FL_OK);
  fill_rows(&a.m, 50, 1);
  fill_rows(&a.v, 51, 1);
  for (size_t i = 0; i < a.v.n_values; i++) a.v.block[i] = fabsf(a.v.block[i]);
  a.step = step;
  return a;
}

START_TEST(moments_come_back_whole) {
  const char *path = temp_path("m.fza");
  fl_hparams *hp = some_geometry();
  fl_cartridge c = some_cartridge(hp, 5, (size_t)_i, 1);
  fl_adam a = some_adam(hp, &c, 1234567890123), b;
  ck_assert_int_eq(fl_adam_write(path, &a, &c, NULL), FL_OK);
  ck_assert_int_eq(fl_adam_read(&b, path, &c, NULL), FL_OK);
  ck_assert(rows_equal(&a.m, &b.m));
  ck_assert(rows_equal(&a.v, &b.v));
  ck_assert_uint_eq(b.step, a.step);
  fl_adam_release(&a);
  fl_adam_release(&b);
  fl_cartridge_release(&c);
  fl_free(hp);
  unlink(path);
}
END_TEST

START_TEST(moments_of_another_cartridge_are_refused) {
  const char *path = temp_path("o.fza");
  fl_hparams *hp = some_geometry();
  fl_cartridge c = some_cartridge(hp, 5, 1, 1), longer = some_cartridge(hp, 6, 1, 1);
  fl_adam a = some_adam(hp, &c, 3), b = { 0 };
  ck_assert_int_eq(fl_adam_read(&b, path, &c, NULL), FL_ENOENT);
  ck_assert_int_eq(fl_adam_write(path, &a, &c, NULL), FL_OK);
  ck_assert_int_eq(fl_adam_read(&b, path, &longer, NULL), FL_EINPUT);
  c.frozen = 2;
  ck_assert_int_eq(fl_adam_read(&b, path, &c, NULL), FL_EINPUT);
  c.frozen = 1;
  ck_assert_ptr_null(b.m.block);
  fl_adam_release(&a);
  fl_cartridge_release(&c);
  fl_cartridge_release(&longer);
  fl_free(hp);
  unlink(path);
}
END_TEST

START_TEST(moments_at_different_steps_are_refused) {
  const char *path = temp_path("s.fza");
  fl_hparams *hp = some_geometry();
  hp->n_layers = 1;
  fl_cartridge c = some_cartridge(hp, 2, 1, 1);
  fl_adam b = { 0 };
  fl_err err = { 0 };
  fl_fza_slot slots[2] = {
    { .name = "layers.0.k", .rows = 1, .cols = 16, .step = 4, .m = zeros, .v = zeros },
    { .name = "layers.0.v", .rows = 1, .cols = 16, .step = 5, .m = zeros, .v = zeros },
  };
  ck_assert_int_eq(fl_fza_write(path, slots, 2, NULL), FL_OK);
  ck_assert_int_eq(fl_adam_read(&b, path, &c, &err), FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(err.text, path));
  fl_cartridge_release(&c);
  fl_free(hp);
  unlink(path);
}
END_TEST

Suite *suite_cartridge_io(void);
Suite *suite_cartridge_io(void) {
  Suite *s = suite_create("cartridge_io");
  TCase *core = tcase_create("core"), *errors = tcase_create("errors");
  tcase_set_timeout(errors, 60);
  tcase_add_loop_test(core, cartridges_come_back_whole, 0, 3);
  tcase_add_test(core, tensors_have_the_agreed_names);
  tcase_add_test(core, files_without_metadata_and_with_drafts_are_read);
  tcase_add_loop_test(core, moments_come_back_whole, 0, 2);
  tcase_add_test(errors, unsound_tensors_are_refused);
  tcase_add_test(errors, values_that_are_not_finite_are_refused);
  tcase_add_test(errors, metadata_must_agree_with_the_tensors);
  tcase_add_test(errors, another_model_is_refused);
  tcase_add_test(errors, cut_and_damaged_files_are_survived);
  tcase_add_test(errors, moments_of_another_cartridge_are_refused);
  tcase_add_test(errors, moments_at_different_steps_are_refused);
  suite_add_tcase(s, core);
  suite_add_tcase(s, errors);
  return s;
}
