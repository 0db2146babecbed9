/* check_spill.c - rows on disk: the same bits back, every damage found, the limit kept. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/log.h"
#include "gate.h"
#include "model_util.h"
#include "scratch.h"
#include "serve/spill.h"

enum { ROWS = 75, PREFIX = 10 };

static rig r;
static fl_kv_pool *pool;
static fl_seq *seq;
static int32_t ids[PREFIX + ROWS];
static fl_prefix prefix;
static char dir[600];

static void setup_type(fl_kv_type type) {
  size_t last;
  fl_log_set_level(-1); /* warnings about damage are expected by the hundred */
  scratch_begin();
  snprintf(dir, sizeof dir, "%s", scratch_dir);
  r = rig_open("embedded/model.gguf", 1);
  pool = rig_pool(&r, type);
  seq = rig_seq(pool);
  some_ids(ids, PREFIX + ROWS, r.hp->n_vocab, 1);
  fl_pass *p = rig_pass(&r, (fl_pass_options){ .max_rows = 128 });
  ck_assert_int_eq(fl_pass_prefill(p, seq, ids, PREFIX + ROWS, &last, NULL), FL_OK);
  fl_pass_free(p);
  prefix = (fl_prefix){ .doc = { 3, 1 }, .n_docs = 2, .rows = PREFIX, .digest = "xyz" };
}

static void setup(void) { setup_type(FL_KV_F32); }

static void teardown(void) {
  fl_seq_free(seq);
  fl_kv_pool_free(pool);
  rig_close(&r);
  scratch_end();
}

static fl_spill *open_spill(size_t max_files) {
  fl_spill *s;
  fl_err err = { 0 };
  ck_assert_msg(fl_spill_open(&s, dir, max_files, r.m, pool, &err) == FL_OK, "%s", err.text);
  return s;
}

static fl_seq *fork_all(void) {
  fl_seq *t;
  ck_assert_int_eq(fl_seq_fork(&t, seq, PREFIX + ROWS, NULL), FL_OK);
  return t;
}

/* Room for n rows, then they are read. */
static int restore(fl_spill *s, const fl_spill_file *f, fl_seq *t, size_t n) {
  fl_spill_job *reading = NULL;
  ck_assert_int_eq(fl_seq_reserve(t, PREFIX + n, NULL), FL_OK);
  ck_assert_int_eq(fl_spill_read(&reading, s, f, t, n), FL_OK);
  return fl_spill_read_end(s, reading);
}

/* Saves and waits until it is written. */
static void save(fl_spill *s, size_t n, const char *key) {
  const fl_spill_item it = {
    .prefix = &prefix, .ids = ids + PREFIX, .n = n, .key = key, .owner = 9
  };
  fl_seq *rows = fork_all();
  fl_spill_save(s, &it, &rows);
  fl_seq_free(rows); /* not taken */
  ck_assert(fl_spill_wait(s));
}

/* Saves and does not wait. */
static void save_late(fl_spill *s) {
  const fl_spill_item it = {
    .prefix = &prefix, .ids = ids + PREFIX, .n = 40, .key = "k", .owner = 8
  };
  fl_seq *rows = fork_all();
  fl_spill_save(s, &it, &rows);
  ck_assert_ptr_null(rows);
}

/* Rows [0, n) of two sequences, bit for bit. */
static void same_rows(const fl_seq *a, const fl_seq *b, size_t n) {
  for (size_t l = 0; l < fl_kv_n_layers(pool); l++) {
    const fl_kv_layer *k = fl_kv_layer_at(pool, l);
    size_t count = n * k->kv_heads * k->head_dim;
    float *x = fl_calloc(4 * count, sizeof *x);
    fl_seq_read(a, l, 0, n, x, x + count);
    fl_seq_read(b, l, 0, n, x + 2 * count, x + 3 * count);
    ck_assert_int_eq(memcmp(x, x + 2 * count, 2 * count * sizeof *x), 0);
    fl_free(x);
  }
}

/* A sequence with the prefix's rows. */
static fl_seq *begun(void) {
  fl_seq *s;
  ck_assert_int_eq(fl_seq_fork(&s, seq, PREFIX, NULL), FL_OK);
  return s;
}

