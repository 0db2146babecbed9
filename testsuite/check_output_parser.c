/* check_output_parser.c - answers taken apart. The reference is the text itself: however it is cut
 * into pieces, the parts that come out are the same, and nothing that may be a mark is shown early.
 */
#include "http/output_parser.h"

#include <string.h>

#include "suite.h"

typedef struct got {
  fl_buf reasoning, content, calls;
} got;

static void on_text(void *ctx, fl_part part, const char *s, size_t len) {
  got *g = ctx;
  fl_buf_append(part == FL_PART_REASONING ? &g->reasoning : &g->content, s, len);
}

static void on_call(void *ctx, const char *name, const char *args, size_t len) {
  got *g = ctx;
  fl_buf_printf(&g->calls, "%s(%.*s);", name, (int)len, args);
}

static bool on_known(void *ctx, const char *name) {
  (void)ctx;
  return strcmp(name, "f") == 0 || strcmp(name, "g") == 0;
}

static const char *text_of(const fl_buf *b) { return b->data != NULL ? b->data : ""; }

static void release(got *g) {
  fl_buf_release(&g->reasoning);
  fl_buf_release(&g->content);
  fl_buf_release(&g->calls);
}

/* Fed in pieces of `step` bytes, the first of `first`. */
static void feed(got *g, const char *text, size_t first, size_t step, bool tools) {
  fl_output_parser s;
  const fl_output_parser_sink sink = {
    .ctx = g, .text = on_text, .call = on_call, .known = on_known
  };
  fl_output_parser_init(&s, &sink, tools);
  for (size_t at = 0, n = first, len = strlen(text); at < len; at += n, n = step) {
    if (n > len - at) n = len - at;
    fl_output_parser_feed(&s, text + at, n);
  }
  fl_output_parser_finish(&s);
  fl_output_parser_release(&s);
}

static const struct {
  const char *text, *reasoning, *content, *calls;
} cases[] = {
  { "plain", "", "plain", "" },
  { "", "", "", "" },
  { "  leading", "", "  leading", "" },
  { "<think>a b</think>\n\nanswer", "a b", "answer", "" },
  { "\n<think>\nnever closed", "\nnever closed", "", "" },
  { "<think></think>x", "", "x", "" },
  { "<thin", "", "<thin", "" },
  { "not first <think>x</think>", "", "not first <think>x</think>", "" },
  { "<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}\n</tool_call>", "", "",
    "f({\"a\":1});" },
  { "say\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n"
    "<tool_call>{\"name\":\"g\"}</tool_call>",
    "", "say", "f({});g({});" },
  { "<think>t</think>\n<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call> after", "t",
    "after", "g({});" },
  { "<tool_call>{\"name\":\"unknown\",\"arguments\":{}}</tool_call>", "",
    "<tool_call>{\"name\":\"unknown\",\"arguments\":{}}</tool_call>", "" },
  { "<tool_call>{\"name\":\"f\",\"arguments\":[1]}</tool_call>", "",
    "<tool_call>{\"name\":\"f\",\"arguments\":[1]}</tool_call>", "" },
  { "<tool_call>nonsense</tool_call> x", "", "<tool_call>nonsense</tool_call> x", "" },
  { "<tool_call>{\"name\":\"f\",\"arguments\":{}}", "", "", "f({});" },
  { "<tool_call>{\"name\":\"f\",", "", "<tool_call>{\"name\":\"f\",", "" },
  { "<tool_call>", "", "<tool_call>", "" },
  { "a < b <tool", "", "a < b <tool", "" },
  { "tail space  ", "", "tail space  ", "" },
};

START_TEST(parts) {
  const char *text = cases[_i].text;
  for (size_t step = 1; step <= strlen(text) + 1; step++)
    for (size_t first = 1; first <= step; first++) {
      got g = { 0 };
      feed(&g, text, first, step, true);
      ck_assert_str_eq(text_of(&g.reasoning), cases[_i].reasoning);
      ck_assert_str_eq(text_of(&g.content), cases[_i].content);
      ck_assert_str_eq(text_of(&g.calls), cases[_i].calls);
      release(&g);
    }
}
END_TEST

START_TEST(without_tools) {
  got g = { 0 };
  const char *text = "x <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n";
  feed(&g, text, 3, 5, false);
  ck_assert_str_eq(text_of(&g.content), text);
  ck_assert_str_eq(text_of(&g.calls), "");
  release(&g);
}
END_TEST

/* Plain text goes out at once: nothing is held that no mark can begin with. */
START_TEST(holds_little) {
  got g = { 0 };
  fl_output_parser s;
  const fl_output_parser_sink sink = {
    .ctx = &g, .text = on_text, .call = on_call, .known = on_known
  };
  fl_output_parser_init(&s, &sink, true);
  fl_output_parser_feed(&s, "hello", 5);
  ck_assert_str_eq(text_of(&g.content), "hello");
  fl_output_parser_feed(&s, " <tool_c", 8);
  ck_assert_str_eq(text_of(&g.content), "hello");
  fl_output_parser_feed(&s, "hest>", 5);
  ck_assert_str_eq(text_of(&g.content), "hello <tool_chest>");
  fl_output_parser_finish(&s);
  fl_output_parser_release(&s);
  release(&g);
}
END_TEST

Suite *suite_output_parser(void) {
  Suite *s = suite_create("output_parser");
  TCase *t = tcase_create("parts");
  tcase_add_loop_test(t, parts, 0, (int)(sizeof cases / sizeof *cases));
  tcase_add_test(t, without_tools);
  tcase_add_test(t, holds_little);
  suite_add_tcase(s, t);
  return s;
}
