/* check_resume.c - a run that is stopped, killed or starved of disk and resumed makes the files of
 * the uninterrupted run: the same names, the same bytes. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "fleet/hooks.h"
#include "fleet/manifest.h"
#include "trainer/trainer.h"
#include "fleet_util.h"
#include "suite.h"

enum { ROUNDS = 7 };

static fl_train_options options(void) {
  fl_train_options o = small_options();
  o.replay = 1.7; /* so that kept conversations matter */
  o.heldout = 2;  /* as many as are made at once: each document's by themselves */
  return o;
}

/* The uninterrupted run. */
static void train_once(void) { straight_begin(ROUNDS, options()); }

struct counter {
  long left;
  bool die;
};

static int count_down(void *ctx) {
  struct counter *c = ctx;
  if (c->left-- > 0) return FL_OK;
  if (c->die) _exit(77); /* nothing is flushed, nothing cleaned up */
  return FL_EINTR;
}

/* Trains towards ROUNDS; after `polls` calls of the hook it stops (or the process dies). */
static int train_until(long polls, bool die) {
  struct counter c = { polls, die };
  fl_train_hooks hooks = { .ctx = &c, .poll = count_down };
  fl_open_options how = { .resume = in_fleet("fleet.json"), .allow_add = true };
  fl_train_options o = options();
  fl_err err = { 0 };
  o.rounds = ROUNDS - (size_t)committed_rounds();
  fl_fleet *f = must_open(&o, &how);
  int rc = fl_fleet_train(f, &hooks, &err);
  ck_assert_msg(rc == FL_OK || rc == FL_EINTR, "%s", err.text);
  fl_fleet_close(f);
  return rc;
}

/* Stopping at every so many polls: before births, within the index, between decoded tokens, between
 * rounds. */
START_TEST(stopped_and_resumed) {
  int stops = 0;
  for (long polls = 2; train_until(polls, false) == FL_EINTR; polls += 37) stops++;
  ck_assert_int_gt(stops, 3);
  assert_same_fleet(straight_fleet(), fleet_dir);
}
END_TEST

/* A run of one round foretells nothing; the long one made conversations of several rounds at
 * once. */
START_TEST(round_by_round) {
  for (int i = 0; i < ROUNDS; i++) train_rounds(1, options());
  assert_same_fleet(straight_fleet(), fleet_dir);
}
END_TEST

START_TEST(killed_and_resumed) {
  int deaths = 0;
  for (long polls = 5;; polls += 53) {
    pid_t pid = fork();
    if (pid == 0) {
      /* Threads do not survive a fork: the child makes its own. */
      fl_team_new(&fleet_team, 2, NULL);
      fl_model_open(&fleet_model, fixture("embedded/model.gguf"), NULL, fleet_team, NULL);
      (void)train_until(polls, true);
      _exit(0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
    if (WEXITSTATUS(status) == 0) break;
    deaths++;
  }
  ck_assert_int_gt(deaths, 3);
  assert_same_fleet(straight_fleet(), fleet_dir);
}
END_TEST

static int die_with_some_heldout(void *ctx) {
  (void)ctx;
  if (in_fleet("heldout.jsonl")) _exit(77);
  return FL_OK;
}

/* Killed while those of the second document were made: those of the first are there, or were cut by
 * as much as a crash may cut, and the file becomes that of the uninterrupted run. */
START_TEST(heldout_conversations_outlive_a_kill) {
  static const size_t cut[] = { 0, 1, 1000 };
  char *path = fl_fs_join(fleet_dir, "heldout.jsonl");
  char *whole = fl_fs_join(straight_fleet(), "heldout.jsonl");
  fl_buf had = { 0 }, all = { 0 };
  int status = 0;
  const pid_t pid = fork();
  if (pid == 0) {
    const fl_train_hooks hooks = { .poll = die_with_some_heldout };
    fl_train_options o = options();
    fl_fleet *f = NULL;
    o.rounds = ROUNDS;
    fl_team_new(&fleet_team, 2, NULL);
    fl_model_open(&fleet_model, fixture("embedded/model.gguf"), NULL, fleet_team, NULL);
    (void)try_open(&f, &o, &(fl_open_options){ 0 }, NULL);
    _exit(f != NULL && fl_fleet_train(f, &hooks, NULL) == FL_OK ? 0 : 1);
  }
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 77);
  ck_assert_int_eq(fl_fs_read(&had, path, 10 << 20, NULL), FL_OK);
  ck_assert_int_eq(fl_fs_read(&all, whole, 10 << 20, NULL), FL_OK);
  ck_assert_uint_gt(had.len, cut[2]);
  ck_assert_uint_lt(had.len, all.len);
  ck_assert_mem_eq(had.data, all.data, had.len);
  ck_assert_ptr_nonnull(strstr(had.data, "{\"doc\":0,"));
  ck_assert_ptr_null(strstr(had.data, "{\"doc\":1,"));
  ck_assert_int_eq(truncate(path, (off_t)(had.len - cut[_i])), 0);
  ck_assert_int_eq(train_until(1000000, false), FL_OK);
  assert_same_fleet(straight_fleet(), fleet_dir);
  fl_buf_release(&had);
  fl_buf_release(&all);
  fl_free(path);
  fl_free(whole);
}
END_TEST

/* The limit on file sizes lets the manifest through but no moments: as a disk that fills up. */
START_TEST(a_full_disk_loses_nothing_that_was_saved) {
  struct rlimit l, old;
  fl_err err = { 0 };
  fl_fleet *f = NULL;
  fl_train_options o = options();
  fl_open_options how = { .resume = true, .allow_add = true };
  o.save_every = 0;
  o.rotate_every = 0;
  train_rounds(2, options());
  char *saved = fl_asprintf("%s.saved", fleet_dir);
  copy_tree(fleet_dir, saved);
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
  l = old;
  l.rlim_cur = 120000; /* a cartridge has 98,000 bytes, its moments 190,000 */
  o.rounds = 2;
  ck_assert_int_eq(try_open(&f, &o, &how, NULL), FL_OK);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &l), 0);
  int rc = fl_fleet_train(f, NULL, &err);
  fl_fleet_close(f);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
  ck_assert_int_eq(rc, FL_EFAIL);
  ck_assert_msg(strstr(err.text, "is whole") != NULL, "%s", err.text);
  assert_same_fleet(saved, fleet_dir); /* not even litter */
  ck_assert_int_eq(train_until(1000000, false), FL_OK);
  assert_same_fleet(straight_fleet(), fleet_dir);
  remove_tree(saved);
  fl_free(saved);
}
END_TEST

