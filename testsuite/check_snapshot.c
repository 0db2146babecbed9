/* check_snapshot.c - the fold of events into a state. */
#include <math.h>
#include <string.h>

#include "base/fs.h"
#include "base/rng.h"
#include "suite.h"
#include "tui/snapshot.h"

static tui_store store;
static tui_snapshot snap;

static void setup(void) {
  memset(&store, 0, sizeof store);
  tui_snapshot_init(&snap);
}

static void teardown(void) {
  tui_snapshot_release(&snap);
  tui_store_release(&store);
}

static void feed(const char *line) {
  ck_assert_int_eq(tui_store_add(&store, line, strlen(line), (tui_line_ref){ 0 }), FL_OK);
  ck_assert_int_eq(tui_snapshot_fold(&snap, &store, store.n_ticks), FL_OK);
}

static void load_voyage(void) {
  fl_buf log = { 0 };
  ck_assert_int_eq(fl_fs_read(&log, fixture("events/voyage.jsonl"), 1 << 20, NULL), FL_OK);
  for (size_t i = 0, start = 0; i < log.len; i++) {
    if (log.data[i] != '\n') continue;
    tui_store_add(&store, log.data + start, i - start, (tui_line_ref){ 0 });
    start = i + 1;
  }
  fl_buf_release(&log);
}

START_TEST(unknown_is_not_zero) {
  feed("{\"t\":1,\"ev\":\"doc\",\"doc\":4,\"name\":\"a\"}");
  const tui_doc *d = tui_snapshot_doc(&snap, 4);
  ck_assert_ptr_nonnull(d);
  ck_assert_uint_eq(d->tokens, TUI_NONE);
  ck_assert(isnan(d->loss) && isnan(d->alone) && isnan(tui_doc_coverage(d)));
  ck_assert_uint_eq(snap.round, TUI_NONE);
  ck_assert(isnan(tui_snapshot_seconds_left(&snap)));
  ck_assert_uint_eq(tui_snapshot_worst(&snap), SIZE_MAX);
  ck_assert_ptr_null(tui_snapshot_doc(&snap, 5));
  ck_assert_ptr_null(tui_snapshot_doc(&snap, TUI_NONE));
}
END_TEST

START_TEST(residency_through_a_rotation) {
  feed("{\"t\":1,\"ev\":\"run\",\"cmd\":\"train\",\"rounds\":10,\"round0\":0,\"budget\":2}");
  for (int i = 0; i < 4; i++) {
    char line[96];
    snprintf(line, sizeof line, "{\"t\":1,\"ev\":\"doc\",\"doc\":%d,\"resident\":%s}", i,
             i < 2 ? "true" : "false");
    feed(line);
  }
  ck_assert_uint_eq(tui_snapshot_count(&snap, TUI_RESIDENT), 2);
  feed("{\"t\":2,\"ev\":\"round\",\"round\":1,\"doc\":1,\"loss\":2,\"steps\":{\"0\":1,\"1\":1},"
       "\"resident\":[0,1],\"seconds\":4}");
  ck_assert_int_eq(tui_snapshot_doc(&snap, 1)->residency, TUI_TRAINING);
  ck_assert_uint_eq(tui_snapshot_doc(&snap, 0)->steps, 1);
  ck_assert_double_eq(tui_snapshot_seconds_left(&snap), 36); /* 9 rounds at 4 seconds */
  feed("{\"t\":3,\"ev\":\"rotate\",\"round\":1,\"out\":[1],\"in\":[3]}");
  ck_assert_int_eq(tui_snapshot_doc(&snap, 1)->residency, TUI_EVICTED);
  ck_assert_int_eq(tui_snapshot_doc(&snap, 3)->residency, TUI_RESIDENT);
  ck_assert_int_eq(tui_snapshot_doc(&snap, 0)->residency, TUI_RESIDENT);
  feed("{\"t\":4,\"ev\":\"round\",\"round\":2,\"doc\":3,\"loss\":2,\"resident\":[0,3]}");
  ck_assert_int_eq(tui_snapshot_doc(&snap, 3)->residency, TUI_TRAINING);
  ck_assert_int_eq(tui_snapshot_doc(&snap, 1)->residency,
                   TUI_EVICTED); /* until the next rotation */
  feed("{\"t\":5,\"ev\":\"end\",\"status\":\"done\"}");
  ck_assert_int_eq(tui_snapshot_doc(&snap, 3)->residency, TUI_RESIDENT);
  ck_assert_int_eq(snap.state, TUI_RUN_DONE);
}
END_TEST

