/* check_control.c - the client of the control socket against listeners good and bad, all in one
 * thread: nothing here may ever wait. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "suite.h"
#include "tui/control.h"

static char dir[64], path[96];
static tui_link link_;
static int lines, lasts;
static char token[64];

static void setup(void) {
  strcpy(dir, "/tmp/flctlXXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/control", dir);
  memset(&link_, 0, sizeof link_);
  lines = lasts = 0;
}

static void teardown(void) {
  char name[128];
  tui_link_release(&link_);
  unlink(path);
  snprintf(name, sizeof name, "%s/control.path", dir);
  unlink(name);
  rmdir(dir);
}

static int listen_at(const char *where) {
  struct sockaddr_un a = { .sun_family = AF_UNIX };
  snprintf(a.sun_path, sizeof a.sun_path, "%s", where);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
  ck_assert_int_eq(listen(fd, 4), 0);
  return fd;
}

static void on_line(void *ctx, const fl_json *reply, bool last) {
  const char *t = NULL;
  (void)ctx;
  lines++;
  lasts += last;
  if (fl_json_get_str(reply, "token", &t)) snprintf(token, sizeof token, "%s", t);
}

static void start(void) {
  fl_json *o = fl_json_object();
  fl_json_set_str(o, "cmd", "ping");
  tui_link_start(&link_, dir, o);
}

static void say(int fd, const char *s) {
  ck_assert_int_eq(write(fd, s, strlen(s)), (int)strlen(s));
}

START_TEST(nobody_there) {
  start();
  ck_assert_int_eq(link_.state, TUI_LINK_FAILED);
  ck_assert(link_.absent);
  close(listen_at(path)); /* a socket whose listener died */
  start();
  ck_assert_int_eq(link_.state, TUI_LINK_FAILED);
  ck_assert(link_.absent);
}
END_TEST

START_TEST(a_reply_in_pieces) {
  char got[64] = "";
  int fd = listen_at(path);
  start();
  ck_assert_int_eq(link_.state, TUI_LINK_WAITING);
  int client = accept(fd, NULL, NULL);
  tui_link_poll(&link_, on_line, NULL);
  ck_assert_int_gt(read(client, got, sizeof got - 1), 0);
  ck_assert_str_eq(got, "{\"cmd\":\"ping\"}\n");
  ck_assert(!tui_link_poll(&link_, on_line, NULL)); /* nothing came: nothing changed */
  say(client, "{\"token\":\"a\"}\n{\"tok");
  tui_link_poll(&link_, on_line, NULL);
  ck_assert_int_eq(lines, 1);
  say(client, "en\":\"b\"}\n{\"ok\":true}\n");
  tui_link_poll(&link_, on_line, NULL);
  ck_assert_int_eq(lines, 3);
  ck_assert_int_eq(lasts, 1);
  ck_assert_str_eq(token, "b");
  ck_assert_int_eq(link_.state, TUI_LINK_DONE);
  close(client);
  close(fd);
}
END_TEST

static void reply_with(const char *text, tui_link_state want, const char *in_error) {
  int fd = listen_at(path);
  start();
  int client = accept(fd, NULL, NULL);
  if (text) say(client, text);
  close(client);
  for (int i = 0; i < 5; i++) tui_link_poll(&link_, on_line, NULL);
  ck_assert_int_eq(link_.state, want);
  if (in_error) ck_assert_ptr_nonnull(strstr(link_.error, in_error));
  tui_link_close(&link_);
  close(fd);
  unlink(path);
}

START_TEST(bad_replies) {
  reply_with("{\"ok\":false,\"error\":\"not now\"}\n", TUI_LINK_FAILED, "not now");
  reply_with("{\"ok\":false}\n", TUI_LINK_FAILED, "refused");
  reply_with("garbage\n", TUI_LINK_FAILED, "not JSON");
  reply_with("[1]\n", TUI_LINK_FAILED, "not JSON");
  reply_with(NULL, TUI_LINK_FAILED, "closed");
  reply_with("{\"token\":\"x\"}\n", TUI_LINK_FAILED, "closed");
}
END_TEST

START_TEST(a_reply_without_end) {
  static char block[65536];
  int fd = listen_at(path);
  start();
  int client = accept(fd, NULL, NULL);
  fcntl(client, F_SETFL, O_NONBLOCK);
  memset(block, 'x', sizeof block);
  for (int i = 0; i < 2000 && link_.state == TUI_LINK_WAITING; i++) {
    ssize_t n = send(client, block, sizeof block, MSG_NOSIGNAL);
    (void)n; /* the buffer may be full: the client drains it next */
    tui_link_poll(&link_, on_line, NULL);
  }
  ck_assert_int_eq(link_.state, TUI_LINK_FAILED);
  ck_assert_ptr_nonnull(strstr(link_.error, "too long"));
  close(client);
  close(fd);
}
END_TEST

START_TEST(a_path_too_long_for_an_address) {
  char elsewhere[96], name[128];
  snprintf(elsewhere, sizeof elsewhere, "%s.sock", dir);
  snprintf(name, sizeof name, "%s/control.path", dir);
  int fd = listen_at(elsewhere);
  FILE *f = fopen(name, "w");
  fprintf(f, "%s\n", elsewhere);
  fclose(f);
  start();
  ck_assert_int_eq(link_.state, TUI_LINK_WAITING);
  close(fd);
  unlink(elsewhere);
}
END_TEST

START_TEST(no_request) {
  tui_link_start(&link_, dir, NULL);
  ck_assert_int_eq(link_.state, TUI_LINK_FAILED);
  ck_assert(!link_.absent);
}
END_TEST

Suite *suite_control(void);
Suite *suite_control(void) {
  Suite *s = suite_create("control");
  TCase *t = tcase_create("Core");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, nobody_there);
  tcase_add_test(t, a_reply_in_pieces);
  tcase_add_test(t, bad_replies);
  tcase_add_test(t, a_reply_without_end);
  tcase_add_test(t, a_path_too_long_for_an_address);
  tcase_add_test(t, no_request);
  tcase_set_timeout(t, 60);
  suite_add_tcase(s, t);
  return s;
}