START_TEST(test_round_trip) {
  setup_type(_i == 0 ? FL_KV_F32 : FL_KV_F16);
  fl_spill *s = open_spill(4);
  save(s, ROWS, "me");
  ck_assert_uint_eq(fl_spill_n(s), 1);
  ck_assert_uint_eq(fl_spill_stats_of(s).saved, 1);
  fl_spill_close(s);
  s = open_spill(4); /* after a restart */
  ck_assert_uint_eq(fl_spill_n(s), 1);
  const fl_spill_file *f = fl_spill_at(s, 0);
  ck_assert_str_eq(f->key, "me");
  ck_assert_uint_eq(f->n_docs, 2);
  ck_assert_uint_eq(f->doc[0], 3);
  ck_assert_uint_eq(f->doc[1], 1);
  for (size_t n = 1; n <= ROWS; n += 37) { /* 1, 38, 75: a page, pages and a bit, all */
    size_t common = 0;
    fl_seq *t = begun();
    fl_spill_file *found = fl_spill_find(s, &prefix, 9, ids + PREFIX, n, &common);
    ck_assert_ptr_nonnull(found);
    ck_assert_uint_eq(common, n);
    ck_assert_int_eq(restore(s, found, t, n), FL_OK);
    ck_assert_uint_eq(fl_seq_rows(t), PREFIX + n);
    same_rows(seq, t, PREFIX + n);
    fl_seq_free(t);
  }
  fl_prefix other = prefix;
  size_t common;
  snprintf(other.digest, sizeof other.digest, "zzz");
  ck_assert_ptr_null(fl_spill_find(s, &prefix, 7, ids + PREFIX, ROWS, &common));
  ck_assert_ptr_null(fl_spill_find(s, &other, 9, ids + PREFIX, ROWS, &common));
  struct stat st;
  ck_assert_int_eq(stat(scratch(f->name), &st), 0);
  ck_assert_uint_eq(st.st_mode & 077, 0); /* nobody else reads what people said */
  fl_spill_close(s);
  teardown();
}
END_TEST

START_TEST(test_limits) {
  setup();
  fl_spill *s = open_spill(2);
  save(s, FL_SPILL_MIN - 1, "short");
  ck_assert_uint_eq(fl_spill_n(s), 0);
  save(s, 40, "a");
  save(s, 40, "a");
  save(s, 35, "a"); /* held already */
  ck_assert_uint_eq(fl_spill_n(s), 1);
  save(s, 60, "a"); /* holds the first: it goes */
  ck_assert_uint_eq(fl_spill_n(s), 1);
  ck_assert_uint_eq(fl_spill_at(s, 0)->n, 60);
  ck_assert_uint_eq(scratch_count(), 2); /* and the lock */
  for (int i = 0; i < 3; i++) {
    ids[PREFIX] = (ids[PREFIX] + 1) % 2000; /* other conversations */
    save(s, 40, "b");
  }
  ck_assert_uint_eq(fl_spill_n(s), 2);
  ck_assert_uint_eq(scratch_count(), 3);
  fl_spill *second = NULL;
  ck_assert_int_eq(fl_spill_open(&second, dir, 2, r.m, pool, NULL), FL_EBUSY);
  fl_spill_close(s);
  s = open_spill(1); /* fewer than there are */
  ck_assert_uint_eq(fl_spill_n(s), 1);
  fl_spill_close(s);
  teardown();
}
END_TEST

/* Conversations as they come: each is found while it is on its way, all that were taken are there
 * in the end, each with its own rows, and every page is given back. */