START_TEST(spans_merge) {
  static const struct {
    uint32_t first, end, covered;
    size_t spans;
  } steps[] = { { 100, 200, 100, 1 },  { 300, 400, 200, 2 }, { 200, 250, 250, 2 },
                { 240, 310, 300, 1 },  { 0, 50, 350, 2 },    { 10, 20, 350, 2 },
                { 900, 1000, 450, 3 }, { 0, 1000, 1000, 1 }, { 5, 5, 1000, 1 },
                { 9, 3, 1000, 1 } };
  feed("{\"t\":1,\"ev\":\"doc\",\"doc\":0,\"tokens\":1000}");
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    char line[128];
    snprintf(line, sizeof line, "{\"t\":1,\"ev\":\"study\",\"doc\":0,\"first\":%u,\"end\":%u}",
             steps[i].first, steps[i].end);
    feed(line);
    const tui_doc *d = tui_snapshot_doc(&snap, 0);
    ck_assert_uint_eq(tui_doc_covered(d), steps[i].covered);
    ck_assert_uint_eq(d->n_spans, steps[i].spans);
  }
  ck_assert_double_eq(tui_doc_coverage(tui_snapshot_doc(&snap, 0)), 1);
}
END_TEST

/* Spans at random against a plain map of tokens. */
START_TEST(spans_against_a_map) {
  enum { TOKENS = 3000 };
  static bool map[TOKENS];
  fl_rng r = fl_rng_stream(11, FL_RNG_TEST, 0, 0, 0);
  memset(map, 0, sizeof map);
  for (int i = 0; i < 300; i++) {
    char line[128];
    uint32_t first = (uint32_t)fl_rng_below(&r, TOKENS - 40),
             n = 1 + (uint32_t)fl_rng_below(&r, 40);
    uint32_t want = 0;
    snprintf(line, sizeof line, "{\"t\":1,\"ev\":\"study\",\"doc\":0,\"first\":%u,\"end\":%u}",
             first, first + n);
    feed(line);
    for (uint32_t k = first; k < first + n; k++) map[k] = true;
    for (size_t k = 0; k < TOKENS; k++) want += map[k];
    ck_assert_uint_eq(tui_doc_covered(tui_snapshot_doc(&snap, 0)), want);
  }
}
END_TEST

START_TEST(resuming_takes_rounds_back) {
  feed("{\"t\":1,\"ev\":\"run\",\"cmd\":\"train\",\"rounds\":10,\"round0\":0}");
  for (int i = 1; i <= 7; i++) {
    char line[96];
    snprintf(line, sizeof line, "{\"t\":%d,\"ev\":\"round\",\"round\":%d,\"doc\":0,\"loss\":%d}", i,
             i, 10 - i);
    feed(line);
  }
  /* killed at 7, saved at 5 */
  feed("{\"t\":9,\"ev\":\"run\",\"cmd\":\"train\",\"resumed\":true,\"rounds\":10,\"round0\":5}");
  ck_assert_uint_eq(snap.round, 5);
  ck_assert_uint_eq(snap.curves.loss.n, 5);
  ck_assert_uint_eq(tui_snapshot_doc(&snap, 0)->curves.loss.n, 5);
  ck_assert_double_eq((double)snap.curves.loss.point[snap.curves.loss.n - 1].y, 5);
}
END_TEST

START_TEST(passing_programs_change_nothing) {
  feed("{\"t\":1,\"ev\":\"run\",\"cmd\":\"train\",\"rounds\":10,\"round0\":0,\"pid\":1}");
  feed("{\"t\":2,\"ev\":\"run\",\"cmd\":\"ask\",\"pid\":2}");
  ck_assert_uint_eq(snap.run->pid, 1);
  ck_assert_uint_eq(snap.rounds, 10);
}
END_TEST

/* A later part of the log tells again of a run that is known, and takes nothing back; where the
 * earlier parts are gone it tells of it first. */
