/* check_kinds.c - text encodings, JSON, tables and LaTeX projects: the text that each gives, and a
 * sentence for what cannot be read. Expected texts are written by hand. */
#include "source_util.h"

/* --- encodings --- */

START_TEST(utf16_and_latin1) {
  put("le.txt", "\xFF\xFEH\0\xE9\0!\0", 8);
  ck_assert_str_eq(text_of("le.txt"), "H\xC3\xA9!");
  put("be.txt", "\xFE\xFF\0H\x20\xAC\xD8\x3D\xDE\x00", 10); /* a pair of surrogates */
  ck_assert_str_eq(text_of("be.txt"), "H\xE2\x82\xAC\xF0\x9F\x98\x80");
  put("bare.txt", "H\0a\0r\0b\0o\0u\0r\0\n\0", 16); /* no mark */
  ck_assert_str_eq(text_of("bare.txt"), "Harbour\n");
  puts_at("latin.txt", "caf\xE9 \x93quoted\x94\n"); /* the quotes of Windows-1252 */
  ck_assert_str_eq(text_of("latin.txt"), "caf\xC3\xA9 \xE2\x80\x9Cquoted\xE2\x80\x9D\n");
}
END_TEST

START_TEST(damaged_encodings_are_refused) {
  put("odd.txt", "\xFF\xFEH\0a", 5);
  refused(at("odd.txt"), FL_EINPUT, "damaged UTF-16LE at byte 4");
  put("lone.txt", "\xFE\xFF\xD8\x00\0a", 6);
  refused(at("lone.txt"), FL_EINPUT, "damaged UTF-16BE at byte 2");
  put("image", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  refused(at("image"), FL_EINPUT, "zero byte");
  puts_at("cut.txt", "caf\xC3\xA9, caf\xC3");
  refused(at("cut.txt"), FL_EINPUT, "not valid UTF-8 at byte 10");
}
END_TEST

/* 100 MB without a byte on the disk, of each kind that is all text. */
START_TEST(a_huge_file_is_refused_before_it_is_read) {
  static const char *const files[][2] = { { "huge.txt", "text" },  { "huge.md", "text" },
                                          { "huge.json", "JSON" }, { "huge.jsonl", "JSON" },
                                          { "huge.csv", "CSV" },   { "huge.tsv", "CSV" },
                                          { "huge.tex", "LaTeX" }, { "huge", "text" } };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char want[80];
    FILE *f = fopen(at(files[i][0]), "wb");
    ck_assert_int_eq(ftruncate(fileno(f), (off_t)100 << 20), 0);
    fclose(f);
    snprintf(want, sizeof want, "100.0 MiB, over the limit of 16 MiB for %s", files[i][1]);
    refused(at(files[i][0]), FL_EINPUT, want);
  }
}
END_TEST

/* Markdown as editors of different systems leave it: front matter, line ends, code as it is. */
START_TEST(markdown_stays_as_it_is) {
  gives("notes.md",
        "---\r\ntitle: Harbour\r\n---\r\n\r\n# Lamps\r\n\r\n- [x] oil\r\n\r\n"
        "```c\r\n\tint a;\r\n```\r\n",
        "---\r\ntitle: Harbour\r\n---\r\n\r\n# Lamps\r\n\r\n- [x] oil\r\n\r\n"
        "```c\r\n\tint a;\r\n```\r\n");
  gives("page.md", "# T\n<div align=\"center\">\n\n![x](a.png)\n\n</div>\n",
        "# T\n<div align=\"center\">\n\n![x](a.png)\n\n</div>\n");
}
END_TEST

/* --- JSON --- */

START_TEST(json_becomes_an_outline) {
  gives("order.json",
        "{\"order\": 12345678901234567890, \"paid\": true, \"ship\": {\"name\": \"Alma\", "
        "\"crew\": [\"Ida\", \"J\\u00f8n \\ud83d\\ude00\"]}, \"rows\": [{\"a\": 1.50}, [], null], "
        "\"note\": \"two\\nlines\"}\n",
        "order: 12345678901234567890\npaid: true\nship:\n  name: Alma\n  crew:\n    - Ida\n"
        "    - J\xC3\xB8n \xF0\x9F\x98\x80\nrows:\n  -\n    a: 1.50\n  -\n  - null\nnote: two\n"
        "  lines\n");
  gives("bare.json", "\"only a string\"", "only a string\n");
  put("wide.json",
      "\xFF\xFE[\0"
      "1\0]\0",
      8);
  ck_assert_str_eq(text_of("wide.json"), "- 1\n");
}
END_TEST