/* Rows of a save that failed for want of room are written by the next one: asked for over the
 * control socket at round `at`, while the disk is full, and then again, or left to the run. */
struct full_disk {
  const fl_fleet *f;
  uint64_t at;
  bool again;
  int fd, said; /* requests */
  char heard[512];
  struct rlimit old;
};

static void ask_for_save(struct full_disk *d) {
  static const char line[] = "{\"cmd\":\"save\"}\n";
  memset(d->heard, 0, sizeof d->heard);
  ck_assert_int_eq(send(d->fd, line, sizeof line - 1, MSG_NOSIGNAL), (ssize_t)sizeof line - 1);
  d->said++;
}

static int fill_the_disk(void *ctx) {
  struct full_disk *d = ctx;
  struct rlimit l = d->old;
  if (fl_fleet_rounds(d->f) < d->at) return FL_OK;
  if (d->said == 0) {
    d->fd = dial_trainer();
    l.rlim_cur = 120000;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &l), 0);
    ask_for_save(d);
  } else if (recv(d->fd, d->heard, sizeof d->heard - 1, MSG_DONTWAIT) > 0) {
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &d->old), 0);
    const bool first = d->said == 1;
    ck_assert_msg(strstr(d->heard, first ? "is whole" : "\"ok\":true") != NULL, "%s", d->heard);
    if (first) ck_assert_uint_lt(committed_rounds(), d->at);
    else ck_assert_uint_eq(committed_rounds(), d->at);
    if (first && d->again) ask_for_save(d);
  }
  return FL_OK;
}

START_TEST(a_save_that_failed_is_tried_again) {
  struct full_disk d = { .at = _i == 0 ? 1 : 5, .again = _i == 1, .fd = -1 };
  fl_train_hooks hooks = { .ctx = &d, .poll = fill_the_disk };
  fl_train_options o = options();
  fl_err err = { 0 };
  fl_fleet *f = NULL;
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &d.old), 0);
  o.rounds = ROUNDS;
  ck_assert_int_eq(try_open(&f, &o, &(fl_open_options){ 0 }, NULL), FL_OK);
  d.f = f;
  int rc = fl_fleet_train(f, &hooks, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  ck_assert_int_eq(d.said, d.again ? 2 : 1);
  fl_fleet_close(f);
  close(d.fd);
  assert_same_fleet(straight_fleet(), fleet_dir);
}
END_TEST

/* The first document's cartridge finds room and the second one's does not: neither is born, and the
 * same command begins anew. */
START_TEST(births_that_failed_are_made_again) {
  struct rlimit l, old;
  fl_train_options o = options();
  fl_err err = { 0 };
  fl_fleet *f = NULL;
  o.p = 60;
  put_doc("a.md", "The lamp is lit.");
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
  l = old;
  l.rlim_cur = 180000; /* the first cartridge has 112,000 bytes, the second 247,000 */
  ck_assert_int_eq(try_open(&f, &o, &(fl_open_options){ 0 }, NULL), FL_OK);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &l), 0);
  int rc = fl_fleet_train(f, NULL, &err);
  fl_fleet_close(f);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
  ck_assert_int_eq(rc, FL_EFAIL);
  ck_assert_msg(strstr(err.text, "b.md: ") != NULL, "%s", err.text);
  train_rounds(1, o);
  ck_assert_uint_eq(committed_rounds(), 1);
}
END_TEST

/* Saving more often changes nothing but what a crash would cost. */
START_TEST(an_extra_save_changes_no_file) {
  train_rounds(3, options());
  train_rounds(1, options());
  train_rounds(ROUNDS - 4, options());
  assert_same_fleet(straight_fleet(), fleet_dir);
}
END_TEST

