/* check_ranks.c - several ranks train a fleet together (as threads: dist_util.h): the same files as
 * one makes, stops and errors that reach all, and a run that goes on with another number of
 * them. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "dist_util.h"
#include "trainer/state.h"
#include "fleet_util.h"

enum { ROUNDS = 7 };

/* Rotation, replay, held-out conversations of several documents, other parts in view: all that
 * decides something. */
static fl_train_options options(void) {
  fl_train_options o = small_options();
  o.accum = 3;
  o.replay = 1.7;
  o.heldout = 2;
  o.eval_every = 3;
  o.clip = 0.5;
  return o;
}

/* What one rank makes. */
static void train_once(void) { straight_begin(ROUNDS, options()); }

typedef struct run { /* of all ranks */
  size_t rounds, n;
  fl_source_list docs;
  long stop_after; /* polls of rank `stopper`; 0: never */
  size_t stopper;
  const char *other_docs; /* rank 1 sees this folder's instead */
  bool faulty;            /* a row of rank 1 changes by itself in the third round */
  bool then_stop;         /* and it is asked to stop there */
  bool sets_budget;       /* rank 0 is told of another in the third round */
  int rc[RANKS_MAX];
  fl_err err[RANKS_MAX];
  uint64_t n_rounds[RANKS_MAX];
} run_t;

typedef struct counter {
  long left;
  bool counts, then_stop;
  const fl_fleet *faulty; /* NULL: none */
  const fl_fleet *told;   /* NULL: it is not told of another budget */
  int fd;
} counter;

static int count_down(void *ctx) {
  counter *c = ctx;
  if (c->faulty && c->faulty->rows_of && c->faulty->m.rounds == 2) {
    const fl_trainer *trainer = c->faulty->rows_ctx;
    const fl_cartridge *cart = &trainer->res.slot[0]->cart;
    cart->rows.k[0][cart->rows.n_rows * cart->rows.width[0] - 1] += 1;
    c->faulty = NULL;
    if (c->then_stop) return FL_EINTR;
  }
  if (c->told && fl_fleet_rounds(c->told) == 2) {
    static const char line[] = "{\"cmd\":\"set\",\"key\":\"budget\",\"value\":3}\n";
    c->fd = dial_trainer();
    if (send(c->fd, line, sizeof line - 1, MSG_NOSIGNAL) < 0) return FL_EINTR;
    c->told = NULL;
  }
  return c->counts && c->left-- <= 0 ? FL_EINTR : FL_OK;
}

/* One rank; nothing is asserted in its thread. */
static void train_rank(void *ctx, fl_dist *d) {
  run_t *t = ctx;
  const size_t r = fl_dist_rank(d);
  const bool other = t->other_docs != NULL && r == 1;
  fl_source_list docs = { 0 };
  counter c = { .left = t->stop_after,
                .counts = t->stop_after > 0 && r == t->stopper,
                .then_stop = t->then_stop,
                .fd = -1 };
  fl_train_hooks hooks = { .ctx = &c, .poll = count_down };
  fl_open_options how = { .resume = in_fleet("fleet.json"), .allow_add = true, .dist = d };
  fl_train_options o = options();
  fl_team *team = NULL;
  fl_fleet *f = NULL;
  fl_err *err = &t->err[r];
  o.rounds = t->rounds;
  if (!other) docs = t->docs;
  int rc = fl_team_new(&team, 1, err);
  if (rc == FL_OK && other) rc = fl_source_read(&docs, &t->other_docs, 1, false, err);
  if (rc == FL_OK) rc = fl_fleet_open(&f, fleet_dir, fleet_model, team, &docs, &o, &how, err);
  if (rc == FL_OK && t->faulty && r == 1) c.faulty = f;
  if (rc == FL_OK && t->sets_budget && r == 0) c.told = f;
  if (rc == FL_OK) rc = fl_fleet_train(f, &hooks, err);
  t->rc[r] = fl_dist_agree(d, "end", rc, err);
  if (f != NULL) t->n_rounds[r] = fl_fleet_rounds(f);
  fl_fleet_close(f);
  if (c.fd >= 0) close(c.fd);
  fl_team_free(team);
  if (other) fl_source_release(&docs);
}

/* Trains on n ranks and checks that they end alike. */
static int train_ranks(run_t *t, size_t n) {
  t->docs = read_docs();
  run_ranks(n, train_rank, t);
  fl_source_release(&t->docs);
  for (size_t r = 1; r < n; r++) {
    ck_assert_msg(t->rc[r] == t->rc[0], "rank %zu: %d %s; rank 0: %d %s", r, t->rc[r],
                  t->err[r].text, t->rc[0], t->err[0].text);
    ck_assert_str_eq(t->err[r].text, t->err[0].text);
    ck_assert_uint_eq(t->n_rounds[r], t->n_rounds[0]);
  }
  return t->rc[0];
}

