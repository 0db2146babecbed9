/* check_auth.c - keys: which files are taken, which keys are found. That the time of a comparison
 * tells nothing is a matter of its code, which has no branch on a key's bytes. */
#include "http/auth.h"

#include <string.h>

#include "base/fs.h"
#include "scratch.h"
#include "suite.h"

static int open_text(fl_keys **out, const char *text, size_t len, fl_err *err) {
  *err = (fl_err){ 0 };
  ck_assert_int_eq(fl_fs_replace(scratch("keys"), text, len, NULL), FL_OK);
  return fl_keys_open(out, scratch("keys"), err);
}

static int find(const fl_keys *k, const char *s) { return fl_keys_find(k, s, strlen(s)); }

START_TEST(finds_keys) {
  static const char text[] = "# the team\n\nfirst-key-1\n  second-key-2 \r\nthird-key-3";
  fl_keys *k;
  fl_err err;
  ck_assert_int_eq(open_text(&k, text, sizeof text - 1, &err), FL_OK);
  ck_assert_int_eq(find(k, "first-key-1"), 0);
  ck_assert_int_eq(find(k, "second-key-2"), 1);
  ck_assert_int_eq(find(k, "third-key-3"), 2);
  ck_assert_int_eq(find(k, "first-key-"), -1);
  ck_assert_int_eq(find(k, "first-key-11"), -1);
  ck_assert_int_eq(find(k, "First-key-1"), -1);
  ck_assert_int_eq(find(k, "# the team"), -1);
  ck_assert_int_eq(find(k, ""), -1);
  ck_assert_int_eq(fl_keys_find(k, NULL, 0), -1);
  ck_assert_int_eq(fl_keys_find(k, "first-key-1\0", 12), 0); /* padding is zeros: the same key */
  fl_keys_close(k);
}
END_TEST

START_TEST(longest_key) {
  char key[300];
  fl_keys *k;
  fl_err err;
  memset(key, 'k', sizeof key);
  ck_assert_int_eq(open_text(&k, key, 255, &err), FL_OK);
  ck_assert_int_eq(fl_keys_find(k, key, 255), 0);
  ck_assert_int_eq(fl_keys_find(k, key, 254), -1);
  ck_assert_int_eq(fl_keys_find(k, key, 256), -1);
  ck_assert_int_eq(fl_keys_find(k, key, 300), -1);
  fl_keys_close(k);
  ck_assert_int_eq(open_text(&k, key, 256, &err), FL_EINPUT);
}
END_TEST

START_TEST(refuses_files) {
  static const struct {
    const char *text, *says;
    size_t len;
  } bad[] = { { "", "no key", 0 },
              { "# only\n\n", "no key", 9 },
              { "short\n", "line 1", 6 },
              { "good-key-1\nwith space\n", "line 2", 22 },
              { "good-key\0x", "line 1", 10 },
              { "gr\xc3\xbc\xc3\x9f"
                "e-key\n",
                "line 1", 12 } };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    fl_keys *k = NULL;
    fl_err err;
    ck_assert_int_eq(open_text(&k, bad[i].text, bad[i].len, &err), FL_EINPUT);
    ck_assert_ptr_nonnull(strstr(err.text, bad[i].says));
    ck_assert_ptr_null(k);
  }
  fl_err err = { 0 };
  fl_keys *k;
  ck_assert_int_eq(fl_keys_open(&k, scratch("not there"), &err), FL_ENOENT);
}
END_TEST

START_TEST(bearer) {
  ck_assert_str_eq(fl_auth_bearer("Bearer abc"), "abc");
  ck_assert_str_eq(fl_auth_bearer("bearer   abc"), "abc");
  ck_assert_ptr_null(fl_auth_bearer("Basic abc"));
  ck_assert_ptr_null(fl_auth_bearer("Bearerabc"));
  ck_assert_ptr_null(fl_auth_bearer(NULL));
}
END_TEST

Suite *suite_auth(void) {
  Suite *s = suite_create("auth");
  TCase *t = tcase_create("keys");
  tcase_add_checked_fixture(t, scratch_begin, scratch_end);
  tcase_add_test(t, finds_keys);
  tcase_add_test(t, longest_key);
  tcase_add_test(t, refuses_files);
  tcase_add_test(t, bearer);
  suite_add_tcase(s, t);
  return s;
}