/* With a budget of one every round evicts and the next one loads: the same files come out whether
 * the process lives on or each round has one of its own. */
START_TEST(an_evicted_cartridge_comes_back_whole) {
  fl_train_options o = options();
  o.p_iso = 1;
  o.replay = 1;
  o.budget = 1;
  o.rotate_every = 1; /* a b c a b c: each is evicted after each of its rounds */
  o.evict_frac = 1;
  train_rounds(6, o);
  char *evicting = fl_asprintf("%s.evicting", fleet_dir);
  ck_assert_int_eq(rename(fleet_dir, evicting), 0);
  for (size_t r = 0; r < 6; r++) train_rounds(1, o); /* the same with a process's life each */
  assert_same_fleet(evicting, fleet_dir);
  fl_manifest m = { 0 };
  ck_assert_int_eq(fl_manifest_load(&m, fleet_dir, NULL), FL_OK);
  for (size_t i = 0; i < 3; i++) ck_assert_uint_eq(m.doc[i].steps, 2);
  fl_manifest_release(&m);
  remove_tree(evicting);
  fl_free(evicting);
}
END_TEST

struct budgets { /* set over the control socket behind certain rounds */
  const fl_fleet *f;
  int fd;
  size_t said;
};
static const struct {
  uint64_t round;
  size_t budget;
} steps[] = { { 2, 3 }, { 5, 1 } };

static int set_budgets(void *ctx) {
  struct budgets *b = ctx;
  char line[80];
  if (b->said == 2 || fl_fleet_rounds(b->f) < steps[b->said].round) return FL_OK;
  if (b->fd < 0) b->fd = dial_trainer();
  const int n = snprintf(line, sizeof line, "{\"cmd\":\"set\",\"key\":\"budget\",\"value\":%zu}\n",
                         steps[b->said++].budget);
  ck_assert_int_eq(send(b->fd, line, (size_t)n, MSG_NOSIGNAL), n);
  return FL_OK;
}

/* It takes effect in the run that is told as it would in one that is resumed with it: in who is
 * resident, and in how many of them are seen together. Said at the beginning of a round, it is
 * heard within that one and counts from the next on. */
START_TEST(a_budget_that_is_set) {
  struct budgets b = { .fd = -1 };
  fl_train_hooks hooks = { .ctx = &b, .poll = set_budgets };
  fl_train_options o = options();
  fl_err err = { 0 };
  o.p_iso = 0;
  o.save_every = 0;
  o.rotate_every = _i == 0 ? 0 : 4;
  o.budget = 1;
  train_rounds(3, o);
  o.budget = 3;
  train_rounds(3, o);
  o.budget = 1;
  train_rounds(1, o);
  char *resumed = fl_asprintf("%s.resumed", fleet_dir);
  ck_assert_int_eq(rename(fleet_dir, resumed), 0);
  o.rounds = ROUNDS;
  fl_fleet *f = must_open(&o, &(fl_open_options){ 0 });
  b.f = f;
  ck_assert_msg(fl_fleet_train(f, &hooks, &err) == FL_OK, "%s", err.text);
  fl_fleet_close(f);
  close(b.fd);
  ck_assert_uint_eq(b.said, 2);
  assert_same_fleet(resumed, fleet_dir);
  remove_tree(resumed);
  fl_free(resumed);
}
END_TEST

START_TEST(missing_moments_are_fresh_ones) {
  train_rounds(4, options());
  fl_manifest m = { 0 };
  ck_assert_int_eq(fl_manifest_load(&m, fleet_dir, NULL), FL_OK);
  for (size_t i = 0; i < m.n; i++) {
    char *path = fl_fs_join(fleet_dir, m.doc[i].opt_file);
    unlink(path);
    fl_free(path);
  }
  fl_manifest_release(&m);
  train_rounds(2, options());
  ck_assert_uint_eq(committed_rounds(), 6);
}
END_TEST

Suite *suite_resume(void);
Suite *suite_resume(void) {
  Suite *s = suite_create("resume");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 300);
  tcase_add_unchecked_fixture(t, train_once, straight_end);
  tcase_add_checked_fixture(t, straight_setup, straight_teardown);
  tcase_add_test(t, stopped_and_resumed);
  tcase_add_test(t, round_by_round);
  tcase_add_test(t, killed_and_resumed);
  tcase_add_loop_test(t, heldout_conversations_outlive_a_kill, 0, 3);
  tcase_add_test(t, a_full_disk_loses_nothing_that_was_saved);
  tcase_add_loop_test(t, a_save_that_failed_is_tried_again, 0, 2);
  tcase_add_test(t, births_that_failed_are_made_again);
  tcase_add_test(t, an_extra_save_changes_no_file);
  tcase_add_test(t, an_evicted_cartridge_comes_back_whole);
  tcase_add_loop_test(t, a_budget_that_is_set, 0, 2);
  tcase_add_test(t, missing_moments_are_fresh_ones);
  suite_add_tcase(s, t);
  return s;
}