START_TEST(a_run_that_is_continued) {
  static const char again[] = "{\"t\":5,\"ev\":\"run\",\"cmd\":\"train\",\"pid\":1,\"host\":\"h\","
                              "\"rounds\":10,\"round0\":4,\"continued\":true}";
  feed("{\"t\":1,\"ev\":\"run\",\"cmd\":\"train\",\"pid\":1,\"host\":\"h\","
       "\"rounds\":10,\"round0\":0}");
  feed("{\"t\":2,\"ev\":\"run\",\"cmd\":\"serve\",\"pid\":2,\"host\":\"h\"}");
  feed("{\"t\":4,\"ev\":\"round\",\"round\":6,\"doc\":0,\"loss\":1}");
  feed(again);
  ck_assert_uint_eq(snap.run->pid, 2);
  ck_assert_uint_eq(snap.round, 6);
  ck_assert_uint_eq(snap.curves.loss.n, 1);
  teardown();
  setup();
  feed(again);
  ck_assert_uint_eq(snap.run->pid, 1);
  ck_assert_uint_eq(snap.round, 4);
  ck_assert_uint_eq(snap.rounds, 10);
}
END_TEST

START_TEST(controls) {
  feed("{\"t\":1,\"ev\":\"doc\",\"doc\":3}");
  feed("{\"t\":1,\"ev\":\"control\",\"cmd\":\"set\",\"key\":\"budget\",\"value\":6}");
  feed("{\"t\":1,\"ev\":\"control\",\"cmd\":\"set\",\"key\":\"lr\",\"value\":0.25}");
  feed("{\"t\":1,\"ev\":\"control\",\"cmd\":\"mark\",\"doc\":3,\"value\":true}");
  feed("{\"t\":1,\"ev\":\"control\",\"cmd\":\"pause\",\"value\":null}");
  ck_assert_uint_eq(snap.budget, 6);
  ck_assert_double_eq(snap.lr, 0.25);
  ck_assert(tui_snapshot_doc(&snap, 3)->marked && snap.paused);
  feed("{\"t\":1,\"ev\":\"control\",\"cmd\":\"mark\",\"doc\":3,\"value\":false}");
  feed("{\"t\":1,\"ev\":\"control\",\"cmd\":\"resume\"}");
  ck_assert(!tui_snapshot_doc(&snap, 3)->marked && !snap.paused);
  /* a log may say what no count can be */
  feed("{\"t\":1,\"ev\":\"control\",\"cmd\":\"set\",\"key\":\"budget\",\"value\":1e20}");
  feed("{\"t\":1,\"ev\":\"control\",\"cmd\":\"set\",\"key\":\"rounds\",\"value\":-3}");
  ck_assert_uint_eq(snap.budget, TUI_NONE);
  ck_assert_uint_eq(snap.rounds, TUI_NONE);
}
END_TEST

/* One figure for all: losses of training until held-out ones are recent, then those that are. */
START_TEST(the_worst_goes_by_one_figure) {
  feed("{\"t\":1,\"ev\":\"heldout\",\"round\":0,\"doc\":0,\"alone\":9,\"composed\":9}");
  feed("{\"t\":1,\"ev\":\"heldout\",\"round\":0,\"doc\":1,\"alone\":8,\"composed\":8}");
  ck_assert_uint_eq(tui_snapshot_worst(&snap), 0);
  feed("{\"t\":2,\"ev\":\"round\",\"round\":2,\"doc\":0,\"loss\":1}");
  feed("{\"t\":2,\"ev\":\"round\",\"round\":3,\"doc\":1,\"loss\":2}");
  ck_assert_int_eq(tui_snapshot_worst_by(&snap), TUI_WORST_BY_LOSS);
  ck_assert_uint_eq(tui_snapshot_worst(&snap), 1);
  feed("{\"t\":3,\"ev\":\"heldout\",\"round\":3,\"doc\":0,\"alone\":0.5,\"composed\":0.9}");
  feed("{\"t\":3,\"ev\":\"heldout\",\"round\":3,\"doc\":1,\"alone\":0.8,\"composed\":0.7}");
  /* older than the last training, but recent */
  feed("{\"t\":4,\"ev\":\"round\",\"round\":5,\"doc\":0,\"loss\":0.1}");
  ck_assert_int_eq(tui_snapshot_worst_by(&snap), TUI_WORST_BY_HELD);
  ck_assert_uint_eq(tui_snapshot_worst(&snap), 0);
}
END_TEST