START_TEST(json_lines_are_records) {
  gives("log.jsonl", "{\"t\":1,\"ev\":\"a\"}\r\n\n{\"t\":2}", "t: 1\nev: a\n\nt: 2\n");
  gives("odd.jsonl", /* a mark, values of all sorts, no end of the last line */
        "\xEF\xBB\xBF{\"id\":\"e1\",\"tags\":[\"lamp\",\"oil\"],\"at\":{\"day\":3}}\r\n"
        "[1,2]\r\n\"bare\"\r\n"
        "{\"id\":\"e2\"}",
        "id: e1\ntags:\n  - lamp\n  - oil\nat:\n  day: 3\n\n- 1\n- 2\n\nbare\n\nid: e2\n");
  puts_at("cut.jsonl", "{\"t\":1}\n{\"t\":2");
  refused(at("cut.jsonl"), FL_EINPUT, "line 2 is not valid JSON: a comma or } was expected");
  puts_at("bad.jsonl", "{\"t\":1}\n{\"t\":}\n");
  refused(at("bad.jsonl"), FL_EINPUT, "line 2 is not valid JSON: a value was expected");
}
END_TEST

START_TEST(json_faults_are_named) {
  static const struct {
    const char *text, *word;
  } faults[] = { { "{\"a\":1", "comma or }" },
                 { "[1 2]", "comma or ]" },
                 { "{a:1}", "name in quotes" },
                 { "{\"a\" 1}", "colon" },
                 { "[\"x]", "string without its end" },
                 { "[01]", "a value" },
                 { "[1.]", "a value" },
                 { "[\"\\x\"]", "backslash" },
                 { "[\"\\u12\"]", "hexadecimal" },
                 { "[\"a\nb\"]", "line break" },
                 { "{} {}", "follows the value" },
                 { "[\n\n,]", "line 3" },
                 { "nul", "a value" },
                 { "[1,]", "a value" } };
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    puts_at("f.json", faults[i].text);
    refused(at("f.json"), FL_EINPUT, faults[i].word);
  }
}
END_TEST

/* Deep nesting must not eat the stack, nor deep indentation the memory: 1 MiB of brackets, and 600
 * KB of items that lie 200 deep. */
START_TEST(json_that_blows_up) {
  size_t n = 1 << 20;
  char *s = fl_malloc(n + 1);
  memset(s, '[', n);
  put("deep.json", s, n);
  refused(at("deep.json"), FL_EINPUT, "256 deep");
  memset(s, '[', 200);
  for (size_t i = 200; i < n; i += 2) memcpy(s + i, i + 2 < n ? "1," : "1]", 2);
  memset(s + n - 199, ']', 199);
  put("wide.json", s, n);
  refused(at("wide.json"), FL_EINPUT, "more than 16 MiB of text");
  fl_free(s);
}
END_TEST

/* --- tables --- */

START_TEST(tables_become_records) {
  gives("ships.csv", "name,tons,note\r\nAlma,120,\"two\r\nlines, \"\"quoted\"\"\"\r\nBerta,,\r\n",
        "name: Alma\ntons: 120\nnote: two\nlines, \"quoted\"\n\nname: Berta\n");
  gives("semi.csv", "Jahr;Preis\n1911;3,50\n", "Jahr: 1911\nPreis: 3,50\n");
  gives("plain.tsv", "1\t2\n3\t4\t5\n",
        "column 1: 1\ncolumn 2: 2\n\ncolumn 1: 3\ncolumn 2: 4\ncolumn 3: 5\n");
  puts_at("open.csv", "a,b\n1,\"never closed\n2,3\n");
  refused(at("open.csv"), FL_EINPUT, "opens in line 2");
  puts_at("heads.csv", "a,b\n");
  refused(at("heads.csv"), FL_EINPUT, "no records");
}
END_TEST

/* --- LaTeX --- */

START_TEST(a_latex_project_is_one_document) {
  mkdir(at("paper"), 0777);
  mkdir(at("paper/sections"), 0777);
  puts_at("paper/main.tex",
          "\\documentclass{article}\n\\usepackage{x} % why\n\\title{On \\emph{lamps}}\n"
          "\\begin{document}\n\\maketitle\n% a whole line\n50\\% of it % the rest\nis oil.\n"
          "\\input{sections/one}\n\\include{sections/two.tex}\n"
          "\\begin{verbatim}\n100% kept \\input{x}\n\\end{verbatim}\n\\verb|%|\n"
          "\\end{document}\nafter\n");
  puts_at("paper/sections/one.tex", "One: $x^2$.");
  puts_at("paper/sections/two.tex", "Two.\\subfile{sections/three}");
  puts_at("paper/sections/three.tex", "\\documentclass[../main]{subfiles}\n\\begin{document}\nThree"
                                      "\n\\end{document}\n");
  static const char want[] =
      "\\title{On \\emph{lamps}}\n\\maketitle\n50\\% of itis oil.\nOne: $x^2$.\nTwo.Three\n\n"
      "\\begin{verbatim}\n100% kept \\input{x}\n\\end{verbatim}\n\\verb|%|\n";
  ck_assert_str_eq(text_of("paper/main.tex"), want);
  /* in a folder the parts are no documents */
  fl_source_list l = { 0 };
  ck_assert_int_eq(read1(&l, at("paper"), true, NULL), FL_OK);
  ck_assert_uint_eq(l.n, 1);
  char before[FL_HASH_TEXT];
  memcpy(before, l.doc[0].hash, sizeof before);
  fl_source_release(&l);
  /* a change of a part is a change of the document */
  puts_at("paper/sections/one.tex", "Another.");
  ck_assert_int_eq(read1(&l, at("paper/main.tex"), false, NULL), FL_OK);
  ck_assert_str_ne(l.doc[0].hash, before);
  fl_source_release(&l);
}
END_TEST