START_TEST(test_written_beside) {
  enum { MANY = 3 * FL_SPILL_WAITING };
  setup();
  fl_spill *s = open_spill(MANY);
  const size_t before = fl_kv_pool_bytes(pool);
  const int32_t first = ids[PREFIX];
  size_t common = 0, written = 0;
  for (int i = 0; i < MANY; i++) {
    const fl_spill_item it = {
      .prefix = &prefix, .ids = ids + PREFIX, .n = ROWS, .key = "k", .owner = 9
    };
    fl_seq *rows = fork_all(), *again = fork_all();
    ids[PREFIX] = (first + i) % 2000;
    if (i % FL_SPILL_WAITING == 0) ck_assert(fl_spill_wait(s)); /* there are places again */
    fl_spill_save(s, &it, &rows);
    ck_assert_ptr_null(rows);
    fl_spill_save(s, &it, &again); /* it is on its way already */
    ck_assert_ptr_nonnull(again);
    fl_seq_free(again);
    const fl_seq *newest = fl_spill_unwritten(s, &prefix, 9, ids + PREFIX, ROWS, &common);
    if (common == ROWS) same_rows(seq, newest, PREFIX + ROWS);
    (void)fl_spill_find(s, &prefix, 9, ids + PREFIX, ROWS, &written);
    ck_assert_uint_eq(common > written ? common : written, ROWS); /* in memory or on the disk */
  }
  ck_assert(fl_spill_wait(s));
  ck_assert(!fl_spill_holds_rows(s));
  ck_assert_int_eq(fl_spill_make_room(s), FL_SPILL_EMPTY);
  ck_assert_ptr_null(fl_spill_unwritten(s, &prefix, 9, ids + PREFIX, ROWS, &common));
  fl_spill_file *file = fl_spill_find(s, &prefix, 9, ids + PREFIX, ROWS, &written);
  ck_assert_uint_eq(written, ROWS);
  fl_seq *t = begun();
  ck_assert_int_eq(restore(s, file, t, ROWS), FL_OK);
  same_rows(seq, t, PREFIX + ROWS);
  fl_seq_free(t);
  ck_assert_uint_eq(fl_spill_n(s), MANY);
  ck_assert_uint_eq(fl_spill_stats_of(s).saved, MANY);
  ck_assert_uint_eq(fl_kv_pool_bytes(pool), before);
  save_late(s);
  fl_spill_close(s); /* finishes what it was given */
  ck_assert_uint_eq(fl_kv_pool_bytes(pool), before);
  s = open_spill(MANY + 1);
  ck_assert_uint_eq(fl_spill_n(s), MANY);
  ck_assert_uint_eq(fl_spill_at(s, MANY - 1)->owner, 8);
  fl_spill_close(s);
  teardown();
}
END_TEST

static void count_ready(void *ctx) { atomic_fetch_add((atomic_int *)ctx, 1); }

/* Readings beside one another and beside what the list does: several of one file, one that nobody
 * waits for, one whose file is dropped meanwhile. All pages are given back, none hangs at the
 * end. */
START_TEST(test_read_beside) {
  enum { MANY = 6 };
  setup();
  fl_spill *s = open_spill(4);
  atomic_int ready = 0;
  fl_spill_set_hooks(s, &(fl_spill_hooks){ .ready = count_ready, .ready_ctx = &ready });
  const size_t before = fl_kv_pool_bytes(pool);
  save(s, 60, "me");
  fl_spill_job *read[MANY];
  fl_seq *t[MANY];
  for (int i = 0; i < MANY; i++) {
    t[i] = begun();
    ck_assert_int_eq(fl_seq_reserve(t[i], PREFIX + 60, NULL), FL_OK);
    ck_assert_int_eq(fl_spill_read(&read[i], s, fl_spill_at(s, 0), t[i], 60), FL_OK);
  }
  fl_spill_read_drop(s, read[1]);
  ck_assert_uint_eq(fl_seq_rows(t[1]), PREFIX);
  fl_seq_free(t[1]);
  save(s, ROWS, "me"); /* holds the first, which leaves the list */
  ck_assert_uint_eq(fl_spill_n(s), 1);
  ck_assert_uint_eq(fl_spill_at(s, 0)->n, ROWS);
  for (int i = 0; i < MANY; i++) {
    if (i == 1) continue;
    ck_assert_int_eq(fl_spill_read_end(s, read[i]), FL_OK);
    ck_assert_uint_eq(fl_seq_rows(t[i]), PREFIX + 60);
    same_rows(seq, t[i], PREFIX + 60);
    fl_seq_free(t[i]);
  }
  ck_assert(fl_spill_wait(s));
  ck_assert_uint_eq(fl_kv_pool_bytes(pool), before);
  ck_assert_int_eq(atomic_load(&ready), MANY + 2); /* and two files were written */
  ck_assert_uint_eq(scratch_count(), 2);           /* one file and the lock */
  fl_seq *last = begun();
  ck_assert_int_eq(fl_seq_reserve(last, PREFIX + ROWS, NULL), FL_OK);
  ck_assert_int_eq(fl_spill_read(&read[0], s, fl_spill_at(s, 0), last, ROWS), FL_OK);
  fl_spill_read_drop(s, read[0]);
  fl_seq_free(last);
  fl_spill_close(s);
  ck_assert_uint_eq(fl_kv_pool_bytes(pool), before);
  teardown();
}
END_TEST

