/* check_manifest.c - fleet.json: round trips, foreign manifests, kept members, and the ways in
 * which a manifest can be wrong. */
#include <string.h>

#include "base/mem.h"
#include "fleet/manifest.h"
#include "suite.h"

/* A manifest as the other program of this format writes it, with members of its own future. */
static const char foreign[] =
    "{\"format\":\"fucina.cartridge_fleet\",\"version\":1,\"p\":48,\"frozen_prefix\":1,"
    "\"embed_chunk\":256,\"embed_dim\":16,\"rounds\":9,\"later\":{\"x\":[1,2]},\"docs\":["
    "{\"name\":\"a.md\",\"cart_file\":\"doc-000.safetensors\",\"opt_file\":\"doc-000.fza\","
    "\"tokens\":40,\"steps\":3,\"mine\":\"kept\"},"
    "{\"name\":\"b.md\",\"cart_file\":\"doc-001.safetensors\",\"opt_file\":\"doc-001.fza\","
    "\"tokens\":50,\"steps\":4}]}";

static fl_manifest sample(void) {
  fl_manifest m = { .p = 48, .frozen = 1, .embed_chunk = 100 };
  fl_train_options_default(&m.opts);
  m.opts.p = 48;
  m.opts.embed_chunk = 100;
  ck_assert(fl_set_string(&m.model_name, "m") && fl_set_string(&m.model_hash, "xxh3:1") &&
            fl_set_string(&m.tokenizer_hash, "xxh3:2"));
  ck_assert_int_eq(fl_manifest_add(&m, "docs/a.md", "xxh3:a", 100, NULL), FL_OK);
  ck_assert_int_eq(fl_manifest_add(&m, "docs/\"b\"\n\xC3\xA9.md", "xxh3:b", 200, NULL), FL_OK);
  m.rounds = 7;
  m.doc[0].born = m.doc[0].resident = true;
  m.doc[0].rows = 48;
  m.doc[0].steps = 5;
  m.doc[0].targeted = 4;
  m.doc[0].made = 16;
  ck_assert_int_eq(fl_coverage_add(&m.doc[0].coverage, 3, 60), FL_OK);
  ck_assert_int_eq(fl_doc_entry_name_files(&m.doc[0], 7), FL_OK);
  m.doc[0].study_file = fl_study_file_name(0, 6);
  m.embed_dim = 16;
  m.index_file = fl_index_file_name(0);
  ck_assert(fl_set_string(&m.template_name, "plain"));
  return m;
}