/* The recorded log: figures counted from the file by other means (grep and awk). */
START_TEST(the_recorded_log) {
  load_voyage();
  ck_assert_int_eq(tui_snapshot_fold(&snap, &store, store.n_ticks), FL_OK);
  ck_assert_uint_eq(store.n_ticks, 392);
  ck_assert_uint_eq(store.n_damaged + store.n_unknown, 0);
  ck_assert_uint_eq(snap.n_docs, 12);
  ck_assert_uint_eq(snap.n_study, 214);   /* grep -c '"ev":"study"' less the rejected */
  ck_assert_uint_eq(snap.n_rejected, 26); /* grep -c '"rejected"' */
  ck_assert_uint_eq(snap.curves.loss.n, 60);
  ck_assert_uint_eq(snap.n_retrieves, 4);
  ck_assert_uint_eq(snap.generation, 12);
  ck_assert_int_eq(snap.state, TUI_RUN_DONE);
  ck_assert_double_eq_tol(snap.loss, 1.424991, 1e-6);
  ck_assert_uint_eq(tui_snapshot_count(&snap, TUI_RESIDENT), 4);
  ck_assert_uint_eq(snap.doc[tui_snapshot_worst(&snap)].id, 6);
}
END_TEST

static double digest(const tui_snapshot *s) {
  double d = s->t + s->loss_mean + s->round + 7 * (double)s->n_study + s->cost.seconds;
  for (size_t i = 0; i < s->n_docs; i++) {
    const tui_doc *doc = &s->doc[i];
    d += doc->steps == TUI_NONE ? 0 : doc->steps * ((double)i + 1);
    d += (double)doc->residency * 0.5 + tui_doc_covered(doc) + (double)doc->curves.loss.n;
  }
  return d;
}

/* Going to a moment, from wherever, gives the state of that moment. */
START_TEST(any_moment_from_anywhere) {
  load_voyage();
  fl_rng r = fl_rng_stream(1, FL_RNG_TEST, 0, 0, 0);
  for (int i = 0; i < 200; i++) {
    size_t to = 14 + fl_rng_below(&r, store.n_ticks - 14);
    tui_snapshot fresh;
    tui_snapshot_init(&fresh);
    ck_assert_int_eq(tui_snapshot_fold(&snap, &store, to), FL_OK);
    ck_assert_int_eq(tui_snapshot_fold(&fresh, &store, to), FL_OK);
    ck_assert_uint_eq(snap.applied, to);
    double a = digest(&snap), b = digest(&fresh);
    ck_assert_msg(a == b || (isnan(a) && isnan(b)), "at %zu: %g and %g", to, a, b);
    tui_snapshot_release(&fresh);
  }
}
END_TEST

/* What a round says again of steps and residents takes no room, and counts all the same. */
START_TEST(what_is_said_again) {
  static const char again[] = "{\"t\":3,\"ev\":\"round\",\"round\":%d,\"doc\":1,"
                              "\"steps\":{\"0\":%d,\"1\":%d},\"resident\":[0,1]}";
  char line[160];
  size_t numbers = 0;
  for (int i = 1; i <= 5; i++) {
    snprintf(line, sizeof line, again, i, 4, 10 + i);
    feed(line);
    if (i == 1) numbers = store.n_numbers;
    ck_assert_uint_eq(store.n_numbers, numbers + 2 * (size_t)(i - 1)); /* one pair has changed */
    ck_assert_uint_eq(tui_snapshot_doc(&snap, 0)->steps, 4);
    ck_assert_uint_eq(tui_snapshot_doc(&snap, 1)->steps, 10 + (uint32_t)i);
  }
  /* a rotation comes between, then the same residents; and one whose line is cut */
  feed("{\"t\":4,\"ev\":\"rotate\",\"round\":5,\"out\":[0],\"in\":[2]}");
  feed("{\"t\":4,\"ev\":\"round\",\"round\":6,\"doc\":2,\"steps\":{\"0\":77},\"resident\":[1,2]");
  feed("{\"t\":4,\"ev\":\"round\",\"doc\":2,\"steps\":{\"0\":78}}");
  snprintf(line, sizeof line, again, 6, 4, 15);
  feed(line);
  ck_assert_int_eq(tui_snapshot_doc(&snap, 0)->residency, TUI_RESIDENT);
  ck_assert_int_eq(tui_snapshot_doc(&snap, 2)->residency, TUI_ON_DISK);
  /* a run that goes on from an older state says so in its doc events */
  feed("{\"t\":5,\"ev\":\"doc\",\"doc\":0,\"steps\":2}");
  snprintf(line, sizeof line, again, 7, 4, 16);
  feed(line);
  ck_assert_uint_eq(tui_snapshot_doc(&snap, 0)->steps, 4);
  tui_store_reset(&store);
  tui_snapshot_release(&snap);
  feed(line);
  ck_assert_uint_eq(tui_snapshot_doc(&snap, 0)->steps, 4);
  ck_assert_int_eq(tui_snapshot_doc(&snap, 0)->residency, TUI_RESIDENT);
}
END_TEST

