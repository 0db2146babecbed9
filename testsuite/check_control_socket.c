/* check_control_socket.c - src/fleet/control_socket.c: lines in, lines out, and clients that
 * misbehave. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "fleet/control_socket.h"
#include "fleet_util.h"
#include "suite.h"

static fl_control *control;
static int handled;
static char last_cmd[64];

static void handler(void *ctx, fl_control_client *client, const char *cmd, const fl_json *o) {
  ck_assert_ptr_eq(ctx, &handled);
  handled++;
  snprintf(last_cmd, sizeof last_cmd, "%s", cmd);
  fl_control_poll(control, 1000); /* nested: does nothing and does not wait */
  if (strcmp(cmd, "flood") == 0) {
    static char big[60000];
    memset(big, 'x', sizeof big);
    for (int i = 0; i < 1000 && fl_control_alive(client); i++)
      fl_control_send(client, big, sizeof big);
    ck_assert(!fl_control_alive(client));
  } else if (fl_json_get(o, "fail") != NULL) {
    fl_control_fail(client, "no \"luck\"");
  } else {
    fl_control_ok(client);
  }
}

static void open_control(const char *dir) {
  fl_err err = { 0 };
  handled = 0;
  int rc = fl_control_open(&control, dir, handler, &handled, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
}

static void setup(void) {
  fleet_setup();
  open_control(docs_dir);
}

static void teardown(void) {
  fl_control_close(control);
  control = NULL;
  fleet_teardown();
}

static int dial(const char *path) {
  struct sockaddr_un a = { .sun_family = AF_UNIX };
  snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_ge(fd, 0);
  if (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0) return fd;
  close(fd);
  return -1;
}

static void say(int fd, const char *text) {
  size_t n = strlen(text);
  ck_assert_int_eq(send(fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* All that is there, without waiting, after the control had its turns. */
static const char *hear(int fd) {
  static char text[4096];
  size_t n = 0;
  for (int i = 0; i < 3; i++) fl_control_poll(control, 0);
  for (ssize_t k; (k = recv(fd, text + n, sizeof text - 1 - n, MSG_DONTWAIT)) > 0;) n += (size_t)k;
  text[n] = '\0';
  return text;
}

/* Nobody is there any more: the socket was closed from the other side. */
static bool hung_up(int fd) {
  char c[4096];
  ssize_t n;
  while ((n = recv(fd, c, sizeof c, MSG_DONTWAIT)) > 0) {}
  return n == 0 || errno == ECONNRESET;
}

START_TEST(a_request_and_a_reply) {
  int fd = dial(doc_path("control"));
  ck_assert_int_ge(fd, 0);
  say(fd, "{\"cmd\":\"ping\"}\n");
  ck_assert_str_eq(hear(fd), "{\"ok\":true}\n");
  ck_assert_str_eq(last_cmd, "ping");
  say(fd, "{\"cmd\":\"x\",\"fail\":1}\n");
  ck_assert_str_eq(hear(fd), "{\"ok\":false,\"error\":\"no \\\"luck\\\"\"}\n");
  close(fd);
}
END_TEST

START_TEST(only_the_owner_may_connect) {
  struct stat st;
  ck_assert_int_eq(stat(doc_path("control"), &st), 0);
  ck_assert_int_eq(st.st_mode & 0077, 0);
}
END_TEST

START_TEST(lines_in_pieces_and_several_at_once) {
  int a = dial(doc_path("control")), b = dial(doc_path("control"));
  say(a, "{\"cmd\":");
  ck_assert_str_eq(hear(a), "");
  say(b, "{\"cmd\":\"b\"}\n\n{\"cmd\":\"c\"}\n");
  ck_assert_str_eq(hear(b), "{\"ok\":true}\n{\"ok\":true}\n");
  say(a, "\"a\"}\n");
  ck_assert_str_eq(hear(a), "{\"ok\":true}\n");
  ck_assert_int_eq(handled, 3);
  close(a);
  close(b);
}
END_TEST

START_TEST(nonsense_is_answered) {
  static const char *const lines[] = { "hello\n", "{\"cmd\":7}\n", "[]\n", "{}\n", "{\"cmd\"\n" };
  int fd = dial(doc_path("control"));
  for (size_t i = 0; i < 5; i++) {
    say(fd, lines[i]);
    ck_assert_msg(strncmp(hear(fd), "{\"ok\":false,", 12) == 0, "%s", lines[i]);
  }
  ck_assert_int_eq(handled, 0);
  say(fd, "{\"cmd\":\"ping\"}\n"); /* and the client is still welcome */
  ck_assert_str_eq(hear(fd), "{\"ok\":true}\n");
  close(fd);
}
END_TEST

START_TEST(an_endless_line_is_dropped) {
  static char much[FL_CONTROL_LINE];
  memset(much, ' ', sizeof much);
  int fd = dial(doc_path("control"));
  ssize_t sent = 0;
  for (int i = 0; i < 8 && !hung_up(fd); i++) {
    ssize_t n = send(fd, much, sizeof much, MSG_NOSIGNAL | MSG_DONTWAIT);
    sent += n > 0 ? n : 0;
    fl_control_poll(control, 0);
  }
  ck_assert(hung_up(fd));
  ck_assert_int_ge(sent, FL_CONTROL_LINE);
  close(fd);
}
END_TEST

START_TEST(who_does_not_read_is_dropped) {
  int deaf = dial(doc_path("control")), other = dial(doc_path("control"));
  say(deaf, "{\"cmd\":\"flood\"}\n");
  for (int i = 0; i < 3; i++) fl_control_poll(control, 0);
  say(other, "{\"cmd\":\"ping\"}\n");
  ck_assert_str_eq(hear(other), "{\"ok\":true}\n");
  ck_assert(hung_up(deaf));
  close(deaf);
  close(other);
}
END_TEST

START_TEST(places_are_bounded_and_come_free) {
  int fd[FL_CONTROL_CLIENTS + 1];
  for (int i = 0; i <= FL_CONTROL_CLIENTS; i++) {
    fd[i] = dial(doc_path("control"));
    fl_control_poll(control, 0);
  }
  ck_assert(hung_up(fd[FL_CONTROL_CLIENTS]));
  for (int i = 0; i <= FL_CONTROL_CLIENTS; i++) close(fd[i]);
  fl_control_poll(control, 0);
  int again = dial(doc_path("control"));
  say(again, "{\"cmd\":\"ping\"}\n");
  ck_assert_str_eq(hear(again), "{\"ok\":true}\n");
  close(again);
}
END_TEST

START_TEST(a_stale_socket_is_replaced_and_the_own_one_removed) {
  fl_control *first = control;
  open_control(docs_dir); /* as after a crash: the name is taken by a socket nobody serves */
  int fd = dial(doc_path("control"));
  say(fd, "{\"cmd\":\"ping\"}\n");
  ck_assert_str_eq(hear(fd), "{\"ok\":true}\n");
  close(fd);
  fl_control_close(control);
  control = first;
  ck_assert(!fl_fs_exists(doc_path("control")));
}
END_TEST

START_TEST(a_long_path_stands_in_a_file) {
  char dir[200];
  snprintf(dir, sizeof dir, "%s/%0100d", docs_dir, 7);
  ck_assert_int_eq(mkdir(dir, 0777), 0);
  fl_control *first = control;
  ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", docs_dir, 1), 0);
  open_control(dir);
  char *note = fl_fs_join(dir, "control.path");
  fl_buf b = { 0 };
  ck_assert_int_eq(fl_fs_read(&b, note, 1000, NULL), FL_OK);
  ck_assert(strncmp(b.data, docs_dir, strlen(docs_dir)) == 0);
  int fd = dial(b.data);
  say(fd, "{\"cmd\":\"ping\"}\n");
  ck_assert_str_eq(hear(fd), "{\"ok\":true}\n");
  close(fd);
  fl_control_close(control);
  control = first;
  ck_assert(!fl_fs_exists(note) && !fl_fs_exists(b.data));
  fl_buf_release(&b);
  fl_free(note);
}
END_TEST

Suite *suite_control_socket(void);
Suite *suite_control_socket(void) {
  Suite *s = suite_create("control_socket");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, a_request_and_a_reply);
  tcase_add_test(t, only_the_owner_may_connect);
  tcase_add_test(t, lines_in_pieces_and_several_at_once);
  tcase_add_test(t, nonsense_is_answered);
  tcase_add_test(t, an_endless_line_is_dropped);
  tcase_add_test(t, who_does_not_read_is_dropped);
  tcase_add_test(t, places_are_bounded_and_come_free);
  tcase_add_test(t, a_stale_socket_is_replaced_and_the_own_one_removed);
  tcase_add_test(t, a_long_path_stands_in_a_file);
  suite_add_tcase(s, t);
  return s;
}