static fl_manifest reread(fl_manifest *m) {
  fl_buf text = { 0 };
  fl_manifest back = { 0 };
  fl_err err = { 0 };
  ck_assert_int_eq(fl_manifest_print(m, &text), FL_OK);
  int rc = fl_manifest_parse(&back, text.data, text.len, "fleet.json", &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  fl_buf_release(&text);
  return back;
}

START_TEST(round_trip) {
  fl_manifest m = sample(), b = reread(&m);
  ck_assert(!b.foreign);
  ck_assert_uint_eq(b.n, 2);
  ck_assert_str_eq(b.doc[1].name, m.doc[1].name);
  ck_assert_uint_eq(b.doc[1].id, 1);
  ck_assert(!b.doc[1].born && b.doc[0].born && b.doc[0].resident && !b.doc[1].resident);
  ck_assert_str_eq(b.doc[0].cart_file, "doc-000.g000007.safetensors");
  ck_assert_str_eq(b.doc[0].opt_file, "doc-000.g000007.fza");
  ck_assert_str_eq(b.doc[0].study_file, "doc-000.g000006.study.jsonl");
  ck_assert_ptr_null(b.doc[1].study_file);
  ck_assert_uint_eq(b.doc[0].made, 16);
  ck_assert_uint_eq(fl_coverage_tokens(&b.doc[0].coverage), 57);
  ck_assert_uint_eq(b.rounds, 7);
  ck_assert_uint_eq(b.next_id, 2);
  ck_assert_uint_eq(b.opts.p, 48);
  ck_assert_str_eq(b.index_file, "index.g000000.safetensors");
  ck_assert_str_eq(b.template_name, "plain");
  ck_assert_ptr_null(b.model_path); /* as every fleet of before it was kept */
  fl_manifest_release(&m);
  fl_manifest_release(&b);
}
END_TEST

/* Printing is a fixed point: what is read and printed again has the same bytes. */
START_TEST(printing_is_stable) {
  fl_manifest m = sample();
  fl_buf one = { 0 }, two = { 0 };
  ck_assert_int_eq(fl_manifest_print(&m, &one), FL_OK);
  fl_manifest b = { 0 };
  ck_assert_int_eq(fl_manifest_parse(&b, one.data, one.len, "x", NULL), FL_OK);
  ck_assert_int_eq(fl_manifest_print(&b, &two), FL_OK);
  ck_assert_str_eq(one.data, two.data);
  fl_buf_reset(&two);
  ck_assert_int_eq(fl_manifest_print(&m, &two), FL_OK);
  ck_assert_str_eq(one.data, two.data);
  fl_buf_release(&one);
  fl_buf_release(&two);
  fl_manifest_release(&m);
  fl_manifest_release(&b);
}
END_TEST

START_TEST(a_foreign_manifest_is_taken_and_its_members_kept) {
  fl_manifest m = { 0 };
  fl_err err = { 0 };
  int rc = fl_manifest_parse(&m, foreign, strlen(foreign), "fleet.json", &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  ck_assert(m.foreign);
  ck_assert_ptr_null(m.model_hash);
  ck_assert_str_eq(m.index_file, "index.safetensors");
  ck_assert_uint_eq(m.doc[1].id, 1);
  ck_assert(m.doc[1].born);
  ck_assert_uint_eq(m.opts.embed_chunk, 256);
  ck_assert(fl_set_string(&m.model_name, "m") && fl_set_string(&m.model_hash, "h") &&
            fl_set_string(&m.tokenizer_hash, "t"));
  for (size_t i = 0; i < m.n; i++) ck_assert(fl_set_string(&m.doc[i].hash, "x"));
  fl_manifest b = reread(&m);
  const fl_json *later = fl_json_get(b.root, "later");
  ck_assert_ptr_nonnull(later);
  ck_assert_uint_eq(fl_json_len(fl_json_get(later, "x")), 2);
  const char *mine = NULL;
  ck_assert(fl_json_get_str(b.doc[0].extra, "mine", &mine));
  ck_assert_str_eq(mine, "kept");
  fl_manifest_release(&m);
  fl_manifest_release(&b);
}
END_TEST

START_TEST(removal_and_addition_never_reuse_an_id) {
  fl_manifest m = sample();
  fl_manifest b = reread(&m);
  fl_manifest_remove(&b, 1);
  ck_assert_int_eq(fl_manifest_add(&b, "c.md", "xxh3:c", 5, NULL), FL_OK);
  fl_manifest c = reread(&b);
  ck_assert_uint_eq(c.n, 2);
  ck_assert_uint_eq(c.doc[1].id, 2);
  ck_assert_str_eq(c.doc[1].cart_file, "doc-002.g000007.safetensors");
  size_t at = 9;
  ck_assert(fl_manifest_find(&c, "c.md", &at) && at == 1);
  ck_assert(!fl_manifest_find(&c, "docs/b.md", &at));
  fl_manifest_release(&m);
  fl_manifest_release(&b);
  fl_manifest_release(&c);
}
END_TEST

/* Each: a text in a good manifest and what it is replaced with. */
static const struct {
  const char *what, *from, *to;
} faults[] = {
  { "no JSON", "{\"format\"", "\"format\"" },
  { "other format", "fucina.cartridge_fleet", "fucina.cartridge_fleet2" },
  { "other version", "\"version\":1", "\"version\":2" },
  { "p of no rows", "\"p\":48", "\"p\":0" },
  { "p huge", "\"p\":48", "\"p\":1e15" },
  { "p missing", "\"p\":48,", "" },
  { "frozen all", "\"frozen_prefix\":1", "\"frozen_prefix\":48" },
  { "chunk of none", "\"embed_chunk\":256", "\"embed_chunk\":0" },
  { "rounds negative", "\"rounds\":9", "\"rounds\":-9" },
  { "rounds broken", "\"rounds\":9", "\"rounds\":9.5" },
  { "docs no list", "\"docs\":[", "\"docs\":{}, \"x\":[" },
  { "name empty", "\"a.md\"", "\"\"" },
  { "name no text", "\"a.md\"", "7" },
  { "name twice", "\"b.md\"", "\"a.md\"" },
  { "file twice", "doc-001.safetensors", "doc-000.safetensors" },
  { "one file for two uses", "doc-000.fza", "doc-000.safetensors" },
  { "up and out", "doc-000.safetensors", "../doc-000.safetensors" },
  { "absolute", "doc-000.fza", "/etc/passwd" },
  { "folder", "doc-000.fza", ".." },
  { "the index as a cartridge", "doc-000.safetensors", "index.safetensors" },
  { "tokens text", "\"tokens\":40", "\"tokens\":\"40\"" },
  { "steps huge", "\"steps\":3", "\"steps\":1e300" },
  { "key twice", "\"mine\":\"kept\"", "\"name\":\"z\"" },
  { "ours no object", "\"later\"", "\"flotilla\"" /* { "x": ... } lacks everything */ },
};

START_TEST(faults_are_refused) {
  char text[2048];
  const char *at = strstr(foreign, faults[_i].from);
  ck_assert_ptr_nonnull(at);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - foreign), foreign, faults[_i].to,
           at + strlen(faults[_i].from));
  fl_manifest m = { 0 };
  fl_err err = { 0 };
  ck_assert_msg(fl_manifest_parse(&m, text, strlen(text), "F", &err) == FL_EINPUT, "%s: taken",
                faults[_i].what);
  ck_assert_msg(strncmp(err.text, "F: ", 3) == 0, "%s: %s", faults[_i].what, err.text);
  ck_assert_ptr_null(m.doc);
}
END_TEST

