/* check_schema.c - every kind and member of a log stands in man/flotilla-events.5, and every kind
 * that the dashboard reads. The log is the recorded one and, with EVENTS_LOG, one more (schema.sh
 * gives that of a real training). */
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "suite.h"
#include "tui/scan.h"
#include "tui/store.h"

static fl_buf page;

static void setup(void) {
  const char *src = getenv("SRCDIR");
  char *path = fl_asprintf("%s/man/flotilla-events.5", src ? src : "..");
  ck_assert_int_eq(fl_fs_read(&page, path, 1 << 20, NULL), FL_OK);
  fl_free(path);
}

static void teardown(void) { fl_buf_release(&page); }

/* The part of the page on a kind; *len its length, NULL: there is none. */
static const char *section(const char *kind, size_t n, size_t *len) {
  for (const char *p = page.data; (p = strstr(p, "\n.Ss ")) != NULL;) {
    p += 5;
    if (strncmp(p, kind, n) != 0 || p[n] != '\n') continue;
    const char *end = strstr(p, "\n.S");
    *len = end ? (size_t)(end - p) : strlen(p);
    return p;
  }
  return NULL;
}

static bool word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool names(const char *s, size_t len, tui_slice word) {
  for (size_t i = 0; i + word.n <= len; i++)
    if (memcmp(s + i, word.p, word.n) == 0 && (i == 0 || !word_char(s[i - 1])) &&
        !word_char(s[i + word.n]))
      return true;
  return false;
}

static void check_line(const char *line, size_t len) {
  tui_scan s;
  tui_member m, kind;
  size_t n = 0;
  ck_assert(tui_scan_begin(&s, line, len));
  ck_assert_int_eq(tui_scan_next(&s, &m), 1);
  ck_assert_int_eq(tui_scan_next(&s, &kind), 1);
  const char *text = section(kind.value.p, kind.value.n, &n);
  ck_assert_msg(text != NULL, "no section on %.*s", (int)kind.value.n, kind.value.p);
  while (tui_scan_next(&s, &m) > 0)
    ck_assert_msg(names(text, n, m.key), "%.*s has %.*s, which the page does not name",
                  (int)kind.value.n, kind.value.p, (int)m.key.n, m.key.p);
}

static void check_log(const char *path) {
  fl_buf log = { 0 };
  ck_assert_int_eq(fl_fs_read(&log, path, 64 << 20, NULL), FL_OK);
  for (size_t i = 0, start = 0; i < log.len; i++) {
    if (log.data[i] != '\n') continue;
    check_line(log.data + start, i - start);
    start = i + 1;
  }
  fl_buf_release(&log);
}

START_TEST(the_recorded_log_is_documented) { check_log(fixture("events/voyage.jsonl")); }
END_TEST

START_TEST(a_real_log_is_documented) {
  if (getenv("EVENTS_LOG")) check_log(getenv("EVENTS_LOG"));
}
END_TEST

START_TEST(every_kind_has_a_section) {
  size_t n;
  for (size_t i = 0; tui_event_names[i]; i++)
    ck_assert_msg(section(tui_event_names[i], strlen(tui_event_names[i]), &n) != NULL,
                  "no section on %s", tui_event_names[i]);
}
END_TEST

Suite *suite_schema(void);
Suite *suite_schema(void) {
  Suite *s = suite_create("schema");
  TCase *t = tcase_create("Core");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, the_recorded_log_is_documented);
  tcase_add_test(t, a_real_log_is_documented);
  tcase_add_test(t, every_kind_has_a_section);
  tcase_set_timeout(t, 60);
  suite_add_tcase(s, t);
  return s;
}