/* Times: to the millisecond while the log goes on, in order over any gap, held when a clock is set
 * back; a seek finds each. Single precision loses 2^-25 of the time since the first of 256. */
START_TEST(times) {
  enum { EVENTS = 3000 };
  static double t[EVENTS];
  fl_rng r = fl_rng_stream(3, FL_RNG_TEST, 0, 0, 0);
  double now = 1767960000;
  for (size_t i = 0; i < EVENTS; i++) {
    char line[80];
    now += i % 700 == 650 ? 4e7 : floor((double)fl_rng_below(&r, 20000)) / 1000;
    t[i] = floor(now * 1000 + 0.5) / 1000;
    snprintf(line, sizeof line, "{\"t\":%.3f,\"ev\":\"doc\",\"doc\":0}", t[i]);
    feed(line);
  }
  for (size_t i = 0; i < EVENTS; i++) {
    double since = t[i] - t[i / TUI_TICKS_A_BASE * TUI_TICKS_A_BASE];
    ck_assert_double_eq_tol(tui_store_t(&store, i), t[i], 1e-6 + since / (1 << 24));
    ck_assert(since > 1e7 || fabs(tui_store_t(&store, i) - t[i]) < 1e-3);
    ck_assert(tui_store_is_at(&store, i, t[i]) && !tui_store_is_at(&store, i, t[i] + 100));
    if (i > 0) ck_assert_double_ge(tui_store_t(&store, i), tui_store_t(&store, i - 1));
    size_t found = tui_store_seek(&store, tui_store_t(&store, i));
    ck_assert(found > i && tui_store_t(&store, found - 1) <= tui_store_t(&store, i));
  }
  feed("{\"t\":5,\"ev\":\"doc\",\"doc\":0}");
  ck_assert_double_eq(tui_store_t(&store, EVENTS), tui_store_t(&store, EVENTS - 1));
}
END_TEST

START_TEST(very_many_documents) {
  char line[64];
  for (uint32_t i = 0; i < 70000; i++) {
    snprintf(line, sizeof line, "{\"t\":1,\"ev\":\"doc\",\"doc\":%u}", i * 7919u);
    tui_store_add(&store, line, strlen(line), (tui_line_ref){ 0 });
  }
  ck_assert_int_eq(tui_snapshot_fold(&snap, &store, store.n_ticks), FL_OK);
  ck_assert_uint_eq(snap.n_docs, TUI_DOCS_MAX);
  ck_assert_ptr_nonnull(tui_snapshot_doc(&snap, 7919u * 65000u));
}
END_TEST

Suite *suite_snapshot(void);
Suite *suite_snapshot(void) {
  Suite *s = suite_create("snapshot");
  TCase *t = tcase_create("Core");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, unknown_is_not_zero);
  tcase_add_test(t, residency_through_a_rotation);
  tcase_add_test(t, spans_merge);
  tcase_add_test(t, spans_against_a_map);
  tcase_add_test(t, resuming_takes_rounds_back);
  tcase_add_test(t, passing_programs_change_nothing);
  tcase_add_test(t, a_run_that_is_continued);
  tcase_add_test(t, controls);
  tcase_add_test(t, the_worst_goes_by_one_figure);
  tcase_add_test(t, the_recorded_log);
  tcase_add_test(t, any_moment_from_anywhere);
  tcase_add_test(t, what_is_said_again);
  tcase_add_test(t, times);
  tcase_add_test(t, very_many_documents);
  tcase_set_timeout(t, 60);
  suite_add_tcase(s, t);
  return s;
}