/* What comments include is not looked for; TeX's own \input has no braces; an old part is
 * Latin-1. */
START_TEST(latex_of_old_times) {
  puts_at("old.tex", "% \\input{gone}\n\\documentclass{a}\n\\begin{document}\n\\input part\n"
                     "The end.\n\\end{document}\n");
  puts_at("part.tex", "Caf\xE9 hours.\n");
  ck_assert_str_eq(text_of("old.tex"), "Caf\xC3\xA9 hours.\n\nThe end.\n");
}
END_TEST

START_TEST(latex_includes_that_are_refused) {
  mkdir(at("p"), 0777);
  puts_at("p/a.tex", "\\documentclass{x}\n\\input{b}\n");
  puts_at("p/b.tex", "text\n\n\\input{c}\n");
  puts_at("p/c.tex", "\\input{b}\n");
  refused(at("p/a.tex"), FL_EINPUT, "of c.tex includes \"b\", which includes that file again");
  puts_at("p/c.tex", "\\input{gone}\n");
  refused(at("p/a.tex"), FL_EINPUT, "includes \"gone\", which is not there");
  puts_at("secret", "x");
  puts_at("p/c.tex", "\\input{../secret}\n");
  refused(at("p/a.tex"), FL_EINPUT, "outside of the project's folder");
  ck_assert_int_eq(symlink("../secret", at("p/link.tex")), 0);
  puts_at("p/c.tex", "\\input{link}\n");
  refused(at("p/a.tex"), FL_EINPUT, "outside of the project's folder");
  puts_at("p/c.tex", "\\input{a}\n");
  refused(at("p/a.tex"), FL_EINPUT, "in a circle");
}
END_TEST

/* Each file includes the next twice: 2^30 texts are not made. */
START_TEST(latex_that_blows_up) {
  mkdir(at("p"), 0777);
  for (int i = 0; i < 30; i++) {
    char name[32], text[2048];
    int n = snprintf(text, sizeof text, "\\input{f%d}\\input{f%d}", i + 1, i + 1);
    memset(text + n, 'x', 1000);
    text[n + 1000] = '\0';
    snprintf(name, sizeof name, "p/f%d.tex", i);
    puts_at(name, text);
  }
  puts_at("p/f30.tex", "end");
  refused(at("p/f0.tex"), FL_EINPUT, "more than 16 MiB of text");
}
END_TEST

/* Braces that never close take time in proportion to their number. */
START_TEST(latex_of_open_braces) {
  fl_buf text = { 0 };
  for (size_t i = 0; i < (size_t)2 << 20; i++) fl_buf_puts(&text, "\\input{");
  ck_assert(!text.oom);
  gives("braces.tex", text.data, text.data);
  fl_buf_release(&text);
}
END_TEST

Suite *suite_kinds(void);
Suite *suite_kinds(void) {
  Suite *s = suite_create("kinds");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, utf16_and_latin1);
  tcase_add_test(t, damaged_encodings_are_refused);
  tcase_add_test(t, a_huge_file_is_refused_before_it_is_read);
  tcase_add_test(t, markdown_stays_as_it_is);
  tcase_add_test(t, json_becomes_an_outline);
  tcase_add_test(t, json_lines_are_records);
  tcase_add_test(t, json_faults_are_named);
  tcase_add_test(t, json_that_blows_up);
  tcase_add_test(t, tables_become_records);
  tcase_add_test(t, a_latex_project_is_one_document);
  tcase_add_test(t, latex_of_old_times);
  tcase_add_test(t, latex_includes_that_are_refused);
  tcase_add_test(t, latex_that_blows_up);
  tcase_add_test(t, latex_of_open_braces);
  suite_add_tcase(s, t);
  return s;
}
