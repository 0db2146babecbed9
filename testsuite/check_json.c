/* check_json.c - parsing by the grammar of RFC 8259, trees, printing. */
#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/mem.h"
#include "suite.h"

static fl_json *parse(const char *text) {
  fl_json *v = NULL;
  fl_err err = { 0 };
  ck_assert_msg(fl_json_parse(&v, text, strlen(text), &err) == FL_OK, "%s: %s", text, err.text);
  return v;
}

static void prints_as(const fl_json *v, bool pretty, const char *want) {
  fl_buf b = { 0 };
  fl_json_print(&b, v, pretty);
  ck_assert_str_eq(b.data, want);
  fl_buf_release(&b);
}

static const char *const round_trips[] = {
  "{}",
  "[]",
  "null",
  "true",
  "false",
  "\"\"",
  "0",
  "-1",
  "1.5",
  "0.1",
  "1e+100",
  "4.94065645841247e-324",
  "9007199254740992",
  "-9007199254740991",
  "1.7976931348623157e+308",
  "0.30000000000000004",
  "123456789012",
  "{\"a\":[1,2,{\"b\":null}],\"c\":\"x\"}",
  "[[],{},[[]]]",
  "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\"",
  "\"\xC3\xA9\xE2\x82\xAC\xF0\x90\x8D\x88\"",
  "[true,false,null]",
  "{\"\":1}",
  "{\"a\":1,\"A\":2}",
};

START_TEST(text_comes_back) {
  fl_json *v = parse(round_trips[_i]);
  prints_as(v, false, round_trips[_i]);
  fl_json *copy = fl_json_dup(v);
  fl_json_free(v);
  prints_as(copy, false, round_trips[_i]);
  fl_json_free(copy);
}
END_TEST

START_TEST(other_spellings) {
  static const char *const pairs[][2] = {
    { " \t\r\n{ \"a\" : [ 1 , 2 ] } \n", "{\"a\":[1,2]}" },
    { "\"\\u00e9\\u20AC\\ud800\\udF48\\/\"", "\"\xC3\xA9\xE2\x82\xAC\xF0\x90\x8D\x88/\"" },
    { "1E2", "100" },
    { "1e-2", "0.01" },
    { "2.50", "2.5" },
    { "1e22", "1e+22" },
    { "9007199254740994", "9007199254740994" },
    { "\"\x7F\"", "\"\x7F\"" },
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    fl_json *v = parse(pairs[i][0]);
    prints_as(v, false, pairs[i][1]);
    fl_json_free(v);
  }
}
END_TEST

static const char *const refused[] = {
  "",
  " ",
  "{",
  "[",
  "\"",
  "]",
  "}",
  "{]",
  "[}",
  "[1,]",
  "[,1]",
  "[1 2]",
  "{,}",
  "{\"a\"}",
  "{\"a\":}",
  "{\"a\":1,}",
  "{a:1}",
  "{'a':1}",
  "{1:1}",
  "nul",
  "True",
  "nulll",
  "NaN",
  "Infinity",
  "-",
  "+1",
  "01",
  "-01",
  "1.",
  ".5",
  "1e",
  "1e+",
  "0x10",
  "1 1",
  "[] []",
  "// x\n1",
  "\"\\x\"",
  "\"\\u12\"",
  "\"\\u12g4\"",
  "\"\\u0000\"",
  "\"\\ud800\"",
  "\"\\ud800\\u0041\"",
  "\"\\udc00\"",
  "\"\\ud800\\ud800\"",
  "\"\n\"",
  "\"\x01\"",
  "\"\x80\"",
  "\"\xC0\xAF\"",
  "\"\xED\xA0\x80\"",
  "\"a",
  "\"\\",
  "\"\\u",
  "1e999",
  "[-1e400]",
  "{\"a\":1,\"a\":2}",
  "{\"x\":{\"b\":1,\"c\":2,\"b\":1}}",
  "{\"\\u0061\":1,\"a\":2}",
  "\xEF\xBB\xBF{}",
  "[1\v]",
};

START_TEST(refused_text) {
  fl_json *v = NULL;
  fl_err err = { 0 };
  ck_assert_msg(fl_json_parse(&v, refused[_i], strlen(refused[_i]), &err) == FL_EINPUT,
                "accepted: %s", refused[_i]);
  ck_assert_ptr_null(v);
  ck_assert_int_eq(err.code, FL_EINPUT);
  ck_assert_str_ne(err.text, "");
  ck_assert_int_eq(fl_json_parse(&v, refused[_i], strlen(refused[_i]), NULL), FL_EINPUT);
}
END_TEST