/* The same for members of ours. */
static const struct {
  const char *from, *to;
} ours[] = {
  { "\"id\": 1", "\"id\": 0" },
  { "\"id\": 1", "\"id\": 2" }, /* not below next_id */
  { "\"hash\": \"xxh3:a\"", "\"hash\": 1" },
  { "\"born\": true", "\"born\": 1" },
  { "[", "[[9,1]," },
  { "doc-000.g000006.study.jsonl", "../x" },
  { "index.g000000.safetensors", "a/b" },
  { "index.g000000.safetensors", "" },
  { "\"model_hash\": \"xxh3:1\"", "\"model_hash\": \"\"" },
  { "\"lr\": 0.002", "\"lr\": -1" },
  { "\"flags\"", "\"flagz\"" },
  { "\"edits\": 0", "\"edits\": 0.5" },
};

START_TEST(faults_of_ours_are_refused) {
  fl_manifest m = sample(), back = { 0 };
  fl_buf good = { 0 };
  ck_assert_int_eq(fl_manifest_print(&m, &good), FL_OK);
  static char text[16384];
  const char *from = good.data, *at = strstr(from, ours[_i].from);
  if (strcmp(ours[_i].from, "[") == 0) at = strchr(strstr(from, "\"coverage\""), '[');
  ck_assert_msg(at != NULL, "%s not in %s", ours[_i].from, good.data);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - from), from, ours[_i].to,
           at + strlen(ours[_i].from));
  ck_assert_msg(fl_manifest_parse(&back, text, strlen(text), "F", NULL) == FL_EINPUT, "taken: %s",
                ours[_i].to);
  fl_buf_release(&good);
  fl_manifest_release(&m);
}
END_TEST

START_TEST(lack_of_memory_is_reported) {
  fl_manifest m = sample();
  fl_buf good = { 0 };
  ck_assert_int_eq(fl_manifest_print(&m, &good), FL_OK);
  for (size_t n = 1; n < 5000; n++) {
    fl_manifest b = { 0 };
    fl_buf out = { 0 };
    fl_mem_fault_after(n);
    int rc = fl_manifest_parse(&b, good.data, good.len, "F", NULL);
    if (rc == FL_OK) rc = fl_manifest_print(&b, &out);
    fl_mem_fault_after(0);
    if (rc == FL_OK) ck_assert_str_eq(out.data, good.data);
    fl_manifest_release(&b);
    fl_buf_release(&out);
    if (rc == FL_OK) break;
    ck_assert_int_eq(rc, FL_ENOMEM);
    ck_assert_uint_lt(n, 4999);
  }
  fl_buf_release(&good);
  fl_manifest_release(&m);
}
END_TEST

START_TEST(generation_names) {
  static const char *const yes[] = { "doc-000.g000007.safetensors", "doc-1234.g0.fza",
                                     "doc-000.g000007.study.jsonl", "index.g000001.safetensors" };
  static const char *const no[] = { "doc-000.safetensors", "doc-.g1.fza",  "doc-1.g.fza",
                                    "index.safetensors",   "index.g1.fza", "doc-1.g1.fza.bak",
                                    "fleet.json",          "doc-1.g1",     "" };
  for (size_t i = 0; i < 4; i++) ck_assert(fl_is_generation_file(yes[i]));
  for (size_t i = 0; i < 9; i++) ck_assert_msg(!fl_is_generation_file(no[i]), "%s", no[i]);
}
END_TEST

Suite *suite_manifest(void);
Suite *suite_manifest(void) {
  Suite *s = suite_create("manifest");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, round_trip);
  tcase_add_test(t, printing_is_stable);
  tcase_add_test(t, a_foreign_manifest_is_taken_and_its_members_kept);
  tcase_add_test(t, removal_and_addition_never_reuse_an_id);
  tcase_add_test(t, generation_names);
  suite_add_tcase(s, t);
  t = tcase_create("errors");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, faults_are_refused, 0, sizeof faults / sizeof faults[0]);
  tcase_add_loop_test(t, faults_of_ours_are_refused, 0, sizeof ours / sizeof ours[0]);
  tcase_add_test(t, lack_of_memory_is_reported);
  suite_add_tcase(s, t);
  return s;
}