/* Two; three, as many as conversations; five, of whom some have nothing to do. */
START_TEST(ranks_make_the_files_of_one) {
  static const size_t count[] = { 2, 3, 5 };
  run_t t = { .rounds = ROUNDS };
  ck_assert_msg(train_ranks(&t, count[_i]) == FL_OK, "%s", t.err[0].text);
  assert_same_fleet(straight_fleet(), fleet_dir);
}
END_TEST

START_TEST(another_number_goes_on) {
  run_t a = { .rounds = 2 }, b = { .rounds = 3 }, c = { .rounds = ROUNDS - 5 };
  ck_assert_int_eq(train_ranks(&a, 2), FL_OK);
  ck_assert_int_eq(train_ranks(&b, 1), FL_OK);
  ck_assert_int_eq(train_ranks(&c, 3), FL_OK);
  assert_same_fleet(straight_fleet(), fleet_dir);
}
END_TEST

/* A signal reaches one rank, at some place; all end at the same round, and what they left goes
 * on. */
START_TEST(a_stop_of_one_stops_all) {
  int stops = 0;
  for (long polls = 20;; polls += 160) {
    run_t t = { .rounds = ROUNDS - (size_t)committed_rounds(),
                .stop_after = polls,
                .stopper = (size_t)stops % 2 };
    int rc = train_ranks(&t, 2);
    ck_assert(rc == FL_OK || rc == FL_EINTR);
    if (rc == FL_OK) break;
    stops++;
  }
  ck_assert_int_gt(stops, 1);
  assert_same_fleet(straight_fleet(), fleet_dir);
}
END_TEST

/* Rank 0 is told of a budget; all follow it from the same round on, which is that of a run resumed
 * with it. */
START_TEST(a_budget_that_is_set_reaches_all) {
  run_t t = { .rounds = ROUNDS, .sets_budget = true };
  char resumed[80];
  fl_train_options o = options();
  train_rounds(3, o);
  o.budget = 3;
  train_rounds(ROUNDS - 3, o);
  snprintf(resumed, sizeof resumed, "%s.resumed", fleet_dir);
  ck_assert_int_eq(rename(fleet_dir, resumed), 0);
  ck_assert_msg(train_ranks(&t, 2) == FL_OK, "%s", t.err[0].text);
  assert_same_fleet(resumed, fleet_dir);
  remove_tree(resumed);
}
END_TEST

START_TEST(other_documents_are_noticed) {
  char other[80];
  snprintf(other, sizeof other, "%s.other", docs_dir);
  copy_tree(docs_dir, other);
  run_t t = { .rounds = 1, .other_docs = other };
  ck_assert_int_eq(train_ranks(&t, 2), FL_EUSAGE);
  ck_assert_ptr_nonnull(strstr(t.err[0].text, "rank 1 sees other documents"));
  ck_assert(!in_fleet("fleet.json"));
  remove_tree(other);
}
END_TEST

/* At a save, and at the one that an interruption makes. The generation saved before stays, and from
 * it the training goes on as though nothing had been. */
START_TEST(ranks_that_go_apart_notice) {
  run_t t = { .rounds = ROUNDS, .faulty = true, .then_stop = _i == 1 }, again = { 0 };
  ck_assert_int_eq(train_ranks(&t, 3), FL_EFAIL);
  ck_assert_ptr_nonnull(strstr(t.err[0].text, "rank 1 holds other rows than rank 0"));
  ck_assert_int_le(committed_rounds(), 2);
  again.rounds = ROUNDS - (size_t)committed_rounds();
  ck_assert_int_eq(train_ranks(&again, 2), FL_OK);
  assert_same_fleet(straight_fleet(), fleet_dir);
}
END_TEST

/* Rank 1 fails by itself: all end with its sentence, and rank 0 has given the lock back. */
START_TEST(an_error_of_one_ends_all) {
  run_t t = { .rounds = 1, .other_docs = "/nonexistent/flotilla" };
  ck_assert_int_ne(train_ranks(&t, 2), FL_OK);
  ck_assert_msg(strncmp(t.err[0].text, "rank 1: ", 8) == 0, "%s", t.err[0].text);
  run_t again = { .rounds = ROUNDS };
  ck_assert_int_eq(train_ranks(&again, 2), FL_OK);
  assert_same_fleet(straight_fleet(), fleet_dir);
}
END_TEST

Suite *suite_ranks(void);
Suite *suite_ranks(void) {
  Suite *s = suite_create("ranks");
  TCase *core = tcase_create("core");
  tcase_set_timeout(core, 120);
  tcase_add_unchecked_fixture(core, train_once, straight_end);
  tcase_add_checked_fixture(core, straight_setup, straight_teardown);
  tcase_add_loop_test(core, ranks_make_the_files_of_one, 0, 3);
  tcase_add_test(core, another_number_goes_on);
  tcase_add_test(core, a_stop_of_one_stops_all);
  tcase_add_test(core, a_budget_that_is_set_reaches_all);
  tcase_add_test(core, other_documents_are_noticed);
  tcase_add_loop_test(core, ranks_that_go_apart_notice, 0, 2);
  tcase_add_test(core, an_error_of_one_ends_all);
  suite_add_tcase(s, core);
  return s;
}