START_TEST(nul_bytes_are_not_space) {
  fl_json *v = NULL;
  ck_assert_int_eq(fl_json_parse(&v, "1\0", 2, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_json_parse(&v, "\0001", 2, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_json_parse(&v, "[1\0]", 4, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_json_parse(&v, "\"\\\0\"", 4, NULL), FL_EINPUT);
}
END_TEST

START_TEST(every_cut_of_a_text_is_refused) {
  static const char text[] = "{\"key\":[1.5e3,true,null,{\"\\u00e9\":\"\xE2\x82\xAC\"}]}";
  for (size_t n = 0; n < sizeof text - 1; n++) {
    char *cut = fl_malloc(n); /* of the exact size, so that a read past it is seen */
    fl_json *v = NULL;
    memcpy(cut, text, n);
    ck_assert_msg(fl_json_parse(&v, cut, n, NULL) == FL_EINPUT, "%zu bytes", n);
    fl_free(cut);
  }
}
END_TEST

START_TEST(errors_name_the_offset) {
  fl_json *v = NULL;
  fl_err err = { 0 };
  fl_json_parse(&v, "{\"a\":tru}", 9, &err);
  ck_assert_msg(strstr(err.text, "byte 5") != NULL, "%s", err.text);
}
END_TEST

static void nested(fl_buf *b, size_t depth, const char *open, const char *close) {
  fl_buf_reset(b);
  for (size_t i = 0; i < depth; i++) fl_buf_puts(b, open);
  fl_buf_putc(b, '1');
  for (size_t i = 0; i < depth; i++) fl_buf_puts(b, close);
}

START_TEST(nesting_is_bounded) {
  fl_buf b = { 0 };
  fl_json *v = NULL;
  for (int object = 0; object < 2; object++) {
    nested(&b, 64, object ? "{\"a\":" : "[", object ? "}" : "]");
    ck_assert_int_eq(fl_json_parse(&v, b.data, b.len, NULL), FL_OK);
    fl_json_free(v);
    nested(&b, 65, object ? "{\"a\":" : "[", object ? "}" : "]");
    ck_assert_int_eq(fl_json_parse(&v, b.data, b.len, NULL), FL_EINPUT);
    nested(&b, 100000, object ? "{\"a\":" : "[", object ? "}" : "]");
    ck_assert_int_eq(fl_json_parse(&v, b.data, b.len, NULL), FL_EINPUT);
  }
  fl_buf_release(&b);
}
END_TEST

START_TEST(getters) {
  fl_json *v = parse("{\"s\":\"x\",\"n\":-1.5,\"u\":9007199254740992,\"b\":true,\"z\":null,"
                     "\"f\":1.5,\"a\":[1,2,3]}");
  const char *s = "before";
  double n = 7;
  uint64_t u = 7;
  bool b = false;
  ck_assert(fl_json_get_str(v, "s", &s) && strcmp(s, "x") == 0);
  ck_assert(fl_json_get_num(v, "n", &n) && n == -1.5);
  ck_assert(fl_json_get_u64(v, "u", &u) && u == (uint64_t)1 << 53);
  ck_assert(fl_json_get_bool(v, "b", &b) && b);
  ck_assert(!fl_json_get_str(v, "n", &s) && !fl_json_get_str(v, "none", &s));
  ck_assert(!fl_json_get_num(v, "s", &n) && n == -1.5);
  ck_assert(!fl_json_get_u64(v, "n", &u) && !fl_json_get_u64(v, "f", &u) && u == (uint64_t)1 << 53);
  ck_assert(!fl_json_get_bool(v, "z", &b) && b);
  ck_assert_ptr_null(fl_json_get(fl_json_get(v, "a"), "s"));
  ck_assert_ptr_null(fl_json_get(NULL, "s"));
  const fl_json *a = fl_json_get(v, "a");
  ck_assert(fl_json_is_arr(a) && !fl_json_is_obj(a) && fl_json_len(a) == 3);
  ck_assert(fl_json_as_num(fl_json_at(a, 2), &n) && n == 3);
  ck_assert_ptr_null(fl_json_at(a, 3));
  ck_assert_str_eq(fl_json_key(fl_json_first(v)), "s");
  ck_assert_str_eq(fl_json_key(fl_json_next(fl_json_first(v))), "n");
  ck_assert_uint_eq(fl_json_len(fl_json_get(v, "s")), 0);
  fl_json_free(v);
}
END_TEST

START_TEST(setters) {
  fl_json *v = fl_json_object(), *a = fl_json_array();
  ck_assert(fl_json_set_str(v, "s", "1") && fl_json_set_num(v, "n", 2) && fl_json_set(v, "a", a));
  ck_assert(fl_json_set_bool(v, "b", false) && fl_json_set_u64(v, "u", (uint64_t)1 << 53));
  ck_assert(!fl_json_set_u64(v, "u", ((uint64_t)1 << 53) + 1)); /* a double cannot hold it */
  ck_assert(fl_json_push(a, fl_json_number(1)) && fl_json_push(a, fl_json_array()));
  prints_as(v, false, "{\"s\":\"1\",\"n\":2,\"a\":[1,[]],\"b\":false,\"u\":9007199254740992}");
  ck_assert(fl_json_set_num(v, "s", 5)); /* replaced in its place */
  fl_json_del(v, "a");
  fl_json_del(v, "none");
  prints_as(v, false, "{\"s\":5,\"n\":2,\"b\":false,\"u\":9007199254740992}");
  ck_assert(!fl_json_set(v, "x", NULL) && !fl_json_push(v, fl_json_number(1)));
  fl_json_free(v);
}
END_TEST

START_TEST(pretty) {
  fl_json *v = parse("{\"a\":[1,{\"b\":2}],\"c\":[],\"d\":{}}");
  prints_as(v, true,
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n  \"c\": [],\n"
            "  \"d\": {}\n}\n");
  fl_json_free(v);
}
END_TEST

START_TEST(numbers_that_json_lacks) {
  fl_buf b = { 0 };
  fl_json_number_text(&b, NAN);
  fl_buf_putc(&b, ' ');
  fl_json_number_text(&b, -INFINITY);
  ck_assert_str_eq(b.data, "null null");
  fl_buf_release(&b);
}
END_TEST

START_TEST(escape_takes_any_bytes) {
  fl_buf b = { 0 };
  fl_json_escape(&b, "a\0b\xFF\xC3\xA9\xE2\x82", 8);
  ck_assert_str_eq(b.data, "\"a\\u0000b\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\"");
  fl_buf_release(&b);
}
END_TEST

START_TEST(writer_puts_commas) {
  fl_buf b = { 0 };
  fl_buf_puts(&b, "data: ");
  fl_jsonw_open(&b, NULL, '{');
  fl_jsonw_str(&b, "a", "x\"\n");
  fl_jsonw_strn(&b, "ends like an opening", "[{: ", 4);
  fl_jsonw_str(&b, "n", NULL);
  fl_jsonw_open(&b, "l", '[');
  fl_jsonw_u64(&b, NULL, UINT64_MAX);
  fl_jsonw_i64(&b, NULL, INT64_MIN);
  fl_jsonw_num(&b, NULL, NAN);
  fl_jsonw_fixed(&b, NULL, 0.0000004, 6);
  fl_jsonw_float(&b, NULL, 0.1f);
  fl_jsonw_bool(&b, NULL, true);
  fl_jsonw_open(&b, NULL, '{');
  fl_jsonw_close(&b, '}');
  fl_jsonw_close(&b, ']');
  fl_jsonw_raw(&b, "r", "{}", 2);
  fl_jsonw_close(&b, '}');
  ck_assert_str_eq(b.data, "data: {\"a\":\"x\\\"\\n\",\"ends like an opening\":\"[{: \",\"n\":null,"
                           "\"l\":[18446744073709551615,-9223372036854775808,null,0.000000,"
                           "0.100000001,true,{}],\"r\":{}}");
  fl_buf_release(&b);
}
END_TEST

Suite *suite_json(void) {
  Suite *s = suite_create("json");
  TCase *core = tcase_create("Core"), *limits = tcase_create("Limits");
  TCase *errors = tcase_create("Errors");
  tcase_add_loop_test(core, text_comes_back, 0, sizeof round_trips / sizeof *round_trips);
  tcase_add_test(core, other_spellings);
  tcase_add_test(core, getters);
  tcase_add_test(core, setters);
  tcase_add_test(core, pretty);
  tcase_add_test(core, writer_puts_commas);
  tcase_add_test(limits, nesting_is_bounded);
  tcase_add_test(limits, numbers_that_json_lacks);
  tcase_add_test(limits, escape_takes_any_bytes);
  tcase_add_loop_test(errors, refused_text, 0, sizeof refused / sizeof *refused);
  tcase_add_test(errors, nul_bytes_are_not_space);
  tcase_add_test(errors, every_cut_of_a_text_is_refused);
  tcase_add_test(errors, errors_name_the_offset);
  suite_add_tcase(s, core);
  suite_add_tcase(s, limits);
  suite_add_tcase(s, errors);
  return s;
}