static gate disk = GATE_OPEN;

/* A disk that hangs, before the first block of a file or after some: nothing waits for it, rows and
 * pages are there again when they are wanted, and what it did is tidied when it goes on. */
START_TEST(test_disk_hangs) {
  setup();
  fl_spill *s = open_spill(4);
  const size_t before = fl_kv_pool_bytes(pool);
  size_t common;
  fl_spill_set_hooks(s, &(fl_spill_hooks){ .disk = stand_at_gate, .disk_ctx = &disk });
  save(s, 60, "old");
  shut_gate(&disk, (size_t)_i * 4);
  for (int i = 0; i < FL_SPILL_WAITING + 1; i++) {
    const fl_spill_item it = {
      .prefix = &prefix, .ids = ids + PREFIX, .n = ROWS, .key = "k", .owner = (uint32_t)i
    };
    fl_seq *rows = fork_all();
    fl_spill_save(s, &it, &rows);
    ck_assert(i < FL_SPILL_WAITING ? rows == NULL : rows != NULL);
    fl_seq_free(rows);
  }
  ck_assert_uint_eq(wait_at_gate(&disk), (size_t)_i * 4 + 1);
  ck_assert_uint_eq(fl_spill_stats_of(s).skipped, 1);
  ck_assert_ptr_nonnull(fl_spill_unwritten(s, &prefix, 3, ids + PREFIX, ROWS, &common));
  fl_seq *t = begun();
  fl_spill_job *reading;
  ck_assert_int_eq(fl_seq_reserve(t, PREFIX + 60, NULL), FL_OK);
  ck_assert_int_eq(fl_spill_read(&reading, s, fl_spill_at(s, 0), t, 60), FL_OK);
  ck_assert(!fl_spill_wait(s));
  ck_assert(fl_spill_stalled(s));
  ck_assert_ptr_null(fl_spill_find(s, &prefix, 9, ids + PREFIX, 60, &common));
  fl_spill_read_drop(s, reading);
  ck_assert_uint_eq(fl_seq_rows(t), PREFIX);
  fl_seq_free(t);
  for (int i = 0; i < FL_SPILL_WAITING; i++)
    ck_assert_int_eq(fl_spill_make_room(s), FL_SPILL_FREED);
  ck_assert_int_eq(fl_spill_make_room(s), FL_SPILL_EMPTY);
  ck_assert_uint_eq(fl_kv_pool_bytes(pool), before);
  open_gate(&disk);
  ck_assert(fl_spill_wait(s));
  ck_assert_uint_eq(fl_spill_stats_of(s).skipped, 1 + FL_SPILL_WAITING);
  ck_assert_uint_eq(fl_spill_stats_of(s).saved, 1);
  ck_assert_uint_eq(fl_spill_stats_of(s).damaged, 0);
  ck_assert_ptr_nonnull(fl_spill_find(s, &prefix, 9, ids + PREFIX, 60, &common));
  ck_assert_uint_eq(scratch_count(), 2); /* the old one and the lock */
  shut_gate(&disk, (size_t)_i * 4);
  save_late(s);
  fl_spill_close(s);
  ck_assert_uint_eq(fl_kv_pool_bytes(pool), before);
  open_gate(&disk);
  teardown();
}
END_TEST

static size_t read_all(const char *path, uint8_t **out) {
  fl_buf b = { 0 };
  ck_assert_int_eq(fl_fs_read(&b, path, (size_t)1 << 30, NULL), FL_OK);
  *out = (uint8_t *)b.data;
  return b.len;
}

/* Whatever is wrong with a file: it is refused, at the listing or when its rows are read, never
 * used, and removed. */
START_TEST(test_damage) {
  static const char name[] = "slot-0000000000000000.flslot";
  setup();
  fl_spill *s = open_spill(4);
  save(s, ROWS, "me");
  fl_spill_close(s);
  uint8_t *good;
  const size_t size = read_all(scratch(name), &good);
  const size_t cuts[] = { 0, 7, 100, 159, 160, 200, size / 2, size - 1 };
  size_t restored = 0;
  for (size_t way = 0; way < 8 + 400; way++) {
    uint8_t *bad = fl_malloc(size);
    size_t n = way < 8 ? cuts[way] : size;
    memcpy(bad, good, size);
    /* Single bits: all through the head, then spread over the rest. */
    size_t at = way - 8 < 240 ? way - 8 : 240 + (way - 248) * ((size - 240) / 160);
    if (way >= 8) bad[at] ^= (uint8_t)(1u << (way % 8));
    scratch_put(scratch(name), bad, n);
    s = open_spill(4);
    size_t common = 0;
    fl_spill_file *f = fl_spill_find(s, &prefix, 9, ids + PREFIX, ROWS, &common);
    if (f != NULL && common > 0) {
      fl_seq *t = begun();
      ck_assert_int_ne(restore(s, f, t, common), FL_OK);
      ck_assert_uint_eq(fl_seq_rows(t), PREFIX);
      ck_assert_uint_eq(fl_spill_n(s), 0);
      fl_seq_free(t);
      restored++;
    }
    fl_spill_close(s);
    fl_free(bad);
    unlink(scratch(name));
  }
  ck_assert_uint_gt(restored, 100); /* the checksum was needed */
  fl_free(good);
  teardown();
}
END_TEST

/* A head that is whole and has huge counts. */
START_TEST(test_hostile_counts) {
  static const char name[] = "slot-0000000000000000.flslot";
  static const struct {
    size_t at, n;
    uint64_t value;
  } bad[] = {
    { 12, 4, 0 },       { 12, 4, UINT32_MAX },        { 16, 8, 0 },          { 16, 8, UINT64_MAX },
    { 16, 8, 1 << 20 }, { 16, 8, (uint64_t)1 << 61 }, { 24, 8, UINT64_MAX }, { 32, 4, UINT32_MAX },
    { 32, 4, 65 },      { 160, 4, UINT32_MAX },
  };
  setup();
  fl_spill *s = open_spill(4);
  save(s, ROWS, "me");
  fl_spill_close(s);
  uint8_t *good;
  size_t size = read_all(scratch(name), &good);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    uint8_t *x = fl_malloc(size);
    memcpy(x, good, size);
    memcpy(x + bad[i].at, &bad[i].value, bad[i].n);
    scratch_put(scratch(name), x, size);
    s = open_spill(4);
    ck_assert_uint_eq(fl_spill_n(s), 0);
    ck_assert_uint_eq(fl_spill_stats_of(s).damaged, 1);
    ck_assert(!fl_fs_exists(scratch(name)));
    fl_spill_close(s);
    fl_free(x);
  }
  /* Another model's file is nobody's business. */
  good[40 + 6] ^= 1;
  scratch_put(scratch(name), good, size);
  scratch_put(scratch("slot-notes.txt"), "x", 1);
  s = open_spill(4);
  ck_assert_uint_eq(fl_spill_n(s), 0);
  ck_assert(fl_fs_exists(scratch(name)));
  ck_assert(fl_fs_exists(scratch("slot-notes.txt")));
  save(s, ROWS, "me"); /* under a name of its own */
  ck_assert_uint_eq(fl_spill_stats_of(s).saved, 1);
  ck_assert_uint_eq(scratch_count(), 4);
  fl_spill_close(s);
  fl_free(good);
  teardown();
}
END_TEST

/* No room on the disk (a limit of the process stands for it): skipped, counted, nothing left. */
START_TEST(test_full_disk) {
  setup();
  fl_spill *s = open_spill(4);
  struct rlimit lim = { 5000, 5000 };
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
  save(s, ROWS, "me");
  ck_assert_uint_eq(fl_spill_stats_of(s).skipped, 1);
  ck_assert_uint_eq(fl_spill_n(s), 0);
  ck_assert_uint_eq(scratch_count(), 1);
  fl_spill_close(s);
  teardown();
}
END_TEST

Suite *suite_spill(void) {
  Suite *s = suite_create("spill");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, test_round_trip, 0, 2);
  tcase_add_test(t, test_limits);
  tcase_add_test(t, test_written_beside);
  tcase_add_test(t, test_read_beside);
  tcase_add_loop_test(t, test_disk_hangs, 0, 2);
  tcase_add_test(t, test_damage);
  tcase_add_test(t, test_hostile_counts);
  tcase_add_test(t, test_full_disk);
  suite_add_tcase(s, t);
  return s;
}
